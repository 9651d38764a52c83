"""Helpers over a set of samples: the mean of any metric, and metrics that are computed over a whole set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ragbench import runtime
from pytest_ragbench.clean import one_line
from pytest_ragbench.metrics.registry import find
from pytest_ragbench.model.errors import QualityFailure, Unscored, UsageError
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import Items, PreparedSet, SetRequest, ThresholdLike, prepare_set, score_set
from pytest_ragbench.scoring.helper_spec import HelperSpec, helper
from pytest_ragbench.scoring.results import Result
from pytest_ragbench.scoring.setup import setup_of_set


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
    return _scored(
        SetRequest(
            metric=name, items=items, options=options, coverage=coverage, judge=judge, embedder=embedder
        )
    )


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
    request = SetRequest(
        metric=name, items=items, options=options, threshold=threshold, asserted=True, coverage=coverage,
        judge=judge, embedder=embedder,
    )  # fmt: skip
    return _scored(request)


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
    # Any metric would work, but the name would mislead readers of the test.
    if not {"relevant_ids", "relevant_urls"} & set(find(metric).needs):
        raise UsageError(f"{metric} is not a retrieval metric; write assert_over(samples, {metric!r}, ...)")
    request = SetRequest(
        metric=metric, items=[samples] if isinstance(samples, RagSample) else samples, options=options,
        threshold=threshold, asserted=True, coverage=coverage,
    )  # fmt: skip
    return _scored(request)


def _refuse_swapped(helper_name: str, items: object, name: object) -> None:
    if isinstance(items, str) and (isinstance(name, RagSample) or _is_list(name)):
        raise UsageError(f"the arguments are swapped: write {helper_name}(samples, {items!r}, ...)")


def _is_list(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))


def _scored(request: SetRequest) -> Score:
    """The score of the set, recorded and held against its threshold."""
    __tracebackhide__ = True
    context = runtime.current()
    prepared = prepare_set(context, request)
    metric, limit = prepared.metric, prepared.limit if request.asserted else None
    setup = setup_of_set(prepared)
    try:
        found = context.engine().wait(score_set(prepared), meanwhile=context.waiting)
    except Unscored as error:  # and no UsageError, which is the test's fault and not a result of the run
        context.record(
            Result(metric.name, None, metric.tier, limit, error=error, count=prepared.n_total, setup=setup)
        )
        raise
    total = found.total
    # Metrics over a set count their items themselves.
    count = int(total.details.get("n_scored", total.details.get("n_items", 1)))
    band = metric.band(total.value)
    result = Result(
        metric.name, None, metric.tier, limit, total, band=band, count=count, setup=setup, scored=found.scores
    )
    context.record(result)
    if limit is not None and not result.passed:
        raise QualityFailure(_failure_text(prepared, total, limit.shown(total.value), limit.text), [total])
    return total


def left_out_of(prepared: PreparedSet) -> list[str]:
    """How many questions were left out of a set, and why."""
    found = [
        f"{count} {'question' if count == 1 else 'questions'} without {name.replace('_', ' ')}"
        for name, count in prepared.left_out.items()
        if count
    ]
    if prepared.refusals:
        found.append(f"{prepared.refusals} right {'refusal' if prepared.refusals == 1 else 'refusals'}")
    return found


def _failure_text(prepared: PreparedSet, found: Score, shown: str, threshold: str) -> str:
    lines = [f"{found.metric} {shown}, wanted {threshold}: {one_line(found.reason, 200)}"]
    unscored: Mapping[str, str] = found.details.get("unscored") or {}
    if unscored:
        named = ", ".join(f"{label} ({code})" for label, code in list(unscored.items())[:10])
        lines.append(f"  no score   {named}")
    lines += [f"  left out   {each}" for each in left_out_of(prepared)]
    # With the line of the question file, where the worst questions can be looked up.
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
