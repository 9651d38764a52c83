"""Metrics over a set of samples: the mean of any metric, and those that are no mean of anything.

Built on the same parts as :mod:`pytest_ragbench.assertions`; all samples are scored at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_ragbench import runtime
from pytest_ragbench.aggregates import RagSamples
from pytest_ragbench.assertions import ThresholdLike, _chosen
from pytest_ragbench.metrics.registry import Metric, check_needs, check_options, find
from pytest_ragbench.metrics.scoring import (
    check,
    check_judge,
    configured,
    in_range,
    needs_embedder,
    needs_judge,
)
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.metrics.voting import decide, votes_for
from pytest_ragbench.model.errors import (
    JudgeError,
    QualityFailure,
    RagbenchError,
    UndefinedScore,
    Unscored,
    UsageError,
)
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score, Usage
from pytest_ragbench.model.thresholds import Threshold, parse_threshold
from pytest_ragbench.report.clean import one_line
from pytest_ragbench.runtime import Result, Runtime

Items = RagSamples | Sequence[Any]
"""Samples; or what a metric over a set takes in their place: texts, vectors, pairs."""


def score_over(
    items: Items,
    name: str,
    *,
    judge: object = None,
    embedder: object = None,
    coverage: float = 0.0,
    **options: Any,
) -> Score:
    """The mean of a metric over a set, or the value of a metric that is computed over one.

    Parameters and errors as :func:`assert_over`, but that some samples may be without a score;
    ``details`` say how many (``n_scored``, ``n_unscored``, ``n_total``).
    """
    __tracebackhide__ = True
    here = runtime.current()
    metric = find(name)
    _check_items(name, items)
    found = _found(here, items, metric, None, judge, embedder, coverage, options)
    here.record(_result(_turned(metric, found), found, None, None))
    return found


def assert_over(
    items: Items,
    name: str,
    threshold: ThresholdLike | None = None,
    *,
    judge: object = None,
    embedder: object = None,
    coverage: float = 1.0,
    **options: Any,
) -> Score:
    """Assert the mean of a metric over a set, or a metric that is computed over one.

    Parameters
    ----------
    items
        The fixture ``rag_samples``, a list of samples; for metrics over a set also texts, vectors or
        pairs, as they say.
    name
        Any metric's name: ``"faithfulness"`` (the mean), ``"silhouette"`` (one value).
    threshold
        As for ``assert_metric``; by default that of ``[thresholds]`` in the configuration.
    coverage
        Share of the set (0..1) that must have a score. With the default of 1 a sample whose request or
        judge failed, or for which the metric is undefined, is an error: never left out silently.
    options
        The metric's own.

    Raises
    ------
    QualityFailure
        The value misses the threshold; the worst samples are named.
    UsageError
        Unknown metric or option, a sample without a field that is needed, no items; before any call.
    Unscored
        Fewer samples than ``coverage`` have a score: an EndpointError, JudgeError ... as the first failure
        was.
    """
    __tracebackhide__ = True
    here = runtime.current()
    metric = find(name)
    _check_items(name, items)
    if threshold is None:
        threshold = here.settings().thresholds.get(metric.name)
    if threshold is None:
        raise UsageError(
            f"{metric.name} was given no threshold: write assert_over(samples, {name!r}, '>=0.8')"
        )
    shown = metric
    samples = items.answered if isinstance(items, RagSamples) else list(items)
    if metric.of == "sample" and samples and isinstance(samples[0], RagSample):
        shown = check(metric.name, samples[0], options)  # its direction may follow from the options
    limit = parse_threshold(threshold, shown.scale)
    found = _found(here, items, metric, limit, judge, embedder, coverage, options)
    passed = limit.met(found.value)
    here.record(_result(shown, found, limit.text, passed))
    if not passed:
        raise QualityFailure(_text(found, limit.shown(found.value), limit.text), [found])
    return found


def _turned(metric: Metric, found: Score) -> Metric:
    """In the direction that the options gave it."""
    return metric.turned("lower") if found.details.get("direction") == "lower" else metric


def _check_items(name: str, items: Items) -> None:
    __tracebackhide__ = True
    if isinstance(items, (str, bytes, Mapping, RagSample)) or not hasattr(items, "__len__"):
        raise UsageError(f"{name} over a set needs a list, got {type(items).__name__}")
    if not len(items):
        raise UsageError(f"{name}: there is nothing to score")


def _result(metric: Metric, found: Score, threshold: str | None, passed: bool | None) -> Result:
    count = int(found.details.get("n_scored", found.details.get("n_items", 1)))
    band = metric.band(found.value)
    return Result(metric.name, None, metric.tier, threshold, passed, found, band=band, count=count)


def _found(
    here: Runtime,
    items: Items,
    metric: Metric,
    limit: Threshold | None,
    judge: object,
    embedder: object,
    coverage: float,
    options: Mapping[str, Any],
) -> Score:
    """The score of the set; a failure is recorded here."""
    __tracebackhide__ = True
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float)) or not 0 <= coverage <= 1:
        raise UsageError(f"{metric.name}: coverage must lie in 0..1, got {coverage!r}")
    try:
        if metric.of == "set":
            return _of_set(here, items, metric, judge, embedder, coverage, options)
        return _mean(here, items, metric, judge, embedder, coverage, options, limit)
    except UsageError:
        raise
    except RagbenchError as error:
        text = limit.text if limit is not None else None
        here.record(Result(metric.name, None, metric.tier, text, error=error, count=len(items)))
        raise


# --- the mean of a metric ----------------------------------------------------------------------


def _mean(
    here: Runtime,
    items: Items,
    metric: Metric,
    judge: object,
    embedder: object,
    coverage: float,
    options: Mapping[str, Any],
    limit: Threshold | None,
) -> Score:
    __tracebackhide__ = True
    failed: dict[str, Unscored] = dict(items.failed) if isinstance(items, RagSamples) else {}
    samples: list[RagSample] = items.answered if isinstance(items, RagSamples) else list(items)
    options = configured(here.settings(), metric.name, options)
    metrics = [check(metric.name, sample, options) for sample in samples]
    tools = _chosen_tools(
        here, metric.name, judge, embedder,
        [known for known, sample in zip(metrics, samples, strict=True) if needs_judge(known, sample)],
        any(needs_embedder(known, sample) for known, sample in zip(metrics, samples, strict=True)),
    )  # fmt: skip

    settings = here.settings()

    async def all_of_them() -> list[Score | BaseException]:
        return await asyncio.gather(
            *(
                decide(
                    known,
                    sample,
                    judge=tools.judge,
                    embedder=tools.embedder,
                    options=options,
                    votes=votes_for(settings, sample),
                )
                for known, sample in zip(metrics, samples, strict=True)
            ),
            return_exceptions=True,
        )

    scores: list[tuple[RagSample, Score]] = []
    for sample, outcome in zip(samples, here.engine().wait(all_of_them()), strict=True):
        if isinstance(outcome, Score):
            scores.append((sample, outcome))
            if limit is not None and limit.met(outcome.value):
                here.keep(
                    metric,
                    sample,
                    limit,
                    outcome,
                    options=options,
                    judge=tools.judge,
                    embedder=tools.embedder,
                )
        elif isinstance(outcome, Unscored):
            failed[sample.label] = outcome
        else:
            raise outcome
    total = len(items)
    if not scores or len(scores) < coverage * total - 1e-9:
        raise _short(metric.name, len(scores), total, failed)
    direction = metrics[0].direction if metrics else metric.direction
    return _total(metric.name, scores, failed, total, lower=direction == "lower")


def _chosen_tools(
    here: Runtime, name: str, judge: object, embedder: object, judged: Sequence[Metric], embeds: bool
) -> Tools:
    """Judge and embedder, where they are needed, and checked for what they can do."""
    __tracebackhide__ = True
    tools = Tools(name)
    if judged:
        tools.judge = _chosen(here, "judge", judge)
        for known in {known.tasks: known for known in judged}.values():
            check_judge(known, tools.judge)
    if embeds:
        tools.embedder = _chosen(here, "embedder", embedder)
    return tools


def _short(name: str, n: int, total: int, failed: Mapping[str, Unscored]) -> Unscored:
    """The error that too few of the set have a score, of the class of the first failure."""
    first = next(iter(failed.values()), None)
    names = ", ".join(list(failed)[:5]) + (" ..." if len(failed) > 5 else "")
    message = f"{name}: {n} of {total} have a score, {total - n} do not ({names})"
    if first is not None:
        message += f"; first: {one_line(str(first), 300)}"
    kind = type(first) if first is not None else UndefinedScore
    return kind(message, code="coverage")


def _total(
    name: str,
    scores: Sequence[tuple[RagSample, Score]],
    failed: Mapping[str, Unscored],
    total: int,
    *,
    lower: bool,
) -> Score:
    values = [score.value for _, score in scores]
    worst = sorted(scores, key=lambda pair: pair[1].value, reverse=lower)
    usage = Usage()
    for _, score in scores:
        usage += score.usage
    judges = {score.judge for _, score in scores if score.judge}
    embedders = {score.embedder for _, score in scores if score.embedder}
    return Score(
        metric=name,
        value=sum(values) / len(values),
        reason=f"mean of {len(values)} of {total}",
        evidence=tuple(
            Finding(sample.label, None, score.error_message or score.reason, value=score.value)
            for sample, score in worst[:10]
        ),
        evidence_title="worst",
        judge=", ".join(sorted(judges)) or None,
        embedder=", ".join(sorted(embedders)) or None,
        votes=max(score.votes for _, score in scores),
        usage=usage,
        duration=sum(score.duration for _, score in scores),
        cached=all(score.cached for _, score in scores),
        details={
            "n_scored": len(values),
            "n_unscored": total - len(values),
            "n_total": total,
            "direction": "lower" if lower else "higher",
            "min": min(values),
            "max": max(values),
            "values": {sample.label: score.value for sample, score in scores},
            "unscored": {label: error.code for label, error in failed.items()},
        },
    )


# --- metrics over a set ------------------------------------------------------------------------


def _of_set(
    here: Runtime,
    items: Items,
    metric: Metric,
    judge: object,
    embedder: object,
    coverage: float,
    options: Mapping[str, Any],
) -> Score:
    __tracebackhide__ = True
    failed: Mapping[str, Unscored] = items.failed if isinstance(items, RagSamples) else {}
    whole: Any = items.answered if isinstance(items, RagSamples) else items
    if failed and (len(whole) < coverage * len(items) - 1e-9 or not len(whole)):
        raise _short(metric.name, len(whole), len(items), failed)
    check_options(metric, options)
    known = metric.adapted(whole, options)
    for item in whole if known.needs else ():
        if not isinstance(item, RagSample):
            raise UsageError(f"{metric.name} is computed over samples, got {type(item).__name__}")
        check_needs(known, item)
    tools = _chosen_tools(here, metric.name, judge, embedder, [known] if known.tasks else [], known.embedder)

    async def work() -> Score:
        found: Score = await known.compute(whole, tools, **{**known.options, **options})
        return found

    found = in_range(known, here.engine().wait(work()))
    n, lost = int(found.details.get("n_items", len(whole))), int(found.details.get("n_failed", 0))
    if n - lost < coverage * n - 1e-9:
        raise JudgeError(
            f"{metric.name}: {n - lost} of {n} have a verdict, {lost} do not; set coverage= to leave them out",
            code="coverage",
        )
    return replace(found, details={**found.details, "n_requests_failed": len(failed)}) if failed else found


# --- what a failure says -----------------------------------------------------------------------


def _text(found: Score, shown: str, threshold: str) -> str:
    lines = [f"{found.metric} {shown}, wanted {threshold}: {one_line(found.reason, 200)}"]
    if unscored := found.details.get("unscored"):
        lines.append(
            f"  no score   {', '.join(f'{label} ({code})' for label, code in list(unscored.items())[:10])}"
        )
    for index, finding in enumerate(found.evidence[:10]):
        value = f"{finding.value:.2f} " if finding.value is not None else ""
        reason = f"   {one_line(finding.reason, 160)}" if finding.reason else ""
        label = found.evidence_title if index == 0 else ""
        lines.append(f"  {label:<10} {value}{one_line(finding.text, 80)}{reason}")
    if found.judge:
        lines.append(f"  judge      {found.judge}")
    if found.embedder:
        lines.append(f"  embedder   {found.embedder}")
    return "\n".join(lines)
