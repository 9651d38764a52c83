"""Workbooks of Excel and LibreOffice (``.xlsx``), by openpyxl (extra ``excel``)."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.questions import columns
from pytest_ragbench.questions.rows import Row, Source, repeated

_ERRORS = re.compile(r"#(REF!|N/A|VALUE!|NAME\?|DIV/0!|NUM!|NULL!|SPILL!|CALC!)")


class Workbook:
    """``.xlsx``, ``.xlsm``; lines are the rows of the sheet."""

    suffixes = (".xlsx", ".xlsm")
    blank_is_missing = True
    has_tables = True

    def read(self, source: Source) -> Iterator[Row]:
        """A row for each row below the header; rows of blank cells are passed over."""
        try:
            import openpyxl
        except ImportError:
            raise UsageError(
                f"{source.name}: reading .xlsx needs openpyxl: pip install 'pytest-ragbench[excel]'"
            ) from None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and validations that it does not know
                book = openpyxl.load_workbook(io.BytesIO(source.data()), data_only=True, read_only=True)
                sheets = {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}
        except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
            source.stop(0, f"not a workbook that can be read: {error or type(error).__name__}")
        name, at = _chosen(sheets, source)
        source.header_line = at + 1
        return _rows(name, sheets[name], at, source)


def _chosen(sheets: dict[str, list[Sequence[Any]]], source: Source) -> tuple[str, int]:
    """The sheet with the questions, and the index of its header."""
    if source.table is not None:
        if source.table not in sheets:
            source.stop(0, f"there is no sheet {source.table!r}; sheets: {', '.join(sheets)}")
        sheets = {source.table: sheets[source.table]}
    headers = {name: _header(rows, source) for name, rows in sheets.items()}
    written = {name: at for name, (at, _) in headers.items() if at is not None}
    if not written:
        source.stop(0, "the workbook is empty: no questions")
    fitting = [name for name in written if headers[name][1]]
    if len(fitting) > 1:
        named = " and ".join(map(repr, fitting))
        source.stop(0, f"sheets {named} hold questions: say which: table={fitting[0]!r}")
    name = fitting[0] if fitting else next(iter(written))
    return name, written[name]


def _header(rows: Sequence[Sequence[Any]], source: Source) -> tuple[int | None, bool]:
    """The header's index, and whether it has a column for the question.

    It is the first row with anything in it, or the one below a title: single (or merged) cells in the rows
    before are passed over where a row with a column for the question follows.
    """
    first = None
    for at, row in enumerate(rows):
        names = [str(cell) for cell in map(_cell, row) if cell and cell.strip()]
        if not names:
            continue
        first = at if first is None else first
        if columns.has_question(names, source.columns):
            return at, True
        # A title is a single cell; a row with several is a header, even if no column is the question's.
        if len(names) > 1:
            break
    return first, False


def _rows(sheet: str, rows: Sequence[Sequence[Any]], at: int, source: Source) -> Iterator[Row]:
    names = [str(_cell(cell) or "").strip() for cell in rows[at]]
    if twice := repeated(filter(None, names)):
        source.stop(at + 1, f"column {', '.join(twice)} is given more than once")
    found = False
    for line, row in enumerate(rows[at + 1 :], start=at + 2):
        cells = {name: _cell(cell) for name, cell in zip(names, row, strict=False) if name}
        if not any(cells.values()):
            continue
        found = True
        # A formula's error would otherwise be asked or compared as if it were text.
        broken = [name for name, cell in cells.items() if cell and _ERRORS.fullmatch(cell)]
        if broken:
            source.report(line, f"column {broken[0]!r} holds the error {cells[broken[0]]} of a formula")
        else:
            yield Row(line, cells)
    if not found:
        source.stop(at + 1, f"sheet {sheet!r} has a header without rows: no questions")


def _cell(value: Any) -> str | None:
    """A cell as a CSV of the sheet would have it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    # Excel stores 3 as 3.0; an id or a reference should read as typed.
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value).replace("_x000D_\n", "\n").replace("_x000D_", "")
