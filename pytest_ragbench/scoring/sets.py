"""A metric over a set: who is left out, how many must have a score, and what the scores come to.

The one rule, for whoever asks. Left out and counted: a sample whose question lacks what the metric compares with
(no relevant ids, no reference); if that is so for all of them, the test is wrong. A right refusal, too: where a
question should_abstain and its answer declines, a mean of answers has nothing to measure. Without a score, and held
against ``coverage``: a failed request, a failed judge, a metric that is undefined for a sample. Wrong before any call:
a reply without what the metric needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_ragbench.clean import one_line
from pytest_ragbench.judge.local import is_abstention
from pytest_ragbench.metrics.checks import check_options, formula_options
from pytest_ragbench.metrics.needs import QUESTION_FIELDS, check_needs, lacks
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.model.errors import (
    JudgeError,
    UndefinedScore,
    Unscored,
    UsageError,
    cause_of,
    with_details,
)
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score, Usage
from pytest_ragbench.model.thresholds import Threshold
from pytest_ragbench.scoring.configured import configured_options
from pytest_ragbench.scoring.pipeline import score, score_all
from pytest_ragbench.scoring.requests import (
    MetricSetup,
    Prepared,
    ScoreRequest,
    ThresholdLike,
    check_judge,
    threshold_of,
)

if TYPE_CHECKING:
    from pytest_ragbench.scoring.context import Context

Items = RagSamples | Sequence[Any]
"""Samples; or what a metric over a set takes in their place: texts, vectors, pairs."""

WORST_SHOWN = 10
"""So many of the lowest scores are kept as evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRequest:
    """One metric over a set. ``coverage``: the share of it (0..1) that must have a score; the rest as in
    :class:`~pytest_ragbench.scoring.ScoreRequest`.
    """

    metric: str
    items: Items
    options: Mapping[str, Any] = field(default_factory=dict)
    threshold: ThresholdLike | None = None
    asserted: bool = False
    coverage: float = 1.0
    judge: object = None
    embedder: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSet:
    """A set that has passed all checks.

    ``parts`` holds a request for each sample, or one for all of them where the metric is not a mean. ``left_out``
    says by field how many questions lack it; they count nowhere else.
    """

    metric: Metric
    parts: tuple[Prepared, ...]
    failed: Mapping[str, Unscored]
    left_out: Mapping[str, int]
    n_total: int
    coverage: float
    limit: Threshold | None = None
    refusals: int = 0
    """Answers that are left out because they rightly decline to answer."""


@dataclass(frozen=True, slots=True)
class SetScore:
    """The score of a set, and the scores it was made of (none for a metric that is not a mean)."""

    total: Score
    scores: tuple[tuple[Prepared, Score], ...] = ()


def prepare_set(context: Context, request: SetRequest) -> PreparedSet:
    """Check all that can be wrong with a set and its metric, before any call is paid for.

    Raises
    ------
    UsageError
        Unknown metric or option, no items, a threshold that is unreadable, missing or points the wrong way, a
        reply that lacks a field, a set in which every question lacks one, a judge that can't do what is asked.
    """
    metric = find(request.metric)
    _check_items(metric.name, request)
    if metric.of == "set":
        return _prepare_whole(context, request, metric)
    return _prepare_samples(context, request, metric)


async def score_set(prepared: PreparedSet) -> SetScore:
    """The mean of the samples' scores, or the score of the whole set; on the engine's loop.

    Raises
    ------
    Unscored
        Fewer than ``coverage`` have a score: of the class of the first failure (EndpointError, JudgeError ...).
    """
    if prepared.metric.of == "set":
        return SetScore(await _score_whole(prepared))
    failed = dict(prepared.failed)
    scores: list[tuple[Prepared, Score]] = []
    values: dict[str, float] = {}
    for part, outcome in zip(prepared.parts, await score_all(prepared.parts), strict=True):
        if isinstance(outcome, Score):
            scores.append((part, outcome))
            values[_unused(part.given.label, values)] = outcome.value
        elif isinstance(outcome, Unscored):
            failed[_unused(part.given.label, failed)] = outcome
        else:
            raise outcome
    # The tolerance is for shares such as 0.7 of 10.
    if not scores or len(scores) < prepared.coverage * prepared.n_total - 1e-9:
        raise _short(prepared, len(scores), failed)
    return SetScore(_total(prepared, scores, values, failed), tuple(scores))


# --- checks ------------------------------------------------------------------------------------


def _check_items(name: str, request: SetRequest) -> None:
    items, coverage = request.items, request.coverage
    if isinstance(items, (str, bytes, Mapping, RagSample)) or not hasattr(items, "__len__"):
        raise UsageError(f"{name} over a set needs a list, got {type(items).__name__}")
    if not len(items):
        raise UsageError(f"{name}: there is nothing to score")
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float)) or not 0 <= coverage <= 1:
        raise UsageError(f"{name}: coverage must lie in 0..1, got {coverage!r}")


def _prepare_samples(context: Context, request: SetRequest, metric: Metric) -> PreparedSet:
    answered, failed = _answered(request.items)
    setup = MetricSetup(
        context,
        ScoreRequest(
            metric=request.metric, sample=RagSample(""), options=request.options, threshold=request.threshold,
            judge=request.judge, embedder=request.embedder,
        ),
    )  # fmt: skip
    # What a metric needs may follow from its options and the sample, so that comes first.
    own_options = formula_options(setup.metric, setup.options)
    samples = [each for each in answered if not is_right_refusal(metric, _as_sample(metric, each))]
    if answered and not samples:
        raise UsageError(
            f"{metric.name}: there is nothing to score, as every answer rightly declines to answer"
        )
    adapted = [setup.metric.adapted(_as_sample(metric, each), own_options) for each in samples]
    kept, left_out = _without_questions(adapted, samples)
    # Its direction may follow from the options.
    limit = _limit(context, request, adapted[0] if adapted else metric)
    # All samples are checked before the first is asked about.
    parts = tuple(setup.prepare(sample) for sample in kept)
    return PreparedSet(
        metric=parts[0].metric if parts else metric,
        parts=parts,
        failed=failed,
        left_out=left_out,
        n_total=len(kept) + len(failed),
        coverage=request.coverage,
        limit=limit,
        refusals=len(answered) - len(samples),
    )


def is_right_refusal(metric: Metric, sample: RagSample) -> bool:
    """Whether the metric measures an answer, and this one declines a question that should not be answered."""
    if not sample.should_abstain or "answer" not in metric.needs or metric.name == "abstention":
        return False
    return sample.answer is not None and is_abstention(sample.answer)


def _prepare_whole(context: Context, request: SetRequest, metric: Metric) -> PreparedSet:
    items, failed = _answered(request.items)
    settings = context.settings()
    options = configured_options(settings, metric.name, request.options)
    own_options = formula_options(metric, options)
    check_options(metric, own_options)
    known = metric.adapted(items, own_options)
    left_out: Mapping[str, int] = {}
    if known.needs:
        samples = [_as_sample(metric, item) for item in items]
        kept, left_out = _without_questions([known] * len(samples), samples)
        for sample in kept:
            check_needs(known, sample)
        # Options that go with the items (labels) are checked against those that are left.
        if len(kept) < len(samples):
            items = kept
            known = metric.adapted(items, own_options)
    judge = embedder = None
    if known.tasks:
        judge = context.judge_for(request.judge)
        check_judge(known, judge)
    if known.embedder:
        embedder = context.embedder_for(request.embedder)
    limit = _limit(context, request, known)
    part = Prepared(
        metric=known,
        registered=metric,
        given=items,
        options=options,
        limit=limit,
        judge=judge,
        embedder=embedder,
        votes=settings.votes,
        context=context,
    )
    return PreparedSet(
        metric=known,
        parts=(part,),
        failed=failed,
        left_out=left_out,
        n_total=len(items) + len(failed),
        coverage=request.coverage,
        limit=limit,
    )


def _answered(items: Items) -> tuple[Any, dict[str, Unscored]]:
    """What can be scored, and what happened to the requests that failed, by the question's label."""
    if isinstance(items, RagSamples):
        return items.answered, dict(items.failed)
    return items, {}


def _as_sample(metric: Metric, item: Any) -> RagSample:
    if not isinstance(item, RagSample):
        raise UsageError(f"{metric.name} is computed over samples, got {type(item).__name__}")
    return item


def _without_questions(
    adapted: Sequence[Metric], samples: Sequence[RagSample]
) -> tuple[list[RagSample], dict[str, int]]:
    """The samples whose questions have what the metric compares with; by field, how many do not."""
    kept = []
    left_out: dict[str, int] = {}
    for metric, sample in zip(adapted, samples, strict=True):
        wanted = [name for name in metric.needs if name in QUESTION_FIELDS]
        for name in wanted:
            # Zero is reported, too: readers see that no question was left out.
            left_out.setdefault(name, 0)
        absent = next((name for name in wanted if lacks(sample, name)), None)
        if absent is None:
            kept.append(sample)
        else:
            left_out[absent] += 1
    if samples and not kept:
        # What the reply lacks is the more likely mistake: it is said first.
        for metric, sample in zip(adapted, samples, strict=True):
            check_needs(replace(metric, needs=tuple(set(metric.needs) - QUESTION_FIELDS)), sample)
        field_name = max(left_out, key=lambda name: left_out[name])
        raise UsageError(
            f"{adapted[0].name}: no question has {field_name}; add such a column to the question file"
        )
    return kept, left_out


def _limit(context: Context, request: SetRequest, metric: Metric) -> Threshold | None:
    """The threshold of the set: what was asked for, else what the configuration says."""
    written = f"assert_over(samples, {request.metric!r}, '>=0.8')" if request.asserted else None
    return threshold_of(context.settings(), metric, request.threshold, written)


# --- scores ------------------------------------------------------------------------------------


async def _score_whole(prepared: PreparedSet) -> Score:
    [part] = prepared.parts
    failed, name = prepared.failed, prepared.metric.name
    n = len(part.given)
    # Before the call: a set that can't be reported is not paid for.
    if failed and (not n or n < prepared.coverage * prepared.n_total - 1e-9):
        raise _short(prepared, n, failed)
    found = await score(part)
    n, lost = int(found.details.get("n_items", n)), int(found.details.get("n_failed", 0))
    if n - lost < prepared.coverage * n - 1e-9:
        raise JudgeError(
            f"{name}: {n - lost} of {n} have a verdict, {lost} do not; set coverage= to leave them out",
            code="coverage",
        )
    more: dict[str, Any] = _counts(prepared)
    if failed:
        more["n_requests_failed"] = len(failed)
    return replace(found, details={**found.details, **more}) if more else found


def _short(prepared: PreparedSet, n: int, failed: Mapping[str, Unscored]) -> Unscored:
    """The error that too few of the set have a score, of the class of the first failure."""
    total, name = prepared.n_total, prepared.metric.name
    # Of the class of the first failure, so that an outage stays an outage in exit code and report.
    first = next(iter(failed.values()), None)
    names = ", ".join(list(failed)[:5]) + (" ..." if len(failed) > 5 else "")
    message = f"{name}: {n} of {total} have a score, {total - n} do not ({names})"
    if isinstance(first, UndefinedScore):
        message += f"; first: {one_line(str(first), 300)}"
    elif first is not None:
        message = with_details(cause_of(one_line(str(first), 600)), message)
    kind = type(first) if first is not None else UndefinedScore
    return kind(message, code="coverage")


def _unused(label: str, taken: Mapping[str, object]) -> str:
    """A label of its own for each sample: several without an id may ask the same."""
    name, n = label, 1
    while name in taken:
        n += 1
        name = f"{label} #{n}"
    return name


def _total(
    prepared: PreparedSet,
    scores: Sequence[tuple[Prepared, Score]],
    by_label: Mapping[str, float],
    failed: Mapping[str, Unscored],
) -> Score:
    """The mean, with the worst as evidence and the sums of what all of them used."""
    # A plain mean: no sample counts more, and none without a score counts as zero.
    values = list(by_label.values())
    lower = prepared.metric.direction == "lower"
    worst = sorted(scores, key=lambda pair: pair[1].value, reverse=lower)
    judges = {each.judge for _, each in scores if each.judge}
    embedders = {each.embedder for _, each in scores if each.embedder}
    without = sum(prepared.left_out.values()) + prepared.refusals
    split = sum("disagreement" in each.details for _, each in scores)
    return Score(
        metric=prepared.metric.name,
        value=sum(values) / len(values),
        reason=f"mean of {len(values)} of {prepared.n_total}"
        + (f", {without} left out" if without else "")
        + (f", judges disagree on {split}" if split else ""),
        evidence=tuple(
            Finding(part.given.label, None, each.error_message or each.reason, value=each.value)
            for part, each in worst[:WORST_SHOWN]
        ),
        evidence_title="worst",
        judge=", ".join(sorted(judges)) or None,
        embedder=", ".join(sorted(embedders)) or None,
        votes=max(each.votes for _, each in scores),
        usage=sum((each.usage for _, each in scores), Usage()),
        duration=sum(each.duration for _, each in scores),
        cached=all(each.cached for _, each in scores),
        details={
            "n_scored": len(values),
            "n_unscored": prepared.n_total - len(values),
            "n_total": prepared.n_total,
            **_counts(prepared),
            "direction": prepared.metric.direction,
            "min": min(values),
            "max": max(values),
            "values": by_label,
            "unscored": {label: error.code for label, error in failed.items()},
            "undefined": [label for label, error in failed.items() if isinstance(error, UndefinedScore)],
        },
    )


def _counts(prepared: PreparedSet) -> dict[str, int]:
    """Questions that were left out, by what they lack, and right refusals, where there are any."""
    counts = {f"n_without_{name}": count for name, count in prepared.left_out.items()}
    return {**counts, "n_right_refusals": prepared.refusals} if prepared.refusals else counts
