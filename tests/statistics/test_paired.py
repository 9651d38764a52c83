"""Two runs of the same questions: the specification's worked values, scipy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.statistics import paired

X = [0.9, 0.8, 1, 0.7, 0.95, 0.85, 0.9, 0.6, 1, 0.9]
NEW = [0.85, 0.8, 0.9, 0.7, 0.9, 0.8, 0.9, 0.65, 0.95, 0.85]


def test_paired_tests() -> None:
    differences = np.array(NEW) - np.array(X)
    assert differences.mean() == pytest.approx(-0.03)
    assert stats.sem(differences) == pytest.approx(0.0133333, abs=1e-7)
    assert stats.ttest_rel(NEW, X, alternative="less").pvalue == pytest.approx(0.0255016, abs=1e-7)
    assert paired.sign_flip(list(differences)) == 7 / 128
    assert paired.sign_flip([0.0, 0.0]) == 1.0
    assert paired.sign_flip([-0.2]) == 0.5
    assert paired.sign_flip([-0.1] * 4) == 0.5**4


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([-0.5, -0.25, -0.125, 0.125, 0.25, 0.5]), min_size=2, max_size=9))
def test_few_differences_are_flipped_in_every_way_as_by_scipy(differences: list[float]) -> None:
    exact = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="less"
    )
    assert paired.sign_flip(differences) == pytest.approx(exact.pvalue)


def test_many_questions_take_little_memory() -> None:
    differences = np.random.default_rng(1).normal(-0.001, 0.1, 3000).tolist()
    assert 0.1 < paired.sign_flip(differences) < 0.6


def test_many_differences_are_flipped_at_random() -> None:
    differences = list(np.random.default_rng(7).normal(-0.03, 0.1, 60))
    z = stats.norm.cdf(sum(differences) / math.sqrt(sum(each**2 for each in differences)))
    assert paired.sign_flip(differences) == pytest.approx(z, abs=0.01)
    assert paired.sign_flip(differences) == paired.sign_flip(differences[::-1])


def test_thirteen_differences_are_flipped_in_every_way_and_fourteen_at_random() -> None:
    """The share of flips that come to no less is of 2¹³ ways, and then of 9999 draws and the signs as they are."""
    assert paired.sign_flip([-1.0] * 13) == 0.5**13
    assert paired.sign_flip([-1.0] * 60) == 1 / 10_000
    drawn = 10_000 * paired.sign_flip([-1.0] * 13 + [1.0])
    assert drawn == round(drawn)
    assert drawn / 10_000 == pytest.approx(15 / 2**14, abs=0.001)
    assert paired.sign_flip([1.0] * 60) == 1.0
    assert paired.sign_flip([-1.0] * 3 + [1e-12] * 60) == 1 / 8  # rounding errors are no differences


def test_mcnemar() -> None:
    from statsmodels.stats.contingency_tables import mcnemar as sm_mcnemar

    assert paired.mcnemar(8, 4, two_sided=True) == pytest.approx(0.3876953, abs=1e-7)
    assert paired.mcnemar(8, 4, two_sided=True) == pytest.approx(
        sm_mcnemar([[0, 8], [4, 0]], exact=True).pvalue
    )
    assert paired.mcnemar(10, 1) == pytest.approx(0.005859, abs=1e-6)
    assert paired.mcnemar(4, 0) == 0.0625
    assert paired.mcnemar(0, 0) == paired.mcnemar(0, 0, two_sided=True) == 1.0
    assert paired.mcnemar(4, 8, two_sided=True) == paired.mcnemar(8, 4, two_sided=True)


def test_fisher() -> None:
    assert paired.fisher((5, 5), (0, 5)) == pytest.approx(0.003968, abs=1e-6)
    assert paired.fisher((3, 3), (0, 3)) == pytest.approx(0.05)
    assert paired.fisher((2, 2), (2, 2)) == 1.0
    # Of all ways to deal 4 + 1 passes to 5 + 3 votes, those with 1 or none among the 3.
    assert paired.fisher((4, 5), (1, 3)) == pytest.approx(stats.hypergeom.cdf(1, 8, 5, 3))
    for wrong in [(4, 3), (-1, 3)]:
        for pair in ((wrong, (0, 3)), ((0, 3), wrong)):
            with pytest.raises(UsageError, match=f"{wrong[0]} of 3"):
                paired.fisher(*pair)
    assert paired.fisher((0, 0), (0, 3)) == 1.0


def test_holm() -> None:
    assert paired.holm([0.01, 0.04, 0.03, 0.20]) == pytest.approx([0.04, 0.09, 0.09, 0.20])
    assert paired.holm([]) == []
    for wrong in (-0.01, 1.01, math.nan):
        with pytest.raises(UsageError, match=r"lies in 0\.\.1"):
            paired.holm([0.5, wrong])


@settings(max_examples=6, deadline=None)  # statsmodels takes .2 s for each
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    assert paired.holm(p_values) == pytest.approx(list(multipletests(p_values, method="holm")[1]))
