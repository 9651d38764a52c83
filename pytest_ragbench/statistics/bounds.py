"""How far the mean of a sample may lie from the truth: one bound for every score that has a range.

All bounds are one-sided and hold with ``confidence`` each: the two of a pair make an interval of
``2 * confidence - 1`` (95 % bounds, a 90 % interval). They hold for any distribution of independent scores and any
number of them, a single one included; for scores of 0 and 1 they are Clopper and Pearson's (1934).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.statistics.clusters import effective_count

CONFIDENCE = 0.95
TWO_SIDED = 0.975
"""Confidence of each bound of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The truth is at least ``low``, and at most ``high``, each with ``confidence``."""

    low: float
    high: float
    confidence: float
    method: str
    """``Clopper-Pearson`` for scores of the two ends of the range, else ``Gaffke``."""
    n_effective: float
    """What the scores count for: their number, or less where some share a cluster."""


def mean_bounds(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    low: float = 0.0,
    high: float = 1.0,
) -> Bounds:
    """Gaffke's bounds of the mean of scores in ``low``..``high``; source and formula: :mod:`.gaffke`.

    Parameters
    ----------
    values
        One score a question, at least one.
    clusters
        One for each score, some of them equal; None where each question stands for itself. Scores then count for
        :func:`effective_count` scores, shared out evenly; the extra question of the bound counts for one.
    confidence
        Of each bound, from 0.5 up to below 1.
    low, high
        The range of the metric, both ends finite.

    Returns
    -------
    Bounds
        Within the range; ``low`` never above ``high``. The same for the same scores in any order.

    Raises
    ------
    UndefinedScore
        No score at all (``no_scores``).
    UsageError
        A score outside the range or not finite, an endless range, a confidence outside 0.5..1, not one cluster for
        each score.
    """
    import numpy as np

    from pytest_ragbench.statistics.gaffke import lower_quantiles

    if not 0.5 <= confidence < 1:
        raise UsageError(f"a confidence from 0.5 up to below 1 is wanted, got {confidence!r}")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"a mean has bounds only where its scores have a range, got {low:g}..{high:g}")
    array = np.asarray(values, dtype=np.float64)
    if not len(array):
        raise UndefinedScore("no scores, so nothing is known of their mean", code="no_scores")
    # The comparison is false for NaN too.
    if not ((array >= low - _FLOAT_NOISE) & (array <= high + _FLOAT_NOISE)).all():
        raise UsageError(f"a score must be a finite number in {low:g}..{high:g}")
    clipped = np.asarray(np.clip(array, low, high), dtype=np.float64)
    distinct, counts = np.unique(clipped, return_counts=True)
    n = len(array)
    n_effective = float(n) if clusters is None else effective_count(values, clusters)
    weights = np.multiply(counts, n_effective / n, dtype=np.float64)

    # The upper bound is the lower one of the mirror image.
    reached = lower_quantiles(
        np.stack([distinct - low, high - distinct]), np.stack([weights, weights]), 1 - confidence
    ).tolist()
    binary = bool(np.isin(distinct, (low, high)).all())
    return Bounds(
        low=min(low + reached[0], high),
        high=max(high - reached[1], low),
        confidence=confidence,
        method="Clopper-Pearson" if binary else "Gaffke",
        n_effective=n_effective,
    )


def share_bounds(k: int, n: int, confidence: float = CONFIDENCE) -> Bounds:
    """Clopper and Pearson's bounds of a share, from ``k`` of ``n``; errors as :func:`mean_bounds`."""
    if not 0 <= k <= n:
        raise UsageError(f"{k} of {n} is not possible")
    return mean_bounds([1.0] * k + [0.0] * (n - k), confidence=confidence)


_FLOAT_NOISE = 1e-9
"""A mean of repeats can end up this far outside the range of its metric."""
