"""Questions that share a document: what their scores are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.statistics.bounds import mean_bounds
from pytest_ragbench.statistics.clusters import by_cluster, cluster_error, effective_count

GROUPS = [[1, 1, 1, 0.8], [0.4, 0.5, 0.5], [0.9, 1, 1]]
FLAT = [float(value) for group in GROUPS for value in group]
OF = [place for place, group in enumerate(GROUPS) for _ in group]


def test_clustered_error_is_that_of_statsmodels() -> None:
    import statsmodels.api as sm

    assert sm.OLS(FLAT, np.ones(len(FLAT))).fit().bse[0] == pytest.approx(0.0781025, abs=1e-7)  # naive
    assert stats.sem(FLAT) == pytest.approx(0.0781025, abs=1e-7)
    fit = sm.OLS(FLAT, np.ones(len(FLAT))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(OF), "use_correction": False}
    )
    assert fit.bse[0] == pytest.approx(0.1263091, abs=1e-7)  # CR0
    assert cluster_error(FLAT, OF) == pytest.approx(fit.bse[0] * math.sqrt(3 / 2))
    assert cluster_error(FLAT, OF) == pytest.approx(0.1546965, abs=1e-7)
    with pytest.raises(UndefinedScore, match="one cluster"):
        cluster_error([0.5, 0.7], ["a", "a"])


def test_effective_count() -> None:
    """Documents that differ count for hardly more than one question each; alike ones for almost all of them."""
    most = (16 + 9 + 9) / 10
    assert (0.1546965 / 0.0781025) ** 2 * 2 / stats.chi2.ppf(0.3, 2) > most
    assert effective_count(FLAT, OF) == pytest.approx(10 / most)
    alike = [0.8, 1.0] * 20
    assert effective_count(alike, [place // 2 for place in range(40)]) == 40
    noise = np.random.default_rng(0).uniform(size=200).tolist()
    documents = [place // 5 for place in range(200)]
    deff = cluster_error(noise, documents) ** 2 / (np.var(noise, ddof=1) / 200) * 39 / stats.chi2.ppf(0.3, 39)
    assert 1 < deff < 5
    assert effective_count(noise, documents) == pytest.approx(200 / deff)


def test_equal_scores_and_single_documents_count_as_their_documents_do() -> None:
    assert effective_count([1.0] * 10, OF) == pytest.approx(100 / 34)
    assert effective_count([0.5, 0.7, 0.9], ["a", "a", "a"]) == 1.0
    assert effective_count([0.5, 0.7, 0.9], ["a", "b", "c"]) == 3.0
    assert mean_bounds([1.0] * 20, clusters=[place // 2 for place in range(20)]).low == pytest.approx(
        0.05 ** (1 / 10)
    )
    assert mean_bounds([1.0] * 3, clusters=["a"] * 3).low == pytest.approx(0.05)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8)), min_size=1, max_size=60))
def test_bounds_with_documents_are_never_narrower_than_without(rows: list[tuple[float, int]]) -> None:
    values, clusters = [value for value, _ in rows], [cluster for _, cluster in rows]
    counted = effective_count(values, clusters)
    assert 1 - 1e-9 <= counted <= len(values) + 1e-9
    found, alone = mean_bounds(values, clusters=clusters), mean_bounds(values)
    assert found.low <= alone.low + 1e-7
    assert found.high >= alone.high - 1e-7
    assert found.n_effective == counted


def test_each_score_has_a_cluster() -> None:
    for function in (cluster_error, effective_count):
        with pytest.raises(UsageError, match="1 clusters for 2 scores"):
            function([0.5, 0.5], ["a"])


def test_questions_that_share_a_document_are_of_one_cluster() -> None:
    found = by_cluster({"a": ["1", "2"], "b": ["3"], "c": ["2", "3"], "d": ["4"], "e": [], "f": []})
    assert found["a"] == found["b"] == found["c"]
    assert len({found["a"], *(found[name] for name in "def")}) == 4
