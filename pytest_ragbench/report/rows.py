"""One row a question, from the results of all tests that are about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import SampleRecord, ScoreRecord, TestRecord

# The worst one of its tests and scores is what a question came to.
_WORST = ("failed", "error", "xfailed", "xpassed", "skipped", "passed", "scored")


@dataclass
class Row:
    """A question with one answer: what its tests came to, and all of its scores."""

    sample: SampleRecord
    system: str | None = None
    """Which of several answered so."""
    tests: list[TestRecord] = field(default_factory=list)
    scores: list[tuple[TestRecord, ScoreRecord]] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """``failed``, ``error``, ... as of tests; ``scored`` where nothing was asserted of this question."""
        found: set[str] = {test.outcome for test in self.tests}
        for _, score in self.scores:
            if score.error is not None:
                found.add("error")
            elif score.passed is not None:
                found.add("passed" if score.passed else self._missed(found))
        return next((name for name in _WORST if name in found), "scored")

    @staticmethod
    def _missed(found: set[str]) -> str:
        return "xfailed" if "xfailed" in found else "failed"

    @property
    def shortfall(self) -> float:
        """How bad it is, for sorting: the sum of what its missed scores lack, errors first."""
        errors = sum(10.0 for _, score in self.scores if score.error is not None)
        errors += sum(10.0 for test in self.tests if test.outcome == "error")
        return errors + sum(1.0 + score.shortfall for _, score in self.scores if score.passed is False)


def rows_of(report: RunReport) -> list[Row]:
    """The questions of a run in the order in which they were reported."""
    rows: dict[tuple[Any, ...], Row] = {}
    for result in report.results:
        own = about_one_question(result)
        scores: dict[int | None, list[ScoreRecord]] = {}
        for score in result.scores:
            scores.setdefault(score.sample, []).append(score)
        for place, sample in enumerate(result.samples):
            key = (result.system, sample.id, sample.question, sample.answer, sample.contexts)
            row = rows.setdefault(key, Row(sample, result.system))
            if own:
                row.tests.append(result)
            row.scores += [(result, score) for score in scores.get(place, ())]
        if not result.samples and result.question_id is not None:  # nothing came back for it
            asked = [each.question for each in result.questions if each.id == result.question_id]
            sample = SampleRecord(id=result.question_id, question=(asked or [result.question_id])[0])
            row = rows.setdefault((result.question_id, result.test), Row(sample, result.system))
            row.tests.append(result)
    return list(rows.values())


def about_one_question(result: TestRecord) -> bool:
    """Whether a test is about a single question, of which it may have seen several answers."""
    if not result.samples:
        return result.question_id is not None
    return len({(sample.id, sample.question) for sample in result.samples}) == 1


def worst(rows: list[Row], count: int) -> list[Row]:
    """Those that failed or have no score, worst first."""
    bad = [row for row in rows if row.outcome in ("failed", "error")]
    return sorted(bad, key=lambda row: -row.shortfall)[:count]


def set_scores(report: RunReport) -> Iterator[tuple[TestRecord, ScoreRecord]]:
    """Scores over whole sets of questions."""
    for result in report.results:
        for score in result.scores:
            if result.sample_of(score) is None:
                yield result, score
