"""CSV and TSV. The delimiter is the one that fits the header."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import dropwhile, islice
from typing import NamedTuple

from pytest_ragbench.questions import columns
from pytest_ragbench.questions.rows import Row, Source, repeated

DELIMITERS = (",", ";", "\t", "|")
# The largest that csv takes on every platform: a C long has 32 bits on Windows.
_LONGEST_CELL = 2**31 - 1
# Enough to tell an even table from a chance split of text.
_PROBED_ROWS = 50
_NAMES = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a vertical bar"}


class _Line(NamedTuple):
    line: int
    cells: list[str]


class Delimited:
    """``.csv`` or ``.tsv``; ``usual`` is the delimiter that wins where several would do."""

    blank_is_missing = True

    def __init__(self, suffix: str, usual: str) -> None:
        self.suffixes = (suffix,)
        self._usual = usual

    def read(self, source: Source) -> Iterator[Row]:
        """A row for each record, at the physical line where it starts (records may span lines)."""
        text = source.text()
        # newline="" keeps line ends inside quoted cells as they are written.
        with _table(io.StringIO(text, newline=""), text, source, self._usual) as (header, records):
            rows = list(records)
        if not rows:
            source.stop(header.line, "a header without rows: no questions")
        return _rows(header, rows, source)

    def read_parts(self, source: Source, size: int, after: int = 0) -> Iterator[list[Row]]:
        """The rows that start after line ``after``, in lists of up to ``size``."""
        head = source.head()
        with source.open(newline="") as lines, _table(lines, head, source, self._usual) as (header, records):
            rest = dropwhile(lambda record: record.line <= after, records)
            while part := list(islice(rest, size)):
                yield list(_rows(header, part, source))


@contextmanager
def _table(
    lines: Iterable[str], head: str, source: Source, usual: str
) -> Iterator[tuple[_Line, Iterator[_Line]]]:
    """The header and the records below it. The delimiter is found in ``head``, the beginning of the file."""
    delimiter, skip = _delimiter(head, source, usual)
    # By default a cell may have 128 KiB, which the contexts of one answer exceed.
    previous_limit = csv.field_size_limit(_LONGEST_CELL)
    try:
        records = _records(lines, delimiter, source, skip=skip)
        header = next(records, None)
        if header is None:
            source.stop(0, "the file is empty: no questions")
        source.header_line = header.line
        yield header, records
    finally:
        csv.field_size_limit(previous_limit)


def _rows(header: _Line, records: list[_Line], source: Source) -> Iterator[Row]:
    width = len(header.cells)
    # Uneven rows are reported and left out, so that one bad quote doesn't hide other problems.
    even = []
    for record in records:
        if len(record.cells) == width:
            even.append(record)
        else:
            source.report(
                record.line,
                f"{len(record.cells)} cells under a header of {width}; put text that holds the delimiter "
                "or a quote into double quotes",
            )
    names = [name.strip() for name in header.cells]
    kept = [index for index, name in enumerate(names) if name or not _unnamed(index, even, source)]
    if twice := repeated(filter(None, names)):
        source.stop(header.line, f"column {', '.join(twice)} is given more than once")
    for record in even:
        yield Row(record.line, {names[index]: record.cells[index] for index in kept})


def _unnamed(index: int, records: list[_Line], source: Source) -> bool:
    """True where a column without a name can be left out: it is blank, or the index that pandas writes."""
    cells = [record.cells[index].strip() for record in records]
    if any(cells) and not (index == 0 and all(re.fullmatch(r"\d+", cell) for cell in cells)):
        source.stop(source.header_line, f"column {index + 1} has cells but no name")
    return True


def _records(lines: Iterable[str], delimiter: str, source: Source, *, skip: int = 0) -> Iterator[_Line]:
    """Records with the line where they start; records without text are skipped."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    start = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            source.stop(start, f"not CSV, in the record that starts here: {_explained(str(error))}")
        if cells is None:
            return
        if start > skip and any(cell.strip() for cell in cells):
            yield _Line(start, cells)
        start = reader.line_num + 1


def _explained(error: str) -> str:
    if "unexpected end" in error:
        return "a double quote is opened and never closed"
    if "expected after" in error:
        return 'text follows a closing double quote; a quote inside quotes is written twice ("")'
    return error


def _delimiter(text: str, source: Source, usual: str) -> tuple[str, int]:
    """The delimiter, and how many lines to skip before the header (Excel's ``sep=;``)."""
    marked = re.match(r"sep=([^\"\r\n])\r?\n", text, re.IGNORECASE)
    skip = 1 if marked else 0
    if source.delimiter is not None:
        return source.delimiter, skip
    if marked:
        return marked[1], skip
    probes = {delimiter: _probe(text, delimiter) for delimiter in DELIMITERS}
    usable = [
        delimiter
        for delimiter in DELIMITERS
        if probes[delimiter] and columns.has_question(probes[delimiter][0], source.columns)
    ]
    if not usable:
        # The header will be reported; split it by the delimiter that finds most columns.
        widest = max(DELIMITERS, key=lambda mark: (len((probes[mark] or [[]])[0]), mark == usual))
        return widest, 0
    # Prefer the delimiter that gives every row the same width, then the one that gives most columns.
    best = max(usable, key=lambda mark: (_even(probes[mark]), len(probes[mark][0]), mark == usual))
    if len(probes[best][0]) == 1:
        _check_single(probes, source)
    return best, 0


def _probe(text: str, delimiter: str) -> list[list[str]]:
    """The first records as cells; what can't be read ends the probe."""
    rows: list[list[str]] = []
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if any(cell.strip() for cell in cells):
                rows.append(cells)
            if len(rows) > _PROBED_ROWS:
                break
    except csv.Error:
        pass
    return rows


def _even(rows: list[list[str]]) -> bool:
    return all(len(row) == len(rows[0]) for row in rows)


def _check_single(probes: dict[str, list[list[str]]], source: Source) -> None:
    """A lone ``question`` column needs no delimiter, unless the rows below clearly have one."""
    for delimiter, rows in probes.items():
        widths = {len(row) for row in rows[1:]}
        if len(rows) > 2 and len(widths) == 1 and widths != {1}:
            source.stop(
                1,
                f"the header has one column, but with {_NAMES[delimiter]} as delimiter every row has "
                f"{widths.pop()}: name all columns, or give delimiter=",
            )


CSV = Delimited(".csv", usual=",")
TSV = Delimited(".tsv", usual="\t")
