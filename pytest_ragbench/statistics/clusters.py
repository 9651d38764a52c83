"""Questions that share a document: what their scores are worth.

Source: Cameron and Miller 2015 (CR1, the cluster-robust variance with its small-sample factor); Kish 1965 (design
effect, effective sample size).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from pytest_ragbench.model.errors import UndefinedScore, UsageError

NOISE_SHARE = 0.3
"""The design effect is estimated from few clusters: what is taken is the value that it exceeds with 70 %."""


def cluster_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Cluster-robust standard error (CR1) of a mean.

    ``sqrt(C / (C - 1) * sum(D_c²)) / n``, with C clusters, n scores and D_c the sum of a cluster's deviations from
    the mean.

    Raises
    ------
    UndefinedScore
        Fewer than two clusters (``one_cluster``).
    UsageError
        Not one cluster for each score.
    """
    if len(clusters) != len(values):
        raise UsageError(f"{len(clusters)} clusters for {len(values)} scores; give one for each")
    mean = math.fsum(values) / max(len(values), 1)
    sums: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + (float(value) - mean)
    if len(sums) < 2:
        raise UndefinedScore("all questions are of one cluster", code="one_cluster")
    return math.sqrt(len(sums) / (len(sums) - 1) * math.fsum(d * d for d in sums.values())) / len(values)


def effective_count(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """How many independent scores tell as much of the mean as these; from 1 to their number.

    ``n / deff``, where deff is the CR1 variance over that of independent scores, widened by
    ``(C - 1) / chi2.ppf(.3, C - 1)`` for its own noise with C clusters, and kept between 1 and ``sum(m_c²) / n``
    (m_c scores in cluster c): what it is where all of a cluster score alike. That is also what is taken where equal
    scores, or a single cluster, leave nothing to estimate it from.

    Raises UsageError where there is not one cluster for each score.
    """
    if len(clusters) != len(values):
        raise UsageError(f"{len(clusters)} clusters for {len(values)} scores; give one for each")
    n = len(values)
    sizes = Counter(clusters).values()
    most = sum(size**2 for size in sizes) / n
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / max(n - 1, 1)
    if most <= 1 or len(sizes) < 2 or variance < 1e-18:
        return n / most
    from scipy.special import gammaincinv  # the quantile alone: scipy.stats takes seconds to import

    free = len(sizes) - 1
    widened = free / (2 * float(gammaincinv(free / 2, NOISE_SHARE)))
    design_effect = cluster_error(values, clusters) ** 2 / (variance / n) * widened
    return n / min(max(design_effect, 1.0), most)


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
