"""From a path to questions: find the files or the database, read their rows, and map them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import Question
from pytest_ragbench.questions import promptfoo, readers
from pytest_ragbench.questions.columns import FIELDS
from pytest_ragbench.questions.files import find_files, shown_name
from pytest_ragbench.questions.mapping import Draft, RowMapper, checked_columns, with_ids
from pytest_ragbench.questions.readers import sql
from pytest_ragbench.questions.rows import Problems, Reader, Row, Source, Unreadable


def load_questions(
    path: str | os.PathLike[str],
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    columns: Mapping[str, str] | None = None,
    format: str | None = None,
    needs: Collection[str] = (),
    table: str | None = None,
    query: str | None = None,
) -> list[Question]:
    """Read the questions of a file, of the files that a glob pattern finds, of those in a directory, or of a
    table or query of a database.

    Several files are read in the order of their names, so that every worker has the same list.

    Parameters
    ----------
    path
        A file, a pattern (``"q/**/*.csv"``) or a directory (without its subdirectories). Or a database:
        ``"sqlite:///support.db"``, an SQLAlchemy URL (extra ``sql``), or ``"env:NAME"`` for the
        variable that holds the URL.
    encoding
        Of the file; by default that of its byte order mark, else UTF-8. Never guessed.
    delimiter
        Of a CSV, one character; by default the one of ``, ; | tab`` that fits the header.
    columns
        Our name -> the file's name, for columns with unknown names. ``metadata.NAME`` keeps a column as it is.
    format
        ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"json"``, ``"yaml"``, ``"xlsx"``, ``"parquet"``, or that of a
        reader in another package; by default, the file's suffix decides.
    needs
        Fields that every question must have, as ``{"reference"}``.
    table, query
        Of a database, one of the two; ``"URL#table"`` also names the table. ``table`` is also the sheet of a
        workbook in which several sheets hold questions.

    Returns
    -------
    list[Question]
        Never empty; ids are unique, also across files.

    Raises
    ------
    QuestionFileError
        Naming file and line (or table and row), and up to ten problems at once.
    UsageError
        An impossible argument.
    """
    mapped = checked_columns(columns or {})
    _check_arguments(delimiter, needs)
    problems = Problems()
    drafts: list[Draft] = []
    if sql.is_database(path):
        given = {"encoding": encoding, "delimiter": delimiter, "format": format}
        if wrong := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"{wrong[0]} is for files, not for a database")
        wanted = sql.database(str(path), table=table, query=query)
        source = Source(Path(), wanted.name, columns=mapped, problems=problems, database=wanted)
        drafts += read_drafts(readers.reader("sql"), source, needs)
    else:
        _check_table(path, format, table, query)
        for file in find_files(path, format):
            source = Source(file, shown_name(file), encoding, delimiter, mapped, problems, table)
            reader = reader_of(source, format)
            if reader is not None:
                drafts += _drafts_of(reader, source, needs)
    questions = with_ids(drafts, problems)
    problems.raise_any()
    return questions


def _check_table(
    path: str | os.PathLike[str], format: str | None, table: str | None, query: str | None
) -> None:
    kind = readers.format_of(Path(path).suffix, format)
    has_tables = kind is not None and getattr(readers.reader(kind), "has_tables", False)
    if query is not None or (table is not None and not has_tables):
        raise UsageError(
            f"table and query are for databases, as sqlite:///support.db; {str(path)!r} names none"
        )


def reader_of(source: Source, format: str | None = None) -> Reader | None:
    """The reader of a file; None where its format is unknown, which is reported to ``source``.

    Raises
    ------
    UsageError
        There is no such ``format``.
    """
    name = readers.format_of(source.path.suffix, format)
    if name is None:
        known = ", ".join(readers.suffixes())
        source.report(0, f"unknown kind of file; known are {known}, or give format=")
        return None
    return readers.reader(name)


def read_drafts(reader: Reader, source: Source, needs: Collection[str] = ()) -> list[Draft]:
    """The questions of a file or database that can be read; what is wrong with others is reported to ``source``."""
    before = len(source.problems.found)
    try:
        rows = list(reader.read(source))
    except Unreadable:
        return []
    if not rows and len(source.problems.found) == before:
        source.report(0, "no questions")
    return mapper_of(reader, source, needs).drafts(rows)


def _drafts_of(reader: Reader, source: Source, needs: Collection[str]) -> list[Draft]:
    """The questions of a file, and of those that a configuration of promptfoo's refers to."""
    try:
        config = promptfoo.config_of(source)
        if config is None:
            return read_drafts(reader, source, needs)
        default = config.default()
        parts: Iterable[tuple[Reader, Source, Iterable[Row]]] = [(reader, source, reader.read(source))]
        if config.refers:
            parts = _referred(config, reader)
        return [
            draft
            for each, home, rows in parts
            for draft in mapper_of(each, home, needs).drafts(
                [promptfoo.with_default(row, default) for row in rows]
            )
        ]
    except Unreadable:
        return []


def _referred(config: promptfoo.Config, reader: Reader) -> Iterator[tuple[Reader, Source, Iterable[Row]]]:
    for part in config.tests():
        if isinstance(part, Row):
            yield reader, config.source, [part]
        elif (other := reader_of(part)) is not None:
            one = promptfoo.single_test(part)
            yield other, part, [one] if one is not None else other.read(part)


def mapper_of(reader: Reader, source: Source, needs: Collection[str] = ()) -> RowMapper:
    """A mapper for the rows of ``reader``, which decides what blank cells mean."""
    return RowMapper(source, needs, blank_is_missing=getattr(reader, "blank_is_missing", False))


def _check_arguments(delimiter: str | None, needs: Collection[str]) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise UsageError(f"delimiter must be one character, as ';', got {delimiter!r}")
    # A string is a collection of letters, each of which would be reported as an unknown field.
    if isinstance(needs, str):
        raise UsageError(f"needs must be a collection of fields, as ['reference'], got {needs!r}")
    for need in needs:
        if need not in FIELDS:
            raise UsageError(f"needs: {need!r} is not a field of a question; fields are {', '.join(FIELDS)}")
