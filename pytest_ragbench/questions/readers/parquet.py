"""Parquet, by pyarrow (extra ``parquet``). Rows are counted from 1, as lines are elsewhere."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.questions.reading import Row, Source


class Parquet:
    """``.parquet``."""

    blank_is_missing = False

    def read(self, data: bytes, source: Source) -> Iterator[Row]:
        """A row for each row of the table."""
        for chunk in _rows(io.BytesIO(data), source, 10_000):
            yield from chunk


def batches(source: Source, size: int) -> Iterator[list[Row]]:
    """The rows of the source's file, ``size`` at a time: the table is never held whole."""
    return _rows(source.path, source, size)


def _rows(file: Any, source: Source, size: int) -> Iterator[list[Row]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError(
            f"{source.name}: reading Parquet needs pyarrow: pip install 'pytest-ragbench[parquet]'"
        ) from None
    try:
        table = pq.ParquetFile(file)
        number = 1
        for batch in table.iter_batches(batch_size=size):
            rows = batch.to_pylist()
            yield [Row(number + place, _plain(row)) for place, row in enumerate(rows)]
            number += len(rows)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        source.stop(0, f"not a Parquet file that can be read: {str(error).splitlines()[0]}")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Cells as JSON would have them. NaN is how pandas writes a missing number or text."""
    return {
        str(name): None if isinstance(cell, float) and math.isnan(cell) else cell
        for name, cell in row.items()
    }


READER = Parquet()
