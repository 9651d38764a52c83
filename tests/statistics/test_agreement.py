from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.statistics import agreement as a

close = pytest.approx


def test_consistency_counts_a_difference_of_exactly_delta() -> None:
    found = a.consistency([0.2, 0.0, 1.0, 0.9], [0.7, 0.51, 0.5, 0.4], delta=0.5)
    assert (found.value, found.chance, found.n_pairs) == (0.75, 0.75, 4)


def test_chance_levels() -> None:
    assert a.consistency([0, 1], [0, 1], levels=(0, 0.5, 1), delta=0.5).chance == close(7 / 9)
    assert a.consistency([1, 5], [1, 5], levels=range(1, 6)).chance == close(0.2)
    assert a.consistency([0, 1], [0, 1]).chance == close(0.19)
    assert a.consistency([0, 1], [0, 1], delta=2).chance == 1.0


def test_delta_follows_the_scale() -> None:
    # One grade apart is not "consistent" on a discrete scale, whatever its size.
    assert a.consistency([1, 2, 3], [1, 3, 3], levels=range(1, 6)).value == close(2 / 3)
    assert a.consistency([10, 50], [18, 62], scale=(0, 100)).value == 0.5
    # Half of the least step between grades, in whatever order they are named.
    assert a.consistency([1, 5], [1, 5], levels=range(1, 6)).delta == 0.125
    assert a.consistency([1, 9], [1, 16], levels=(16, 9, 1)).value == 0.5
    assert a.consistency([1, 9], [1, 16], levels=(16, 9, 1)).delta == close(7 / 15 / 2)


def test_pairs_with_a_failed_call_leave_both_lists() -> None:
    found = a.consistency([0.1, None, 0.9, 0.5], [0.1, 0.9, None, 0.5])
    assert (found.value, found.n_pairs, found.n_left_out) == (1.0, 2, 2)
    assert "by chance 0.19" in str(found)
    assert a.consistency([0.5, 0.5], [0.5, 0.5]).alpha is None
    assert "undefined" in str(a.consistency([0.5], [0.5]))


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ([0.1], [0.1, 0.2], {}, "1 ratings against 2"),
        ([7], [0.1], {}, "score 7 is not on the scale 0..1"),
        ([2], [1], {"levels": (1, 3)}, "score 2 is not on the scale"),
        ([1], [1], {"scale": (1, 1)}, "must ascend"),
        ([1], [1], {"delta": -0.1}, "must not be negative"),
    ],
)
def test_consistency_usage(first: Any, second: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        a.consistency(first, second, **options)


def test_no_pairs() -> None:
    with pytest.raises(UndefinedScore, match=r"no pair of scores to compare \(1 left out\)"):
        a.consistency([None], [0.5])
    with pytest.raises(UndefinedScore, match="no pair of ratings"):
        a.cohen_kappa([None], [1])


def test_classification_counts_failed_calls() -> None:
    found = a.classification([True, True, False, False, None], [True, False, True, False, True])
    assert (found.tp, found.fp, found.fn, found.tn, found.n_failed) == (1, 1, 1, 1, 1)
    assert found.accuracy == found.precision == found.recall == found.f1 == found.specificity == 0.5
    assert found.error_rate == 0.2


def test_zero_of_zero_is_no_score() -> None:
    silent = a.classification([False, False], [True, False])
    with pytest.raises(UndefinedScore, match='never said "yes"'):
        _ = silent.precision
    assert silent.recall == silent.f1 == 0.0
    with pytest.raises(UndefinedScore, match="recall"):
        _ = a.classification([False], [False]).recall
    with pytest.raises(UndefinedScore, match="F1"):
        _ = a.classification([False], [False]).f1
    with pytest.raises(UndefinedScore, match="never answered"):
        _ = a.classification([None], [False]).accuracy
    with pytest.raises(UsageError, match="sample 0"):
        a.classification(["yes"], [True])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="1 predictions for 2"):
        a.classification([True], [True, True])


def test_error_rate_and_latency() -> None:
    assert a.error_rate(1, 4) == 0.25
    with pytest.raises(UndefinedScore):
        a.error_rate(0, 0)
    with pytest.raises(UsageError):
        a.error_rate(2, 1)
    assert a.latency([1.0, 2.0, 3.0]) == close((2.0, 2.9))
    with pytest.raises(UndefinedScore):
        a.latency([])
    with pytest.raises(UsageError):
        a.latency([-1.0])


def test_worked_values() -> None:
    assert a.cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0]) == close(0.5)
    assert a.krippendorff_alpha([[1, 1, 0, 0], [1, 0, 0, 0]]) == close(0.533333, abs=5e-7)
    one, other = [0, 1, 2, 2], [0, 2, 2, 1]
    assert a.cohen_kappa(one, other, weights="quadratic") == close(0.636364, abs=5e-7)
    assert a.krippendorff_alpha([one, other], "interval") == close(0.681818, abs=5e-7)
    assert a.krippendorff_alpha([one, other], "ordinal") == close(0.5625)
    # 90 of 100 agree, both call 90 % positive.
    skewed = [1] * 85 + [1] * 5 + [0] * 5 + [0] * 5
    second = [1] * 85 + [0] * 5 + [1] * 5 + [0] * 5
    assert a.cohen_kappa(skewed, second) == close(0.444444, abs=5e-7)
    assert a.gwet_ac1(skewed, second) == close(0.878049, abs=5e-7)


def test_krippendorffs_own_example() -> None:
    # Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", section C and D.
    missing = None
    table = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, missing, missing, missing],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, missing, 3],
        [missing, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, missing],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, missing],
    ]
    assert a.krippendorff_alpha(table, "nominal") == close(0.743, abs=5e-4)
    assert a.krippendorff_alpha(table, "ordinal") == close(0.815, abs=5e-4)
    assert a.krippendorff_alpha(table, "interval") == close(0.849, abs=5e-4)


@pytest.mark.parametrize("function", [a.cohen_kappa, a.gwet_ac1, lambda x, y: a.krippendorff_alpha([x, y])])
def test_no_variation_is_no_score(function: Any) -> None:
    with pytest.raises(UndefinedScore, match="no variation") as caught:
        function([1, 1, 1], [1, 1, 1])
    assert caught.value.code == "no_variation"


def test_levels() -> None:
    # Grades 0 and 4 that were given are four steps apart, though nobody gave 1, 2 and 3.
    one, other = [0, 4, 4, 1], [0, 4, 1, 1]
    assert a.cohen_kappa(one, other, weights="linear", levels=range(5)) != close(
        a.cohen_kappa(one, other, weights="linear")
    )
    assert a.gwet_ac1([1, 1], [1, 1], levels=[0, 1]) == 1.0
    with pytest.raises(UsageError, match="not one of the levels"):
        a.cohen_kappa([5], [1], levels=[0, 1])
    with pytest.raises(UsageError, match="weights must be"):
        a.cohen_kappa([1, 0], [1, 1], weights="cubic")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no order"):
        a.cohen_kappa([1, "a"], [1, "a"])
    with pytest.raises(UsageError, match="needs values with an order"):
        a.krippendorff_alpha([["a", "b"], ["a", "a"]], "interval")
    with pytest.raises(UsageError, match="level must be"):
        a.krippendorff_alpha([[1], [1]], "ratio")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="rows of"):
        a.krippendorff_alpha([[1], [1, 2]])
    with pytest.raises(UndefinedScore, match="no item has two ratings"):
        a.krippendorff_alpha([[1, None], [None, 2]])


grades = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


@given(grades, st.sampled_from([None, "linear", "quadratic"]), st.booleans())
def test_kappa_as_scikit_learn(pairs: Any, weights: Any, all_levels: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    one, other = zip(*pairs, strict=True)
    assume(len(set(one) | set(other)) > 1)
    levels = list(range(5)) if all_levels else None
    oracle = metrics.cohen_kappa_score(one, other, weights=weights, labels=levels)
    assert a.cohen_kappa(one, other, weights=weights, levels=levels) == close(oracle, abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_classification_as_scikit_learn(pairs: Any) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    said, truth = zip(*pairs, strict=True)
    assume(any(said) and any(truth))
    found = a.classification(said, truth)
    assert found.accuracy == close(metrics.accuracy_score(truth, said), abs=1e-9)
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(truth, said, average="binary")
    assert (found.precision, found.recall, found.f1) == close((precision, recall, f1), abs=1e-9)


def alpha_by_coincidences(table: list[list[Any]], level: str) -> float:
    """Alpha from the coincidence matrix, as Krippendorff writes it."""
    units = [[value for value in unit if value is not None] for unit in zip(*table, strict=True)]
    coincidences: Counter[tuple[int, int]] = Counter()
    for unit in units:
        for i, x in enumerate(unit):
            for j, y in enumerate(unit):
                if i != j:
                    coincidences[x, y] += 1 / (len(unit) - 1)  # type: ignore[assignment]
    totals: Counter[int] = Counter()
    for (x, _), times in coincidences.items():
        totals[x] += times
    n = sum(totals.values())

    def distance(x: int, y: int) -> float:
        if level == "nominal":
            return float(x != y)
        if level == "interval":
            return float((x - y) ** 2)
        low, high = min(x, y), max(x, y)
        between = sum(times for value, times in totals.items() if low <= value <= high)
        return float((between - (totals[x] + totals[y]) / 2) ** 2)

    observed = sum(times * distance(x, y) for (x, y), times in coincidences.items()) / n
    expected = sum(totals[x] * totals[y] * distance(x, y) for x in totals for y in totals) / (n * (n - 1))
    return 1 - observed / expected


@given(
    st.integers(2, 10).flatmap(
        lambda n: st.lists(
            st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=n, max_size=n), min_size=2, max_size=4
        )
    ),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_as_its_coincidence_matrix(table: Any, level: Any) -> None:
    paired = [[x for x in unit if x is not None] for unit in zip(*table, strict=True)]
    assume(len({x for unit in paired if len(unit) > 1 for x in unit}) > 1)
    assert a.krippendorff_alpha(table, level) == close(alpha_by_coincidences(table, level), abs=1e-9)


def test_nan_is_missing() -> None:
    table = np.array([[1.0, 2.0, np.nan, 3.0], [1.0, 2.0, 2.0, 2.0]])
    same: list[list[float | None]] = [[1, 2, None, 3], [1, 2, 2, 2]]
    assert a.krippendorff_alpha(table.tolist(), "interval") == close(a.krippendorff_alpha(same, "interval"))
