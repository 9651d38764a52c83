"""Rows of a file to questions: which column is what, what each cell holds, and an id for every question."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.model.samples import Location, Question, relevance
from pytest_ragbench.model.scores import plain
from pytest_ragbench.questions import cells, columns, ids
from pytest_ragbench.questions.rows import Problems, Row, Source
from pytest_ragbench.text import is_blank

_JOINED_BY_DEEPEVAL = ("contexts", "reference_contexts")


@dataclass(slots=True)
class Draft:
    """A question that may still lack its id; ``fields`` are those of :class:`Question`, by name."""

    location: Location
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        """The question itself."""
        return str(self.fields["question"])

    @property
    def id(self) -> str | None:
        """The id that the file gives, if any."""
        given: str | None = self.fields.get("id")
        return given

    def question(self, question_id: str, previous: Question | None = None) -> Question:
        """The question under an id; ``previous`` is the turn before it in the same session."""
        return Question(**{**self.fields, "id": question_id}, location=self.location, previous=previous)


def checked_columns(mapped: Mapping[str, str]) -> dict[str, str]:
    """The caller's ``columns=`` (our name -> the file's name), checked.

    Raises
    ------
    UsageError
        A name that isn't ours, or a value that can't be the name of a column.
    """
    for ours, theirs in mapped.items():
        if not isinstance(theirs, str) or not theirs.strip():
            raise UsageError(f"columns[{ours!r}] must be the name of a column, got {theirs!r}")
        known = ours in columns.FIELDS or ours in ("answerable", "metadata")
        if not known and not ours.startswith(("metadata.", "thresholds.")):
            raise UsageError(
                f"columns: {ours!r} is not a field of a question; fields are {', '.join(columns.FIELDS)}, "
                "thresholds.METRIC and metadata.NAME"
            )
    return dict(mapped)


def questions_from_rows(rows: Sequence[Row], source: Source) -> list[Question]:
    """The questions in ``rows``; what is wrong with them goes to ``source.problems``."""
    return with_ids(RowMapper(source).drafts(rows), source.problems)


class RowMapper:
    """Turns the rows of one source into drafts.

    One mapper serves all rows of a source, also where they come in parts: the meaning of the columns is worked out once
    for each set of names.

    Parameters
    ----------
    source
        Where the rows come from; what is wrong is reported to it.
    needs
        Fields that every question must have.
    blank_is_missing
        Whether the format can't tell an empty string from no value (:attr:`Reader.blank_is_missing`).
    """

    def __init__(
        self, source: Source, needs: Collection[str] = (), *, blank_is_missing: bool = False
    ) -> None:
        self._source = source
        self._needs = [need for need in columns.FIELDS if need in needs]
        self._blank_is_missing = blank_is_missing
        self._resolutions: dict[tuple[str, ...], columns.Resolution] = {}
        self._mapping_checked = False

    def drafts(self, rows: Sequence[Row]) -> list[Draft]:
        """A draft for each row that can be read; what is wrong with the others is reported."""
        flat = [Row(row.line, columns.flatten(row.cells, self._source.columns)) for row in rows]
        self._check_mapping(flat)
        usable = [row for row in flat if not self._resolution(row).problems]
        # CSV can't tell an empty answer from none. A column with some answers is a record of what was
        # answered, so a blank cell in it is an empty answer; a column of blanks only was never filled in.
        recorded = any(self._has_answer(row) for row in usable)
        found = (self._draft(row, recorded=recorded) for row in usable)
        drafts = [draft for draft in found if draft is not None]
        if usable and columns.saved_by_deepeval(tuple(usable[0].cells)):
            drafts = _without_repeated_goldens(drafts)
        return drafts

    def _check_mapping(self, rows: Iterable[Row]) -> None:
        """Report columns that the caller maps and no row has.

        Only once: in a file that is read in parts, later rows may lack an optional column.
        """
        if self._mapping_checked:
            return
        seen = {columns.normal(name): name for row in rows for name in row.cells}
        self._mapping_checked = bool(seen)
        for ours, theirs in self._source.columns.items():
            if seen and columns.normal(theirs) not in seen:
                self._source.report(
                    self._source.header_line,
                    f"columns={{{ours!r}: {theirs!r}}}: no such column; "
                    f"columns found: {_listed(seen.values())}",
                )

    def _resolution(self, row: Row) -> columns.Resolution:
        """What the row's columns are; problems with their names are reported once, at the first such row."""
        names = tuple(row.cells)
        if names not in self._resolutions:
            mapped = self._source.columns
            resolution = columns.resolve(names, mapped)
            key = self._source.key
            # The primary key names rows of a table whose columns say nothing about ids.
            if key in names and "id" not in resolution.fields.values():
                resolution = columns.resolve(names, {**mapped, "id": key})
            problems = [*resolution.problems]
            targets = set(resolution.fields.values())
            if "question" not in targets and not problems:
                problems.append(_lacking("question", names))
            if not problems:
                problems += [
                    _lacking(need, names, targets) for need in self._needs if need not in _given(targets)
                ]
            for problem in problems:
                self._source.report(self._source.header_line or row.line, problem)
            self._resolutions[names] = columns.Resolution(resolution.fields, tuple(problems))
        return self._resolutions[names]

    def _has_answer(self, row: Row) -> bool:
        fields = self._resolution(row).fields
        column = next((name for name, target in fields.items() if target == "answer"), None)
        value = row.cells[column] if column is not None else None
        return isinstance(value, str) and not is_blank(value)

    def _draft(self, row: Row, *, recorded: bool) -> Draft | None:
        """The row's draft; None where anything in it was reported."""
        before = len(self._source.problems.found)
        fields: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        thresholds: dict[str, str] = {}
        for column, target in self._resolution(row).fields.items():
            value = row.cells[column]
            if self._blank_is_missing and isinstance(value, str):
                if is_blank(value) and not (target == "answer" and recorded):
                    value = None
                elif value.strip().casefold() in ("nan", "<na>") and not target.startswith("metadata"):
                    self._report(
                        row, column, "holds 'nan', a missing value written as text; leave the cell blank"
                    )
                    continue
            # The key may be empty: pandas leaves the name of its index column blank.
            kind, dot, key = target.partition(".")
            if kind == "metadata" and dot:
                extra[key] = plain(value)
            elif dot:
                if (limit := self._read(row, column, cells.name, value)) is not None:
                    thresholds[key] = limit
            else:
                fields[target] = self._read(row, column, cells.READ[kind], self._split(row, kind, value))
        # A question that could not be read was reported already.
        if len(self._source.problems.found) == before and is_blank(fields.get("question")):
            self._source.report(row.line, "the question is blank")
        fields.update(_combined(fields, extra, thresholds))
        for need in self._needs:
            if fields.get(need) is None and len(self._source.problems.found) == before:
                self._source.report(row.line, f"no {need}, which this test needs of every question")
        if len(self._source.problems.found) > before:
            return None
        return Draft(Location(self._source.name, row.line), fields)

    def _split(self, row: Row, kind: str, value: Any) -> Any:
        """Contexts that DeepEval's CSV and JSON Lines join by ``|``, apart again."""
        if isinstance(value, str) and kind in _JOINED_BY_DEEPEVAL:
            return value.split("|") if columns.saved_by_deepeval(tuple(row.cells)) else value
        return value

    def _read(self, row: Row, column: str, read: Callable[[Any], Any], value: Any) -> Any:
        try:
            return read(value)
        except QuestionFileError as error:
            self._report(row, column, str(error))
            return None

    def _report(self, row: Row, column: str, message: str) -> None:
        self._source.report(row.line, f"column {column!r} {message}")


def _combined(fields: dict[str, Any], extra: dict[str, Any], thresholds: dict[str, str]) -> dict[str, Any]:
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


def _without_repeated_goldens(drafts: Sequence[Draft]) -> list[Draft]:
    """DeepEval saves an answered golden twice, with its answer and without; only the answered one is kept."""
    answered = {draft.text for draft in drafts if draft.fields.get("answer")}
    return [draft for draft in drafts if draft.fields.get("answer") or draft.text not in answered]


def _given(targets: Collection[str]) -> set[str]:
    """The fields that some column fills."""
    fields = {target.partition(".")[0] for target in targets}
    return fields | ({"should_abstain"} if "answerable" in fields else set())


def _lacking(field: str, names: Iterable[str], targets: Collection[str] = ()) -> str:
    accepted = ", ".join(columns.known_names()[field][:6])
    message = f"no column for the {field}; columns found: {_listed(names)}. Understood are {accepted} ..."
    if field == "reference" and "answer" in targets:
        return f"{message} If the answer column holds the right answers: columns={{'reference': 'answer'}}"
    return f"{message} Another name is mapped by columns={{{field!r}: '...'}}"


def _listed(names: Iterable[str], most: int = 12) -> str:
    shown = [repr(name) for name in names]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return (", ".join(shown[:most]) or "none") + more


def with_ids(drafts: Sequence[Draft], problems: Problems) -> list[Question]:
    """The questions, in the order of the drafts; repeated ids and questions go to ``problems``.

    A draft without an id gets one made of its question. Turns of one session are linked by ``previous``.
    """
    # Ids are compared in NFC, since editors write й and が in either form.
    given: dict[str, list[Draft]] = {}
    unnamed: dict[str, list[Draft]] = {}
    for draft in drafts:
        if draft.id is not None:
            given.setdefault(unicodedata.normalize("NFC", draft.id), []).append(draft)
        else:
            unnamed.setdefault(draft.text, []).append(draft)
    # Reported for all files together: ids must be unique in the run, not only in a file.
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
    made = _made_ids(list(unnamed), given)
    questions: list[Question] = []
    latest: dict[str | None, Question] = {}
    for draft in drafts:
        session = draft.fields.get("session")
        question = draft.question(draft.id or made[draft.text], latest.get(session))
        questions.append(question)
        if session is not None:
            latest[session] = question
    return questions


def _made_ids(texts: Sequence[str], taken: Collection[str]) -> dict[str, str]:
    """An id for each question, with a hash where two would share one or a given id is the same."""
    slugs = {text: ids.slug(text) for text in texts}
    often = Counter(slugs.values())
    return {
        text: ids.distinct_slug(text) if slug in taken or often[slug] > 1 else slug
        for text, slug in slugs.items()
    }


def _file(group: Sequence[Draft]) -> Location:
    """The first place; without its line where all are in one file, because the message names them all."""
    first = group[0].location
    same = all(draft.location.file == first.file for draft in group)
    return Location(first.file, 0 if same else first.line)


def _places(group: Sequence[Draft]) -> str:
    if len({draft.location.file for draft in group}) == 1 and all(draft.location.line for draft in group):
        places = [str(draft.location.line) for draft in group]
        prefix = "lines "
    else:
        places = [str(draft.location) for draft in group]
        prefix = ""
    return prefix + " and ".join([", ".join(places[:-1]), places[-1]])
