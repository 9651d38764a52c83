"""How many questions a decision takes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.statistics.bounds import CONFIDENCE
from pytest_ragbench.statistics.clusters import effective_count

POWER = 0.8
"""Share of runs that so many questions are to settle."""
HARDLY = 1_000_000
"""Questions that nobody will ever write."""
THOUSANDS = 2_000
"""From here on the estimate says no more than its order of magnitude."""


def questions_needed(
    sd: float, distance: float, *, confidence: float = CONFIDENCE, power: float = POWER
) -> int:
    """Questions that tell a mean from a threshold ``distance`` away, in ``power`` of all cases.

    ((z(confidence) + z(power)) * sd / distance)², with the normal quantiles z; e.g. 99 for a standard
    deviation of .2 and a distance of .05. UndefinedScore for a distance of 0: no number suffices.
    """
    from scipy.special import ndtri

    if distance <= 0:
        raise UndefinedScore("no number of questions tells equals apart", code="no_distance")
    z = float(ndtri(confidence)) + float(ndtri(power))
    return max(1, math.ceil((z * sd / distance) ** 2 - 1e-9))


def perfect_needed(share: float, confidence: float = CONFIDENCE) -> int:
    """How many answers, all of them good, show with ``confidence`` that at least ``share`` (0..1, ends
    excluded) are: 14 for .8, 59 for .95.
    """
    if not 0 < share < 1:
        raise UsageError(f"a share between 0 and 1 is wanted, got {share!r}")
    return math.ceil(math.log(1 - confidence) / math.log(share) - 1e-9)


def more_questions(
    values: Sequence[float],
    limit: float,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    low: float = 0.0,
    high: float = 1.0,
) -> int | None:
    """About how many more questions like these would tell their mean from ``limit``, to two digits.

    The larger of two numbers: what the spread of the scores takes (:func:`questions_needed`), and what scores
    without any spread would take (:func:`perfect_needed`). Both in questions that share documents as these do.

    Parameters
    ----------
    values, clusters, confidence, low, high
        As for ``bounds.mean_bounds``.
    limit
        The threshold.

    Returns
    -------
    int | None
        None where hardly any number would do: the mean is at the limit, or the limit at an end of the range.
    """
    n = len(values)
    mean = math.fsum(values) / n
    # From the end of the range that the bound starts from.
    start = low if mean > limit else high
    if abs(mean - limit) < 1e-9 or not 0 < (limit - start) / (mean - start) < 1:
        return None
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / max(n - 1, 1))
    needed = max(
        questions_needed(spread, abs(mean - limit), confidence=confidence),
        perfect_needed((limit - start) / (mean - start), confidence),
    )
    counted = n if clusters is None else effective_count(values, clusters)
    more = (needed - counted) * n / counted
    return two_digits(max(more, 1)) if more < HARDLY else None


def two_digits(number: float) -> int:
    """Rounded up to two significant digits: 1,234 is 1,300."""
    step = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / step - 1e-9) * step


def advice(more: int | None) -> str:
    """What :func:`more_questions` found, in words: ``about 40 more questions would settle it``."""
    if more is None:
        return "more questions would hardly tell"
    if more >= THOUSANDS:
        return "it would take thousands of questions more to settle it"
    return f"about {more:,} more question{'s' * (more != 1)} would settle it"
