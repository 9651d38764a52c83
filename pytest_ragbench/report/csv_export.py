"""Results as a table for spreadsheets, which must not run what an answer holds.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-``, ``@`` or a control character for a
formula. Such texts get an apostrophe in front (OWASP's rule); so do texts that begin with one, which
makes :func:`original_text` exact. Numbers are written as numbers, negative ones too.
"""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.scores import plain
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.formats import ReportContext

_MARK = "'"
# Full-width forms are read as the ASCII ones by some spreadsheets.
_FORMULA = tuple("=+-@\t\r\n\x00＝＋－＠")
_PADDING = " \u00a0\u3000\ufeff"


class CsvReport:
    """A table of the scores, written at the end of a run."""

    def __init__(self, path: Path, context: ReportContext) -> None:
        self._path = path
        self._rows: list[bytes] = []

    def add(self, result: TestRecord) -> None:
        # Chunks are most of a row, and thousands of rows wait for the end.
        rows = [[safe_cell(cell) for cell in row.values()] for row in score_rows(result)]
        self._rows.append(zlib.compress(json.dumps(rows).encode(), 1))

    def finish(self, run: RunReport) -> None:
        rows = (row for packed in self._rows for row in json.loads(zlib.decompress(packed)))
        _write(self._path, _COLUMNS, rows)


def write_csv(path: Path, rows: Iterable[Mapping[str, Any]], *, columns: Sequence[str] | None = None) -> None:
    """Write rows under a header: UTF-8 with a byte order mark, so that Excel reads it as such.

    Parameters
    ----------
    path
        The file; replaced where it exists.
    rows
        Mappings of column to value. None is an empty cell; lists and mappings are written as JSON.
    columns
        Which ones, in this order; all that occur by default, in the order they occur.

    Raises
    ------
    UsageError
        The file can't be written.
    """
    table = list(rows)
    names = list(columns if columns is not None else dict.fromkeys(name for row in table for name in row))
    _write(path, names, ([safe_cell(row.get(name)) for name in names] for row in table))


def _write(path: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    try:
        with path.open("w", encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([safe_cell(name) for name in names])
            writer.writerows(rows)
    except OSError as error:
        raise UsageError(f"{path}: can't be written: {error.strerror}") from None


def safe_cell(value: Any) -> str:
    """A value as the text of a cell."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return repr(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    risky = text.lstrip(_PADDING).startswith(_FORMULA) or text.startswith((_MARK, *_FORMULA))
    return _MARK + text if risky else text


def original_text(cell: str) -> str:
    """The text that :func:`safe_cell` was given."""
    return cell.removeprefix(_MARK)


_OF_TESTS = ("test", "outcome", "kind", "question_id", "system")
_OF_SAMPLES = ("question", "answer", "reference", "contexts")
_OF_SCORES = ("metric", "value", "threshold", "passed", "reason", "error_message", "judge")
_COLUMNS = (*_OF_TESTS, *_OF_SAMPLES, *_OF_SCORES, "error")


def score_rows(result: TestRecord) -> Iterator[dict[str, Any]]:
    """The result of a test as rows: one for each score, or one without any."""
    for score in result.scores or [None]:
        sample = result.sample_of(score) if score is not None else None
        # A score over a set of one is about that one.
        if sample is None and len(result.samples) == 1:
            sample = result.samples[0]
        error = score.error.message if score is not None and score.error is not None else None
        yield {
            **{name: getattr(result, name) for name in _OF_TESTS},
            **{name: getattr(sample, name, None) for name in _OF_SAMPLES},
            **{name: getattr(score, name, None) for name in _OF_SCORES},
            "error": error or result.message,
        }
