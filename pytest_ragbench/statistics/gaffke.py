"""Gaffke's bound: the quantile of a mean whose weights are drawn from a Dirichlet distribution.

The lower bound of the mean of n scores in [a, b] is the 5 % quantile of ``sum(w_i x_i) + w_0 a`` with ``w`` uniform
over all weights that sum to 1: one more question, of unknown weight, that scored as badly as can be. Equal scores
add their weights up, so distinct scores with their counts as Dirichlet parameters say the same.

Sources: Gaffke 2005 (Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable); Learned-Miller and Thomas 2019 (A new confidence interval for the mean of a bounded random variable); Phan,
Thomas and Learned-Miller 2021 (Towards practical mean bounds for small samples). The quantile is computed and not
drawn: with independent gamma variables G, ``sum(w x) <= d`` is ``sum(G (x - d)) <= 0``, whose probability is an
integral of its moment generating function (Imhof 1961) along a curve through the saddle point, where the trapezoidal
rule converges exponentially (Trefethen and Weideman 2014).
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from scipy.special import betaincinv, ndtri

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

STEP = 0.2
"""Of the trapezoidal rule. Against beta quantiles of 1 to 20,000 scores, shares of .001 to .3: off by 2e-9 at most."""
BLOCK = 14
"""Nodes at a time. Many scores need one block, since their integrand falls like a normal density."""
MOST_BLOCKS = 20
MOST_BEND = 2 / 3
"""What the curve can need for whole counts (the terms of f are self-concordant); parts of counts may ask for more."""
NEGLIGIBLE = 1e-13
PRECISION = 1e-10
"""At which the search for the quantile ends, as a share of the largest distance."""


def lower_quantile(distances: Floats, weights: Floats, end_weight: float, share: float) -> float:
    """The ``share`` quantile of ``sum(w_j * distances_j)`` for ``w ~ Dirichlet(weights..., end_weight)``.

    Parameters
    ----------
    distances
        (k,) distinct positive distances from the end of the range; the end itself, at 0, has ``end_weight``.
    weights
        (k,) Dirichlet parameters above 0; counts, or parts of counts.
    share
        Above 0 and at most 0.5.

    Returns
    -------
    float
        To within 1e-8 of the largest distance, and never below 0.
    """
    if not len(distances):
        return 0.0
    top = float(distances.max())
    if len(distances) == 1:
        return top * float(betaincinv(weights[0], end_weight, share))
    unit = distances / top
    wanted = float(ndtri(share))
    total = float(weights.sum()) + end_weight
    mean = float(weights @ unit) / total
    variance = (float(weights @ (unit - mean) ** 2) + end_weight * mean**2) / (total * (total + 1))
    # A beta distribution of the same mean and variance is off by a few thousandths at most.
    concentration = mean * (1 - mean) / variance - 1
    guess = float(betaincinv(mean * concentration, (1 - mean) * concentration, share))
    low, high = 0.0, 1.0
    point = min(max(guess, PRECISION), 1 - PRECISION)
    slope, before, saddle = 1 / math.sqrt(variance), None, 0.5
    # On the normal scale the distribution function is almost a straight line: secants take three to five steps.
    for _ in range(100):
        chance, saddle = _chance_below(point, unit, weights, end_weight, saddle)
        error = float(ndtri(min(max(chance, 0.0), 1.0))) - wanted
        low, high = (point, high) if error < 0 else (low, point)
        if before is not None and math.isfinite(error) and error != before[1]:
            slope = (error - before[1]) / (point - before[0])
        before = (point, error) if math.isfinite(error) else None
        following = point - error / slope if math.isfinite(error) and slope > 0 else math.nan
        if not low <= following <= high:
            following = (low + high) / 2
        if abs(following - point) < PRECISION:
            return top * following
        point = following
    return top * low


def _chance_below(
    point: float, distances: Floats, weights: Floats, end_weight: float, saddle: float
) -> tuple[float, float]:
    """P(sum of w * distances <= point), and where its saddle point lies (0..1), from a guess of that.

    It is ``1 / 2πi`` times the integral of ``exp(f(r))``, ``f(r) = -log r - sum(weights * log(1 + r * rise))``, along
    any upright line between 0 and 1; ``rise`` is ``distance / point - 1``, and so -1 for the end.
    """
    rise = np.append(distances / point - 1, -1.0)
    all_weights = np.append(weights, end_weight)
    complex_weights = all_weights.astype(np.complex128)
    # f is convex on (0, 1) and infinite at both ends, and 1 / sqrt(f'') is less than the distance to either: a
    # damped step of Newton's never leaves.
    for _ in range(50):
        ratio = rise / (1 + saddle * rise)
        first = -float(all_weights @ ratio) - 1 / saddle
        second = float(all_weights @ ratio**2) + 1 / saddle**2
        decrement = abs(first) / math.sqrt(second)
        if decrement < 0.05:  # anywhere near the saddle will do
            break
        saddle -= first / second / (1 + decrement)
    ratio = rise / (1 + saddle * rise)
    width = 1 / math.sqrt(second)
    height = -math.log(saddle) - float(all_weights @ np.log1p(saddle * rise))
    # The third derivative at the saddle says which way the line of steepest descent bends. A hyperbola that bends so
    # keeps the phase still; along a straight line skewed scores make it turn faster than the nodes can follow.
    third = -2 * float(all_weights @ ratio**3) - 2 / saddle**3
    bend = min(max(third * width**3 / 3, -MOST_BEND), MOST_BEND)
    total = 0.0
    for block in range(MOST_BLOCKS):
        nodes = STEP * np.arange(block * BLOCK, (block + 1) * BLOCK)
        away = width * (bend * (np.cosh(nodes) - 1) + 1j * np.sinh(nodes))
        # 10,000 scores make a table of 2.5 MB.
        exponent = np.log(1 + away / saddle) + np.log(1 + away[:, None] * ratio) @ complex_weights
        values = np.exp(-exponent) * (np.cosh(nodes) - 1j * bend * np.sinh(nodes))
        total += float(values.real.sum()) - (0.5 if block == 0 else 0.0)
        if abs(values[-1]) < NEGLIGIBLE * abs(total):
            break
    return math.exp(min(height, 700)) * width * STEP * total / math.pi, saddle
