"""The file of scores: JSON Lines as written, or turned into CSV or Parquet when all rows are there."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.csv_export import safe_cell

_KINDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".parquet": "parquet"}
_GROUP = 10_000
"""Rows that are held at once while a table is written."""


def kind_of(output: Path) -> str:
    """``"jsonl"``, ``"csv"`` or ``"parquet"``, by the suffix.

    Raises
    ------
    UsageError
        Another suffix, or a directory that is not there, or Parquet without pyarrow.
    """
    kind = _KINDS.get(output.suffix.lower())
    if kind is None:
        raise UsageError(f"{output}: scores are written as {', '.join(_KINDS)}, not as {output.suffix!r}")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: there is no directory {output.parent}")
    if kind == "parquet":
        _pyarrow(output)
    return kind


def finish(part: Path, output: Path, metrics: Sequence[str]) -> None:
    """Make the output of a complete ``part``, and remove that."""
    kind = kind_of(output)
    if kind == "jsonl":
        part.replace(output)
        return
    # Whole or not at all: nobody finds half a table under the output's name.
    draft = output.with_name(f"{output.name}.tmp")
    (_csv if kind == "csv" else _parquet)(part, draft, metrics)
    draft.replace(output)
    part.unlink()


def wrong_in(row: Mapping[str, Any]) -> str | None:
    """What went wrong with a row of the output, in one line; None where nothing did."""
    wrong = [row["error"]] if "error" in row else []
    wrong += [f"{name}: {error['message']}" for name, error in row.get("errors", {}).items()]
    return "; ".join(wrong) or None


def _flat(part: Path, metrics: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row with a column for each metric, and one for what went wrong."""
    with part.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            scores, reasons = row.get("scores", {}), row.get("reasons", {})
            yield {
                "row": row["row"],
                "line": row["line"],
                "id": row.get("id"),
                "question": row.get("question"),
                **{name: scores.get(name) for name in metrics},
                **{f"{name}_reason": reasons.get(name) for name in metrics},
                "error": wrong_in(row),
            }


def _csv(part: Path, output: Path, metrics: Sequence[str]) -> None:
    # With a byte order mark: without one Excel takes UTF-8 for the local code page.
    with output.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        for number, row in enumerate(_flat(part, metrics)):
            if number == 0:
                writer.writerow(row)
            writer.writerow([safe_cell(cell) for cell in row.values()])


def _parquet(part: Path, output: Path, metrics: Sequence[str]) -> None:
    pa, pq = _pyarrow(output)
    # Typed beforehand: a first group without any score would make a column of nulls.
    text, number = pa.string(), pa.float64()
    columns = [("row", pa.int64()), ("line", pa.int64()), ("id", text), ("question", text)]
    columns += [(name, number) for name in metrics]
    columns += [*((f"{name}_reason", text) for name in metrics), ("error", text)]
    schema = pa.schema(columns)
    rows = _flat(part, metrics)
    with pq.ParquetWriter(output, schema) as writer:
        while group := list(islice(rows, _GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))


def _pyarrow(output: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError(
            f"{output}: writing Parquet needs pyarrow: pip install 'pytest-ragbench[parquet]'"
        ) from None
    return pa, pq
