"""Samples from a file of any size, some hundred at a time. Same names of columns as question files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import Question, RagSample, sample_from
from pytest_ragbench.questions import encodings, ids, readers
from pytest_ragbench.questions.loader import _checked_columns, _Draft, _Mapper, _read, _shown_name, find_files
from pytest_ragbench.questions.reading import Problems, Row, Source, Unreadable

CHUNK = 500
"""Rows that are held at once."""
_HEAD = 1 << 18


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
        Number and line of the last row that is not wanted again.

    Raises
    ------
    QuestionFileError
        Naming file and line.
    """
    [path] = find_files(path, format)[:1]
    problems = Problems()
    source = Source(path, _shown_name(path), encoding, delimiter, _checked_columns(columns or {}), problems)
    kind = readers.format_of(path.suffix, format)
    if kind is None:
        raise QuestionFileError(
            f"{source.name}: unknown kind of file; known are {', '.join(readers.SUFFIXES)}, or give --format"
        )
    mapper = _Mapper(readers.reader(kind), source, ())
    done, line = after
    number = done if kind == "jsonl" else 0
    for drafts in _drafts(kind, source, mapper, line):
        if problems.found and (not keep_going or (number == 0 and not drafts)):
            problems.raise_any()
        bad = [(location.line, message) for location, message in problems.found]
        problems.found.clear()
        chunk = _numbered(drafts, bad, number)
        number += len(chunk)
        if number > done:
            yield [entry for entry in chunk if entry.number > done]
    if number == 0:
        problems.raise_any()
        raise QuestionFileError(f"{source.name}: no rows")


def _numbered(drafts: list[_Draft], bad: list[tuple[int, str]], number: int) -> list[Entry]:
    found: list[tuple[int, RagSample | None, str | None]] = []
    for draft in drafts:
        own = draft.fields.get("id") or ids.slug(draft.text)
        question = Question(**{**draft.fields, "id": own}, location=draft.location)
        found.append((draft.location.line, sample_from(question), None))
    told: dict[int, str] = {}
    for line, message in bad:
        told[line] = f"{told[line]}; {message}" if line in told else message
    found += [(line, None, message) for line, message in told.items()]
    found.sort(key=lambda entry: entry[0])
    return [Entry(number + place, *entry) for place, entry in enumerate(found, start=1)]


def _drafts(kind: str, source: Source, mapper: _Mapper, after: int) -> Iterator[list[_Draft]]:
    """Chunk by chunk; what is wrong is among the source's problems when its chunk comes. Of JSON Lines,
    the first ``after`` lines are passed over.
    """
    if kind not in ("jsonl", "csv", "tsv", "parquet"):
        yield from _sliced(_read(mapper.reader, source, ()))
        return
    chunks = _parquet(source) if kind == "parquet" else _text_chunks(kind, source, after)
    while True:
        try:
            rows = next(chunks, None)
        except Unreadable:
            yield []
            return
        except UnicodeDecodeError as error:
            source.report(0, f"not in the encoding {error.encoding} ({error.reason}); give --encoding")
            yield []
            return
        if rows is None:
            return
        yield mapper.drafts(rows)


def _sliced(drafts: list[_Draft]) -> Iterator[list[_Draft]]:
    for start in range(0, max(len(drafts), 1), CHUNK):
        yield drafts[start : start + CHUNK]


def _text_chunks(kind: str, source: Source, after: int) -> Iterator[list[Row]]:
    with source.path.open("rb") as binary:
        data = binary.read(_HEAD)
    cut = data.rfind(b"\n") + 1 if len(data) == _HEAD else len(data)
    head = source.text(data[: cut or len(data)])  # refuses a wrong encoding, and suggests the right one
    marks = {mark: name for mark, name in encodings._MARKS if data.startswith(mark)}
    encoding = source.encoding or next(iter(marks.values()), "utf-8")
    with source.path.open(encoding=encoding, newline="\n" if kind == "jsonl" else "") as lines:
        if kind == "jsonl":
            from pytest_ragbench.questions.readers.json_lines import READER

            rows = READER.rows(lines, source, after)
            while chunk := _next_chunk(rows, source):
                yield chunk
        else:
            from pytest_ragbench.questions.readers.delimited import stream

            yield from stream(lines, head, source, CHUNK)


def _next_chunk(rows: Iterator[Row], source: Source) -> list[Row] | None:
    """The next rows; None at the end. Lines that hold no row are among the problems."""
    before = len(source.problems.found)
    chunk = list(islice(rows, CHUNK))
    return chunk if chunk or len(source.problems.found) > before else None


def _parquet(source: Source) -> Iterator[list[Row]]:
    from pytest_ragbench.questions.readers.parquet import batches

    return batches(source, CHUNK)


__all__ = ["CHUNK", "Entry", "entries"]
