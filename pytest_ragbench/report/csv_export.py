"""Results as a table for spreadsheets, which must not run what an answer holds.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-``, ``@`` or a control character for a
formula. Such texts get an apostrophe in front (OWASP's rule); so do texts that begin with one, which
makes :func:`original_text` exact. Numbers are written as numbers, negative ones too.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.scores import plain

_MARK = "'"
# Full-width forms are read as the ASCII ones by some spreadsheets.
_FORMULA = tuple("=+-@\t\r\n\x00＝＋－＠")
_PADDING = " \u00a0\u3000\ufeff"


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
    try:
        with path.open("w", encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([safe_cell(name) for name in names])
            writer.writerows([safe_cell(row.get(name)) for name in names] for row in table)
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


def score_rows(results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The ``results`` of a JSON report as rows: one for each score, one for a test without any."""
    rows = []
    for result in results:
        samples = result.get("samples") or []
        for score in result.get("scores") or [{}]:
            place = score.get("sample")
            sample = samples[place] if isinstance(place, int) else (samples[0] if len(samples) == 1 else {})
            rows.append(
                {
                    **{name: result.get(name) for name in ("test", "outcome", "kind", "question_id")},
                    **{name: sample.get(name) for name in ("question", "answer", "reference", "contexts")},
                    **{name: score.get(name) for name in _SCORE},
                    "error": (score.get("error") or {}).get("message") or result.get("message"),
                }
            )
    return rows


_SCORE = ("metric", "value", "threshold", "passed", "reason", "error_message", "judge")
