"""From a path to questions: find the files, read them, map their columns, check and name every question."""

from __future__ import annotations

import difflib
import glob
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.model.samples import Location, Question, relevance
from pytest_ragbench.model.scores import plain
from pytest_ragbench.questions import cells, columns, ids, readers, sql
from pytest_ragbench.questions.reading import Problems, Reader, Row, Source, Unreadable


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
        A file, a pattern (``"q/**/*.csv"``) or a directory (its own files, not those below). Or a database:
        ``"sqlite:///support.db"``, a URL of SQLAlchemy's (extra ``sql``), or ``"env:NAME"`` for the
        variable that holds the URL.
    encoding
        Of the file; otherwise that of its byte order mark, otherwise UTF-8. Never guessed.
    delimiter
        Of a CSV, one letter; otherwise the one of ``, ; | tab`` that makes sense of the header.
    columns
        Our name -> the file's name, for columns that are not known by themselves. ``metadata.NAME`` keeps
        a column as it is.
    format
        ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"json"``, ``"yaml"``, ``"xlsx"``, ``"parquet"``; otherwise by
        the file's suffix.
    needs
        Fields that every question must have, as ``{"reference"}``.
    table, query
        Of a database, one of the two; ``"URL#table"`` names the table, too. ``table`` is also the sheet of a
        workbook, where several hold questions.

    Returns
    -------
    list[Question]
        Never empty; ids are unique, also across files.

    Raises
    ------
    QuestionFileError
        Naming file and line (or table and row), and up to ten problems at once.
    UsageError
        An argument makes no sense.
    """
    mapped = _checked_columns(columns or {})
    _check_arguments(delimiter, needs)
    problems = Problems()
    if sql.is_database(path):
        given = {"encoding": encoding, "delimiter": delimiter, "format": format}
        if wrong := [name for name, value in given.items() if value is not None]:
            raise UsageError(f"{wrong[0]} is for files, not for a database")
        wanted = sql.database(str(path), table=table, query=query)
        drafts = _from_database(wanted, Source(Path(), wanted.name, columns=mapped, problems=problems), needs)
        named = _with_ids(drafts, problems)
        problems.raise_any()
        return named
    if query is not None or (table is not None and Path(path).suffix.lower() not in (".xlsx", ".xlsm")):
        raise UsageError(f"table and query are for databases, as sqlite:///support.db; {str(path)!r} is none")
    drafts = []
    for file in find_files(path, format):
        source = Source(file, _shown_name(file), encoding, delimiter, mapped, problems, table)
        kind = readers.format_of(file.suffix, format)
        if kind is None:
            source.report(
                0, f"unknown kind of file; known are {', '.join(readers.SUFFIXES)}, or give format="
            )
            continue
        drafts += _read(readers.reader(kind), source, needs)
    named = _with_ids(drafts, problems)
    problems.raise_any()
    return named


def find_files(path: str | os.PathLike[str], format: str | None = None) -> list[Path]:
    """The files that ``path`` means, sorted by name; at least one.

    Raises
    ------
    QuestionFileError
        There is none.
    """
    if not str(path).strip():
        raise UsageError("the path of the question file is empty")
    file = Path(path)
    if file.is_dir():
        found = [
            entry
            for entry in sorted(file.iterdir())
            if entry.is_file()
            and not entry.name.startswith(".")
            and not entry.name.endswith((".rag.yaml", ".rag.yml"))  # tests, not questions
            and (format or entry.suffix.lower() in readers.SUFFIXES)
        ]
        if not found:
            raise QuestionFileError(
                f"{_shown_name(file)}: no questions: the directory has no {', '.join(readers.SUFFIXES)} file"
            )
        return found
    if file.exists():
        return [file]
    if glob.has_magic(str(path)):
        found = sorted({Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file()})
        if not found:
            raise QuestionFileError(
                f"{path}: no questions: no file matches the pattern (seen from {Path.cwd()})"
            )
        return found
    beside = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []
    likely = difflib.get_close_matches(file.name, beside, n=1)
    hint = f"; did you mean {likely[0]!r}?" if likely else ""
    raise QuestionFileError(f"{path}: no such question file (seen from {Path.cwd()}){hint}")


@dataclass(slots=True)
class _Draft:
    """A question that may still lack its id."""

    location: Location
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        return str(self.fields["question"])


def _checked_columns(mapped: Mapping[str, str]) -> dict[str, str]:
    for ours, theirs in mapped.items():
        if not isinstance(theirs, str) or not theirs.strip():
            raise UsageError(f"columns[{ours!r}] must be the name of a column, got {theirs!r}")
        known = ours in columns.FIELDS or ours in ("answerable", "metadata")
        if not known and not ours.startswith(("metadata.", "thresholds.")):
            raise UsageError(
                f"columns: {ours!r} is no field of a question; fields are {', '.join(columns.FIELDS)}, "
                "thresholds.METRIC and metadata.NAME"
            )
    return dict(mapped)


def _check_arguments(delimiter: str | None, needs: Collection[str]) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise UsageError(f"delimiter must be one letter, as ';', got {delimiter!r}")
    if isinstance(needs, str):
        raise UsageError(f"needs must be a collection of fields, as ['reference'], got {needs!r}")
    for need in needs:
        if need not in columns.FIELDS:
            raise UsageError(
                f"needs: {need!r} is no field of a question; fields are {', '.join(columns.FIELDS)}"
            )


def _shown_name(file: Path) -> str:
    """Short where the file is below the working directory."""
    try:
        return str(file.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(file)


def _read(reader: Reader, source: Source, needs: Collection[str]) -> list[_Draft]:
    try:
        data = source.path.read_bytes()
    except OSError as error:
        source.report(0, f"can't be read: {error.strerror or error}")
        return []
    return _Mapper(reader, source, needs).drafts(_rows(reader, data, source))


def _rows(reader: Reader, data: bytes, source: Source) -> list[Row]:
    before = len(source.problems.found)
    try:
        rows = list(reader.read(data, source))
    except Unreadable:
        return []
    if not rows and len(source.problems.found) == before:
        source.report(0, "no questions")
    return rows


def _from_database(wanted: sql.Database, source: Source, needs: Collection[str]) -> list[_Draft]:
    reader = sql.SqlReader(wanted)
    rows = _rows(reader, b"", source)
    # Where no column is the id by its name, the primary key is.
    if (
        rows
        and reader.key
        and "id" not in columns.resolve(tuple(rows[0].cells), source.columns).fields.values()
    ):
        source.columns = {**source.columns, "id": reader.key}
    return _Mapper(reader, source, needs).drafts(rows)


class _Mapper:
    """Turns the rows of one file into drafts; names of columns are looked up once for each set of them."""

    def __init__(self, reader: Reader, source: Source, needs: Collection[str]) -> None:
        self.reader = reader
        self.source = source
        self.needs = [need for need in columns.FIELDS if need in needs]
        self.resolved: dict[tuple[str, ...], columns.Resolution] = {}
        self.checked = False

    def drafts(self, rows: Sequence[Row]) -> list[_Draft]:
        flat = [Row(row.line, columns.flatten(row.cells, self.source.columns)) for row in rows]
        self.check_mapping(flat)
        usable = [row for row in flat if not self.resolution(row).problems]
        # In a format without empty texts, a column with answers is a record of them, and a blank cell in it
        # is a blank answer; a column of blanks only is one that nobody filled.
        recorded = any(self.answer(row) for row in usable)
        found = (self.draft(row, recorded=recorded) for row in usable)
        drafts = [draft for draft in found if draft is not None]
        if usable and columns.saved_by_deepeval(tuple(usable[0].cells)):
            drafts = _goldens_once(drafts)
        return drafts

    def check_mapping(self, rows: Iterable[Row]) -> None:
        """Once: of a file that is read in parts, later rows may do without a column that need not be there."""
        if self.checked:
            return
        seen = {columns.normal(name): name for row in rows for name in row.cells}
        self.checked = bool(seen)
        for ours, theirs in self.source.columns.items():
            if seen and columns.normal(theirs) not in seen:
                self.source.report(
                    self.source.header_line,
                    f"columns={{{ours!r}: {theirs!r}}}: no such column; "
                    f"columns found: {_listed(seen.values())}",
                )

    def resolution(self, row: Row) -> columns.Resolution:
        names = tuple(row.cells)
        if names not in self.resolved:
            self.resolved[names] = resolution = columns.resolve(names, self.source.columns)
            problems = [*resolution.problems]
            targets = set(resolution.fields.values())
            if "question" not in targets and not problems:
                problems.append(_lacking("question", names))
            if not problems:
                problems += [
                    _lacking(need, names, targets) for need in self.needs if need not in _given(targets)
                ]
            if problems:
                for problem in problems:
                    self.source.report(self.source.header_line or row.line, problem)
                self.resolved[names] = columns.Resolution(resolution.fields, tuple(problems))
        return self.resolved[names]

    def answer(self, row: Row) -> bool:
        column = next(
            (name for name, target in self.resolution(row).fields.items() if target == "answer"), None
        )
        value = row.cells[column] if column is not None else None
        return isinstance(value, str) and bool(value.strip())

    def draft(self, row: Row, *, recorded: bool) -> _Draft | None:
        before = len(self.source.problems.found)
        fields: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        thresholds: dict[str, str] = {}
        for column, target in self.resolution(row).fields.items():
            value = row.cells[column]
            if self.reader.blank_is_missing and isinstance(value, str):
                if not value.strip() and not (target == "answer" and recorded):
                    value = None
                elif value.strip().casefold() in ("nan", "<na>") and not target.startswith("metadata"):
                    self.report(
                        row, column, "holds 'nan', a missing value written as text; leave the cell blank"
                    )
                    continue
            kind, inside, key = target.partition(
                "."
            )  # the key may be empty: so is many a first column's name
            if kind == "metadata" and inside:
                extra[key] = plain(value)
                continue
            read = cells.threshold if inside else cells.READ[kind]
            if isinstance(value, str) and kind in _JOINED and columns.saved_by_deepeval(tuple(row.cells)):
                value = value.split("|")  # so it joins them in CSV and JSON Lines, brackets or not
            read_value = self.read(row, column, read, value)
            if inside and read_value is not None:
                thresholds[key] = read_value
            elif not inside:
                fields[target] = read_value
        # A question that could not be read was reported already.
        if len(self.source.problems.found) == before and not (fields.get("question") or "").strip():
            self.source.report(row.line, "the question is blank")
        fields.update(self.combined(fields, extra, thresholds))
        for need in self.needs:
            if fields.get(need) is None and len(self.source.problems.found) == before:
                self.source.report(row.line, f"no {need}, which this test needs of every question")
        if len(self.source.problems.found) > before:
            return None
        return _Draft(Location(self.source.name, row.line), fields)

    def combined(
        self, fields: dict[str, Any], extra: dict[str, Any], thresholds: dict[str, str]
    ) -> dict[str, Any]:
        """What several columns make up together, in the types of a Question."""
        answerable = fields.pop("answerable", None)
        abstain = fields.get("should_abstain")
        return {
            "must_pass": bool(fields.get("must_pass")),
            "should_abstain": bool(abstain) if answerable is None else not answerable,
            "tags": fields.get("tags") or (),
            "relevant_ids": relevance(fields.get("relevant_ids"), "relevant_ids"),
            "thresholds": MappingProxyType({**(fields.get("thresholds") or {}), **thresholds}),
            "metadata": MappingProxyType({**(fields.get("metadata") or {}), **extra}),
        }

    def read(self, row: Row, column: str, read: Callable[[Any], Any], value: Any) -> Any:
        try:
            return read(value)
        except QuestionFileError as error:
            self.report(row, column, str(error))
            return None

    def report(self, row: Row, column: str, message: str) -> None:
        self.source.report(row.line, f"column {column!r} {message}")


_JOINED = ("contexts", "reference_contexts")


def _goldens_once(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Without the goldens that stand there as test cases too, with what was answered (DeepEval writes both)."""
    answered = {draft.text for draft in drafts if draft.fields.get("answer")}
    return [draft for draft in drafts if draft.fields.get("answer") or draft.text not in answered]


def _given(targets: Collection[str]) -> set[str]:
    """The fields that some column fills."""
    fields = {target.partition(".")[0] for target in targets}
    return fields | ({"should_abstain"} if "answerable" in fields else set())


def _lacking(field: str, names: Iterable[str], targets: Collection[str] = ()) -> str:
    accepted = ", ".join(columns.NAMES[field][:6])
    message = f"no column for the {field}; columns found: {_listed(names)}. Understood are {accepted} ..."
    if field == "reference" and "answer" in targets:
        return f"{message} If the answer column holds the right answers: columns={{'reference': 'answer'}}"
    return f"{message} Another name is mapped by columns={{{field!r}: '...'}}"


def _listed(names: Iterable[str], most: int = 12) -> str:
    shown = [repr(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) or "none") + more


def _with_ids(drafts: Sequence[_Draft], problems: Problems) -> list[Question]:
    """Questions with ids; ids that are given twice, and questions that are, are problems."""
    given: dict[str, list[_Draft]] = {}
    unnamed: dict[str, list[_Draft]] = {}
    for draft in drafts:
        own = draft.fields.get("id")
        if own is not None:
            given.setdefault(unicodedata.normalize("NFC", own), []).append(draft)
        else:
            unnamed.setdefault(draft.text, []).append(draft)
    for own, group in given.items():
        if len(group) > 1:
            problems.add(_file(group), f"id {own!r} is given more than once: {_places(group)}")
    for text, group in unnamed.items():
        if len(group) > 1:
            problems.add(
                _file(group),
                f"the question {text[:60]!r} is there more than once: {_places(group)}; remove the others, "
                "or give each an id",
            )
    slugs = {text: ids.slug(text) for text in unnamed}
    often = Counter(slugs.values())
    for text, slug in slugs.items():
        if slug in given or often[slug] > 1:
            slugs[text] = ids.distinct_slug(text)
    questions: list[Question] = []
    latest: dict[str, Question] = {}
    for draft in drafts:
        fields = {**draft.fields, "id": draft.fields.get("id") or slugs[draft.text]}
        session = fields.get("session")
        previous = latest.get(session) if session is not None else None
        questions.append(Question(**fields, location=draft.location, previous=previous))
        if session is not None:
            latest[session] = questions[-1]
    return questions


def _file(group: Sequence[_Draft]) -> Location:
    """The first place; without its line where all are in one file, because the message names them all."""
    first = group[0].location
    same = all(draft.location.file == first.file for draft in group)
    return Location(first.file, 0 if same else first.line)


def _places(group: Sequence[_Draft]) -> str:
    if len({draft.location.file for draft in group}) == 1 and all(draft.location.line for draft in group):
        places = [str(draft.location.line) for draft in group]
        prefix = "lines "
    else:
        places = [str(draft.location) for draft in group]
        prefix = ""
    return prefix + " and ".join([", ".join(places[:-1]), places[-1]])
