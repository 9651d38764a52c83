"""Two runs of the same questions: is the second worse?

Sources: Fisher 1935 (sign flips, and the exact test of two shares), McNemar 1947, Holm 1979.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_ragbench.model.errors import UsageError

RESAMPLES = 9999
"""Of the sign-flip test where there are too many questions to flip them in every way."""
LEVEL = 0.05
"""Regression rules fail below it, all of them together; so does a question whose votes are compared."""
FEWEST = 5
"""With fewer changed questions no difference can be significant: 0.5⁴ = .0625."""

_SAME = 1e-9
"""Differences and sums of them that are closer to 0 are rounding errors."""
_EXACT_UP_TO = 13
_LOOKED_UP_AT_ONCE = 200_000
"""Sums in memory at a time (1.6 MB): 10,000 questions have 12 million."""


def sign_flip(differences: Sequence[float]) -> float:
    """One-sided p of paired differences whose mean is negative by chance: each keeps or flips its sign.

    Exact for up to 13 differences that are not 0; else from 9999 random flips, the same in every run.
    """
    given = np.asarray(differences, dtype=np.float64)
    changed = np.sort(given[np.abs(given) > _SAME])  # the same draws in whatever order the questions came
    n = len(changed)
    if n <= _EXACT_UP_TO:
        flips = np.arange(2**n)[:, None] >> np.arange(n) & 1
        return float((flips @ changed >= -_SAME).mean())
    # A random byte flips eight differences: what that comes to is looked up.
    patterns = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
    eights = np.pad(changed, (0, -n % 8)).reshape(-1, 8)
    sums = patterns @ eights.T
    rng, places = np.random.default_rng(0), np.arange(len(eights))
    as_low = 1  # the signs as they are
    rows = max(1, _LOOKED_UP_AT_ONCE // len(eights))
    for start in range(0, RESAMPLES, rows):
        drawn = rng.integers(0, 256, (min(rows, RESAMPLES - start), len(eights)), dtype=np.uint8)
        # The mean gets no higher where the differences that flip don't add up to less than 0.
        as_low += int((sums[drawn, places].sum(axis=1) >= -_SAME).sum())
    return as_low / (RESAMPLES + 1)


def mcnemar(broken: int, mended: int, *, two_sided: bool = False) -> float:
    """Exact p that more questions broke than were mended by chance."""
    from scipy.special import bdtr

    # By chance each way is as likely.
    n = broken + mended
    if two_sided:
        return min(1.0, 2 * float(bdtr(min(broken, mended), n, 0.5)))
    return float(bdtr(mended, n, 0.5))


def fisher(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Exact one-sided p that a question of which ``before`` (passes, votes) passed does worse ``after`` by chance.

    5 of 5 and then 0 of 5 is .004; 3 of 3 and then 0 of 3 is exactly .05, so three votes never show that one
    question broke. UsageError where more passed than voted.
    """
    from scipy.stats import fisher_exact

    for passes, votes in (before, after):
        if not 0 <= passes <= votes:
            raise UsageError(f"{passes} of {votes} votes is not possible")
    counts = [[after[0], after[1] - after[0]], [before[0], before[1] - before[0]]]
    return float(fisher_exact(counts, alternative="less").pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given; each may be held against the level for all of them."""
    for p in p_values:
        if not 0 <= p <= 1:
            raise UsageError(f"a p value lies in 0..1, got {p!r}")
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
