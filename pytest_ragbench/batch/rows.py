"""Samples from a file of any size, some hundred at a time. Same names of columns as question files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import RagSample, sample_from
from pytest_ragbench.questions import ids
from pytest_ragbench.questions.files import find_files, shown_name
from pytest_ragbench.questions.loader import mapper_of, read_drafts, reader_of
from pytest_ragbench.questions.mapping import Draft, checked_columns
from pytest_ragbench.questions.rows import Problems, Reader, Source, StreamingReader, Unreadable

CHUNK = 500
"""Rows that are held at once."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the file: its sample, or what is wrong with it. ``number`` counts rows from 1."""

    number: int
    line: int
    sample: RagSample | None
    problem: str | None = None


def entries(
    path: Path,
    *,
    format: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    columns: Mapping[str, str] | None = None,
    keep_going: bool = False,
    after: tuple[int, int] = (0, 0),
) -> Iterator[list[Entry]]:
    """The rows of one file in its order, in lists of up to :data:`CHUNK`.

    JSON Lines, CSV, TSV and Parquet are read as they go; other formats at once.

    Parameters
    ----------
    format, encoding, delimiter, columns
        As for :func:`~pytest_ragbench.load_questions`.
    keep_going
        A row that can't be read is an entry with its problem. Otherwise, and where none of the first
        rows can be read, it is an error.
    after
        Number and line of the last row that is done. Rows up to it are left out; JSON Lines does not even parse them.

    Raises
    ------
    QuestionFileError
        Naming file and line.
    """
    [path] = find_files(path, format)[:1]
    problems = Problems()
    source = Source(path, shown_name(path), encoding, delimiter, checked_columns(columns or {}), problems)
    reader = reader_of(source, format)
    if reader is None:
        problems.raise_any()
        raise AssertionError("an unknown kind of file is reported")
    done, line = after
    # Other readers read everything again, and so count from the first row.
    number = done if isinstance(reader, StreamingReader) else 0
    for drafts in _drafts(reader, source, line):
        # Where no first row can be read it is another kind of file, and not a few bad rows.
        if problems.found and (not keep_going or (number == 0 and not drafts)):
            problems.raise_any()
        bad = [(location.line, message) for location, message in problems.found]
        problems.found.clear()
        chunk = numbered(drafts, bad, number)
        number += len(chunk)
        if number > done:
            yield [entry for entry in chunk if entry.number > done]
    if number == 0:
        problems.raise_any()
        raise QuestionFileError(f"{source.name}: no rows")


def numbered(drafts: list[Draft], bad: list[tuple[int, str]], number: int) -> list[Entry]:
    """The drafts and the rows with problems (line, message), in the order of lines, counted on from ``number``."""
    found: list[tuple[int, RagSample | None, str | None]] = []
    for draft in drafts:
        question = draft.question(draft.id or ids.slug(draft.text))
        found.append((draft.location.line, sample_from(question), None))
    messages: dict[int, str] = {}
    for line, message in bad:
        # One entry a row, whatever is wrong with it.
        messages[line] = f"{messages[line]}; {message}" if line in messages else message
    found += [(line, None, message) for line, message in messages.items()]
    found.sort(key=lambda entry: entry[0])
    return [Entry(number + place, *entry) for place, entry in enumerate(found, start=1)]


def _drafts(reader: Reader, source: Source, after: int) -> Iterator[list[Draft]]:
    """Part by part, of streaming readers only what follows line ``after``.

    What is wrong with a part is among the source's problems when it is yielded.
    """
    if not isinstance(reader, StreamingReader):
        drafts = read_drafts(reader, source)
        for start in range(0, max(len(drafts), 1), CHUNK):
            yield drafts[start : start + CHUNK]
        return
    mapper = mapper_of(reader, source)
    try:
        for rows in reader.read_parts(source, CHUNK, after):
            yield mapper.drafts(rows)
    except Unreadable:
        yield []
    except UnicodeDecodeError as error:
        source.report(0, f"not in the encoding {error.encoding} ({error.reason}); give --encoding")
        yield []


__all__ = ["CHUNK", "Entry", "entries"]
