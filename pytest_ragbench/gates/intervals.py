"""How far the mean of a sample may lie from the truth.

All bounds are one-sided and hold with ``confidence`` each: the two of a pair make an interval of
``2 * confidence - 1`` (95 % bounds, a 90 % interval).

Sources: Wilson 1927, Clopper and Pearson 1934, Efron 1987 (BCa), Cameron and Miller 2015 (CR1).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_ragbench.model.errors import UndefinedScore, UsageError

CONFIDENCE = 0.95
RESAMPLES = 9999
"""Of the bootstrap. Its random numbers are the same in every run, so that the same scores get the same verdict."""

_T_FROM = 100


@dataclass(frozen=True, slots=True)
class Bounds:
    """The truth is at least ``low``, and at most ``high``, each with ``confidence``."""

    low: float
    high: float
    confidence: float
    method: str

    def clipped(self, low: float, high: float) -> Bounds:
        """The same, within the range that the score has."""
        return Bounds(max(self.low, low), min(self.high, high), self.confidence, self.method)


def wilson(k: float, n: int, confidence: float = CONFIDENCE) -> Bounds:
    """Bounds of a share, from ``k`` of ``n``."""
    return _binomial(k, n, confidence, "wilson", "Wilson")


def clopper_pearson(k: float, n: int, confidence: float = CONFIDENCE) -> Bounds:
    """Bounds of a share that never hold less often than they promise."""
    return _binomial(k, n, confidence, "exact", "Clopper-Pearson")


def _binomial(k: float, n: int, confidence: float, method: str, name: str) -> Bounds:
    from scipy.stats import binomtest

    if n < 1:
        raise UndefinedScore("a share of nothing has no bounds", code="no_scores")
    found = binomtest(round(k), n).proportion_ci(confidence_level=2 * confidence - 1, method=method)
    return Bounds(float(found.low), float(found.high), confidence, name)


def student(values: Sequence[float], confidence: float = CONFIDENCE) -> Bounds:
    """T bounds of a mean; UndefinedScore for fewer than two values."""
    from scipy.stats import t

    array = _array(values, at_least=2)
    error = float(array.std(ddof=1)) / math.sqrt(len(array))
    reach = float(t.ppf(confidence, len(array) - 1)) * error
    mean = float(array.mean())
    return Bounds(mean - reach, mean + reach, confidence, "t")


def bca(values: Sequence[float], confidence: float = CONFIDENCE) -> Bounds:
    """Bias-corrected, accelerated bootstrap bounds of a mean.

    UndefinedScore where there are none: fewer than two values, or all of them equal.
    """
    from scipy.stats import bootstrap

    array = np.sort(_array(values, at_least=2))  # workers finish in any order: the same draws for all of them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate sample is told by its bounds
        found = bootstrap(
            (array,),
            np.mean,
            confidence_level=2 * confidence - 1,
            n_resamples=RESAMPLES,
            method="BCa",
            random_state=np.random.default_rng(0),
        ).confidence_interval
    if not (math.isfinite(found.low) and math.isfinite(found.high)):
        raise UndefinedScore("the bootstrap of these scores has no bounds", code="no_variation")
    return Bounds(float(found.low), float(found.high), confidence, "BCa bootstrap")


def cluster_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Cluster-robust standard error (CR1) of a mean; UndefinedScore for fewer than two clusters."""
    array = _array(values, at_least=1)
    if len(clusters) != len(array):
        raise UsageError(f"{len(clusters)} clusters for {len(array)} scores; give one for each")
    sums: dict[Hashable, float] = {}
    for deviation, cluster in zip(array - array.mean(), clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + float(deviation)
    g = len(sums)
    if g < 2:
        raise UndefinedScore("all questions are of one cluster", code="one_cluster")
    return math.sqrt(g / (g - 1) * sum(total**2 for total in sums.values())) / len(array)


def clustered(
    values: Sequence[float], clusters: Sequence[Hashable], confidence: float = CONFIDENCE
) -> Bounds:
    """T bounds of a mean over questions of which some share a cluster; clusters - 1 degrees of freedom."""
    from scipy.stats import t

    g = len(set(clusters))
    error = cluster_error(values, clusters)
    if error <= 1e-9:  # clusters that come to the same by chance leave the spread inside them
        error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    reach = float(t.ppf(confidence, max(g - 1, 1))) * error
    mean = float(np.mean(values))
    return Bounds(mean - reach, mean + reach, confidence, f"t over {g} clusters")


def mean_bounds(
    values: Sequence[float],
    *,
    passed: Sequence[bool],
    clusters: Sequence[Hashable] | None = None,
    confidence: float = CONFIDENCE,
    low: float = 0.0,
    high: float = 1.0,
    higher: bool = True,
) -> Bounds:
    """Bounds of a mean by the method that suits the scores.

    Parameters
    ----------
    values
        One score a question.
    passed
        Whether each meets the threshold at hand. Where all scores are equal nothing else can be bounded
        than the share of those that pass: Clopper-Pearson, over clusters where there are any, from worst
        (none) to best score (all).
    clusters
        One for each score, some of them equal; None where each question stands for itself.
    low, high, higher
        The range of a score, and whether more is better.

    Raises
    ------
    UndefinedScore
        No score at all (``no_scores``), only one cluster (``one_cluster``), or equal scores of an endless
        range (``no_variation``).
    UsageError
        A score that isn't a finite number.
    """
    array = _array(values, at_least=1)
    n = len(array)
    grouped = clusters is not None and len(set(clusters)) < n
    independent = len(set(clusters or ())) if grouped else n
    if float(np.ptp(array)) <= 1e-12:
        if not math.isfinite(high - low):
            raise UndefinedScore("all scores are equal, which says nothing of others", code="no_variation")
        found = clopper_pearson(independent if all(passed) == higher else 0, independent, confidence)
        name = "Clopper-Pearson on the pass rate"
        return Bounds(low + (high - low) * found.low, low + (high - low) * found.high, confidence, name)
    if grouped and clusters is not None:
        return clustered(values, clusters, confidence).clipped(low, high)
    if math.isfinite(high - low) and set(array.tolist()) <= {low, high}:
        found = wilson(float((array == high).sum()), n, confidence)
        scaled = [low + (high - low) * bound for bound in (found.low, found.high)]
        return Bounds(scaled[0], scaled[1], confidence, found.method)
    if n >= _T_FROM:
        return student(values, confidence).clipped(low, high)
    try:
        found = bca(values, confidence)
    except UndefinedScore:
        return student(values, confidence).clipped(low, high)
    # Scores pile up at one end: there t passes too often (8 % where 5 % is promised, 50 questions), and the
    # bootstrap alone fails too often. The wider of the two does neither.
    other = student(values, confidence)
    found = Bounds(min(found.low, other.low), max(found.high, other.high), confidence, "BCa bootstrap and t")
    return found.clipped(low, high)


def questions_needed(
    sd: float, distance: float, *, confidence: float = CONFIDENCE, power: float = 0.8
) -> int:
    """Questions that tell a mean from a threshold ``distance`` away, in ``power`` of all cases.

    ((z(confidence) + z(power)) * sd / distance)², with the normal quantiles z; e.g. 99 for a standard
    deviation of .2 and a distance of .05. UndefinedScore for a distance of 0: no number suffices.
    """
    from scipy.stats import norm

    if distance <= 0:
        raise UndefinedScore("no number of questions tells equals apart", code="no_distance")
    z = float(norm.ppf(confidence)) + float(norm.ppf(power))
    return max(1, math.ceil((z * sd / distance) ** 2 - 1e-9))


def perfect_needed(share: float, confidence: float = CONFIDENCE) -> int:
    """How many answers, all of them good, show with ``confidence`` that at least ``share`` (0..1, ends
    excluded) are: 14 for .8, 59 for .95.
    """
    if not 0 < share < 1:
        raise UsageError(f"a share between 0 and 1 is wanted, got {share!r}")
    return math.ceil(math.log(1 - confidence) / math.log(share) - 1e-9)


def by_cluster(clusters: Mapping[str, Sequence[Hashable]]) -> dict[str, str]:
    """Question -> cluster, for questions that each name what they rest on: those that share any of it,
    directly or through others, are of one cluster, named by its first question.
    """
    parent = {question: question for question in clusters}

    def root(question: str) -> str:
        while parent[question] != question:
            parent[question] = parent[parent[question]]
            question = parent[question]
        return question

    first: dict[Hashable, str] = {}
    for question, keys in clusters.items():
        for key in keys:
            other = first.setdefault(key, question)
            parent[root(question)] = root(other)
    names: dict[str, str] = {}
    return {question: names.setdefault(root(question), question) for question in clusters}


def _array(values: Sequence[float], *, at_least: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    array = np.asarray(values, dtype=np.float64)
    if len(array) < at_least:
        raise UndefinedScore(f"{len(array)} scores are too few", code="no_scores")
    if not np.isfinite(array).all():
        raise UsageError("a score must be a finite number")
    return array
