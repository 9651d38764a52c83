"""Questions that failed, grouped by what they have in common: an error, a document, a kind of claim, a metric.

Every such question is in one group. It is that of the first of these that it has, and of several the one that most
questions share:

1. the error, where something has no score;
2. a document that two questions or more have trouble with: one not retrieved, one that the answer contradicts;
3. what is said of its claims, in the same words but for the claim's own;
4. the metric, and whether claims are in no chunk or against one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Literal
from urllib.parse import quote, quote_plus

from pytest_ragbench.clean import one_line
from pytest_ragbench.model.errors import cause_of
from pytest_ragbench.model.tests import SampleRecord, ScoreRecord
from pytest_ragbench.report.rows import Row

_CLAIMS = ("claims", "statements")
_SHARED = 2
"""So many questions make a document, or a wording, a cause."""
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
_WORDS = re.compile(r"\w+|[^\w\s]+|\s+")
_TEXT = 160

Kind = Literal["error", "document", "claim", "metric", "test"]


@dataclass(frozen=True)
class Cause:
    """What several questions failed for."""

    kind: Kind
    text: str
    """One line."""
    metric: str | None = None
    """The metric that missed; None where it isn't one metric's matter."""


@dataclass(frozen=True)
class Group:
    """The questions of one cause, worst first."""

    cause: Cause
    rows: tuple[Row, ...]

    @property
    def shortfall(self) -> float:
        """How bad it is: the sum of what its questions lack."""
        return sum(row.shortfall for row in self.rows)


def failures_by_cause(rows: Sequence[Row]) -> list[Group]:
    """All questions that failed or have no score, each in one group; the groups and their questions worst first."""
    left = [row for row in rows if row.outcome in ("failed", "error")]
    found: list[Group] = []
    steps: tuple[tuple[Callable[[Row], Iterator[Cause]], int], ...] = (
        (_errors, 1),
        (_documents, _SHARED),
        (_wordings, _SHARED),
        (_misses, 1),
    )
    for causes_of, at_least in steps:
        groups, left = _grouped(left, causes_of, at_least)
        found += groups
    return sorted(found, key=lambda group: (-group.shortfall, group.cause.text))


def _grouped(
    rows: Sequence[Row], causes_of: Callable[[Row], Iterator[Cause]], at_least: int
) -> tuple[list[Group], list[Row]]:
    """The largest group first, until none has ``at_least`` so many; and the rows that are in none."""
    members: dict[Cause, dict[int, Row]] = {}
    for row in rows:
        for cause in causes_of(row):
            members.setdefault(cause, {})[id(row)] = row
    causes: dict[int, list[Cause]] = {id(row): [] for row in rows}
    for cause, having in members.items():
        for key in having:
            causes[key].append(cause)
    groups: list[Group] = []
    taken: set[int] = set()
    waiting = [
        (-len(found), cause.text, place, cause) for place, (cause, found) in enumerate(members.items())
    ]
    heapify(waiting)
    while waiting:
        count, text, place, cause = heappop(waiting)
        found = members[cause]
        if len(found) < at_least:
            continue
        if len(found) < -count:  # other groups have taken some of its questions meanwhile
            heappush(waiting, (-len(found), text, place, cause))
            continue
        groups.append(Group(cause, tuple(sorted(found.values(), key=lambda row: -row.shortfall))))
        taken |= found.keys()
        for key in list(found):
            for other in causes[key]:
                members[other].pop(key, None)
    return groups, [row for row in rows if id(row) not in taken]


def _errors(row: Row) -> Iterator[Cause]:
    """Of a row that has no score for a reason of its own."""
    for _, score in row.scores:
        if score.error is not None:
            yield Cause("error", _error_text(score.error.message or score.error.code, row.sample))
            return
    for test in row.tests:
        if test.outcome == "error":
            yield Cause(
                "error", _error_text(test.message or test.kind or "error outside of ragbench", row.sample)
            )
            return


def _error_text(message: str, sample: SampleRecord) -> str:
    text = cause_of(message)
    for own in {sample.question, quote(sample.question), quote_plus(sample.question), sample.id or ""}:
        if len(own) > 3:  # shorter ones may be part of any word
            text = text.replace(own, "…")
    return one_line(text, _TEXT)


def _missed(row: Row) -> Iterator[ScoreRecord]:
    for _, score in row.scores:
        if score.passed is False:
            yield score


def _documents(row: Row) -> Iterator[Cause]:
    sample = row.sample
    for score in _missed(row):
        if score.tier == "retrieval" and sample.relevant_ids and sample.context_ids is not None:
            for name, grade in sample.relevant_ids.items():
                if grade > 0 and name not in sample.context_ids:
                    yield Cause("document", f"{one_line(name, 80)} was not retrieved")
        for finding in score.evidence:
            document = _document(sample, finding.chunk)
            if finding.ok is False and document is not None:
                said = (
                    f"claims that {document} contradicts"
                    if score.evidence_title in _CLAIMS
                    else f"{score.metric} objects to {document}"
                )
                yield Cause("document", said, score.metric)


def _document(sample: SampleRecord, chunk: int | None) -> str | None:
    """The id of a chunk, or how its text begins; None where it is not there."""
    place = (chunk or 0) - 1
    for texts, form in ((sample.context_ids, "{}"), (sample.contexts, "“{}”")):
        if texts is not None and 0 <= place < len(texts):
            return form.format(one_line(texts[place], 60))
    return None


def _wordings(row: Row) -> Iterator[Cause]:
    """What is said of claims that fail, without the claim's own words: ``no chunk mentions …``."""
    for score in _missed(row):
        for finding in score.evidence:
            if finding.ok is False and (form := _form(finding.reason, finding.text)):
                yield Cause("claim", form, score.metric)


def _form(reason: str, claim: str) -> str:
    """The reason up to the claim's own words at its end; numbers, which differ from claim to claim, as ``…``."""
    start = one_line(reason, 300).partition("; ")[0]
    own = {word.casefold() for word in _WORDS.findall(claim)}
    words = _WORDS.findall(start)
    kept = len(words)
    while kept and (not words[kept - 1].strip() or words[kept - 1].casefold() in own):
        kept -= 1
    form = "".join(words[:kept]) + (" …" if words[kept:] else "")
    return one_line(_DIGITS.sub("…", form), _TEXT) if kept else ""


def _misses(row: Row) -> Iterator[Cause]:
    """The metric that is furthest off."""
    missed = sorted(_missed(row), key=lambda score: -score.shortfall)
    if not missed:
        tests = [test.test.partition("[")[0] for test in row.tests if test.outcome == "failed"]
        yield Cause(
            "test",
            f"{one_line(tests[0], 120) if tests else 'a test'} failed, with no score below its threshold",
        )
        return
    score = missed[0]
    yield Cause("metric", _shape(score), score.metric)


def _shape(score: ScoreRecord) -> str:
    failing = [finding for finding in score.evidence if finding.ok is False]
    if failing and score.evidence_title in _CLAIMS:
        against = any(finding.chunk is not None for finding in failing)
        return "claims that a chunk contradicts" if against else "claims that are in no chunk"
    return (
        f"below {score.threshold}"
        if score.threshold and score.threshold.startswith(">")
        else f"missed {score.threshold}"
    )
