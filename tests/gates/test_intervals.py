"""Bounds, tests and counts: the specification's worked values, statsmodels, and what must hold for any scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower
from statsmodels.stats.proportion import proportion_confint

from pytest_ragbench.gates import intervals, paired
from pytest_ragbench.model.errors import UndefinedScore, UsageError

CHOOSING = Path(__file__).parents[2] / "docs" / "choosing.md"
X = [0.9, 0.8, 1, 0.7, 0.95, 0.85, 0.9, 0.6, 1, 0.9]
NEW = [0.85, 0.8, 0.9, 0.7, 0.9, 0.8, 0.9, 0.65, 0.95, 0.85]
GROUPS = [[1, 1, 1, 0.8], [0.4, 0.5, 0.5], [0.9, 1, 1]]
FLAT = [value for group in GROUPS for value in group]
OF = [place for place, group in enumerate(GROUPS) for _ in group]


def test_t_bounds() -> None:
    assert np.mean(X) == pytest.approx(0.86)
    assert stats.sem(X) == pytest.approx(0.0406885, abs=1e-7)
    assert intervals.student(X).low == pytest.approx(0.785413, abs=1e-6)
    assert intervals.student(X, 0.975).low == pytest.approx(0.767956, abs=1e-6)


def test_bca_bounds() -> None:
    bounds = intervals.bca(X, 0.975)
    assert bounds.low == pytest.approx(0.77, abs=0.011)
    assert bounds.high == pytest.approx(0.92, abs=0.01)
    assert intervals.bca(X) == intervals.bca(X[::-1])


def test_clustered_error_is_that_of_statsmodels() -> None:
    assert sm.OLS(FLAT, np.ones(len(FLAT))).fit().bse[0] == pytest.approx(0.0781025, abs=1e-7)  # naive
    assert stats.sem(FLAT) == pytest.approx(0.0781025, abs=1e-7)
    fit = sm.OLS(FLAT, np.ones(len(FLAT))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array(OF), "use_correction": False}
    )
    assert fit.bse[0] == pytest.approx(0.1263091, abs=1e-7)  # CR0
    assert intervals.cluster_error(FLAT, OF) == pytest.approx(fit.bse[0] * math.sqrt(3 / 2))
    assert intervals.cluster_error(FLAT, OF) == pytest.approx(0.1546965, abs=1e-7)
    reach = stats.t.ppf(0.95, 2) * 0.1546965
    assert intervals.clustered(FLAT, OF).low == pytest.approx(0.81 - reach, abs=1e-6)


def test_shares() -> None:
    assert intervals.wilson(47, 50, 0.975).low == pytest.approx(0.837829, abs=1e-6)
    assert intervals.wilson(47, 50).low == pytest.approx(0.859058, abs=1e-6)
    assert intervals.clopper_pearson(47, 50, 0.975).low == pytest.approx(0.834518, abs=1e-6)
    assert intervals.clopper_pearson(50, 50).low == pytest.approx(0.941845, abs=1e-6)
    assert intervals.clopper_pearson(0, 20).high == pytest.approx(0.139108, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_shares_are_those_of_statsmodels(counts: tuple[int, int]) -> None:
    k, n = counts
    for method, ours in (("wilson", intervals.wilson), ("beta", intervals.clopper_pearson)):
        low, high = proportion_confint(k, n, alpha=0.1, method=method)
        found = ours(k, n)
        assert found.low == pytest.approx(low, abs=1e-9)
        assert found.high == pytest.approx(high, abs=1e-9)


def test_why_shares_have_bounds_of_their_own() -> None:
    """At a true .9 the t bound of 50 scores of 0 and 1 passes `>= 0.9` in 11 % of runs; 5 % are promised."""

    def passes(low: Callable[[int], float]) -> float:
        return float(sum(stats.binom.pmf(k, 50, 0.9) for k in range(51) if low(k) >= 0.9))

    assert passes(lambda k: intervals.student([1.0] * k + [0.0] * (50 - k)).low) == pytest.approx(
        0.11, abs=0.005
    )
    assert passes(lambda k: intervals.wilson(k, 50).low) <= 0.05
    assert passes(lambda k: intervals.clopper_pearson(k, 50).low) <= 0.05


def test_no_interval_repairs_a_lenient_judge() -> None:
    """Sensitivity .98 and specificity .5 show a true .8 as .884, which passes `>= 0.85` in 94 % of runs."""
    shown = 0.8 * 0.98 + 0.2 * 0.5
    enough = next(k for k in range(860, 1001) if intervals.wilson(k, 1000).low >= 0.85)
    assert stats.binom.sf(enough - 1, 1000, shown) == pytest.approx(0.94, abs=0.01)


def test_perfect_answers_needed() -> None:
    assert [intervals.perfect_needed(share) for share in (0.8, 0.85, 0.9, 0.95)] == [14, 19, 29, 59]
    for share in (0.8, 0.85, 0.9, 0.95):
        n = intervals.perfect_needed(share)
        assert intervals.clopper_pearson(n, n).low >= share > intervals.clopper_pearson(n - 1, n - 1).low


def test_questions_needed() -> None:
    wanted = {(0.2, 0.05): 99, (0.2, 0.02): 619, (0.1, 0.02): 155}
    assert {pair: intervals.questions_needed(*pair) for pair in wanted} == wanted
    n = TTestPower().solve_power(effect_size=0.25, alpha=0.05, power=0.8, alternative="larger")
    assert intervals.questions_needed(0.2, 0.05) == pytest.approx(n, abs=3)
    with pytest.raises(UndefinedScore):
        intervals.questions_needed(0.2, 0)


def test_the_page_on_choosing_has_the_numbers_that_the_gates_go_by() -> None:
    rows = [
        line.strip("| ").split(" | ")
        for line in CHOOSING.read_text(encoding="utf-8").splitlines()
        if "|" in line
    ]
    needed = {row[0]: [int(cell) for cell in row[1:]] for row in rows if row[0] in (".1", ".2", ".3")}
    assert needed == {
        sd: [intervals.questions_needed(float(sd), distance) for distance in (0.05, 0.02)]
        for sd in (".1", ".2", ".3")
    }
    place = rows.index([".8", ".85", ".9", ".95"])
    assert rows[place + 2] == [str(intervals.perfect_needed(float(share))) for share in rows[place]]


@pytest.mark.parametrize(
    ("values", "met", "method", "low", "high"),
    [
        ([1.0] * 50, True, "Clopper-Pearson", 0.941845, 1.0),
        ([0.0] * 50, False, "Clopper-Pearson", 0.0, 1 - 0.941845),
        ([0.9] * 50, True, "Clopper-Pearson", 0.941845, 1.0),
        ([0.86] * 19, True, "Clopper-Pearson", 0.854136, 1.0),
        ([1.0], True, "Clopper-Pearson", 0.05, 1.0),
        ([1.0] * 47 + [0.0] * 3, False, "Wilson", 0.859058, 0.97575),
    ],
)
def test_scores_without_a_spread_have_bounds(
    values: list[float], met: bool, method: str, low: float, high: float
) -> None:
    found = intervals.mean_bounds(values, passed=[met] * len(values))
    assert found.method.startswith(method)
    assert found.low == pytest.approx(low, abs=1e-5)
    assert found.high == pytest.approx(high, abs=1e-4)


def test_lower_is_better() -> None:
    found = intervals.mean_bounds([0.0] * 50, passed=[True] * 50, higher=False)
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.941845, abs=1e-6)


def test_the_method_follows_the_number_of_scores() -> None:
    spread = [0.5, 0.8, 1.0, 0.9]

    def method(n: int) -> str:
        return intervals.mean_bounds((spread * n)[:n], passed=[True] * n).method

    assert [method(n) for n in (10, 50, 100)] == ["BCa bootstrap and t", "BCa bootstrap and t", "t"]
    # Most scores are 1: the bootstrap reaches further down, t further up.
    skewed = [1.0] * 30 + [0.75, 0.6667, 0.5, 0.8] * 4 + [0.0, 0.25]
    found = intervals.mean_bounds(skewed, passed=[True] * 48)
    bca, t = intervals.bca(skewed), intervals.student(skewed)
    assert (bca.low < t.low, bca.high < t.high) == (True, True)
    assert (found.low, found.high) == (bca.low, t.high)


def test_clusters_count_as_what_they_are() -> None:
    found = intervals.mean_bounds(FLAT, passed=[False] * 10, clusters=OF)
    assert found.method == "t over 3 clusters"
    assert found.low == pytest.approx(0.358289, abs=1e-6)
    assert found.high == 1.0
    equal = intervals.mean_bounds([1.0] * 10, passed=[True] * 10, clusters=OF)
    assert equal.low == intervals.clopper_pearson(3, 3).low
    alike = intervals.mean_bounds([0.8, 1.0] * 5, passed=[True] * 10, clusters=[n // 2 for n in range(10)])
    assert alike.low == pytest.approx(0.9 - stats.t.ppf(0.95, 4) * stats.sem([0.8, 1.0] * 5))
    with pytest.raises(UndefinedScore, match="one cluster"):
        intervals.mean_bounds([0.5, 0.7], passed=[True] * 2, clusters=["a", "a"])


def test_questions_that_share_a_document_are_of_one_cluster() -> None:
    found = intervals.by_cluster({"a": ["1", "2"], "b": ["3"], "c": ["2", "3"], "d": ["4"], "e": [], "f": []})
    assert found["a"] == found["b"] == found["c"]
    assert len({found["a"], *(found[name] for name in "def")}) == 4


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=120))
def test_bounds_hold_the_mean_and_are_never_nan(values: list[float]) -> None:
    met = [value >= 0.8 for value in values]
    found = intervals.mean_bounds(values, passed=met)
    assert 0 <= found.low <= found.high <= 1
    if not found.method.endswith("pass rate"):
        assert found.low - 1e-9 <= np.mean(values) <= found.high + 1e-9


def test_what_is_no_score_is_refused() -> None:
    with pytest.raises(UndefinedScore):
        intervals.mean_bounds([], passed=[])
    with pytest.raises(UsageError, match="finite"):
        intervals.mean_bounds([0.5, math.nan], passed=[True, True])
    with pytest.raises(UndefinedScore):
        intervals.mean_bounds([2.0, 2.0], passed=[True, True], high=math.inf)


def test_paired_tests() -> None:
    differences = np.array(NEW) - np.array(X)
    assert differences.mean() == pytest.approx(-0.03)
    assert stats.sem(differences) == pytest.approx(0.0133333, abs=1e-7)
    assert intervals.student(list(differences)).high == pytest.approx(-0.005558, abs=1e-6)
    assert stats.ttest_rel(NEW, X, alternative="less").pvalue == pytest.approx(0.0255016, abs=1e-7)
    assert paired.sign_flip(list(differences)) == 7 / 128
    assert paired.sign_flip([0.0, 0.0]) == 1.0
    assert paired.sign_flip([-0.2]) == 0.5
    assert paired.sign_flip([-0.1] * 4) == 0.5**4


def test_many_differences_are_flipped_at_random() -> None:
    differences = list(np.random.default_rng(7).normal(-0.03, 0.1, 60))
    z = stats.norm.cdf(sum(differences) / math.sqrt(sum(each**2 for each in differences)))
    assert paired.sign_flip(differences) == pytest.approx(z, abs=0.01)
    assert paired.sign_flip(differences) == paired.sign_flip(differences[::-1])


def test_mcnemar() -> None:
    assert paired.mcnemar(8, 4, two_sided=True) == pytest.approx(0.3876953, abs=1e-7)
    assert paired.mcnemar(8, 4, two_sided=True) == pytest.approx(
        sm_mcnemar([[0, 8], [4, 0]], exact=True).pvalue
    )
    assert paired.mcnemar(10, 1) == pytest.approx(0.005859, abs=1e-6)
    assert paired.mcnemar(4, 0) == 0.0625
    assert paired.mcnemar(0, 0) == 1.0


def test_fisher() -> None:
    assert paired.fisher((5, 5), (0, 5)) == pytest.approx(0.003968, abs=1e-6)
    assert paired.fisher((3, 3), (0, 3)) == pytest.approx(0.05)
    assert paired.fisher((2, 2), (2, 2)) == 1.0
    # Of all ways to deal 4 + 1 passes to 5 + 3 votes, those with 1 or none among the 3.
    assert paired.fisher((4, 5), (1, 3)) == pytest.approx(stats.hypergeom.cdf(1, 8, 5, 3))
    with pytest.raises(UsageError, match="4 of 3"):
        paired.fisher((4, 3), (0, 3))


def test_holm() -> None:
    assert paired.holm([0.01, 0.04, 0.03, 0.20]) == pytest.approx([0.04, 0.09, 0.09, 0.20])
    assert paired.holm([]) == []


@settings(max_examples=6, deadline=None)  # statsmodels takes .2 s for each
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    assert paired.holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))
