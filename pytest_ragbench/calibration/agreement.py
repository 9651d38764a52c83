"""How well a judge's verdicts agree with people's, and what its errors do to a mean.

Sources: Rogan and Gladen 1978; Angelopoulos et al. 2023 (prediction-powered inference); Hanley and McNeil
1982 for what AUC means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.model.errors import JudgeError, UndefinedScore, UsageError
from pytest_ragbench.model.thresholds import TOLERANCE, Threshold
from pytest_ragbench.statistics.agreement import Classification, classification, cohen_kappa, gwet_ac1
from pytest_ragbench.statistics.bounds import TWO_SIDED, share_bounds

RESAMPLES = 2000
# Both, also where a resample has one kind only: kappa is of the same scale in each of them.
_LEVELS = (False, True)
COVERAGE = 0.95
"""Share of the labels on which a judge must give a verdict when it is asked again."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval; None where it is undefined."""

    value: float | None
    low: float | None = None
    high: float | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "undefined"
        if self.low is None or self.high is None:
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def to_dict(self) -> dict[str, float | None]:
        """For JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Agreement:
    """A judge beside people. "Positive" is a verdict of true: supported, or good enough."""

    counts: Classification
    estimates: dict[str, Estimate]
    """accuracy, f1, tpr, tnr, kappa, ac1, and auc where there are scores."""
    best_threshold: float | None
    """The score from which on (up to which, where less is better) "good enough" agrees best with people: the
    largest TPR + TNR.
    """
    disagreements: tuple[Label, ...]
    higher: bool | None = True
    """Whether a higher score is better; None where that isn't known: then there is neither AUC nor best threshold."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        counts = self.counts
        return {
            "n": counts.tp + counts.fp + counts.fn + counts.tn,
            "n_failed": counts.n_failed,
            "confusion": {"tp": counts.tp, "fp": counts.fp, "fn": counts.fn, "tn": counts.tn},
            **{name: estimate.to_dict() for name, estimate in self.estimates.items()},
            "best_threshold": self.best_threshold,
            "direction": {True: "higher", False: "lower", None: None}[self.higher],
            "disagreements": [label.model_dump() for label in self.disagreements],
        }


def missed(found: Agreement, wanted: Mapping[str, Threshold]) -> list[str]:
    """What is not as good as wanted, in words; a value that is undefined never is. ``wanted``: by estimate."""
    return [
        f"{name} {estimate}, wanted {limit.text}"
        for name, limit in wanted.items()
        if (estimate := found.estimates.get(name)) is None
        or estimate.value is None
        or not limit.met(estimate.value)
    ]


def check_coverage(labels: Sequence[Label], coverage: float = COVERAGE) -> None:
    """Refuse verdicts on too few of the labels. ``coverage``: the share (0..1) that must have one.

    Raises
    ------
    JudgeError
        Naming the first failure.
    """
    failed = [label for label in labels if label.verdict is None]
    if len(labels) - len(failed) < coverage * len(labels) - TOLERANCE:
        first = failed[0].reason or "no verdict"
        raise JudgeError(
            f"{len(failed)} of {len(labels)} labels got no verdict; first: {first}", code="coverage"
        )


def agreement(labels: Sequence[Label], *, higher: bool | None = True) -> Agreement:
    """Agreement over labels; verdicts that are None (the judge failed) are counted and left out.

    ``higher``: whether a higher score is better; None: not known.

    Raises
    ------
    UndefinedScore
        No label with a verdict.
    """
    counts = classification([label.verdict for label in labels], [label.human_verdict for label in labels])
    judged = [label for label in labels if label.verdict is not None]
    if not judged:
        raise UndefinedScore("the judge gave no verdict on any label", code="no_pairs")
    said = np.array([bool(label.verdict) for label in judged])
    truth = np.array([label.human_verdict for label in judged])
    right = int((said == truth).sum())
    estimates = {
        "accuracy": share(right, len(judged)),
        "tpr": share(counts.tp, counts.tp + counts.fn),
        "tnr": share(counts.tn, counts.tn + counts.fp),
        "f1": resampled(said, truth, lambda one, two: classification(one.tolist(), two.tolist()).f1),
        "kappa": resampled(
            said, truth, lambda one, two: cohen_kappa(one.tolist(), two.tolist(), levels=_LEVELS)
        ),
        "ac1": resampled(said, truth, lambda one, two: gwet_ac1(one.tolist(), two.tolist(), levels=_LEVELS)),
    }
    scored = [(label.value, label.human_verdict) for label in judged if label.value is not None]
    best = None
    if higher is not None and len({human for _, human in scored}) == 2:
        values, humans = (np.array(column) for column in zip(*scored, strict=True))
        sign = 1 if higher else -1
        estimates["auc"] = resampled(sign * values, humans, auc)
        best = sign * best_threshold(sign * values, humans)
    wrong = [label for label in judged if label.verdict != label.human_verdict]
    # A false pass lets a fault through: those first, the surest scores before the others.
    wrong.sort(
        key=lambda label: (not label.verdict, -abs((label.value if label.value is not None else 0.5) - 0.5))
    )
    return Agreement(counts, estimates, best, tuple(wrong), higher)


def auc(values: Any, truth: Any) -> float:
    """Share of (true, false) pairs in which the true one scores higher; ties count half."""
    from scipy.stats import rankdata

    truth = np.asarray(truth, dtype=bool)
    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        raise UndefinedScore("AUC needs labels of both kinds", code="no_variation")
    ranks = rankdata(np.asarray(values, dtype=np.float64))
    return float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def best_threshold(values: Any, truth: Any) -> float:
    """The score t for which "at least t" has the largest TPR + TNR; the highest of equals."""
    values, truth = np.asarray(values, dtype=np.float64), np.asarray(truth, dtype=bool)
    return float(
        max(np.unique(values), key=lambda t: ((values >= t)[truth].mean() + (values < t)[~truth].mean(), t))
    )


@dataclass(frozen=True, slots=True)
class Corrected:
    """A pass rate or mean with the judge's errors taken out: value, standard error, 95 % interval."""

    value: float
    error: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """For JSON."""
        return {"value": self.value, "standard_error": self.error, "low": self.low, "high": self.high}


def rogan_gladen(
    share: float, tpr: float, tnr: float, *, n: int, n_positive: int, n_negative: int
) -> Corrected:
    """The true share behind a judge's: (share + TNR - 1) / (TPR + TNR - 1), with its error by the delta method.

    Parameters
    ----------
    share, n
        Of ``n`` verdicts this share (0..1) was positive.
    tpr, tnr, n_positive, n_negative
        The judge's rates, and of how many labels of each kind they are.

    Raises
    ------
    UndefinedScore
        TPR + TNR is not above 1: such a judge tells nothing.
    UsageError
        A share outside 0..1, no verdicts, or no labels of one kind.
    """
    if not all(0 <= each <= 1 for each in (share, tpr, tnr)) or min(n, n_positive, n_negative) < 1:
        raise UsageError("shares in 0..1 and counts above 0 are wanted")
    youden = tpr + tnr - 1
    if youden <= 0:
        raise UndefinedScore(
            "a judge that isn't better than chance can't be corrected", code="no_information"
        )
    value = (share + tnr - 1) / youden
    variance = share * (1 - share) / n
    # The judge's rates are estimates themselves: what the labels leave open of them adds to the error.
    variance += value**2 * tpr * (1 - tpr) / n_positive + (1 - value) ** 2 * tnr * (1 - tnr) / n_negative
    return _corrected(value, math.sqrt(variance) / youden)


def ppi_mean(all_judged: Sequence[float], judged: Sequence[float], human: Sequence[float]) -> Corrected:
    """Prediction-powered mean: the judge's mean over all, plus people's mean difference from it on labels.

    ``judged`` and ``human`` are of the same labelled items. Raises UndefinedScore for fewer than two.
    """
    everything = np.asarray(all_judged, dtype=np.float64)
    # How wrong the judge is, measured where people looked, corrects its mean everywhere.
    difference = np.asarray(human, dtype=np.float64) - np.asarray(judged, dtype=np.float64)
    if len(everything) < 2 or len(difference) < 2:
        raise UndefinedScore("two scores and two labels are the least", code="no_pairs")
    error = math.sqrt(everything.var(ddof=1) / len(everything) + difference.var(ddof=1) / len(difference))
    return _corrected(float(everything.mean() + difference.mean()), error)


def _corrected(value: float, error: float) -> Corrected:
    reach = 1.959963984540054 * error
    # A correction may lead out of 0..1, where no share is.
    inside = min(max(value, 0.0), 1.0)
    return Corrected(inside, error, max(0.0, value - reach), min(1.0, value + reach))


def share(k: int, n: int) -> Estimate:
    """K / n with its Wilson interval; undefined for n = 0."""
    if not n:
        return Estimate(None)
    bounds = share_bounds(k, n, TWO_SIDED)
    return Estimate(k / n, bounds.low, bounds.high)


def resampled(one: Any, two: Any, formula: Callable[[Any, Any], float], times: int = RESAMPLES) -> Estimate:
    """``formula`` of two columns, with a percentile bootstrap interval over their rows.

    Parameters
    ----------
    one, two
        Arrays of the same length along their first axis: a row of both is drawn together.
    times
        Resamples; a quarter of it above 500 rows. Those in which the formula is undefined are left out, and where
        fewer than 100 are left there is no interval.
    """
    try:
        value = formula(one, two)
    except UndefinedScore:
        return Estimate(None)
    rng = np.random.default_rng(0)  # the same labels always have the same interval
    found = []
    for _ in range(times if len(one) <= 500 else times // 4):
        chosen = rng.integers(0, len(one), len(one))
        try:
            found.append(formula(one[chosen], two[chosen]))
        except UndefinedScore:
            continue
    if len(found) < 100:
        return Estimate(value)
    low, high = np.percentile(found, [2.5, 97.5])
    return Estimate(value, float(low), float(high))
