"""Helpers for one sample whose metric is an argument, or that assert more than one threshold."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_ragbench import runtime
from pytest_ragbench.assertions.failure import failure_text
from pytest_ragbench.model.errors import QualityFailure, RagbenchError, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import ScoreRequest, ThresholdLike, Wanted, prepare, wait_for_scores
from pytest_ragbench.scoring.helper_spec import HelperSpec, helper
from pytest_ragbench.scoring.results import Result


@helper(HelperSpec(name="score", metric_from="name", asserted=False, threshold_from=None))
def score(
    name: str, sample: RagSample, *, judge: object = None, embedder: object = None, **options: Any
) -> Score:
    """Compute one metric.

    Parameters
    ----------
    name
        A metric's name: ``"faithfulness"``, ``"ndcg@10"``.
    judge, embedder
        Instead of the running test's: a judge or embedder, a spec such as ``"openai:gpt-4o-mini"``, or a
        callable.
    options
        The metric's own options.

    Raises
    ------
    UsageError
        Unknown metric or option, or a field that the sample does not have; before any call.
    Unscored
        Judge or embedder failed, or the metric is undefined for this sample.
    """
    __tracebackhide__ = True
    _refuse_swapped("score", name, sample)
    [found] = _scores(sample, [Wanted(name, None, options)], asserted=False, judge=judge, embedder=embedder)
    return found


@helper(HelperSpec(name="score", metric_from="name", asserted=False, threshold_from=None))
async def ascore(
    name: str, sample: RagSample, *, judge: object = None, embedder: object = None, **options: Any
) -> Score:
    """:func:`score` for async code: the running loop is not blocked."""
    __tracebackhide__ = True
    _refuse_swapped("ascore", name, sample)
    return await asyncio.to_thread(score, name, sample, judge=judge, embedder=embedder, **options)


@helper(HelperSpec(name="assert_metric", metric_from="name"))
def assert_metric(
    name: str,
    sample: RagSample,
    threshold: ThresholdLike | None = None,
    *,
    judge: object = None,
    embedder: object = None,
    **options: Any,
) -> Score:
    """Assert that one metric meets a threshold, and return its score.

    The threshold of the question itself (its ``thresholds``) wins over the argument, which wins over
    ``thresholds`` in the configuration.

    Raises
    ------
    QualityFailure
        The score misses the threshold.
    UsageError
        The threshold is unreadable or points the wrong way, or the sample lacks a field; before any call.
    Unscored
        Judge or embedder failed, or the metric is undefined for this sample.
    """
    __tracebackhide__ = True
    _refuse_swapped("assert_metric", name, sample)
    [found] = _scores(sample, [Wanted(name, threshold, options)], judge=judge, embedder=embedder)
    return found


@helper(HelperSpec(name="assert_quality", threshold_from=None, many_from=("wanted", "thresholds")))
def assert_quality(
    sample: RagSample,
    wanted: Mapping[str, ThresholdLike] | None = None,
    *,
    judge: object = None,
    embedder: object = None,
    **thresholds: ThresholdLike,
) -> dict[str, Score]:
    """Assert several metrics at once; their calls overlap, and every miss is reported.

    ``assert_quality(sample, faithfulness=">=0.8", answer_relevancy=">=0.7")``; names that are no
    identifiers go into a mapping: ``assert_quality(sample, {"ndcg@10": ">=0.8"})``.

    Raises
    ------
    QualityFailure
        With all misses; its ``scores`` holds them.
    UsageError, Unscored
        As :func:`assert_metric`. Where one metric misses and another has no score, the miss is raised
        and the other is named in it.
    """
    __tracebackhide__ = True
    named = {**(wanted or {}), **thresholds}
    if not named:
        raise UsageError(
            'assert_quality was given no metric: write assert_quality(sample, faithfulness=">=0.8")'
        )
    wanted_scores = [Wanted(name, threshold) for name, threshold in named.items()]
    return {found.metric: found for found in _scores(sample, wanted_scores, judge=judge, embedder=embedder)}


def assert_wanted(sample: RagSample, wanted: Sequence[Wanted]) -> list[Score]:
    """:func:`assert_quality` where metrics have options, and one may be wanted twice (two aspects)."""
    __tracebackhide__ = True
    return _scores(sample, wanted, judge=None, embedder=None)


@helper(HelperSpec(name="assert_metric", metric_from="name"))
async def aassert_metric(
    name: str, sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """:func:`assert_metric` for async tests: the running loop is not blocked, so several can be gathered."""
    __tracebackhide__ = True
    # In a thread, which may wait for the engine's loop while the test's loop goes on.
    return await asyncio.to_thread(assert_metric, name, sample, threshold, **options)


@helper(HelperSpec(name="assert_quality", threshold_from=None, many_from=("wanted", "thresholds")))
async def aassert_quality(
    sample: RagSample, wanted: Mapping[str, ThresholdLike] | None = None, **thresholds: Any
) -> dict[str, Score]:
    """:func:`assert_quality` for async tests: the running loop is not blocked."""
    __tracebackhide__ = True
    return await asyncio.to_thread(assert_quality, sample, wanted, **thresholds)


@helper(HelperSpec(name="assert_rouge", metric="rougeL", metric_from="kind"))
def assert_rouge(
    sample: RagSample,
    threshold: ThresholdLike | None = None,
    kind: Literal["rouge1", "rouge2", "rougeL"] = "rougeL",
    *,
    judge: object = None,
    embedder: object = None,
    **options: Any,
) -> Score:
    """Assert the share of words, pairs of words, or the longest common run of words (default).

    Options are those of ``assert_rougeL``; raises as :func:`assert_metric`.
    """
    __tracebackhide__ = True
    return assert_metric(kind, sample, threshold, judge=judge, embedder=embedder, **options)


@helper(
    HelperSpec(
        name="assert_abstains",
        metric="abstention",
        asserted=False,
        threshold_from=None,
        not_options=("expected",),
    )
)
def assert_abstains(sample: RagSample, expected: bool = True, *, judge: object = None) -> Score:
    """Assert that the answer declines to answer (for a question that the documents don't answer).

    ``assert_abstains(sample, sample.should_abstain)`` also asserts that a question that they do answer
    gets one. A blank answer doesn't count as a refusal: it says nothing.

    Raises
    ------
    QualityFailure
        It answers where it should decline, or the other way round.
    UsageError, JudgeError
        As :func:`assert_metric`.
    """
    __tracebackhide__ = True
    # What is expected is said by the call: a threshold of the question's for other tests is not meant.
    unlimited = sample.with_(thresholds={}) if isinstance(sample, RagSample) else sample
    return assert_metric("abstention", unlimited, "==1" if expected else "==0", judge=judge)


_SEARCH_RAG = HelperSpec(
    name="assert_search_rag",
    metric="search_rag",
    asserted=False,
    threshold_from=None,
    grades_from=("threshold", "answer_correctness", "groundedness"),
    default_grade=">=0.7",
)


@helper(_SEARCH_RAG)
def assert_search_rag(
    sample: RagSample,
    threshold: ThresholdLike | None = None,
    *,
    answer_correctness: ThresholdLike | None = None,
    groundedness: ThresholdLike | None = None,
    judge: object = None,
) -> Score:
    """Assert the two grades of the search-rag judge, each against its threshold.

    ``threshold`` holds for both; where only one of the two is named, only that one is asserted.
    The default is ``>=0.7`` for both. The judge never sees a threshold; on a
    pass its message is ignored, on a failure without a message one is composed.

    Raises
    ------
    QualityFailure
        With the judge's ``error_message``.
    UsageError, JudgeError
        As :func:`assert_metric`.
    """
    __tracebackhide__ = True
    context = runtime.current()
    given = {"threshold": threshold, "answer_correctness": answer_correctness, "groundedness": groundedness}
    thresholds = _SEARCH_RAG.asked(given).grades
    prepared = prepare(
        context, ScoreRequest(metric="search_rag", sample=sample, grades=thresholds, judge=judge)
    )
    [found] = wait_for_scores(context, [prepared])
    if not isinstance(found, Score):
        if isinstance(found, RagbenchError):
            context.record(Result.of(prepared, found))
        raise found
    whole = Result.of(prepared, found)
    grades = []
    for name, limit in prepared.part_limits.items():
        value = found.details.get(name, found.value)
        grade = replace(found, metric=f"search_rag_{name}", value=value)
        # The judge's message is about the main fault: that of the lower grade, unless it passes.
        if limit.met(value) or (found.error_message and value > found.value):
            grade = replace(grade, reason="", error_message="")
        elif found.judge is not None and not found.error_message:  # nobody is asked about a blank answer
            grade = replace(grade, reason="the judge gave no message")
        # The grades have the whole score's range, and so its bands.
        band = prepared.metric.band(grade.value)
        grades.append(replace(whole, metric=grade.metric, threshold=limit, score=grade, band=band, part=name))
        context.record(grades[-1])
    _raise_misses(sample, grades)
    return found


def _refuse_swapped(helper_name: str, name: object, sample: object) -> None:
    """Say so where the sample stands in the place of the metric's name, and the name in the sample's."""
    if isinstance(name, RagSample) and isinstance(sample, str):
        raise UsageError(f"the arguments are swapped: write {helper_name}({sample!r}, sample, ...)")


def _scores(
    sample: RagSample, wanted: Sequence[Wanted], *, asserted: bool = True, judge: object, embedder: object
) -> list[Score]:
    """The scores, recorded and held against their thresholds; all metrics are computed at once."""
    __tracebackhide__ = True
    context = runtime.current()
    prepared = [
        prepare(
            context,
            ScoreRequest(
                metric=each.metric, sample=sample, options=each.options, threshold=each.threshold,
                asserted=asserted, judge=judge, embedder=embedder,
            ),
        )
        for each in wanted
    ]  # fmt: skip
    results: list[Result] = []
    failures: list[Exception] = []
    # All are recorded before any is asserted: with two metrics wrong, both are said.
    for each, outcome in zip(prepared, wait_for_scores(context, prepared), strict=True):
        if isinstance(outcome, (Score, RagbenchError)):
            results.append(Result.of(each, outcome))
            context.record(results[-1])
        if isinstance(outcome, Exception):
            failures.append(outcome)
    # A bad answer outranks an outage: the test fails, and the outage is named in it.
    _raise_misses(sample, results, notes=[str(failure).partition("\n")[0] for failure in failures])
    if failures:
        raise failures[0]
    return [result.score for result in results if result.score is not None]


def _raise_misses(sample: RagSample, results: Sequence[Result], notes: Sequence[str] = ()) -> None:
    __tracebackhide__ = True
    if misses := [result for result in results if result.passed is False]:
        scores = [result.score for result in misses if result.score is not None]
        raise QualityFailure(failure_text(sample, misses, notes), scores)


__all__ = [
    "aassert_metric",
    "aassert_quality",
    "ascore",
    "assert_abstains",
    "assert_metric",
    "assert_quality",
    "assert_rouge",
    "assert_search_rag",
    "assert_wanted",
    "score",
]
