"""What a test of a ``*.rag.yaml`` file does when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_ragbench.assertions.expectations import Expectations
from pytest_ragbench.assertions.failure import failure_text
from pytest_ragbench.assertions.samples import assert_wanted
from pytest_ragbench.assertions.sets import assert_over
from pytest_ragbench.model.errors import QualityFailure, RagbenchError
from pytest_ragbench.model.samples import RagSample

if TYPE_CHECKING:
    from pytest_ragbench.specs.loading import Case


def check_sample(case: Case, sample: RagSample) -> None:
    """Assert what the test expects of one answer; everything that is wrong with it is said at once.

    Raises
    ------
    QualityFailure
        An expectation does not hold, or a metric misses its threshold.
    UsageError, Unscored
        As the helpers for Python tests.
    """
    __tracebackhide__ = True
    parts, wanted = case.expectations(sample.id), case.wanted(sample)
    # A question that should not be answered asks for a refusal, unless a metric or an expectation does.
    if case.declines(sample) and not any(each.metric == "abstention" for each in wanted):
        parts = (
            *parts,
            *([Expectations(abstains=True)] if all(part.abstains is None for part in parts) else []),
        )
    # These first: they cost nothing, and are said even where a judge fails.
    problems = [problem for part in parts for problem in part.problems(sample)]
    missed: QualityFailure | None = None
    if wanted:
        try:
            assert_wanted(sample, wanted)
        except QualityFailure as failure:
            missed = failure
        except RagbenchError as error:
            if not problems:
                raise
            # What is surely wrong with the answer counts for more than a judge that can't be asked.
            raise QualityFailure(failure_text(sample, [], [str(error)], said=problems)) from None
    if problems:
        if missed is None:
            raise QualityFailure(failure_text(sample, [], said=problems))
        raise QualityFailure("; ".join([*problems, str(missed)]), missed.scores) from None
    if missed is not None:
        raise missed


def check_samples(case: Case, samples: Sequence[RagSample]) -> None:
    """Assert the means over all answers; every miss is said.

    Raises
    ------
    QualityFailure, UsageError, Unscored
        As :func:`~pytest_ragbench.assert_over`.
    """
    __tracebackhide__ = True
    misses: list[QualityFailure] = []
    for limit in case.test.over:
        coverage = 1.0 if limit.coverage is None else limit.coverage
        try:
            assert_over(samples, limit.metric, limit.threshold, coverage=coverage, **limit.options)
        except QualityFailure as failure:
            misses.append(failure)
    if misses:
        text = "\n".join(str(failure) for failure in misses)
        raise QualityFailure(text, [score for failure in misses for score in failure.scores])
