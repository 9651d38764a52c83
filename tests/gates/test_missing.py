"""The denominator is what was collected: questions that were not run, or not to their end, are missing."""

from __future__ import annotations

import pytest

from pytest_ragbench.model.tests import Outcome, QuestionRecord, TestRecord
from tests.gates.runs import gate, result, run


def missing(
    name: str,
    outcome: Outcome = "deselected",
    *,
    metrics: tuple[str, ...] = (),
    test: str = "test_a.py::test_it",
) -> TestRecord:
    question = QuestionRecord(id=name, question=f"What is {name}?", tags=("x",) if name > "x" else ())
    return TestRecord(test=f"{test}[{name}]", outcome=outcome, questions=(question,), metrics=metrics)


NOT_RUN: tuple[Outcome, ...] = ("skipped", "xfailed", "deselected", "crashed", "not_run", "error")


@pytest.mark.parametrize("outcome", NOT_RUN)
@pytest.mark.parametrize("metrics", [(), ("faithfulness",), ("*",)], ids=["as others", "named", "not known"])
def test_what_was_not_run_is_missing(outcome: Outcome, metrics: tuple[str, ...]) -> None:
    results = [*run([1.0] * 40, limit=0.5), *(missing(f"m{n}", outcome, metrics=metrics) for n in range(20))]
    for rule in ("faithfulness >= 0.8", "pass_rate >= 0.5", "error_rate <= 0.1", "faithfulness mean >= 0.5"):
        verdict = gate(rule, results)
        assert (verdict.outcome, verdict.broken, verdict.n_total) == ("UNDECIDED", True, 60), rule
    said = {"not_run": "never ran", "error": "ended by an error of the test's own"}.get(outcome, outcome)
    assert f"20 of 60 questions have no score (20 {said})" in gate("faithfulness >= 0.8", results).reason


def test_few_that_are_missing_are_said() -> None:
    results = [*run([1.0] * 59), missing("m", "skipped")]
    verdict = gate("faithfulness >= 0.8", results)
    assert (verdict.outcome, verdict.n_scored, verdict.n_total) == ("PASS", 59, 60)
    assert "1 of 60 left out, without a score: 1 skipped" in verdict.reason


def test_exactly_the_share_that_may_be_missing_is_not_too_much() -> None:
    results = [*run([1.0] * 57), *(missing(f"m{n}", "skipped") for n in range(3))]  # 3 of 60 are 5 %
    assert gate("faithfulness >= 0.8", results).outcome == "PASS"
    assert gate("faithfulness >= 0.8", [*results, missing("m", "skipped")]).broken
    assert gate("faithfulness >= 0.8", results, max_unscored=0.04).broken


def test_a_test_of_which_none_was_run_is_missing_by_its_source() -> None:
    results = [*run([1.0] * 20), missing("m", test="test_a.py::test_other", metrics=("mrr", "bleu"))]
    assert gate("mrr >= 0.5", results).n_total == 1
    assert gate("faithfulness >= 0.8", results).outcome == "PASS"
    assert gate("pass_rate[tier=retrieval] >= 0.5", results).n_total == 1


def test_what_was_asked_elsewhere_is_not_missing() -> None:
    results = [*run([1.0] * 30), missing("q3", test="test_a.py::test_again", metrics=("faithfulness",))]
    assert (gate("faithfulness >= 0.8", results).outcome, gate("faithfulness >= 0.8", results).n_total) == (
        "PASS",
        30,
    )


def test_a_partial_run_passes_no_gate_of_the_whole() -> None:
    results = [*run([1.0] * 99, tags=("t",)), missing("m")]
    verdict = gate("faithfulness >= 0.8", results)
    assert (verdict.outcome, verdict.broken) == ("UNDECIDED", True)
    assert "the run is partial (1 question deselected)" in verdict.reason
    assert gate("faithfulness[tag=t] >= 0.8", results).outcome == "PASS"
    other = {"not_chosen": ("test_b.py",)}
    assert (
        "the run is partial (not chosen: test_b.py)"
        in gate("faithfulness >= 0.8", run([1.0] * 99), **other).reason
    )
    assert gate("faithfulness[tag=t] >= 0.8", run([1.0] * 99, tags=("t",)), **other).outcome == "PASS"
    assert gate("faithfulness >= 0.8", run([0.0] * 99), **other).outcome == "FAIL"


@pytest.mark.parametrize("outcome", NOT_RUN)
def test_a_question_that_must_pass_and_was_not_run_fails(outcome: Outcome) -> None:
    marked = QuestionRecord(id="x", question="Is it?", must_pass=True)
    lost = TestRecord(test="test_a.py::test_it[x]", outcome=outcome, questions=(marked,))
    results = [
        *run([1.0] * 99, limit=0.5),
        result("y", {"faithfulness": 1.0}, limit=0.5, must_pass=True),
        lost,
    ]
    verdict = gate("must_pass", results)
    assert verdict.outcome == "FAIL"
    assert verdict.reason.startswith("1 of 2 have no verdict: x (")
