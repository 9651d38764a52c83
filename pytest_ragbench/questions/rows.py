"""What the readers of all formats share: where they read from, the rows they yield, how they report problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, TextIO, runtime_checkable

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import Location
from pytest_ragbench.questions import encodings

if TYPE_CHECKING:
    from pytest_ragbench.questions.readers.sql import Database

MOST_PROBLEMS_SHOWN = 10
"""An error lists this many problems and only counts the others."""

HEAD_BYTES = 1 << 18
"""Of a file that is read in parts, as much is looked at to find out its encoding and delimiter."""

LISTS = ("questions", "data", "examples", "samples", "goldens", "tests", "test_cases", "rows", "items")
"""Keys under which an object may hold its list of questions."""


class Row(NamedTuple):
    """One question as its file has it: 1-based line of its start (0: unknown), cells by column name."""

    line: int
    cells: Mapping[str, Any]


class Unreadable(Exception):
    """The rest of this file can't be read; the reason is among the source's problems."""


@dataclass(slots=True)
class Problems:
    """What is wrong, over all files of a load."""

    found: list[tuple[Location, str]] = field(default_factory=list)

    def add(self, location: Location, message: str) -> None:
        """Note a problem and read on."""
        self.found.append((location, message))

    def raise_any(self) -> None:
        """Raise one error for all problems, the first of them in its first line."""
        if not self.found:
            return
        files = list(dict.fromkeys(location.file for location, _ in self.found))
        # In the order of the files, since problems of ids come last but belong to early lines.
        ordered = sorted(self.found, key=lambda problem: (files.index(problem[0].file), problem[0].line))
        lines = list(dict.fromkeys(f"{location}: {message}" for location, message in ordered))
        if len(lines) == 1:
            raise QuestionFileError(lines[0])
        text = "\n  ".join([f"{lines[0]} (and {len(lines) - 1} more)", *lines[1:MOST_PROBLEMS_SHOWN]])
        if len(lines) > MOST_PROBLEMS_SHOWN:
            text += f"\n  ... {len(lines) - MOST_PROBLEMS_SHOWN} more problems"
        raise QuestionFileError(text)


@dataclass(slots=True)
class Source:
    """One file or database, and how the caller wants it read.

    Parameters
    ----------
    path
        The file; of no meaning for a database.
    name
        How messages and locations call it.
    encoding, delimiter
        As given by the caller; None to find out.
    columns
        The caller's mapping, our name -> the file's name.
    table
        Of a file that holds several tables (sheets), the one to read.
    database
        What to read of a database.
    header_line
        Set by the reader: the line of the column names, in formats that write them once.
    key
        Set by the reader: the column whose values tell the rows apart. It is the id where no column is called so.
    """

    path: Path
    name: str
    encoding: str | None = None
    delimiter: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    table: str | None = None
    database: Database | None = None
    header_line: int = 0
    key: str | None = None

    def report(self, line: int, message: str) -> None:
        """Note a problem of one row and read on."""
        self.problems.add(Location(self.name, line), message)

    def stop(self, line: int, message: str) -> NoReturn:
        """Note a problem after which the rest of the file can't be trusted."""
        self.report(line, message)
        raise Unreadable

    def data(self) -> bytes:
        """The content of the file; stops where it can't be opened."""
        try:
            return self.path.read_bytes()
        except OSError as error:
            self.stop(0, f"can't be read: {error.strerror or error}")

    def open(self, newline: str) -> TextIO:
        """The file, to be read line by line; stops where its beginning isn't in the encoding."""
        self.head()
        encoding = self.encoding or encodings.marked(self._beginning()) or "utf-8"
        return self.path.open(encoding=encoding, newline=newline)

    def head(self) -> str:
        """The whole lines at the file's beginning, up to :data:`HEAD_BYTES`; stops as :meth:`text`."""
        data = self._beginning()
        cut = data.rfind(b"\n") + 1 if len(data) == HEAD_BYTES else len(data)
        return self.text(data[: cut or len(data)])

    def _beginning(self) -> bytes:
        with self.path.open("rb") as file:
            return file.read(HEAD_BYTES)

    def text(self, data: bytes | None = None) -> str:
        """The file's content (or ``data``, a part of it) as a string without byte order mark.

        Stops where it is blank, or in another encoding than the caller said.
        """
        try:
            text = encodings.decode(self.data() if data is None else data, self.encoding)
        except encodings.WrongEncoding as error:
            self.stop(error.line, str(error))
        # A blank file is an error: a run without questions must not be green.
        if not text.strip():
            self.stop(0, "the file is empty: no questions")
        return text


class Reader(Protocol):
    """A format of question files. Modules, classes and objects with these names are readers.

    ``blank_is_missing = True`` says that the format can't tell an empty string from no value, as CSV; then blank
    cells are missing values. ``has_tables = True`` says that a file may hold several tables, of which the caller
    names one (``source.table``).
    """

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Of the file names, in lower case with the dot; empty where only ``format=`` asks for this reader."""
        ...

    def read(self, source: Source) -> Iterable[Row]:
        """The rows in the order of the file.

        A row that can't be read is reported to ``source`` and left out.

        Raises
        ------
        Unreadable
            By ``source.stop``, which notes the reason.
        """
        ...


@runtime_checkable
class StreamingReader(Reader, Protocol):
    """A format whose files can be read in parts, so that they need not fit into memory."""

    def read_parts(self, source: Source, size: int, after: int = 0) -> Iterator[list[Row]]:
        """The rows that start after line ``after``, in lists of up to ``size``.

        A list is empty where all rows of its part were reported.
        """
        ...


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once, quoted for a message."""
    return [repr(name) for name, count in sorted(Counter(names).items()) if count > 1]


def columnar(value: Mapping[str, Any], source: Source) -> Iterator[Row]:
    """The rows of ``{"question": [...], "answer": [...]}``, or of pandas' ``{"question": {"0": ...}}``.

    Columns know no lines, so rows are of line 0.
    """
    columns: dict[str, Sequence[Any]] = {
        name: list(cells.values()) if isinstance(cells, Mapping) else cells
        for name, cells in value.items()
        if isinstance(cells, (list, Mapping))
    }
    others = [name for name in value if name not in columns]
    lengths = {name: len(cells) for name, cells in columns.items()}
    if not columns or others:
        wanted = ", ".join(LISTS[:4])
        found = ", ".join(repr(name) for name in value) or "nothing"
        source.stop(
            1,
            f"no questions: wanted a list of objects, or an object with such a list under one of {wanted}, "
            f"or columns of equal length; found an object with {found}",
        )
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        source.stop(1, f"columns of different lengths: {shown}")
    for cells in zip(*columns.values(), strict=True):
        yield Row(0, dict(zip(columns, cells, strict=True)))
