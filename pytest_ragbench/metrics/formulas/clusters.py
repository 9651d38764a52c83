"""How well embedding vectors fall into given clusters.

Memory stays bounded: vectors are read a few thousand at a time, and no n x n matrix is ever held.
Sources: Rousseeuw 1987 for the silhouette; a mean of cosine distances to a cluster depends on the
cluster's mean and spread only, which makes the cosine silhouette linear in the number of vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pytest_ragbench.metrics.formulas.retrieval import check_option
from pytest_ragbench.metrics.formulas.vectors import Floats, Vectors, matrix, unit_rows
from pytest_ragbench.model.errors import UndefinedScore, UsageError

Ints: TypeAlias = NDArray[np.int64]
Distance = Literal["cosine", "euclidean"]

ROWS_READ = 2048
"""Vectors read at a time."""
BLOCK_ROWS = 2048
"""Rows and columns of a block of distances: 32 MB, which stay in the CPU's cache while they are used."""
MAX_SUMS = 1 << 25
"""Numbers held for sums of distances (256 MB)."""
ROUNDING_ERROR = 1e-13
"""Squared distances below this share of the squared lengths are rounding errors of equal vectors."""


@dataclass(frozen=True, slots=True)
class Intra:
    """Mean over clusters of the mean cosine within a cluster."""

    value: float
    n_clusters: int
    """Clusters that have a pair."""
    n_singletons: int
    """Clusters of one vector: no pair, left out."""


@dataclass(frozen=True, slots=True)
class Silhouette:
    """Mean silhouette over all vectors, in [-1, 1]."""

    value: float
    distance: Distance
    samples: Floats
    """(n,) one value for each vector, in the order given; 0 for a cluster of one."""
    n_clusters: int


def intra_cluster_similarity(vectors: Vectors, labels: Iterable[Hashable]) -> Intra:
    """Mean cosine over unordered pairs in a cluster, then the mean over clusters.

    Parameters
    ----------
    vectors
        (n, d) numbers.
    labels
        (n,) names of the clusters.

    Raises
    ------
    EmbeddingError
        NaN, infinite or zero vectors.
    UsageError
        No vectors, or not one label for each.
    UndefinedScore
        No cluster has two vectors (code ``only_singletons``).
    """
    rows, codes, n_clusters = _read(vectors, labels)
    sizes = np.bincount(codes, minlength=n_clusters)
    sums, _ = _sums(rows, codes, n_clusters, _unit)
    paired = sizes > 1
    if not paired.any():
        raise UndefinedScore(
            "intra-cluster similarity needs two vectors in some cluster; "
            f"all {n_clusters} clusters are singletons",
            code="only_singletons",
        )
    # |sum of unit vectors|² = n + 2 · (sum of the cosines of all pairs)
    squares = np.einsum("ij,ij->i", sums, sums)[paired]
    size = sizes[paired].astype(np.float64)
    means = np.clip((squares - size) / (size * (size - 1)), -1.0, 1.0)
    return Intra(float(means.mean()), int(paired.sum()), int((~paired).sum()))


def inter_cluster_distance(vectors: Vectors, labels: Iterable[Hashable], *, normalize: bool = False) -> float:
    """Mean Euclidean distance between the centroids of all pairs of clusters.

    ``normalize=True`` scales the vectors to length 1 first; without it values of different embedding
    models can't be compared. Errors as :func:`intra_cluster_similarity`; a single cluster is an
    UndefinedScore (code ``one_cluster``).
    """
    rows, codes, n_clusters = _read(vectors, labels)
    _need_two(n_clusters, "inter-cluster distance")
    sums, _ = _sums(rows, codes, n_clusters, _unit if normalize else _as_given)
    centroids = sums / np.bincount(codes, minlength=n_clusters)[:, None]
    largest = float(np.abs(centroids).max(initial=0.0)) or 1.0
    centroids /= largest  # no square overflows
    total = 0.0
    for first, centroid in enumerate(centroids[:-1]):
        apart = centroids[first + 1 :] - centroid
        total += float(np.sqrt(np.einsum("ij,ij->i", apart, apart)).sum())
    return largest * total / (n_clusters * (n_clusters - 1) / 2)


def silhouette(vectors: Vectors, labels: Iterable[Hashable], *, distance: Distance = "cosine") -> Silhouette:
    """Mean of (b - a) / max(a, b) over all vectors.

    a is the mean distance to the others of the own cluster, b the smallest mean distance to another
    cluster. A vector alone in its cluster has 0, and so has one with a = b = 0.

    Parameters
    ----------
    vectors, labels
        As for :func:`intra_cluster_similarity`.
    distance
        ``"cosine"`` (time linear in n) or ``"euclidean"`` (quadratic in n).

    Raises
    ------
    EmbeddingError
        NaN or infinite vectors; for cosine also a zero vector.
    UsageError
        No vectors, not one label for each, or an unknown distance.
    UndefinedScore
        One cluster (code ``one_cluster``), or no cluster of two vectors (``only_singletons``).
    """
    check_option("distance", distance, ("cosine", "euclidean"))
    rows, codes, n_clusters = _read(vectors, labels)
    _need_two(n_clusters, "the silhouette")
    if n_clusters == len(codes):
        raise UndefinedScore(
            f"the silhouette needs two vectors in some cluster; all {n_clusters} clusters are singletons",
            code="only_singletons",
        )
    parts = _cosine_means if distance == "cosine" else _euclidean_means
    samples = np.zeros(len(codes))
    for where, own, nearest in parts(rows, codes, n_clusters):
        larger = np.maximum(own, nearest)
        samples[where] = np.divide(nearest - own, larger, out=np.zeros_like(own), where=larger > 0)
    samples[np.bincount(codes)[codes] == 1] = 0.0
    return Silhouette(float(samples.mean()), distance, samples, n_clusters)


def _read(vectors: Vectors, labels: Iterable[Hashable]) -> tuple[NDArray[Any], Ints, int]:
    rows = matrix(vectors)
    names = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if len(names) != len(rows):
        raise UsageError(f"{len(rows)} vectors but {len(names)} cluster labels; give one for each")
    if not names:
        raise UsageError("no vectors: cluster metrics need some")
    code_of: dict[Hashable, int] = {}
    for index, name in enumerate(names):
        if name is None or (isinstance(name, float) and isnan(name)):
            raise UsageError(f"vector {index} has no cluster label, but {name!r}")
        code_of.setdefault(name, len(code_of))
    return rows, np.array([code_of[name] for name in names], dtype=np.int64), len(code_of)


def _need_two(n_clusters: int, what: str) -> None:
    if n_clusters < 2:
        raise UndefinedScore(f"{what} needs two clusters; all vectors have one label", code="one_cluster")


Prepare: TypeAlias = Callable[[NDArray[Any], int], Floats]


def _unit(rows: NDArray[Any], first_row: int) -> Floats:
    return unit_rows(rows, first_row=first_row)


def _as_given(rows: NDArray[Any], first_row: int) -> Floats:
    return rows.astype(np.float64)


def _chunks(rows: NDArray[Any], prepare: Prepare) -> Iterator[tuple[slice, Floats]]:
    for start in range(0, len(rows), ROWS_READ):
        where = slice(start, min(start + ROWS_READ, len(rows)))
        yield where, prepare(rows[where], start)


def _sums(
    rows: NDArray[Any], codes: Ints, n_clusters: int, prepare: Prepare, centre: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """(K, d) sums of the vectors of each cluster, and (K,) sums of their squared lengths."""
    sums = np.zeros((n_clusters, rows.shape[1]))
    squares = np.zeros(n_clusters)
    for where, given in _chunks(rows, prepare):
        part = given - centre
        order = np.argsort(codes[where], kind="stable")
        here, starts = np.unique(codes[where][order], return_index=True)
        sums[here] += np.add.reduceat(part[order], starts, axis=0)
        squares += np.bincount(codes[where], np.einsum("ij,ij->i", part, part), minlength=n_clusters)
    return sums, squares


Means: TypeAlias = Iterator[tuple[Any, Floats, Floats]]
"""Which vectors, their mean distance within the cluster, and to the nearest other cluster."""


def _cosine_means(rows: NDArray[Any], codes: Ints, n_clusters: int) -> Means:
    # 1 - cos(x, y) = |x - y|² / 2 for unit vectors, and the mean of |x - y|² over a cluster is
    # |x|² - 2 x·m + mean|y|². Taken from the mean of all vectors, so that differences of tight
    # clusters are not lost against 1.
    n = len(rows)
    total, _ = _sums(rows, np.zeros(n, dtype=np.int64), 1, _unit)
    centre = total[0] / n
    sums, squares = _sums(rows, codes, n_clusters, _unit, centre)
    sizes = np.bincount(codes).astype(np.float64)
    means, spreads = sums / sizes[:, None], squares / sizes
    step = max(1, min(ROWS_READ, MAX_SUMS // n_clusters))
    for start in range(0, n, step):
        where = slice(start, min(start + step, n))
        part = unit_rows(rows[where], first_row=start) - centre
        distances = part @ means.T
        distances *= -2.0
        lengths = np.einsum("ij,ij->i", part, part)[:, None] + spreads
        distances += lengths
        lengths *= ROUNDING_ERROR
        distances[distances < np.maximum(lengths, ROUNDING_ERROR**2, out=lengths)] = 0.0
        yield where, *_own_and_nearest(distances / 2.0, codes[where], sizes)


def _own_and_nearest(means: Floats, codes: Ints, sizes: Floats) -> tuple[Floats, Floats]:
    """From (n, K) mean distances to every cluster; the own mean still counts the vector itself."""
    index = np.arange(len(codes))
    size = sizes[codes]
    own = means[index, codes] * size / np.maximum(size - 1, 1)
    means[index, codes] = np.inf
    return own, means.min(axis=1)


def _euclidean_means(rows: NDArray[Any], codes: Ints, n_clusters: int) -> Means:
    order = np.argsort(codes, kind="stable")  # a cluster's distances then lie side by side
    points = rows[order].astype(np.float64)
    points /= max(float(np.abs(points).max(initial=0.0)), np.finfo(np.float64).tiny)  # no square overflows
    points -= points.mean(axis=0)
    squares = np.einsum("ij,ij->i", points, points)
    codes = codes[order]
    sizes = np.bincount(codes).astype(np.float64)
    n = len(points)
    blocks = [slice(start, min(start + BLOCK_ROWS, n)) for start in range(0, n, BLOCK_ROWS)]
    group = max(1, MAX_SUMS // n_clusters // BLOCK_ROWS)
    for first in range(0, len(blocks), group):
        mine = blocks[first : first + group]
        top, end = mine[0].start, mine[-1].stop
        sums = np.zeros((end - top, n_clusters))
        for across in mine:
            local = slice(across.start - top, across.stop - top)
            for down in blocks:
                inside = top <= down.start < end
                if inside and down.start < across.start:
                    continue  # counted when its mirror image was
                distances = _distances(points, squares, across, down)
                _add_by_cluster(sums[local], distances, codes[down], axis=1)
                if inside and down is not across:
                    mirrored = sums[down.start - top : down.stop - top]
                    _add_by_cluster(mirrored, distances, codes[across], axis=0)
        yield order[top:end], *_own_and_nearest(sums / sizes, codes[top:end], sizes)


def _add_by_cluster(sums: Floats, distances: Floats, codes: Ints, axis: int) -> None:
    """Add distances up by the sorted codes of their columns (axis 1) or rows (axis 0)."""
    here, starts = np.unique(codes, return_index=True)
    if axis == 1:
        sums[:, here] += np.add.reduceat(distances, starts, axis=1)
    elif len(here) > 64:
        sums[:, here] += np.add.reduceat(distances, starts, axis=0).T
    else:  # for few clusters many times faster than reduceat along this axis
        for code, start, stop in zip(here, starts, [*starts[1:], len(codes)], strict=True):
            sums[:, code] += distances[start:stop].sum(axis=0)


def _distances(points: Floats, squares: Floats, across: slice, down: slice) -> Floats:
    apart = points[across] @ points[down].T
    apart *= -2.0
    apart += squares[across, None]
    apart += squares[down]
    # |x|² + |y|² - 2 x·y has an error of about 1e-16 |x|²: where that could be seen, subtract first.
    close = 1e-7 * max(float(squares[across].max()), float(squares[down].max()))
    if apart.min() < close:
        for row in np.flatnonzero(apart.min(axis=1) < close):
            columns = np.flatnonzero(apart[row] < close)
            difference = points[down][columns] - points[across][row]
            apart[row, columns] = np.einsum("ij,ij->i", difference, difference)
    np.sqrt(apart, out=apart)
    return apart
