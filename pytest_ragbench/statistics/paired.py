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

_GRAIN = 1e-9
_EXACT_UP_TO = 13


def sign_flip(differences: Sequence[float]) -> float:
    """One-sided p of paired differences whose mean is negative by chance: each keeps or flips its sign.

    Exact for up to 13 differences that are not 0; else from 9999 random flips, the same in every run.
    """
    # In whole grains, so that sums that are equal are equal.
    grains = np.rint(np.asarray(differences, dtype=np.float64) / _GRAIN)
    changed = np.sort(grains[grains != 0])  # the same draws in whatever order the questions came
    if not len(changed):
        return 1.0
    if len(changed) == 1:  # scipy wants two
        return 0.5 if changed[0] < 0 else 1.0
    if len(changed) > _EXACT_UP_TO:
        # As scipy draws them, one matrix in place of its loop: 20 times faster.
        signs = np.random.default_rng(0).integers(0, 2, (RESAMPLES, len(changed))) * 2 - 1
        return float(((signs @ changed <= changed.sum()).sum() + 1) / (RESAMPLES + 1))
    from scipy.stats import permutation_test

    found = permutation_test(
        (changed,),
        lambda sample, axis: np.sum(sample, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="less",
    )
    return float(found.pvalue)


def mcnemar(broken: int, mended: int, *, two_sided: bool = False) -> float:
    """Exact p that more questions broke than were mended by chance."""
    from scipy.stats import binomtest

    if broken + mended == 0:
        return 1.0
    alternative = "two-sided" if two_sided else "greater"
    return float(binomtest(broken, broken + mended, 0.5, alternative=alternative).pvalue)


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
