"""From a metric's name and a sample to a score: the checks that come before any call, then the formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_ragbench.errors import UsageError
from pytest_ragbench.metrics.registry import Metric, check_needs, check_options, find
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.samples import RagSample
from pytest_ragbench.scores import Score

if TYPE_CHECKING:
    from pytest_ragbench.embeddings import Embedder
    from pytest_ragbench.judge.base import Judge


def check(name: str, sample: RagSample, options: Mapping[str, Any]) -> Metric:
    """The metric, once it is sure that it can be computed from ``sample``.

    Raises
    ------
    UsageError
        Unknown metric or option, or a field that the sample does not have.
    """
    metric = find(name)
    if metric.of == "set":
        raise UsageError(
            f"{name} is computed over a set, not for one sample: write assert_over(samples, {name!r}, ...)"
        )
    if not isinstance(sample, RagSample):
        raise UsageError(f"{name} is computed from a RagSample, got {type(sample).__name__}")
    check_options(metric, options)
    metric = metric.adapted(sample, options)
    check_needs(metric, sample)
    return metric


def needs_judge(metric: Metric, sample: RagSample) -> bool:
    return bool(metric.tasks) and _shortcut(metric, sample) is None


def needs_embedder(metric: Metric, sample: RagSample) -> bool:
    return metric.embedder and _shortcut(metric, sample) is None


def check_judge(metric: Metric, judge: Judge) -> None:
    """Refuse a judge that can't do what the metric asks of it.

    Raises
    ------
    UsageError
        Naming the judge and how to get another.
    """
    for task in metric.tasks:
        if judge.tasks is not None and not set(task.split("|")) & set(judge.tasks):
            raise UsageError(
                f"{metric.name}: the judge {judge.name!r} can't do {task.split('|')[0]!r}. Configure an LLM: set "
                "OPENAI_API_KEY and RAGBENCH_JUDGE=openai:MODEL, or a provider in ragbench.toml"
            )


async def compute(
    metric: Metric,
    sample: RagSample,
    *,
    judge: Judge | None,
    embedder: Embedder | None,
    options: Mapping[str, Any],
    tools: Tools | None = None,
) -> Score:
    """Compute a metric that :func:`check` has passed.

    A blank answer, or contexts with nothing in them, are the fault of the system under test: the
    lowest score, without a call. ``tools``: with books that the caller wants to see.

    Raises
    ------
    Unscored
        Judge or embedder failed, or the metric is undefined for this sample.
    """
    tools = tools or Tools(metric.name, judge, embedder)
    tools.lang = sample.lang
    shortcut = _shortcut(metric, sample)
    if shortcut is not None:
        value, reason = shortcut
        return tools.score(sample, value, reason=reason)
    score = await metric.compute(sample, tools, **{**metric.options, **options})
    return in_range(metric, score)


def in_range(metric: Metric, score: Score) -> Score:
    """The score, float noise at the ends of the range cut off; UsageError where it lies outside."""
    if not metric.low - 1e-9 <= score.value <= metric.high + 1e-9:
        raise UsageError(
            f"{metric.name} returned {score.value}, outside its range {metric.low:g}..{metric.high:g}"
        )
    return replace(score, value=min(max(score.value, metric.low), metric.high))


def _shortcut(metric: Metric, sample: RagSample) -> tuple[float, str] | None:
    if "answer" in metric.needs and not (sample.answer or "").strip():
        return (0.0 if metric.direction == "higher" else metric.worst), "empty answer"
    empty = not any(context.strip() for context in sample.contexts or ())
    if empty and metric.without_contexts is not None and "contexts" in metric.needs:
        return metric.without_contexts, "no contexts retrieved"
    return None
