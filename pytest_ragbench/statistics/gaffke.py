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

from typing import Any, TypeAlias

import numpy as np
from scipy.special import betaincinv, ndtri

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

STEP = 0.2
"""Of the trapezoidal rule. Against beta quantiles of 1 to 20,000 scores, shares of .001 to .3: off by 2e-9 at most."""
BLOCK = 14
"""Nodes at a time. Many scores need one block, since their integrand falls like a normal density."""
MOST_BLOCKS = 16
NEGLIGIBLE = 1e-12
MOST_BEND = 2 / 3
"""What the curve can need for whole counts (the terms of f are self-concordant); parts of counts may ask for more."""
PRECISION = 1e-8
"""At which the search for a quantile ends, as a share of the largest distance; the last step overshoots by far less."""
TABLE = 5_000
"""Scores of several samples at a time: their nodes take 1 MB, which stays in the CPU's cache."""
GROUP = 8
"""Factors multiplied before their logarithm is taken: none is above exp(20), so the product can't overflow."""


def lower_quantiles(distances: Floats, weights: Floats, share: float) -> Floats:
    """The ``share`` quantile of ``sum(w_j * distances_j)`` for ``w ~ Dirichlet(weights..., 1)``, for several samples.

    Parameters
    ----------
    distances
        (samples, k) distances of the scores from the bad end of their range, 0 or above. The extra question of
        weight 1 lies at 0.
    weights
        (samples, k) Dirichlet parameters, 0 or above: counts, or parts of counts.
    share
        Above 0 and at most 0.5.

    Returns
    -------
    Floats
        (samples,) to within 1e-8 of the largest distance; 0 where all distances are.
    """
    found = np.zeros(len(distances))
    away = (distances > 0) & (weights > 0)
    kinds = away.sum(axis=1)
    # A single distance has a weight of beta distribution: scores of 0 and 1, and equal ones.
    alone = kinds == 1
    own = np.where(away, weights, 0.0).sum(axis=1)[alone]
    rest = 1 + weights.sum(axis=1)[alone] - own
    found[alone] = np.where(away, distances, 0.0).sum(axis=1)[alone] * betaincinv(own, rest, share)
    rows = np.flatnonzero(kinds > 1)
    at_once = max(1, TABLE // (distances.shape[1] + 1))
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        # The extra question is one more column.
        padded = np.pad(distances[some], ((0, 0), (0, 1)))
        parameters = np.pad(weights[some], ((0, 0), (0, 1)), constant_values=1.0)
        found[some] = _quantiles(padded, parameters, share)
    return found


def _quantiles(distances: Floats, weights: Floats, share: float) -> Floats:
    top = distances.max(axis=1)
    unit = distances / top[:, None]
    total = weights.sum(axis=1)
    mean = (weights * unit).sum(axis=1) / total
    variance = (weights * (unit - mean[:, None]) ** 2).sum(axis=1) / (total * (total + 1))
    # A beta distribution of the same mean and variance is off by a few thousandths at most.
    concentration = mean * (1 - mean) / variance - 1
    point = betaincinv(mean * concentration, (1 - mean) * concentration, share)
    low, high = np.zeros_like(top), np.ones_like(top)
    slope, saddle = 1 / np.sqrt(variance), np.full_like(top, 0.5)
    before: tuple[Floats, Floats] | None = None
    # On the normal scale the distribution function is almost a straight line: secants take three to five steps.
    for _ in range(100):
        point = np.clip(point, PRECISION / 100, 1 - PRECISION / 100)
        chance, saddle = _chance_below(point, unit, weights, saddle)
        error = ndtri(np.clip(chance, 0.0, 1.0)) - ndtri(share)
        low, high = np.where(error < 0, point, low), np.where(error < 0, high, point)
        with np.errstate(all="ignore"):  # samples that have converged divide 0 by 0
            if before is not None:
                secant = (error - before[1]) / (point - before[0])
                slope = np.where(np.isfinite(secant) & (secant > 0), secant, slope)
            following = point - error / slope
        following = np.where((following >= low) & (following <= high), following, (low + high) / 2)
        before = point, error
        point = following
        if (np.abs(point - before[0]) < PRECISION).all():
            break
    return np.asarray(top * point, dtype=np.float64)


def _chance_below(point: Floats, distances: Floats, weights: Floats, saddle: Floats) -> tuple[Floats, Floats]:
    """P(sum of w * distances <= point), and where its saddle point lies (0..1), from a guess of that.

    It is ``1 / 2πi`` times the integral of ``exp(f(r))``, ``f(r) = -log r - sum(weights * log(1 + r * rise))``, along
    any line that comes from below and crosses between 0 and 1; ``rise`` is ``distance / point - 1``.
    """
    rise = distances / point[:, None] - 1
    # f is convex on (0, 1) and infinite at both ends, and 1 / sqrt(f'') is less than the distance to either: a
    # damped step of Newton's never leaves.
    for _ in range(60):
        ratio = rise / (1 + saddle[:, None] * rise)
        first = -(weights * ratio).sum(axis=1) - 1 / saddle
        second = (weights * ratio**2).sum(axis=1) + 1 / saddle**2
        decrement = np.abs(first) / np.sqrt(second)
        if (decrement < 0.1).all():  # anywhere near the saddle will do
            break
        saddle = saddle - first / second / (1 + decrement)
    width = 1 / np.sqrt(second)
    height = -np.log(saddle) - (weights * np.log1p(saddle[:, None] * rise)).sum(axis=1)
    # The third derivative at the saddle says which way the line of steepest descent bends. A hyperbola that bends so
    # keeps the phase still; along a straight line skewed scores make it turn faster than the nodes can follow.
    third = -2 * (weights * ratio**3).sum(axis=1) - 2 / saddle**3
    bend = np.clip(third * width**3 / 3, -MOST_BEND, MOST_BEND)
    single = distances.shape[1] > 2 * GROUP and bool((weights == 1).all())
    total = np.zeros_like(point)
    for block in range(MOST_BLOCKS):
        nodes = STEP * np.arange(block * BLOCK, (block + 1) * BLOCK)
        across, along = np.cosh(nodes), np.sinh(nodes)
        away = width[:, None] * (bend[:, None] * (across - 1) + 1j * along)
        factors = 1 + away[:, :, None] * ratio[:, None, :]
        if single:  # multiplying is many times faster than logarithms
            products = np.multiply.reduceat(factors, range(0, factors.shape[2], GROUP), axis=2)
            exponent = np.log(products).sum(axis=2)
        else:
            exponent = np.einsum("snk,sk->sn", np.log(factors), weights)
        exponent += np.log(1 + away / saddle[:, None])
        values = np.exp(-exponent) * (across - 1j * bend[:, None] * along)
        total += values.real.sum(axis=1) - (0.5 if block == 0 else 0.0)
        if (np.abs(values[:, -1]) < NEGLIGIBLE * np.abs(total)).all():
            break
    return np.exp(np.minimum(height, 700.0)) * width * STEP * total / np.pi, saddle
