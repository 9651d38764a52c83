"""How well a judge's verdicts agree with people's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.model.errors import JudgeError, UndefinedScore
from pytest_ragbench.model.thresholds import TOLERANCE, Threshold
from pytest_ragbench.statistics.agreement import (
    Classification,
    auc,
    best_threshold,
    classification,
    cohen_kappa,
    gwet_ac1,
)
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


def share(k: int, n: int) -> Estimate:
    """K / n with its 95 % interval (Clopper-Pearson); undefined for n = 0."""
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
