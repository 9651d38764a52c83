"""Batch retrieval metrics: the same numbers as query by query, and who is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.metrics.formulas import many_queries as m
from pytest_ragbench.metrics.formulas import retrieval as r
from pytest_ragbench.metrics.formulas.coverage import aggregate
from pytest_ragbench.model.errors import EndpointError, UndefinedScore, UsageError
from pytest_ragbench.model.thresholds import parse_threshold

ALL = [
    "hit_rate@3",
    "mrr",
    "mrr@2",
    "recall@3",
    "precision@3",
    "map",
    "map@3",
    "ndcg",
    "ndcg@3",
    "r_precision",
]
SINGLE = {
    "hit_rate": r.hit_rate,
    "mrr": r.mrr,
    "recall": r.recall,
    "precision": r.precision,
    "map": r.average_precision,
    "ndcg": r.ndcg,
    "judged": r.judged,
}


def one(name: str, ranking: Any, grades: Any, **options: Any) -> float:
    measure = m.Measure.parse(name)
    if measure.name == "r_precision":
        return r.r_precision(ranking, grades)
    return SINGLE[measure.name](ranking, grades, measure.k, **options)


def test_a_query_without_results_counts_as_zero() -> None:
    done = m.evaluate(
        {"q1": ["A"], "q2": ["B"], "q3": ["C"]}, {"q1": ["A"], "q3": ["X", "C"]}, ["mrr", "hit@1"]
    )
    assert done["mrr"].mean == 0.5
    assert done["hit_rate@1"].mean == pytest.approx(1 / 3)
    assert done.per_query("mrr") == {"q1": 1.0, "q2": 0.0, "q3": 0.5}
    assert done["mrr"].n_scored == done["mrr"].n_total == 3


def test_failed_requests_and_unjudged_queries_are_counted_not_averaged() -> None:
    qrels = {"q1": ["A"], "q2": ["B"], "q3": {"C": 0}, "q4": ["D"]}
    run = {"q1": ["A"], "q2": None, "q4": EndpointError("no reply", code="timeout"), "extra": ["A"]}
    done = m.evaluate(qrels, run, ["mrr"])
    total = done.aggregate("mrr", parse_threshold(">=0.5"))
    assert (total.mean, total.n_scored, total.n_unscored, total.n_total) == (1.0, 1, 3, 4)
    assert dict(total.unscored) == {"q2": "request_failed", "q3": "no_relevant_ids", "q4": "timeout"}
    assert done.ignored == ("extra",)
    assert total.coverage == 0.25
    zero = m.evaluate(qrels, run, ["mrr", "ndcg@3"], no_relevant="zero")
    assert zero["mrr"].mean == zero["ndcg@3"].mean == 0.5


def test_nothing_scored_has_no_mean() -> None:
    done = m.evaluate({"q": ["a"]}, {"q": None}, ["mrr"])
    with pytest.raises(UndefinedScore, match=r"0 of 1 samples have a score \(request_failed\)"):
        done.aggregate("mrr")


def test_scores_of_a_mapping_rank_it_and_ties_keep_their_order() -> None:
    done = m.evaluate({"q": ["b"]}, {"q": {"x": 0.1, "a": 0.9, "b": 0.9}}, ["mrr"])
    assert done["mrr"].mean == 0.5


def test_ids_of_any_type_are_text() -> None:
    done = m.evaluate({1: [10, "20"]}, {"1": [20, 10]}, ["recall@2", "ndcg@2"])
    assert done["recall@2"].mean == done["ndcg@2"].mean == 1.0
    assert m.evaluate({"q": {"1": True}}, {"q": np.array([3, 1])}, ["mrr"])["mrr"].mean == 0.5


@pytest.mark.parametrize(
    ("qrels", "run", "measures", "message"),
    [
        ({"q": ["a"]}, {"Q": ["a"]}, ["mrr"], "share no query id"),
        ({"q": ["a"]}, {"q": "abc"}, ["mrr"], "query 'q': retrieved ids must be a list"),
        ({"q": "a"}, {"q": ["a"]}, ["mrr"], "query 'q': relevant ids must be a list"),
        ({"q": {"a": "x"}}, {"q": ["a"]}, ["mrr"], "query 'q': .*finite grade"),
        ({"q": ["a"]}, {"q": {"a": float("nan")}}, ["mrr"], "query 'q': a retrieval score"),
        ({"q": ["a"]}, {"q": ["a"]}, ["ndgc@3"], "unknown retrieval metric 'ndgc'"),
        ({"q": ["a"]}, {"q": ["a"]}, ["ndcg@0"], "k must be"),
        ({"q": ["a"]}, {"q": ["a"]}, ["ndcg@2.5"], "k must be"),
        ({"q": ["a"]}, {"q": ["a"]}, ["ndcg@"], "k must be"),
        ({"q": ["a"]}, {"q": ["a"]}, ["precision"], "needs a cut-off"),
        ({"q": ["a"]}, {"q": ["a"]}, ["rprec@3"], "takes no cut-off"),
        ({"q": ["a"]}, {"q": ["a"]}, [], "no retrieval metric named"),
        ({"q": ["a"]}, {"q": ["a"]}, [5], "unreadable retrieval metric"),
        ([("q", ["a"])], {"q": ["a"]}, ["mrr"], "qrels must map"),
        ({"q": {"a": 1e200}}, {"q": ["a"]}, ["ndcg"], "too large"),
    ],
)
def test_usage_errors(qrels: Any, run: Any, measures: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        m.evaluate(qrels, run, measures)


def test_asking_for_a_metric_that_was_not_computed() -> None:
    with pytest.raises(UsageError, match="mrr was not computed; computed: map"):
        _ = m.evaluate({"q": ["a"]}, {"q": ["a"]}, ["map"])["mrr"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("MAP@100", "map@100"),
        ("P@5", "precision@5"),
        ("hit-rate@3", "hit_rate@3"),
        ("RR", "mrr"),
        ("Rprec", "r_precision"),
    ],
)
def test_names_that_people_write(text: str, name: str) -> None:
    assert str(m.Measure.parse(text)) == name


docs = st.sampled_from([f"d{number}" for number in range(9)])
queries = st.dictionaries(
    st.sampled_from([f"вопрос{number}" for number in range(6)]),
    st.tuples(st.dictionaries(docs, st.integers(-1, 3)), st.lists(docs, max_size=10)),
    min_size=1,
)


@given(queries, st.sampled_from(["linear", "exponential"]), st.booleans(), st.sampled_from(["k", "returned"]))
@settings(deadline=None)
def test_batch_equals_single(data: Any, gain: Any, collapse: bool, denominator: Any) -> None:
    qrels = {query: grades for query, (grades, _) in data.items()}
    run = {query: ranking for query, (_, ranking) in data.items()}
    measures = [*ALL, "judged@3", "judged"]
    done = m.evaluate(qrels, run, measures, gain=gain, collapse=collapse, denominator=denominator)
    for name in measures:
        kind = name.partition("@")[0]
        options: dict[str, Any] = {} if kind == "r_precision" else {"collapse": collapse}
        if kind == "ndcg":
            options["gain"] = gain
        if kind == "precision":
            options["denominator"] = denominator
        expected = {}
        for query, (grades, ranking) in data.items():
            if max(grades.values(), default=0) > 0:
                used = list(dict.fromkeys(ranking)) if collapse else ranking
                expected[query] = one(name, used, grades, **options)
        assert done.per_query(name) == pytest.approx(expected, abs=1e-12)


@given(queries)
@settings(deadline=None)
def test_a_matrix_of_grades_equals_ids(data: Any) -> None:
    width = 12
    qrels = {query: grades for query, (grades, _) in data.items()}
    run = {query: list(dict.fromkeys(ranking)) for query, (_, ranking) in data.items()}
    grades = np.full((len(data), width), np.nan)
    every = np.zeros((len(data), 9))
    for row, query in enumerate(data):
        grades[row, : len(run[query])] = [qrels[query].get(doc, np.nan) for doc in run[query]]
        every[row, : len(qrels[query])] = list(qrels[query].values())
    returned = [len(ranking) for ranking in run.values()]
    measures = [*ALL, "judged@3"]
    mine = m.evaluate_grades(grades, every, measures, returned=returned)
    theirs = m.evaluate(qrels, run, measures, no_relevant="zero")
    for name in measures:
        assert mine[name].tolist() == pytest.approx(list(theirs.per_query(name).values()), abs=1e-12)


def test_many_chunks_give_the_same_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    run = {f"q{i}": [f"d{n}" for n in rng.permutation(30)[:20]] for i in range(50)}
    qrels = {
        f"q{i}": {f"d{n}": int(n % 3) + 1 for n in rng.permutation(30)[: rng.integers(1, 6)]}
        for i in range(50)
    }
    whole = m.evaluate(qrels, run, ALL)
    monkeypatch.setattr(m, "QUERIES_AT_ONCE", 7)
    parts = m.evaluate(qrels, run, ALL)
    assert parts.query_ids == whole.query_ids
    for name in ALL:
        assert parts.values[name].tolist() == pytest.approx(whole.values[name].tolist())


def test_as_ranx() -> None:
    ranx = pytest.importorskip("ranx")
    rng = np.random.default_rng(5)
    run = {
        f"q{i}": {f"d{n}": float(40 - rank) for rank, n in enumerate(rng.permutation(40)[:15])}
        for i in range(40)
    }
    qrels = {f"q{i}": {f"d{n}": int(rng.integers(1, 4)) for n in rng.permutation(40)[:5]} for i in range(40)}
    names = {
        "ndcg@10": "ndcg@10",
        "map@10": "map@10",
        "mrr": "mrr",
        "recall@5": "recall@5",
        "precision@20": "precision@20",
    }
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), list(names.values()))
    mine = m.evaluate(qrels, run, list(names))
    assert {name: mine[name].mean for name in names} == pytest.approx(theirs, abs=1e-9)
    burges = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "ndcg_burges@10")
    assert m.evaluate(qrels, run, ["ndcg@10"], gain="exponential")["ndcg@10"].mean == pytest.approx(
        burges, abs=1e-9
    )


@pytest.mark.parametrize(
    ("grades", "options", "message"),
    [
        ([1, 0], {}, "must be a matrix"),
        ([["a"]], {}, "must be a matrix"),
        ([[1, 0]], {"relevant": [[1], [1]]}, "1 queries, relevant 2"),
        ([[1, 1]], {"relevant": [[1, 0]]}, "more relevant ids among its results"),
        ([[1, 0]], {"returned": [3]}, "at most 2"),
        ([[np.inf, 0]], {}, "infinite grade"),
    ],
)
def test_matrices_that_do_not_fit(grades: Any, options: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        m.evaluate_grades(grades, **options)


def test_aggregate_counts_what_has_no_score() -> None:
    failed = EndpointError("no reply", code="timeout")
    scores: dict[str, Any] = {"a": 0.9, "b": 0.4, "c": failed, "d": 0.7}
    total = aggregate(scores, parse_threshold(">=0.8"))
    assert total.mean == pytest.approx(2 / 3)
    assert (total.min, total.n_scored, total.n_unscored, total.n_total) == (0.4, 3, 1, 4)
    assert total.failing == ("b", "d")
    assert dict(total.unscored) == {"c": "timeout"}
    assert str(total) == "mean 0.6667 over 3 of 4, min 0.4"
    with pytest.raises(UsageError, match="score of a must be a finite number"):
        aggregate({"a": float("nan")})
    with pytest.raises(UndefinedScore, match="no samples"):
        aggregate({})
