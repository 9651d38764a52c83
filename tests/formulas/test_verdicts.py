"""The worked values of judged metrics, from canned verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.metrics.formulas import verdicts as v
from pytest_ragbench.model.errors import UndefinedScore, UsageError

close = pytest.approx
flags = st.lists(st.booleans(), min_size=1, max_size=12)


def test_share() -> None:
    assert v.share([1, 1]) == 1.0
    assert v.share([True, False]) == 0.5
    assert v.share([1, 1, 0]) == close(2 / 3)
    with pytest.raises(UndefinedScore, match="no claims") as caught:
        v.share([])
    assert caught.value.code == "no_claims"
    with pytest.raises(UndefinedScore) as caught:
        v.share([], "reference contexts")
    assert caught.value.code == "no_reference_contexts"


@pytest.mark.parametrize("bad", [2, -1, None, "1", "yes", 0.5, float("nan")])
def test_a_verdict_is_yes_or_no(bad: Any) -> None:
    for function in (v.share, v.average_precision, v.majority):
        with pytest.raises(UsageError, match="verdict 1 must be True/1 or False/0"):
            function([1, bad, 0])


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ([1, 1, 1], 1.0),
        ([0, 1], 0.5),
        ([1, 0], 1.0),
        ([1, 0, 1], 0.833333),
        ([0, 1, 1], 0.583333),
        ([1, 0, 1, 1, 0], 0.805556),
        ([1, 1, 0], 1.0),
        ([0, 0], 0.0),
        ([], 0.0),
    ],
)
def test_context_precision_is_average_precision(useful: list[int], expected: float) -> None:
    assert v.average_precision(useful) == close(expected, abs=5e-7)
    if expected in (0.0, 1.0):
        assert v.average_precision(useful) == expected  # no epsilon in a denominator


@given(flags)
def test_average_precision_as_trec_eval(useful: list[bool]) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels = {"q": {f"d{rank:02}": int(good) for rank, good in enumerate(useful)}}
    run = {"q": {f"d{rank:02}": float(-rank) for rank in range(len(useful))}}
    oracle = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)["q"]["map"]
    assert v.average_precision(useful) == close(oracle, abs=1e-9)


@pytest.mark.parametrize(
    ("cosines", "noncommittal", "rule", "expected"),
    [
        ([0.95, 0.90], [0, 0], "all", 0.925),
        ([0.95, 0.90], [1, 0], "all", 0.925),
        ([0.95, 0.90], [1, 0], "any", 0.0),
        ([0.95, 0.90], [1, 0], "majority", 0.925),
        ([0.95, 0.90, 0.1], [1, 1, 0], "majority", 0.0),
        ([0.95, 0.90], [1, 1], "all", 0.0),
        ([-1.0], [0], "all", -1.0),
        ([0.6, -0.2, 0.5], [0, 0, 0], "all", 0.3),
        ([0.9, 0.8, 0.7], [1, 0, 0], "all", 0.8),
    ],
)
def test_relevancy(cosines: list[float], noncommittal: list[int], rule: Any, expected: float) -> None:
    assert v.relevancy(cosines, noncommittal, rule) == close(expected, abs=1e-12)


def test_relevancy_that_can_not_be() -> None:
    with pytest.raises(UndefinedScore, match="no generated question"):
        v.relevancy([], [])
    with pytest.raises(UsageError, match="2 cosines but 1"):
        v.relevancy([0.1, 0.2], [0])
    with pytest.raises(UsageError, match="must lie in"):
        v.relevancy([float("nan")], [0])
    with pytest.raises(UsageError, match="rule must be"):
        v.relevancy([0.1], [0], "most")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer_support", "correct", "expected"),
    [
        # Columns: a context that the reference rests on, and one that it doesn't.
        ([[1, 0], [1, 0], [1, 0]], [1, 1, 0], (1 / 3, 0, 0)),
        ([[1, 0], [0, 1]], [1, 0], (0, 0.5, 0)),
        ([[1, 0], [1, 1]], [1, 0], (0.5, 0, 0)),
        ([[1, 0], [0, 0]], [1, 0], (0, 0, 0.5)),
        ([[1, 0], [1, 0], [0, 0], [0, 0]], [1, 0, 0, 1], (0.25, 0, 0.25)),
    ],
)
def test_noise_sensitivity(answer_support: Any, correct: Any, expected: Any) -> None:
    found = v.noise_sensitivity([[1, 0], [0, 0]], answer_support, correct)
    assert found == close(expected)
    assert found == v.noise_sensitivity(
        np.array([[1, 0], [0, 0]]), np.array(answer_support, dtype=bool), correct
    )


@given(st.integers(1, 5), st.integers(1, 5), st.integers(0, 4), st.integers(0, 2**31))
def test_the_three_parts_add_up_to_the_wrong_claims(n_ref: int, n_ans: int, n_ctx: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    correct = rng.integers(0, 2, n_ans)
    found = v.noise_sensitivity(
        rng.integers(0, 2, (n_ref, n_ctx)), rng.integers(0, 2, (n_ans, n_ctx)), correct
    )
    assert sum(found) == close(1 - correct.mean())
    if n_ctx == 0:
        assert found.relevant == found.irrelevant == 0.0


def test_noise_sensitivity_that_can_not_be() -> None:
    with pytest.raises(UndefinedScore, match="no claims in the answer"):
        v.noise_sensitivity([[1]], [], [])
    with pytest.raises(UsageError, match="no claims in the reference"):
        v.noise_sensitivity([], [[1]], [1])
    with pytest.raises(UsageError, match="answer_support has 1 claims, correct has 2"):
        v.noise_sensitivity([[1]], [[1]], [1, 0])  # one verdict must not be spread over two claims
    with pytest.raises(UsageError, match="answer_support has a row of 2 contexts, others have 1"):
        v.noise_sensitivity([[1]], [[1, 0]], [1])
    with pytest.raises(UsageError, match="verdict 0 must be True/1 or False/0, got 2"):
        v.noise_sensitivity([[2]], [[1]], [1])


def test_answer_correctness() -> None:
    assert v.f_beta(1, 1, 2) == close(0.4)
    assert v.weighted_mean(v.f_beta(1, 1, 2), 0.6, (0.75, 0.25)) == close(0.45)
    assert v.weighted_mean(v.f_beta(1, 1, 1), 0.6, (0.75, 0.25)) == close(0.525)
    assert v.weighted_mean(v.f_beta(1, 1, 5), None, (1, 0)) == close(0.25)
    assert v.f_beta(1, 1, 2, 2) == close(0.357143, abs=5e-7)
    assert v.f_beta(0, 0, 3) == 0.0
    assert v.weighted_mean(v.factual_correctness([1, 0], [1, 0, 0]).value, None, (1, 0)) == close(0.4)
    assert v.weighted_mean(0.5, 0.2, (2, 2)) == close(0.35)


def test_one_weight_may_be_zero() -> None:
    assert v.weighted_mean(0.5, 0.2, (0, 1)) == 0.2
    assert v.weighted_mean(0.5, 0.2, (1, 0)) == 0.5


@pytest.mark.parametrize(
    "weights", [(0, 0), (-1, 2), (2, -1), (float("nan"), 1), (1, float("inf")), (float("inf"), 1)]
)
def test_weights(weights: Any) -> None:
    with pytest.raises(UsageError, match="weights must be"):
        v.weighted_mean(0.5, 0.5, weights)


def test_answer_correctness_that_can_not_be() -> None:
    with pytest.raises(UsageError, match="cosine is needed"):
        v.weighted_mean(0.5, None, (0.75, 0.25))
    with pytest.raises(UsageError, match="not be negative"):
        v.f_beta(-1, 0, 0)
    with pytest.raises(UsageError, match="beta must be"):
        v.f_beta(1, 0, 0, 0)
    for beta in (-1, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="beta must be"):
            v.factual_correctness([1], [1], beta=beta)
    for counts in ((0, -1, 0), (0, 0, -1)):
        with pytest.raises(UsageError, match="not be negative"):
            v.f_beta(*counts)


@pytest.mark.parametrize(
    ("p", "r", "expected"),
    [
        ([1, 1, 1, 0], [1, 1, 0], (0.705882, 0.75, 0.666667)),
        ([1, 1, 0, 0], [1, 0], (0.5, 0.5, 0.5)),
        ([1], [1, 0], (2 / 3, 1.0, 0.5)),
        ([], [1, 0], (0.0, 0.0, 0.5)),
        ([0], [0], (0.0, 0.0, 0.0)),
    ],
)
def test_factual_correctness_has_its_own_recall(p: Any, r: Any, expected: Any) -> None:
    assert v.factual_correctness(p, r) == close(expected, abs=5e-7)
    assert v.factual_correctness(p, mode="precision").value == close(expected[1], abs=5e-7)
    assert v.factual_correctness([], r, "recall").value == close(expected[2], abs=5e-7)


def test_factual_correctness_options() -> None:
    p, r = [1, 1, 1, 0], [1, 1, 0]
    assert v.factual_correctness(p, r, beta=2).value == close(5 * 0.75 * (2 / 3) / (4 * 0.75 + 2 / 3))
    with pytest.raises(UndefinedScore, match="no claims"):
        v.factual_correctness(p, [])
    with pytest.raises(UsageError, match="mode must be"):
        v.factual_correctness(p, r, "f2")  # type: ignore[arg-type]


@given(flags, flags, st.sampled_from([0.5, 1.0, 2.0]))
def test_f_of_equal_sides_is_f_beta(p: list[bool], r: list[bool], beta: float) -> None:
    # F_beta of counts is the F of P = TP/(TP+FP) and R = TP/(TP+FN).
    tp, fp, fn = sum(p), len(p) - sum(p), len(r) - sum(r)
    recall_side = [True] * tp + [False] * fn
    if recall_side:
        assert v.factual_correctness(p, recall_side, beta=beta).value == close(v.f_beta(tp, fp, fn, beta))


def test_two_ratings() -> None:
    for first, second, mean in ((1, 1, 1), (1, 0.5, 0.75), (0.5, 0, 0.25)):
        found = v.two_ratings(first, second)
        assert (found.value, found.disagree) == (mean, False)
    assert v.two_ratings(1.0, 0.0) == (0.5, 1.0, True)
    assert not v.two_ratings(0.8, 0.3).disagree  # 0.5 to the eye, 0.5000000000000001 to Python
    assert v.two_ratings(0.8, 0.29).disagree


def test_majority() -> None:
    assert v.majority([1, 0, 1]) == (1.0, 2, 1)
    assert v.majority([False]) == (0.0, 0, 1)
    for votes in ([], [1, 0]):
        with pytest.raises(UsageError, match="odd number of votes"):
            v.majority(votes)


EIFFEL = ["Eiffel Tower", "Paris", "France", "1889", "World's Fair"]
SIX = ["Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"]


@pytest.mark.parametrize(
    ("reference", "contexts", "expected"),
    [
        (["Eiffel Tower", "Paris"], ["Eiffel Tower", "Paris"], 1.0),
        (EIFFEL, list(EIFFEL), 1.0),
        (SIX, ["Taj Mahal", "Agra", "Shah Jahan", "Mumtaz Mahal", "India"], 0.666667),
        (SIX, ["Taj Mahal", "UNESCO", "India"], 0.166667),
        (["Paris"], ["paris"], 1.0),
        (["Paris", "Paris", "Lyon"], ["Paris"], 0.5),
        (["Санкт-Петербург ", "«Нева»"], ["санкт-петербург", "Нева"], 1.0),
        (["東京タワー"], ["東京ﾀﾜｰ。"], 1.0),
        (["Москва"], [], 0.0),
    ],
)
def test_entity_recall(reference: list[str], contexts: list[str], expected: float) -> None:
    assert v.entity_recall(reference, contexts) == close(expected, abs=5e-7)


@pytest.mark.parametrize("none", [[], ["", " ", "..."]])
def test_no_entities(none: list[str]) -> None:
    with pytest.raises(UndefinedScore, match="no entities"):
        v.entity_recall(none, ["Paris"])


def test_extracted_sentences() -> None:
    sentences = ["Лев живёт в саванне.", "Он спит днём.", "Ночью он охотится.", "Зебры боятся."]
    found = v.extracted_ratio(["лев живёт в саванне", "Ночью он охотится.", "Ночью он охотится!"], sentences)
    assert (found.value, found.n_sentences) == (0.5, 4)
    made_up = v.extracted_ratio(["Лев — царь зверей."], sentences)
    assert (made_up.value, made_up.invented) == (0.0, ("Лев — царь зверей.",))
    assert v.extracted_ratio(["x"], []).value == 0.0
    assert v.extracted_ratio([], sentences).value == 0.0
