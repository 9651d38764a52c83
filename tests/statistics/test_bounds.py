"""Gaffke's bound: the specification's worked values, Clopper-Pearson, draws, and what must hold for any scores."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.statistics.bounds import Bounds, mean_bounds, share_bounds
from pytest_ragbench.statistics.gaffke import lower_quantiles

X = [0.9, 0.8, 1, 0.7, 0.95, 0.85, 0.9, 0.6, 1, 0.9]
MIXED = [1.0] * 30 + [2 / 3] * 12 + [1 / 3] * 5 + [0.0] * 3
CLOSE = 1e-7

scores = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 1.0]), min_size=1, max_size=80)
confidences = st.sampled_from([0.6, 0.9, 0.95, 0.975, 0.999])


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (X, 0.6302, 0.9256),
        ([1.0] * 47 + [0.0] * 3, 0.8521, 0.9835),
        ([1.0] * 20, 0.8609, 1),
        ([0.84] * 2, 0.1873, 0.9643),
        ([0.86] * 19, 0.7348, 0.8804),
        ([0.1] * 10, 0.0741, 0.3327),
        ([1.0] * 94 + [2 / 3] * 4 + [0.0], 0.9380, 0.9914),
        ([1.0] * 94 + [2 / 3] * 5 + [0.0], 0.9350, 0.9891),
        (MIXED, 0.7018, 0.8602),
    ],
)
def test_worked_values(values: list[float], low: float, high: float) -> None:
    found = mean_bounds(values)
    assert [found.low, found.high] == pytest.approx([low, high], abs=6e-4)


def test_worked_value_of_fewer_effective_scores() -> None:
    """50 scores that count for 25, in clusters of two equal ones."""
    clusters = [place // 2 for place in range(30)] + [15 + place // 2 for place in range(20)]
    paired_up = [1.0] * 30 + [2 / 3] * 12 + [1 / 3] * 4 + [0.0] * 2 + [1 / 3, 0.0]
    assert sorted(paired_up) == sorted(MIXED)
    found = mean_bounds(paired_up, clusters=clusters)
    assert found.n_effective == pytest.approx(25)
    assert [found.low, found.high] == pytest.approx([0.6508, 0.8855], abs=3e-4)


def test_no_injection_of_twenty_worked() -> None:
    assert share_bounds(0, 20).high == pytest.approx(0.139108, abs=1e-6)
    assert share_bounds(0, 20).low == 0.0
    assert share_bounds(50, 50).low == pytest.approx(0.941845, abs=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), confidences)
def test_scores_of_0_and_1_have_the_bounds_of_clopper_and_pearson(
    counts: tuple[int, int], confidence: float
) -> None:
    from statsmodels.stats.proportion import proportion_confint

    k, n = counts
    low, high = proportion_confint(k, n, alpha=2 * (1 - confidence), method="beta")
    found = share_bounds(k, n, confidence)
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-9)
    assert found.method == "Clopper-Pearson"


@pytest.mark.parametrize("part", [1.0, 0.3])
@pytest.mark.parametrize("share", [0.001, 0.025, 0.05, 0.3])
def test_the_integral_is_the_beta_distribution_where_that_is_known(share: float, part: float) -> None:
    """Two distances that hardly differ take the general way; one takes the closed form."""
    grid = [(k, misses) for k in (1, 2, 5, 57, 200, 5000) for misses in (0, 1, 3, 57, 200, 5000)]
    weights = np.array([[1, k, misses] for k, misses in grid]) * part
    found = lower_quantiles(np.tile([1 - 1e-13, 1.0, 0.0], (len(grid), 1)), weights, share)
    exact = stats.beta.ppf(share, weights[:, 0] + weights[:, 1], 1 + weights[:, 2])
    assert found == pytest.approx(exact, abs=2e-8)
    closed = lower_quantiles(np.tile([1.0, 0.0], (len(grid), 1)), weights[:, 1:], share)
    assert closed == pytest.approx(stats.beta.ppf(share, weights[:, 1], 1 + weights[:, 2]), abs=1e-12)


def test_many_samples_at_once_are_what_each_is_alone() -> None:
    samples = np.random.default_rng(2).beta(3, 1, (300, 40))
    samples[:100] = np.round(samples[:100] * 3) / 3
    together = lower_quantiles(samples, np.ones_like(samples), 0.05)
    alone = [mean_bounds(sample.tolist()).low for sample in samples]
    assert together == pytest.approx(alone, abs=CLOSE)


def drawn(values: Sequence[float], share: float, part: float = 1.0, draws: int = 100_000) -> float:
    """The lower quantile by brute force, a gamma variable for each score and one for the end at 0."""
    rng = np.random.default_rng(5)
    gammas = rng.gamma(part, size=(draws, len(values)))
    return float(np.quantile(gammas @ np.array(values) / (gammas.sum(1) + rng.gamma(1, size=draws)), share))


@pytest.mark.parametrize(("share", "part"), [(0.05, 1.0), (0.025, 0.4)])
@pytest.mark.parametrize(
    "values",
    [
        X,
        MIXED,
        [0.2, 0.9],
        [1e-3, 1.0, 1.0],
        [0.5] * 20 + [0.5000001],
        [1.0] * 40 + [0.01],
        [0.01] * 40 + [1.0],
    ],
    ids=["X", "mixed", "two", "far apart", "nearly equal", "one low", "one high"],
)
def test_the_integral_is_what_draws_come_to(values: list[float], part: float, share: float) -> None:
    [found] = lower_quantiles(np.array([values]), np.full((1, len(values)), part), share)
    assert found == pytest.approx(drawn(values, share, part), abs=0.005)


def test_many_different_scores() -> None:
    values = np.random.default_rng(3).beta(8, 2, 10_000)
    found = mean_bounds(values.tolist())
    reach = 1.645 * stats.sem(values)
    assert found.low == pytest.approx(values.mean() - reach, abs=2e-4)
    assert found.high == pytest.approx(values.mean() + reach, abs=2e-4)


@settings(max_examples=80, deadline=None)
@given(scores, confidences)
def test_bounds_hold_the_mean_and_stay_in_the_range(values: list[float], confidence: float) -> None:
    found = mean_bounds(values, confidence=confidence)
    assert 0 <= found.low <= found.high <= 1
    if confidence >= 0.9:
        assert found.low <= np.mean(values) + CLOSE
        assert found.high >= np.mean(values) - CLOSE


@settings(max_examples=50, deadline=None)
@given(scores)
def test_the_upper_bound_is_the_mirror_image_of_the_lower(values: list[float]) -> None:
    found, mirrored = mean_bounds(values), mean_bounds([1 - value for value in values])
    assert mirrored.low == pytest.approx(1 - found.high, abs=CLOSE)
    assert mirrored.high == pytest.approx(1 - found.low, abs=CLOSE)


@settings(max_examples=50, deadline=None)
@given(scores, st.data())
def test_a_better_score_lowers_no_bound(values: list[float], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    better = [*values[:place], data.draw(st.floats(values[place], 1)), *values[place + 1 :]]
    before, after = mean_bounds(values), mean_bounds(better)
    assert after.low >= before.low - CLOSE
    assert after.high >= before.high - CLOSE


@settings(max_examples=30, deadline=None)
@given(scores)
def test_one_more_good_answer_never_lowers_the_lower_bound(values: list[float]) -> None:
    assert mean_bounds([*values, 1.0]).low >= mean_bounds(values).low - CLOSE


@settings(max_examples=50, deadline=None)
@given(scores, st.randoms(use_true_random=False))
def test_the_order_of_scores_counts_for_nothing(values: list[float], shuffler: random.Random) -> None:
    other = values[:]
    shuffler.shuffle(other)
    assert mean_bounds(other) == mean_bounds(values)


@settings(max_examples=50, deadline=None)
@given(scores, st.floats(-5, 5), st.floats(0.1, 20))
def test_scale_and_shift(values: list[float], shift: float, scale: float) -> None:
    found = mean_bounds(values)
    moved = mean_bounds([shift + scale * value for value in values], low=shift, high=shift + scale)
    assert (moved.low - shift) / scale == pytest.approx(found.low, abs=1e-6)
    assert (moved.high - shift) / scale == pytest.approx(found.high, abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(scores)
def test_more_confidence_asks_for_more(values: list[float]) -> None:
    found = [mean_bounds(values, confidence=confidence) for confidence in (0.8, 0.95, 0.99)]
    assert [each.low for each in found] == sorted((each.low for each in found), reverse=True)
    assert [each.high for each in found] == sorted(each.high for each in found)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 1), st.integers(1, 500))
def test_equal_scores_need_no_special_case(score: float, n: int) -> None:
    """Between the end and the score the bound lies as far as it does for n perfect answers between 0 and 1."""
    found = mean_bounds([score] * n)
    assert found.low == pytest.approx(score * 0.05 ** (1 / n), abs=CLOSE)
    assert found.high == pytest.approx(1 - (1 - score) * 0.05 ** (1 / n), abs=CLOSE)


def test_two_questions_of_084_are_not_proven_to_be_below_085() -> None:
    assert mean_bounds([0.84] * 2).high > 0.85
    assert mean_bounds([0.1] * 10).low < 0.1


def test_what_has_no_bounds_is_refused() -> None:
    with pytest.raises(UndefinedScore):
        mean_bounds([])
    for wrong in (math.nan, math.inf, 1.1, -0.2):
        with pytest.raises(UsageError, match="finite number in 0..1"):
            mean_bounds([0.5, wrong])
    with pytest.raises(UsageError, match="range"):
        mean_bounds([2.0], high=math.inf)
    with pytest.raises(UsageError, match="confidence"):
        mean_bounds([0.5], confidence=1.0)
    with pytest.raises(UsageError, match="3 of 2"):
        share_bounds(3, 2)
    assert mean_bounds([1 + 1e-12]).high == 1.0


def test_no_interval_repairs_a_lenient_judge() -> None:
    """Sensitivity .98 and specificity .5 show a true .8 as .884, which passes `>= 0.85` in 94 % of runs."""
    shown = 0.8 * 0.98 + 0.2 * 0.5
    enough = next(k for k in range(860, 1001) if share_bounds(k, 1000).low >= 0.85)
    assert stats.binom.sf(enough - 1, 1000, shown) == pytest.approx(0.94, abs=0.015)


def test_what_a_bound_is_called() -> None:
    found = mean_bounds([0.5])
    assert found == Bounds(found.low, found.high, confidence=0.95, method="Gaffke", n_effective=1.0)
    assert [found.low, found.high] == pytest.approx([0.025, 0.975])
    assert mean_bounds([1.0, 5.0], low=1.0, high=5.0).method == "Clopper-Pearson"
