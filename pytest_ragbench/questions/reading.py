"""What every reader of a format shares: where it reads from, what it yields, how it reports trouble."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import Location
from pytest_ragbench.questions import encodings

MOST_SHOWN = 10
"""So many problems are written out in one error; of the others only the number."""

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
        ordered = sorted(self.found, key=lambda problem: (files.index(problem[0].file), problem[0].line))
        lines = list(dict.fromkeys(f"{location}: {message}" for location, message in ordered))
        if len(lines) == 1:
            raise QuestionFileError(lines[0])
        text = "\n  ".join([f"{lines[0]} (and {len(lines) - 1} more)", *lines[1:MOST_SHOWN]])
        if len(lines) > MOST_SHOWN:
            text += f"\n  ... {len(lines) - MOST_SHOWN} more problems"
        raise QuestionFileError(text)


@dataclass(slots=True)
class Source:
    """One file and how the caller wants it read.

    Parameters
    ----------
    path
        The file.
    name
        How messages and locations call it.
    encoding, delimiter
        As given by the caller; None to find out.
    columns
        The caller's mapping, our name -> the file's name.
    """

    path: Path
    name: str
    encoding: str | None = None
    delimiter: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    table: str | None = None
    """Of a file that holds several (sheets), the one to read."""
    header_line: int = 0
    """Where column names are written, for formats that write them once."""

    def report(self, line: int, message: str) -> None:
        """Note a problem of one row and read on."""
        self.problems.add(Location(self.name, line), message)

    def stop(self, line: int, message: str) -> NoReturn:
        """Note a problem after which the rest of the file can't be trusted."""
        self.report(line, message)
        raise Unreadable

    def text(self, data: bytes) -> str:
        """The file's text, byte order mark removed; stops where it is in another encoding, or blank."""
        try:
            text = encodings.decode(data, self.encoding)
        except encodings.WrongEncoding as error:
            self.stop(error.line, str(error))
        if not text.strip():
            self.stop(0, "the file is empty: no questions")
        return text


class Reader(Protocol):
    """A file format."""

    blank_is_missing: bool
    """True where the format can't tell an empty text from no value (CSV)."""

    def read(self, data: bytes, source: Source) -> Iterable[Row]:
        """The rows in the order of the file.

        A row that can't be read is reported to ``source`` and left out.

        Raises
        ------
        Unreadable
            After the reason was reported.
        """
        ...


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
