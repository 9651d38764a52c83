from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.metrics.formulas import clusters as c
from pytest_ragbench.model.errors import EmbeddingError, UndefinedScore, UsageError

FIVE: list[list[float]] = [[1, 0], [0.6, 0.8], [0.8, 0.6], [0, 1], [0, 2]]
FIVE_LABELS = ["a", "a", "a", "b", "b"]


def test_intra_is_a_mean_of_clusters_not_of_pairs() -> None:
    found = c.intra_cluster_similarity(FIVE, FIVE_LABELS)
    assert found.value == pytest.approx(0.8933333333333333, abs=1e-12)
    assert (found.n_clusters, found.n_singletons) == (2, 0)


def test_singletons_have_no_pair_and_are_counted() -> None:
    found = c.intra_cluster_similarity([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], [0, 0, 1])
    assert found.value == pytest.approx(0.6)
    assert (found.n_clusters, found.n_singletons) == (1, 1)
    with pytest.raises(UndefinedScore, match="singletons"):
        c.intra_cluster_similarity([[1, 0], [0, 1]], [0, 1])


def test_inter_is_the_distance_of_centroids() -> None:
    assert c.inter_cluster_distance(FIVE, FIVE_LABELS) == pytest.approx(1.3068197189275108, abs=1e-12)
    scaled = c.inter_cluster_distance(np.array(FIVE) * 7, FIVE_LABELS, normalize=True)
    assert scaled == pytest.approx(c.inter_cluster_distance(FIVE, FIVE_LABELS, normalize=True))
    assert c.inter_cluster_distance([[1e200, 0.0], [0.0, 0.0]], "ab") == pytest.approx(1e200)
    with pytest.raises(UndefinedScore, match="two clusters") as caught:
        c.inter_cluster_distance(FIVE, ["a"] * 5)
    assert caught.value.code == "one_cluster"


def test_silhouette_by_hand() -> None:
    square = [[0, 0], [0, 1], [10, 10], [10, 11]]
    assert c.silhouette(square, "aabb", distance="euclidean").value == pytest.approx(0.929290, abs=5e-7)
    three = c.silhouette([[0, 0], [0, 1], [10, 10]], "aab", distance="euclidean")
    assert three.samples.tolist() == pytest.approx([0.929289, 0.925671, 0], abs=1e-6)
    assert three.value == pytest.approx(0.618320, abs=5e-7)
    assert c.silhouette(FIVE, FIVE_LABELS, distance="euclidean").value == pytest.approx(
        0.4045166496635469, abs=1e-9
    )


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_no_square_leaves_the_range_of_a_float(factor: float) -> None:
    scaled = np.array(FIVE) * factor
    for distance in ("euclidean", "cosine"):
        expected = c.silhouette(FIVE, FIVE_LABELS, distance=distance)
        found = c.silhouette(scaled, FIVE_LABELS, distance=distance)
        assert found.value == pytest.approx(expected.value)
    assert c.inter_cluster_distance(scaled, FIVE_LABELS) == pytest.approx(1.3068197189275108 * factor)


def test_a_zero_vector_far_down_is_named() -> None:
    rows = np.ones((3000, 2))
    rows[2500] = 0
    for function in (c.intra_cluster_similarity, c.silhouette):
        with pytest.raises(EmbeddingError, match="vector 2500 is zero"):
            function(rows, [index % 2 for index in range(3000)])


def test_silhouette_says_its_distance_and_defaults_to_cosine() -> None:
    found = c.silhouette(FIVE, FIVE_LABELS)
    assert (found.distance, found.n_clusters) == ("cosine", 2)
    with pytest.raises(UsageError, match="distance must be one of cosine, euclidean"):
        c.silhouette(FIVE, FIVE_LABELS, distance="manhattan")  # type: ignore[arg-type]


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_identical_vectors_have_zero(distance: Any) -> None:
    same = (
        np.tile([0.1, 0.7, 0.3], (60, 1)) * np.linspace(1, 1 if distance == "euclidean" else 3, 60)[:, None]
    )
    labels = [index % 3 for index in range(60)]
    assert not c.silhouette(same, labels, distance=distance).samples.any()
    # The same with a third cluster far away: the spread of the data must not bring noise back.
    far = np.vstack([same, [[5.0, -3.0, 0.1], [5.1, -3.0, 0.1]]])
    found = c.silhouette(far, [index % 2 for index in range(60)] + ["far", "far"], distance=distance)
    assert not found.samples[:60].any()
    assert found.samples[60:].min() > 0.9


@pytest.mark.parametrize(
    ("labels", "code"), [(["a"] * 5, "one_cluster"), (["a", "b", "c", "d", "e"], "only_singletons")]
)
def test_no_silhouette(labels: list[str], code: str) -> None:
    with pytest.raises(UndefinedScore) as caught:
        c.silhouette(FIVE, labels)
    assert caught.value.code == code


def test_bad_input_is_named() -> None:
    with pytest.raises(EmbeddingError, match="vector 1 holds NaN"):
        c.silhouette([[1.0, 0.0], [float("nan"), 1.0]], "ab")
    with pytest.raises(EmbeddingError, match="vector 4 is zero"):
        c.silhouette([[1, 0], [0, 1], [1, 1], [2, 1], [0, 0]], "aabbb")
    with pytest.raises(UsageError, match="5 vectors but 2 cluster labels"):
        c.intra_cluster_similarity(FIVE, "ab")
    with pytest.raises(UsageError, match="no vectors"):
        c.inter_cluster_distance([], [])
    with pytest.raises(UsageError, match="vector 1 has no cluster label"):
        c.silhouette([[1, 0], [0, 1]], ["a", None])
    with pytest.raises(UsageError, match="vector 0 has no cluster label"):
        c.silhouette([[1, 0], [0, 1]], np.array([np.nan, 1.0]))


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Any, list[int]]:
    n = draw(st.integers(3, 40))
    seed = draw(st.integers(0, 2**32 - 1))
    n_labels = draw(st.integers(2, n - 1))
    rng = np.random.default_rng(seed)
    labels = [*range(n_labels), *rng.integers(0, n_labels, n - n_labels).tolist()]
    rows = rng.normal(size=(n, draw(st.integers(2, 6)))) + 2 * np.array(labels)[:, None]
    return rows * draw(st.sampled_from([1e-8, 1.0, 1e8])), labels


@given(labelled(), st.sampled_from(["cosine", "euclidean"]), st.sampled_from([1, 3, 2048]))
@settings(deadline=None, max_examples=150)
def test_as_scikit_learn(data: Any, distance: Any, block: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rows, labels = data
    # Small blocks and groups, so that the walk over blocks is what is tested.
    before = c.BLOCK_ROWS, c.MAX_SUMS, c.ROWS_READ
    c.BLOCK_ROWS, c.MAX_SUMS, c.ROWS_READ = block, 8 * block * (max(labels) + 1), 2 * block
    try:
        found = c.silhouette(rows, labels, distance=distance)
    finally:
        c.BLOCK_ROWS, c.MAX_SUMS, c.ROWS_READ = before
    if distance == "cosine":
        # scikit-learn's own 1 - cos loses what tight clusters differ in (errors up to 1e-9), so it is
        # given the same distances taken from differences.
        unit = rows / np.linalg.norm(rows, axis=1)[:, None]
        apart = ((unit[:, None] - unit) ** 2).sum(axis=2) / 2
        oracle = sklearn.silhouette_samples(apart, labels, metric="precomputed")
    else:
        oracle = sklearn.silhouette_samples(rows, labels, metric="euclidean")
    assert np.allclose(found.samples, oracle, rtol=0, atol=1e-9)


@given(labelled())
@settings(deadline=None, max_examples=50)
def test_intra_and_inter_as_the_definition(data: Any) -> None:
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    rows, labels = data
    cosines, means, centroids = pairwise.cosine_similarity(rows), [], []
    for label in sorted(set(labels)):
        members = np.flatnonzero(np.array(labels) == label)
        centroids.append(rows[members].mean(axis=0))
        if len(members) > 1:
            upper = np.triu_indices(len(members), 1)
            means.append(cosines[np.ix_(members, members)][upper].mean())
    assert c.intra_cluster_similarity(rows, labels).value == pytest.approx(np.mean(means), abs=1e-9)
    apart = pairwise.euclidean_distances(centroids)[np.triu_indices(len(centroids), 1)]
    assert c.inter_cluster_distance(rows, labels) == pytest.approx(apart.mean(), rel=1e-7)


def test_float32_input_is_computed_in_double() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 8)).astype(np.float32)
    labels = rng.integers(0, 5, 300)
    for distance in ("cosine", "euclidean"):
        oracle = sklearn.silhouette_score(rows.astype(np.float64), labels, metric=distance)
        assert c.silhouette(rows, labels, distance=distance).value == pytest.approx(oracle, abs=1e-9)


def test_many_small_clusters() -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rows = np.random.default_rng(4).normal(size=(600, 5))
    labels = np.arange(600) // 2
    before = c.BLOCK_ROWS
    c.BLOCK_ROWS = 256  # more than 64 clusters in a block, and clusters that lie across two blocks
    try:
        found = c.silhouette(rows, np.roll(labels, 1), distance="euclidean")
    finally:
        c.BLOCK_ROWS = before
    oracle = sklearn.silhouette_samples(rows, np.roll(labels, 1), metric="euclidean")
    assert np.allclose(found.samples, oracle, rtol=0, atol=1e-9)
