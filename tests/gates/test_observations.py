"""What gates take from the results of a run: which questions, which scores, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragbench.gates.observations import Observations, fingerprint
from pytest_ragbench.gates.rules import parse_rule
from pytest_ragbench.model.scores import Usage
from pytest_ragbench.model.tests import ErrorRecord, QuestionRecord, ScoreRecord, TestRecord
from tests.gates.runs import gate, paired, result, run

SCORED = "faithfulness mean >= 0.5"


def test_a_fingerprint_stands_for_a_text() -> None:
    found = fingerprint("How long?")
    assert found.startswith("sha256:")
    assert (fingerprint(found), fingerprint("")) == (found, "")
    # A report that keeps no texts is compared with one that does.
    kept = [result("new", {"faithfulness": 0.9}, text="How long?")]
    bare = [result("old", {"faithfulness": 0.9}, text=found)]
    [verdict] = paired(kept, bare)
    assert verdict.comparison is not None
    assert verdict.comparison.notes == ("1 question renamed (new)",)


@pytest.mark.parametrize(
    ("subset", "wanted"),
    [
        ("file=refunds.csv", 0.2),
        ("file=win/refunds.csv", 0.4),
        ("file=a/refunds.csv", 0.0),
        ("file=efunds.csv", None),
        ("file=other.csv|refunds.csv", 1.4 / 3),
        ("session=s1", 0.0),
        ("session=s1|s2", 0.2),
        ("tag=x,session=s2", 0.4),
        ("tag=x,session=s1", None),
        ("test=test_it", 0.5),
        ("test=_it", 0.5),
        ("test=test_other", None),
        ("test=test_other|test_it", 0.5),
    ],
)
def test_subsets_choose_questions(subset: str, wanted: float | None) -> None:
    results = [
        result("q0", {"faithfulness": 0.0}, file="a/refunds.csv", session="s1"),
        result("q1", {"faithfulness": 0.4}, file="b\\win\\refunds.csv", session="s2", tags=("x", "y")),
        result("q2", {"faithfulness": 1.0}, file="other.csv"),
        result("q3", {"faithfulness": 0.6}),
    ]
    assert gate(f"faithfulness[{subset}] mean >= 0.5", results).value == (
        wanted if wanted is None else pytest.approx(wanted)
    )


def test_the_time_of_an_answer_is_the_one_measured_in_this_run() -> None:
    def asked(*times: tuple[float | None, bool]) -> float | None:
        results = [
            result("q0", {}, latency=latency, first_token=latency, cached=cached) for latency, cached in times
        ]
        assert gate("first_token mean <= 5", results).value == gate("latency mean <= 5", results).value
        return gate("latency mean <= 5", results).value

    assert asked((1.0, True), (2.0, False), (3.0, False)) == 2.0  # the stored one was an earlier run's
    assert asked((1.0, True), (2.0, True)) == 1.0
    assert asked((1.0, False), (2.0, True)) == 1.0
    assert asked((None, False), (2.0, True)) == 2.0


def test_a_question_that_was_not_answered_is_missing_among_the_times() -> None:
    answered = [result(f"q{n}", {}, latency=1.0, tags=("t",)) for n in range(9)]
    slow = result("slow", {}, outcome="failed", kind="quality", latency=3.0)
    lost = result("lost", {}, outcome="error", kind="endpoint")
    verdict = gate("latency p95 <= 4", [*answered, slow, lost], max_unscored=0.1)
    assert (verdict.outcome, verdict.n_scored, verdict.n_total) == ("PASS", 10, 11)
    assert "1 of 11 left out, without a score: 1 endpoint" in verdict.reason
    assert gate("latency[tag=t] p95 <= 4", [*answered, slow, lost]).n_total == 9
    # Where no answer was timed, the gate says that nothing was measured.
    assert "no score of latency" in gate("latency p95 <= 4", [lost]).reason


def test_only_relevant_documents_that_are_shared_make_clusters() -> None:
    def clusters(*samples: dict[str, Any]) -> int | None:
        results = [
            result(f"q{n}", {"faithfulness": n / 10}, **sample) for n, sample in enumerate((*samples, {}))
        ]
        return gate("faithfulness >= 0.5", results).n_clusters

    assert clusters({"relevant_ids": {"a": 1.0}}, {"relevant_ids": {"a": 2.0, "b": 1.0}}) == 2
    assert clusters({"relevant_ids": {"a": 1.0}}, {"relevant_ids": {"b": 1.0}}) is None
    assert clusters({"relevant_ids": {"a": 1.0}}, {"relevant_ids": {"a": 0.0}}) is None
    shared = {"relevant_ids": {"a": 1.0}}
    assert clusters({**shared, "cluster": "one"}, {**shared, "cluster": "two"}) is None
    assert clusters({"cluster": "a"}, {"cluster": "a"}, shared) == 3


def test_a_call_that_gave_two_grades_is_paid_once() -> None:
    def bill(*scores: ScoreRecord) -> TestRecord:
        return replace(result("q0", {}), scores=scores)

    one = ScoreRecord(
        metric="search_rag_answer_correctness", tier="generation", sample=0, value=1.0, judge="j",
        usage=Usage(1, cost=0.1), duration=0.5,
    )  # fmt: skip
    other = replace(one, metric="search_rag_groundedness")
    assert gate("cost <= 1", [bill(one, other)]).value == pytest.approx(0.1)
    assert gate("cost <= 1", [bill(one, replace(other, duration=0.6))]).value == pytest.approx(0.2)
    stored = replace(one, usage=Usage(0, cost=5.0))
    assert gate("cost <= 1", [bill(one, stored)]).value == pytest.approx(0.1)
    verdict = gate("cost <= 1", [bill(one, replace(one, judge="b", usage=Usage(1))), bill(stored)])
    assert (verdict.outcome, verdict.broken) == ("UNDECIDED", True)
    assert verdict.reason.startswith("no price is known for b, so")
    embedded = replace(one, judge=None, embedder="e", usage=Usage(1))
    assert "for e, so" in gate("cost <= 1", [bill(embedded)]).reason
    nothing = gate("cost <= 1", [bill(stored)])
    assert (nothing.outcome, nothing.broken) == ("UNDECIDED", False)


def whole(value: float | None, details: dict[str, Any], error: ErrorRecord | None = None) -> TestRecord:
    """A test of a set of three questions."""
    score = ScoreRecord(metric="mrr", tier="retrieval", value=value, error=error, details=details)
    questions = tuple(QuestionRecord(id=f"q{n}", question=f"{n}?") for n in range(3))
    return TestRecord(test="test_a.py::test_all", outcome="passed", questions=questions, scores=(score,))


def test_a_set_without_a_value_has_none_for_any_of_its_questions() -> None:
    verdict = gate("mrr mean >= 0.5", [whole(None, {}, ErrorRecord(type="EndpointError", code="endpoint"))])
    assert (verdict.n_scored, verdict.n_total) == (0, 3)
    assert "3 endpoint" in verdict.reason
    # A value without its parts is one score, of the set's first question.
    assert gate("mrr mean >= 0.4", [whole(0.5, {})]).n_total == 1
    strange = {"values": {"q0": 1.0, "q1": True, "q2": "0.5", "q9": 0.0}}
    found = Observations([whole(0.5, strange)]).sample(parse_rule("mrr >= 0.5"))
    assert {key[0]: value for key, value in found.values.items()} == {"q0": 1.0, "q9": 0.0}
    assert {key[0]: why for key, why in found.unscored.items()} == {"q1": "no score", "q2": "no score"}


def test_undefined_in_a_set_is_not_failed() -> None:
    details = {
        "values": {"q0": 1.0},
        "unscored": {"q1": "no_claims", "q2": "timeout"},
        "undefined": ["q1"],
    }
    found = Observations([whole(1.0, details)]).sample(parse_rule("mrr >= 0.5"))
    assert {key[0] for key in found.undefined} == {"q1"}
    assert set(found.unscored.values()) == {"no_claims", "timeout"}


def undefined(name: str, **more: Any) -> TestRecord:
    """An answer without claims."""
    found = result(name, {"faithfulness": None}, outcome="error", kind="undefined", **more)
    error = ErrorRecord(type="UndefinedScore", code="no_claims")
    return replace(found, scores=(replace(found.scores[0], error=error),))


def test_what_is_undefined_in_one_test_and_scored_in_another_has_a_score() -> None:
    both = [*run([1.0] * 5), undefined("q0", test="test_a.py::test_two"), undefined("r")]
    sample = Observations(both).sample(parse_rule(SCORED))
    assert (len(sample.values), {key[0] for key in sample.undefined}) == (5, {"r"})
    [same] = paired(both, both)
    assert "over 5 questions, 0 of them changed, 1 more without a value in both" in same.reason
    # One failed call is enough: asked again, it may have claims.
    failed = [undefined("r"), result("r", {"faithfulness": None}, test="test_a.py::test_two")]
    assert not Observations(failed).sample(parse_rule(SCORED)).undefined


def test_of_a_question_all_assertions_have_to_hold() -> None:
    def rates(*results: TestRecord) -> tuple[float | None, int]:
        verdict = gate("pass_rate >= 0.5", results, max_unscored=1.0)
        return verdict.value, verdict.n_scored

    good, bad = (result("q", {"faithfulness": value}, limit=0.5) for value in (1.0, 0.0))
    assert rates(result("q", {"faithfulness": 1.0, "mrr": 0.0}, limit=0.5)) == (0.0, 1)
    # Of one that was asserted several times each time is a vote.
    assert rates(good, bad, good, good) == (0.75, 1)
    assert rates(good, good, result("q", {"mrr": 0.0}, limit=0.5)) == (0.0, 1)
    # What is missing leaves a question that holds so far without a verdict, and does not mend one that failed.
    lost = result("q", {"mrr": None})
    assert rates(good, lost) == (None, 0)
    assert rates(bad, lost) == (0.0, 1)
    assert rates(result("q", {"faithfulness": 1.0})) == (None, 0)
    assert rates(good, result("q", {"bleu": 1.0})) == (1.0, 1)


def test_an_error_of_ours_counts_once_for_a_question() -> None:
    results = [
        *run([1.0] * 6),
        result("q0", {"mrr": None}),
        result("bad", {"faithfulness": 1.0, "mrr": None}),
        result("early", {}, outcome="failed", test="test_a.py::test_other"),
        result("skipped", {}, outcome="skipped"),
        result("q1", {}, outcome="skipped"),
    ]
    verdict = gate("error_rate <= 0.5", results, max_unscored=0.5)
    assert (verdict.n_scored, verdict.n_total) == (8, 9)
    assert verdict.value == 2 / 8


def voted(name: str, passed: int, votes: Sequence[float], **more: Any) -> TestRecord:
    found = result(name, {"faithfulness": float(passed > 2)}, limit=0.5, **more)
    details = {"votes": list(votes), "votes_passed": passed}
    return replace(found, scores=(replace(found.scores[0], details=details),))


def test_votes_of_several_tests_add_up() -> None:
    results = [voted("q", 4, [1.0] * 5), voted("q", 1, [1.0] * 3, test="test_a.py::test_two")]
    [votes] = Observations(results).sample(parse_rule(SCORED)).votes.values()
    assert votes == (5, 8)
    # Neither scores without votes nor a list of that name in another metric's details.
    other = result("q", {"faithfulness": 1.0})
    other = replace(other, scores=(replace(other.scores[0], details={"votes": [1.0, 0.0]}),))
    assert not Observations([*run([1.0]), other]).sample(parse_rule(SCORED)).votes


def test_who_scored_pass_rates_is_compared_too() -> None:
    old = run([1.0] * 10, limit=0.5)
    new = run([1.0] * 10, limit=0.5, judge="openai:other")
    [verdict] = paired(new, old, "pass_rate no worse than baseline")
    assert verdict.outcome == "UNDECIDED"
    assert "the judge was scripted and is openai:other" in verdict.reason
    embedded = [
        replace(each, scores=(replace(each.scores[0], judge=None, embedder="e"),)) for each in (*old, *new)
    ]
    moved = [replace(each, scores=(replace(each.scores[0], embedder="f"),)) for each in embedded[:10]]
    [verdict] = paired(moved, embedded[:10])
    assert (verdict.outcome, "the embedder was e and is f" in verdict.reason) == ("UNDECIDED", True)
