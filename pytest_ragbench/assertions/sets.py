"""Helpers over a set of samples: the mean of any metric, and metrics that are no mean of anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ragbench import runtime
from pytest_ragbench.clean import one_line
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.model.errors import QualityFailure, RagbenchError, UsageError
from pytest_ragbench.model.results import Result
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.runtime import Runtime
from pytest_ragbench.scoring import (
    Items,
    PreparedSet,
    SetRequest,
    SetScore,
    ThresholdLike,
    prepare_set,
    score_set,
)
from pytest_ragbench.scoring.helper_spec import HelperSpec, helper


@helper(
    HelperSpec(
        name="score_over",
        metric_from="name",
        given_in="items",
        over=True,
        asserted=False,
        threshold_from=None,
    )
)
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
    _refuse_swapped("score_over", items, name)
    context = runtime.current()
    request = SetRequest(
        metric=name, items=items, options=options, coverage=coverage, judge=judge, embedder=embedder
    )
    prepared = prepare_set(context, request)
    found = _scored(context, prepared, None).total
    context.record(_result(prepared.metric, found, None, None))
    return found


@helper(HelperSpec(name="assert_over", metric_from="name", given_in="items", over=True))
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

    Questions that lack what the metric compares with (a reference, relevant ids) are left out and counted
    (``details["n_without_reference"]``).

    Parameters
    ----------
    items
        The fixture ``rag_samples``, a list of samples; for metrics over a set also texts, vectors or
        pairs, as they say.
    name
        Any metric's name: ``"faithfulness"`` (the mean), ``"silhouette"`` (one value).
    threshold
        Of the whole set; by default that of ``[thresholds]`` in the configuration.
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
        Unknown metric or option, a reply without a field that is needed, a set in which every question lacks
        one, no items; before any call.
    Unscored
        Fewer samples than ``coverage`` have a score: an EndpointError, JudgeError ... as the first failure
        was.
    """
    __tracebackhide__ = True
    _refuse_swapped("assert_over", items, name)
    context = runtime.current()
    request = SetRequest(
        metric=name, items=items, options=options, threshold=threshold, asserted=True, coverage=coverage,
        judge=judge, embedder=embedder,
    )  # fmt: skip
    return _asserted(context, request)


@helper(HelperSpec(name="assert_retrieval", metric_from="metric", given_in="samples", over=True))
def assert_retrieval(
    samples: RagSamples | Sequence[RagSample] | RagSample,
    metric: str,
    threshold: ThresholdLike | None = None,
    *,
    coverage: float = 1.0,
    **options: Any,
) -> Score:
    """Assert the mean of a retrieval metric over a question set (or over one sample): :func:`assert_over`.

    ``"url_mrr"``, ``"url_hit_rate@5"`` ... compare the URLs of documents instead of the ids of chunks.

    Parameters
    ----------
    samples
        The fixture ``rag_samples``, a list of samples, or one sample.
    metric
        ``"ndcg@10"``, ``"recall@5"``, ``"mrr"``, ``"map"``, ``"hit_rate@3"`` ...
    threshold
        Of the mean; by default that of ``[thresholds]`` in the configuration.
    coverage
        Share of the questions (0..1) that must have a score. A failed request has none; with the
        default of 1 any failed request is an error, never a better or worse mean. Questions without
        relevant ids (or URLs: nothing to find) are left out and counted.

    Raises
    ------
    QualityFailure
        The mean misses the threshold; the worst questions are named.
    EndpointError
        Fewer questions than ``coverage`` have a score.
    UsageError
        No question has relevant ids (or URLs), a reply had no chunk ids, or the threshold is unreadable.
    """
    __tracebackhide__ = True
    _refuse_swapped("assert_retrieval", samples, metric)
    context = runtime.current()
    # Any metric would work, but the name would mislead readers of the test.
    if not {"relevant_ids", "relevant_urls"} & set(find(metric).needs):
        raise UsageError(f"{metric} is not a retrieval metric; write assert_over(samples, {metric!r}, ...)")
    request = SetRequest(
        metric=metric, items=[samples] if isinstance(samples, RagSample) else samples, options=options,
        threshold=threshold, asserted=True, coverage=coverage,
    )  # fmt: skip
    return _asserted(context, request)


def _refuse_swapped(helper_name: str, items: object, name: object) -> None:
    if isinstance(items, str) and (isinstance(name, RagSample) or _is_list(name)):
        raise UsageError(f"the arguments are swapped: write {helper_name}(samples, {items!r}, ...)")


def _is_list(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))


def _asserted(context: Runtime, request: SetRequest) -> Score:
    __tracebackhide__ = True
    prepared = prepare_set(context, request)
    limit = prepared.limit
    if limit is None:  # prepare_set has refused that
        raise UsageError(f"{request.metric} was given no threshold")
    found = _scored(context, prepared, limit.text)
    # Each sample that is good enough by itself can be made worse, and should then fail.
    for part, score in found.scores:
        if limit.met(score.value):
            context.passed(part, limit, score)
    total = found.total
    passed = limit.met(total.value)
    context.record(_result(prepared.metric, total, limit.text, passed))
    if not passed:
        raise QualityFailure(_failure_text(prepared, total, limit.shown(total.value), limit.text), [total])
    return total


def _scored(context: Runtime, prepared: PreparedSet, threshold: str | None) -> SetScore:
    """The score of the set; a failure is recorded context."""
    __tracebackhide__ = True
    metric = prepared.metric
    try:
        return context.engine().wait(score_set(prepared), meanwhile=context.waiting)
    # The test's fault, not a result of the run.
    except UsageError:
        raise
    except RagbenchError as error:
        context.record(Result(metric.name, None, metric.tier, threshold, error=error, count=prepared.n_total))
        raise


def _result(metric: Metric, found: Score, threshold: str | None, passed: bool | None) -> Result:
    count = int(found.details.get("n_scored", found.details.get("n_items", 1)))
    band = metric.band(found.value)
    return Result(metric.name, None, metric.tier, threshold, passed, found, band=band, count=count)


def _failure_text(prepared: PreparedSet, found: Score, shown: str, threshold: str) -> str:
    lines = [f"{found.metric} {shown}, wanted {threshold}: {one_line(found.reason, 200)}"]
    unscored: Mapping[str, str] = found.details.get("unscored") or {}
    if unscored:
        named = ", ".join(f"{label} ({code})" for label, code in list(unscored.items())[:10])
        lines.append(f"  no score   {named}")
    for name, count in prepared.left_out.items():
        if count:
            lines.append(f"  left out   {count} questions without {name.replace('_', ' ')}")
    places = {
        part.given.label: part.given.location for part in prepared.parts if isinstance(part.given, RagSample)
    }
    for index, finding in enumerate(found.evidence[:10]):
        value = f"{finding.value:.2f} " if finding.value is not None else ""
        reason = f"   {one_line(finding.reason, 160)}" if finding.reason else ""
        place = f"   {places[finding.text]}" if places.get(finding.text) else ""
        label = found.evidence_title if index == 0 else ""
        lines.append(f"  {label:<10} {value}{one_line(finding.text, 80)}{reason}{place}")
    if found.judge:
        lines.append(f"  judge      {found.judge}")
    if found.embedder:
        lines.append(f"  embedder   {found.embedder}")
    return "\n".join(lines)
