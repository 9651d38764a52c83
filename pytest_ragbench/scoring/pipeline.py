"""From prepared requests to scores; the only place that computes a metric."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_ragbench.metrics.registry import Metric
from pytest_ragbench.metrics.tools import SampleOutcome, Tools
from pytest_ragbench.model.errors import Unscored, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring.requests import MetricSetup, Prepared, ScoreRequest, shortcut
from pytest_ragbench.scoring.voting import put_together

if TYPE_CHECKING:
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.scoring.context import Context


def wait_for_scores(context: Context, prepared: Sequence[Prepared]) -> list[Score | Exception]:
    """As :func:`score_all`, for a test that waits; from any thread but that of the engine's loop.

    A score that was computed ahead of the test is taken as it is: it takes no trip to the loop.
    """
    at_hand = [context.prefetched(each) for each in prepared]
    rest = [each for each, found in zip(prepared, at_hand, strict=True) if found is None]
    if not rest:
        context.served()
        return list(at_hand)  # type: ignore[arg-type]
    computed = iter(context.engine().wait(score_all(rest), meanwhile=context.waiting))
    return [next(computed) if found is None else found for found in at_hand]


async def score_all(prepared: Sequence[Prepared]) -> list[Score | Exception]:
    """All at once: for each request its score, or the error that stands in its place.

    Runs on the engine's loop. Errors are those of :func:`score`; whatever else goes wrong in a formula is
    returned, too.
    """
    if len(prepared) == 1:  # most are: one task less
        return [await _outcome(prepared[0])]
    # Errors are values here, so that one failure does not cancel the calls of the others.
    return list(await asyncio.gather(*map(_outcome, prepared)))


async def _outcome(prepared: Prepared) -> Score | Exception:
    try:
        return await score(prepared)
    except Exception as error:
        return error


async def score(prepared: Prepared) -> Score:
    """The score of a request, its votes and the members of a panel put together.

    Raises
    ------
    Unscored
        Judge or embedder failed, or the metric is undefined for this sample.
    UsageError
        The formula returned something else than a score, or a value outside the metric's range.
    """
    # A metric over a set looks at blank answers itself: they count among the others there.
    metric, given = prepared.metric, prepared.given
    found = shortcut(metric, given) if metric.of == "sample" else None
    if found is not None:
        value, reason = found
        return Tools(metric.name).score(given, value, reason=reason)

    # Nothing to vote on: arithmetic says the same every time.
    if not metric.tasks:
        return await _compute(prepared, None, None, 0)
    if metric.watches_judge:  # votes and panels are of the samples that it has scored, not of itself
        return await _compute(prepared, prepared.judge, None, 0)
    return await put_together(prepared, partial(_compute, prepared))


async def _compute(prepared: Prepared, judge: Judge | None, second: Judge | None, vote: int) -> Score:
    """The formula, once."""
    metric, given = prepared.metric, prepared.given
    chosen = {**metric.options, **prepared.options}
    asked_for, yes_from = chosen.pop("verdicts", None), chosen.pop("yes_from", 0.5)
    tools = Tools(
        metric.name,
        judge,
        prepared.embedder,
        second=second,
        # Repeats must not meet the stored votes of an earlier repeat.
        repeat=prepared.repeat * prepared.votes + vote,
        fresh=prepared.fresh,
        lang=given.lang if isinstance(given, RagSample) else None,
        verdicts=asked_for,
        yes_from=yes_from,
        scorer=_SampleScorer(prepared) if metric.watches_judge else None,
    )
    try:
        found: Score = await metric.compute(given, tools, **chosen)
    finally:
        # Also where there is no score: a call that failed was made and paid for.
        if prepared.watch is not None:
            prepared.watch(tools)
    if asked_for == "probability":
        # Another instrument than the same model's JSON: so reports say, and baselines compare it with its like.
        asked = f"{found.judge} by probability" if found.judge else None
        found = replace(found, judge=asked, details={**found.details, "verdicts": asked_for})
    return in_range(metric, found)


def in_range(metric: Metric, score: Score) -> Score:
    """The score, float noise at the ends of the range cut off.

    Raises
    ------
    UsageError
        It lies outside the metric's range.
    """
    if not metric.low - 1e-9 <= score.value <= metric.high + 1e-9:
        raise UsageError(
            f"{metric.name} returned {score.value}, outside its range {metric.low:g}..{metric.high:g}"
        )
    value = min(max(score.value, metric.low), metric.high)
    return score if value == score.value else replace(score, value=value)


class _SampleScorer:
    """Scores samples for a metric that watches its judge: with the same votes, panel and configuration."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    async def __call__(
        self, name: str, samples: Sequence[RagSample], options: Mapping[str, Any], repeat: int
    ) -> list[SampleOutcome]:
        own = self._prepared
        if own.context is None:
            raise UsageError(f"{own.metric.name} can't score samples here")
        used: list[list[Tools]] = [[] for _ in samples]
        prepared = []
        for sample, tools in zip(samples, used, strict=True):
            request = ScoreRequest(
                metric=name, sample=sample, options=options, judge=own.judge, embedder=own.embedder,
                repeat=own.repeat + repeat, watch=tools.append,
            )  # fmt: skip
            prepared.append(MetricSetup(own.context, request).prepare(sample))
        outcomes = await score_all(prepared)
        found = []
        for outcome, tools in zip(outcomes, used, strict=True):
            if isinstance(outcome, Exception) and not isinstance(outcome, Unscored):
                raise outcome
            # They come as they end: in an order of their own, so that runs can be compared.
            ordered = sorted(tools, key=lambda each: (sorted(each.judges), each.repeat))
            found.append(SampleOutcome(outcome, tuple(ordered)))
        return found
