"""What a judge's errors do to a pass rate or a mean, taken out with the help of people's labels.

Sources: Rogan and Gladen 1978; Angelopoulos et al. 2023 (prediction-powered inference). The intervals are normal, since
those of both sources are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_ragbench.model.errors import UndefinedScore, UsageError


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
