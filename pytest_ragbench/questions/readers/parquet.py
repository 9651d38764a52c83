"""Parquet, by pyarrow (extra ``parquet``). Rows are counted from 1, as lines are elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.questions.rows import Row, Source


class Parquet:
    """``.parquet``."""

    suffixes = (".parquet", ".pq")

    def read(self, source: Source) -> Iterator[Row]:
        """A row for each row of the table."""
        for part in self.read_parts(source, 10_000):
            yield from part

    def read_parts(self, source: Source, size: int, after: int = 0) -> Iterator[list[Row]]:
        """The rows after the ``after``-th, in lists of up to ``size``: the table is never held whole."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise UsageError(
                f"{source.name}: reading Parquet needs pyarrow: pip install 'pytest-ragbench[parquet]'"
            ) from None
        try:
            # Read in batches, so that a table needn't fit into memory.
            table = pq.ParquetFile(source.path)
            number = 1
            for batch in table.iter_batches(batch_size=size):
                rows = batch.to_pylist()
                if number + len(rows) > after + 1:
                    skip = max(after + 1 - number, 0)
                    yield [Row(number + place, _plain(row)) for place, row in enumerate(rows)][skip:]
                number += len(rows)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            source.stop(0, f"not a Parquet file that can be read: {str(error).splitlines()[0]}")


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Cells as JSON would have them. NaN is how pandas writes a missing number or text."""
    return {
        str(name): None if isinstance(cell, float) and math.isnan(cell) else cell
        for name, cell in row.items()
    }
