"""Single-query retrieval metrics: worked values, edges, and trec_eval as an oracle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.metrics.formulas import retrieval as r
from pytest_ragbench.model.errors import UndefinedScore, UsageError

close = pytest.approx


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (r.precision, 0.6667),
        (r.recall, 0.6667),
        (r.ndcg, 0.7039),
        (r.average_precision, 0.5556),
        (r.mrr, 1.0),
        (r.hit_rate, 1.0),
    ],
)
def test_two_of_three_relevant_found(function: Any, expected: float) -> None:
    assert function(["a", "b", "c", "d"], ["a", "c", "z"], 3) == close(expected, abs=5e-5)


def test_precision_divides_by_k_even_where_fewer_came_back() -> None:
    assert r.precision(["a"], ["a"], 3) == close(1 / 3)
    assert r.precision(["a"], ["a"], 3, denominator="returned") == 1.0
    assert r.precision(["x", "a"], ["a"], 1, denominator="returned") == 0.0
    assert r.precision([], ["a"], 3, denominator="returned") == 0.0
    assert r.recall(["a"], ["a"], 3) == r.ndcg(["a"], ["a"], 3) == 1.0


def test_graded_relevance_with_both_gains() -> None:
    grades = {"a": 1, "b": 3}
    assert r.ndcg(["a", "b", "c"], grades, 3) == close(0.7967, abs=5e-5)
    assert r.ndcg(["a", "b", "c"], grades, 3, gain="exponential") == close(0.7098, abs=5e-5)
    best = {"A": 3, "B": 2, "C": 1}
    assert r.ndcg(["B", "A", "X", "C"], best, 5) == close(0.9079364505194771, abs=1e-12)
    assert r.ndcg(["B", "A", "X", "C"], best, 3) == close(0.8174935137996165, abs=1e-12)
    assert r.ndcg(["B", "A", "X", "C"], best, 5, gain="exponential") == close(0.8354477690556398, abs=1e-12)


def test_the_ideal_ranking_has_all_relevant_ids() -> None:
    assert r.ndcg(["a", "x", "b"], ["a", "b"], 3) == close(0.919721, abs=5e-7)
    assert r.ndcg(["a", "x", "y", "b"], ["a", "b", "c"], 5) == close(0.671386, abs=5e-7)
    assert r.ndcg(["x", "y", "c"], ["c"]) == close(0.5)
    assert r.mrr(["x", "y", "c"], ["c"]) == close(1 / 3)
    assert r.mrr(["x", "y", "c"], ["c"], 2) == 0.0


def test_a_repeated_id_keeps_its_rank_and_earns_nothing() -> None:
    three = ["u", "u", "u"]
    assert r.ndcg(three, ["u"], 5) == 1.0
    assert r.precision(three, ["u"], 5) == close(0.2)
    assert r.recall(three, ["u"], 5) == 1.0
    again = ["A", "A", "X"]
    assert r.recall(again, ["A", "B"], 3) == 0.5
    assert r.precision(again, ["A", "B"], 3) == close(1 / 3)
    assert r.ndcg(again, ["A", "B"], 3) == close(0.6131471927654584, abs=1e-12)
    assert r.mrr(again, ["A", "B"]) == r.hit_rate(again, ["A", "B"], 3) == 1.0
    # A repeat in the ground truth is one id.
    assert r.recall(["A", "B"], ["A", "A", "B"], 3) == r.ndcg(["A", "B"], ["A", "A", "B"], 3) == 1.0


def test_collapse_moves_later_ids_up() -> None:
    assert r.mrr(["x", "x", "a"], ["a"]) == close(1 / 3)
    assert r.mrr(["x", "x", "a"], ["a"], collapse=True) == 0.5
    assert r.hit_rate(["x", "x", "a"], ["a"], 2, collapse=True) == 1.0


def test_ids_are_text_and_not_folded() -> None:
    assert r.recall([1, 2, "3"], ["1", 3]) == 1.0
    assert r.recall(["№5"], ["no5"]) == 0.0
    assert r.precision([1, 2, 3, 4], [1, 4, 5, 6], collapse=True) == 0.5
    assert r.recall([1, 2, 3], [1, 4, 5, 6]) == 0.25
    assert r.precision(["a", "a", "b", "c"], ["a"], collapse=True) == close(1 / 3)
    assert r.precision([], ["a"], collapse=True) == 0.0


def test_negative_and_zero_grades_are_judged_but_not_relevant() -> None:
    grades = {"a": 1, "b": 0, "c": -2}
    assert r.recall(["b", "c", "a"], grades, 2) == 0.0
    assert r.ndcg(["c", "a"], grades) == r.ndcg(["b", "a"], grades) == r.ndcg(["x", "a"], grades)
    assert r.judged(["b", "x", "c"], grades, 2) == 0.5
    assert r.judged(["b", "x", "c"], grades, 10) == close(2 / 3)
    assert r.judged([], grades, 10) == 0.0


def test_r_precision() -> None:
    assert r.r_precision(["a", "x", "b"], ["a", "b"]) == 0.5
    assert r.r_precision(["a"], ["a", "b"]) == 0.5


@pytest.mark.parametrize("k", [0, -1, 2.0, "3", True])
def test_k_must_be_a_whole_number_above_zero(k: Any) -> None:
    with pytest.raises(UsageError, match="k must be a whole number"):
        r.recall(["a"], ["a"], k)


@pytest.mark.parametrize("relevant", [[], {}, {"a": 0}, {"a": -1}])
def test_no_relevant_ids_is_undefined(relevant: Any) -> None:
    with pytest.raises(UndefinedScore, match="no relevant ids") as caught:
        r.ndcg(["a"], relevant, 3)
    assert caught.value.code == "no_relevant_ids"


def test_what_is_no_list_of_ids_is_refused() -> None:
    with pytest.raises(UsageError, match="must be a list of ids"):
        r.mrr("abc", ["a"])
    with pytest.raises(UsageError, match="retrieved ids are missing"):
        r.mrr(None, ["a"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="relevant ids are missing"):
        r.mrr(["a"], None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="finite grade"):
        r.mrr(["a"], {"a": float("nan")})
    with pytest.raises(UsageError, match="too large"):
        r.ndcg(["a"], {"a": 5000}, gain="exponential")
    with pytest.raises(UsageError, match="gain must be one of"):
        r.ndcg(["a"], ["a"], gain="log")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="denominator must be one of"):
        r.precision(["a"], ["a"], 1, denominator="n")  # type: ignore[arg-type]


@pytest.mark.parametrize(("gain", "largest"), [("exponential", 1000), ("linear", 1e100)])
def test_how_large_a_grade_may_be(gain: Any, largest: float) -> None:
    assert r.ndcg(["a"], {"a": largest}, gain=gain) == 1.0
    with pytest.raises(UsageError, match=f"too large for {gain} gain"):
        r.ndcg(["a"], {"a": largest * 1.001}, gain=gain)


DOCS = [f"документ-{number}" for number in range(8)] + ["資料一", "資料二"]
rankings = st.lists(st.sampled_from(DOCS), unique=True)
judgments = st.dictionaries(st.sampled_from(DOCS), st.integers(-1, 3), min_size=1).filter(
    lambda grades: max(grades.values()) > 0
)


@given(rankings, judgments, st.integers(1, 12))
def test_as_trec_eval(ranking: list[str], grades: dict[str, int], k: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {"P", "recall", "map_cut", "ndcg_cut", "success"}
    wanted = {f"{name}.{k}" for name in names} | {"recip_rank", "Rprec", "map", "ndcg"}
    run = {"q": {doc: float(len(ranking) - rank) for rank, doc in enumerate(ranking)}}
    oracle = pytrec_eval.RelevanceEvaluator({"q": grades}, wanted).evaluate(run)["q"]
    mine = {
        f"P_{k}": r.precision(ranking, grades, k),
        f"recall_{k}": r.recall(ranking, grades, k),
        f"map_cut_{k}": r.average_precision(ranking, grades, k),
        f"ndcg_cut_{k}": r.ndcg(ranking, grades, k),
        f"success_{k}": r.hit_rate(ranking, grades, k),
        "recip_rank": r.mrr(ranking, grades),
        "Rprec": r.r_precision(ranking, grades),
        "map": r.average_precision(ranking, grades),
        "ndcg": r.ndcg(ranking, grades),
    }
    assert mine == pytest.approx({name: oracle[name] for name in mine}, abs=1e-9)


@given(st.lists(st.sampled_from(DOCS)), judgments, st.integers(1, 12))
def test_values_stay_in_range_with_repeats(ranking: list[str], grades: dict[str, int], k: int) -> None:
    for function in (r.hit_rate, r.mrr, r.recall, r.precision, r.average_precision, r.ndcg, r.judged):
        assert 0.0 <= function(ranking, grades, k) <= 1.0 + 1e-12
    # Dropping the repeats never lowers a value.
    assert r.ndcg(ranking, grades, k, collapse=True) >= r.ndcg(ranking, grades, k) - 1e-12
