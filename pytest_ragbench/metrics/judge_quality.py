"""How far a judge can be trusted: with itself, with the truth, with other raters.

Computed over a set. Either of samples, which are then scored by the metric that ``by`` names; or of what is
known already: pairs of scores, (verdict, truth) pairs, rows of ratings, seconds.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pytest_ragbench import statistics
from pytest_ragbench.judge.reading.fields import yes_no
from pytest_ragbench.metrics.checks import check_sample
from pytest_ragbench.metrics.registry import JUDGE_BANDS, NO_BANDS, find, metric
from pytest_ragbench.metrics.steps import NOBODY
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score

AGREEMENT_BANDS = {"excellent": 0.8, "good": 0.6}
"""After Landis and Koch 1977: "almost perfect" and "substantial"."""

# --- samples, scored by a metric ---------------------------------------------------------------


def _are_samples(items: Any) -> bool:
    return isinstance(next(iter(items), None), RagSample)


def _adapt_by(items: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the metric named ``by`` needs, checked for every sample before any call."""
    by = options.get("by")
    if not _are_samples(items):
        if by is not None:
            raise UsageError(f"by={by!r} scores samples, and these aren't samples: leave it out")
        return {"tasks": (), "embedder": False}
    if by is None:
        raise UsageError('name the metric that the judge is watched at: by="faithfulness"')
    # Each of them: none may be found wanting when others have been paid for.
    metrics = [check_sample(by, sample, options.get("options") or {}) for sample in items]
    if not any(known.tasks for known in metrics):
        raise UsageError(f"by={by!r} asks no judge, so it can't tell how good one is")
    return {
        "tasks": metrics[0].tasks,
        "embedder": any(known.embedder for known in metrics),
        "needs": metrics[0].needs,
        "watches_judge": True,
    }


# --- consistency -------------------------------------------------------------------------------


@metric(
    "judge_consistency",
    tier="judge",
    of="set",
    tasks=("split_claims",),
    bands=JUDGE_BANDS,
    adapt=_adapt_by,
)
async def judge_consistency(
    items: Any,
    tools: Tools,
    *,
    by: str | None = None,
    options: Mapping[str, Any] | None = None,
    delta: float | None = None,
    scale: tuple[float, float] | None = None,
    levels: Sequence[float] | None = None,
) -> Score:
    """Share of samples that a judge scores (nearly) alike when asked twice: |s1 - s2| <= delta.

    ``details`` hold the share that a judge who answers at random would reach (``chance``) and
    Krippendorff's interval ``alpha``: read the value beside them. Pairs in which a call failed are left out
    and counted.

    Parameters
    ----------
    items
        Samples, each scored twice by ``by`` (the second time by calls of their own, whatever is stored), or
        pairs of scores, None where a call failed.
    by, options
        A metric's name and its options.
    delta
        Allowed difference as a share of the scale: default 0.1, or the same level with ``levels``.
    scale, levels
        Lowest and highest score (default: the range of ``by``, or 0..1); or all grades of a discrete scale.
    """
    labels: list[str]
    if _are_samples(items):
        known = find(by or "")
        scale = scale or (known.low, known.high)
        once, twice = await asyncio.gather(
            # Repeat 1 has keys of its own in the store: a second opinion is never the first one read again.
            *(tools.score_samples(by or "", items, options or {}, repeat) for repeat in (0, 1))
        )
        pairs: list[tuple[Any, Any]] = [(one.value, two.value) for one, two in zip(once, twice, strict=True)]
        labels = [sample.label for sample in items]
    else:
        pairs = _pairs("judge_consistency", items)
        labels = [f"pair {place}" for place in range(1, len(pairs) + 1)]
    found = statistics.consistency(
        [one for one, _ in pairs],
        [two for _, two in pairs],
        delta=delta,
        scale=scale or (0.0, 1.0),
        levels=levels,
    )
    both = [
        (abs(one - two), f"{one:g} and {two:g}", label)
        for (one, two), label in zip(pairs, labels, strict=True)
        if one is not None and two is not None
    ]
    # Ten are enough to see what the two disagree about.
    furthest = sorted(both, key=lambda entry: -entry[0])[:10]
    findings = [Finding(label, None, shown) for _, shown, label in furthest]
    return tools.score(
        NOBODY, found.value, reason=str(found), evidence=findings, evidence_title="furthest",
        delta=found.delta, chance=found.chance, alpha=found.alpha, n_items=len(pairs),
        n_failed=found.n_left_out,
    )  # fmt: skip


def _pairs(name: str, items: Any) -> list[tuple[Any, Any]]:
    found = []
    for place, item in enumerate(items):
        if isinstance(item, str) or not isinstance(item, Sequence) or len(item) != 2:
            raise UsageError(f"{name}: item {place} must be a pair, got {item!r}")
        found.append((item[0], item[1]))
    return found


# --- errors and latency ------------------------------------------------------------------------


@metric(
    "judge_error_rate",
    tier="judge",
    of="set",
    tasks=("split_claims",),
    direction="lower",
    bands=NO_BANDS,
    adapt=_adapt_by,
)
async def judge_error_rate(
    items: Any, tools: Tools, *, by: str | None = None, options: Mapping[str, Any] | None = None
) -> Score:
    """Samples that the judge failed at / samples. Lower is better.

    ``items``: samples, scored by ``by``; or outcomes: a number or score, and None or the exception where
    there was none. A metric that is undefined for a sample doesn't count as one.
    """
    if _are_samples(items):
        outcomes = await tools.score_samples(by or "", items, options or {})
        failures: list[tuple[str, Exception | None]] = [
            (sample.label, one.error) for sample, one in zip(items, outcomes, strict=True) if one.failed
        ]
    else:
        failures = [
            (f"call {place}", item if isinstance(item, Exception) else None)
            for place, item in enumerate(items, 1)
            # An undefined score is due to the sample: the judge did reply.
            if item is None or (isinstance(item, Exception) and not isinstance(item, UndefinedScore))
        ]
    value = statistics.error_rate(len(failures), len(items))
    findings = [
        Finding(label, False, str(error or "no reply").partition("\n")[0]) for label, error in failures
    ]
    return tools.score(
        NOBODY, value, reason=f"{len(failures)} of {len(items)} failed", evidence=findings,
        evidence_title="failures", n_items=len(items), n_errors=len(failures),
    )  # fmt: skip


@metric(
    "judge_latency",
    tier="judge",
    of="set",
    tasks=("split_claims",),
    direction="lower",
    high=math.inf,
    adapt=_adapt_by,
)
async def judge_latency(
    items: Any,
    tools: Tools,
    *,
    by: str | None = None,
    options: Mapping[str, Any] | None = None,
    stat: Literal["mean", "p95"] = "mean",
) -> Score:
    """Seconds of a judge's reply, mean or 95th percentile; retries and stored replies left out. Lower is better.

    Where all replies are stored, it is the seconds that they took when they were asked for; the reason says so, and
    ``details`` hold their number as ``n_stored``.

    ``items``: samples, scored by ``by``; or seconds.
    """
    stored: list[float] = []
    if _are_samples(items):
        outcomes = await tools.score_samples(by or "", items, options or {})
        # Without stored replies, which take no time and would flatter the judge.
        seconds = [duration for outcome in outcomes for duration in outcome.durations]
        if not seconds:
            stored = [duration for outcome in outcomes for duration in outcome.stored_durations]
    else:
        seconds = [float(item) for item in items]
    if not seconds and not stored:
        raise UndefinedScore(
            "judge_latency: no call was made, and how long the stored replies took is not known",
            code="no_calls",
        )
    found = statistics.latency(seconds or stored)
    reason = (
        f"{len(seconds)} replies" if seconds else f"{len(stored)} stored replies, when they were asked for"
    )
    return tools.score(
        NOBODY, getattr(found, stat), reason=reason, mean=found.mean, p95=found.p95,
        n_items=len(seconds or stored), n_stored=len(stored),
    )  # fmt: skip


# --- a judge that says yes or no (tier "judge_pipeline") ----------------------


def _said(value: Any) -> bool | None:
    """A production judge's reply; None where it is neither yes nor no, as a whole word."""
    if value is None or isinstance(value, Exception):
        return None
    try:
        return yes_no(value)
    except ValueError:
        return None


def _classified(name: str, items: Any, tools: Tools, part: str) -> Score:
    pairs = _pairs(name, items)
    actual = []
    for place, (_, truth) in enumerate(pairs):
        try:
            # People wrote the truth: a slip there is the test's mistake, not a failed call.
            actual.append(yes_no(truth))
        except ValueError as error:
            raise UsageError(f"{name}: the truth of item {place} is wrong: {error}") from None
    predicted = [_said(reply) for reply, _ in pairs]
    found = statistics.classification(predicted, actual)
    unread = [
        Finding(f"item {place}", False, f"neither yes nor no: {reply!r}"[:200])
        for place, ((reply, _), said) in enumerate(zip(pairs, predicted, strict=True))
        if said is None
    ]
    counts: dict[str, Any] = {"tp": found.tp, "fp": found.fp, "fn": found.fn, "tn": found.tn}
    shown = ", ".join(f"{key.upper()} {value}" for key, value in counts.items())
    failed = f", {found.n_failed} without a verdict" if found.n_failed else ""
    return tools.score(
        NOBODY, getattr(found, part), reason=f"{shown}{failed}", evidence=unread, evidence_title="unreadable",
        **counts, n_items=len(pairs), n_failed=found.n_failed, error_rate=found.error_rate,
    )  # fmt: skip


@metric("judge_accuracy", tier="judge_pipeline", of="set", bands=JUDGE_BANDS)
async def judge_accuracy(items: Any, tools: Tools) -> Score:
    """Right verdicts / verdicts of a judge that says yes or no, from (reply, truth) pairs.

    A reply is a bool or a word for yes or no that is the whole reply ("yesterday", "not yes" are neither);
    None, an exception or anything else is a failed call: in no ratio, but counted (``n_failed``,
    ``error_rate``).
    """
    return _classified("judge_accuracy", items, tools, "accuracy")


@metric("judge_precision", tier="judge_pipeline", of="set", bands=JUDGE_BANDS)
async def judge_precision(items: Any, tools: Tools) -> Score:
    """Right "yes" / all "yes" of the judge; undefined where it never said yes. See ``judge_accuracy``."""
    return _classified("judge_precision", items, tools, "precision")


@metric("judge_recall", tier="judge_pipeline", of="set", bands=JUDGE_BANDS)
async def judge_recall(items: Any, tools: Tools) -> Score:
    """Right "yes" / all that should be "yes". See ``judge_accuracy``."""
    return _classified("judge_recall", items, tools, "recall")


@metric("judge_f1", tier="judge_pipeline", of="set", bands=JUDGE_BANDS)
async def judge_f1(items: Any, tools: Tools) -> Score:
    """2 TP / (2 TP + FP + FN), "yes" positive. See ``judge_accuracy``."""
    return _classified("judge_f1", items, tools, "f1")


# --- agreement of raters -----------------------------------------------------------------------


def _two_raters(name: str, items: Any) -> tuple[list[Any], list[Any], int]:
    pairs = _pairs(name, items)
    # The formula leaves them out; counted, so that `coverage` can be held against the judge.
    missing = sum(None in pair for pair in pairs)
    return [one for one, _ in pairs], [two for _, two in pairs], missing


@metric("cohen_kappa", tier="judge", of="set", low=-1.0, bands=AGREEMENT_BANDS)
async def cohen_kappa(
    items: Any,
    tools: Tools,
    *,
    weights: Literal["linear", "quadratic"] | None = None,
    levels: Sequence[Any] | None = None,
) -> Score:
    """Cohen's kappa of two raters, (po - pe) / (1 - pe), from (rating, rating) pairs; range -1..1.

    Parameters
    ----------
    weights
        ``"linear"`` or ``"quadratic"`` for ordered grades.
    levels
        All grades in their order, where some may not occur.
    """
    first, second, missing = _two_raters("cohen_kappa", items)
    value = statistics.cohen_kappa(first, second, weights=weights, levels=levels)
    reason = f"{len(first) - missing} items, weights {weights or 'none'}"
    return tools.score(NOBODY, value, reason=reason, weights=weights, n_items=len(first), n_failed=missing)


@metric("gwet_ac1", tier="judge", of="set", low=-1.0, bands=AGREEMENT_BANDS)
async def gwet_ac1(items: Any, tools: Tools, *, levels: Sequence[Any] | None = None) -> Score:
    """Gwet's AC1 of two raters, from pairs: as kappa, but steady where one grade is frequent; range -1..1."""
    first, second, missing = _two_raters("gwet_ac1", items)
    value = statistics.gwet_ac1(first, second, levels=levels)
    reason = f"{len(first) - missing} items"
    return tools.score(NOBODY, value, reason=reason, n_items=len(first), n_failed=missing)


@metric("krippendorff_alpha", tier="judge", of="set", low=-1.0, bands=AGREEMENT_BANDS)
async def krippendorff_alpha(
    items: Any, tools: Tools, *, level: Literal["nominal", "ordinal", "interval"] = "nominal"
) -> Score:
    """Krippendorff's alpha of any number of raters: one row of ratings an item, None where one is missing."""
    rows = [list(item) for item in items]
    raters = {len(row) for row in rows}
    if len(raters) != 1:
        raise UsageError(
            f"krippendorff_alpha: every item needs one entry for each rater; got {sorted(raters)}"
        )
    # The formula takes a row a rater, tests have a row an item.
    value = statistics.krippendorff_alpha(list(zip(*rows, strict=True)), level=level)
    reason = f"{len(rows)} items, {raters.pop()} raters, {level}"
    return tools.score(NOBODY, value, reason=reason, level=level, n_items=len(rows))
