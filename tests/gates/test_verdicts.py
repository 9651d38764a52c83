"""What a gate says of made-up runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.gates.baseline import Baseline, compare_all
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import Rule, parse_rule
from pytest_ragbench.gates.verdicts import Conditions, Verdict, evaluate, exit_code_of
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.scores import Usage
from pytest_ragbench.model.tests import ErrorRecord, QuestionRecord, ScoreRecord, SetupRecord, TestRecord
from pytest_ragbench.model.thresholds import Scale
from pytest_ragbench.report.earlier import read_baseline
from tests.gates.runs import RULE_4, gate, paired, report, result, run

SPREAD = [1.0, 0.9, 0.8, 1.0, 0.7]


def outcome(text: str, values: Sequence[float | None], **conditions: Any) -> str:
    return gate(text, run(values), **conditions).outcome


@pytest.mark.parametrize(
    ("text", "values", "wanted"),
    [
        ("faithfulness >= 0.85", [1.0] * 19, "PASS"),
        ("faithfulness >= 0.85", [1.0] * 18, "UNDECIDED"),
        ("faithfulness >= 0.85", [0.0] * 50, "FAIL"),
        ("faithfulness >= 0.85", [1.0], "UNDECIDED"),
        ("faithfulness >= 0.85", [0.0], "UNDECIDED"),
        ("faithfulness >= 0.85", [0.86] * 257, "PASS"),
        ("faithfulness >= 0.85", [0.86] * 19, "UNDECIDED"),
        ("faithfulness >= 0.85", [0.84] * 50, "FAIL"),
        ("faithfulness >= 0.85", [0.84] * 2, "UNDECIDED"),
        ("faithfulness >= 0.5", [0.1] * 10, "FAIL"),
        ("faithfulness >= 0.95 with 95% confidence", [1.0] * 94 + [2 / 3] * 4 + [0.0], "FAIL"),
        ("faithfulness >= 0.95 with 95% confidence", [1.0] * 94 + [2 / 3] * 5 + [0.0], "FAIL"),
        ("faithfulness >= 0.85", [0.0, None] + [1.0] * 48, "PASS"),
        ("faithfulness >= 0.85 with 95% confidence", [1.0], "FAIL"),
        ("faithfulness >= 0.85 with 95% confidence", [0.0] * 50, "FAIL"),
        ("faithfulness mean >= 0.85", [0.0], "FAIL"),
        ("faithfulness mean >= 0.85", [1.0], "PASS"),
        ("faithfulness >= 0.86", SPREAD * 10, "UNDECIDED"),
        ("faithfulness >= 0.80", SPREAD * 10, "PASS"),
        ("faithfulness >= 0.95", SPREAD * 10, "FAIL"),
        ("faithfulness >= 0.85 with 95% confidence", [1.0] * 19, "PASS"),
        ("faithfulness >= 0.85 with 95% confidence", [1.0] * 18, "FAIL"),
        ("faithfulness >= 0.86 with 95% confidence", SPREAD * 10, "FAIL"),
        ("faithfulness mean >= 0.85", SPREAD * 10, "PASS"),
        ("faithfulness mean >= 0.88", [0.8799999999999999] * 3, "PASS"),
        ("faithfulness mean >= 0.89", SPREAD * 10, "FAIL"),
        ("faithfulness p10 >= 0.7", SPREAD * 10, "PASS"),
        ("faithfulness min >= 0.8", SPREAD * 10, "FAIL"),
        ("faithfulness p10 >= 0.7 with 95% confidence", [0.7] * 29, "PASS"),
        ("faithfulness p10 >= 0.7 with 95% confidence", [0.7] * 28, "FAIL"),
        ("faithfulness median >= 0.85", SPREAD * 10, "PASS"),
    ],
)
def test_rules_on_one_run(text: str, values: list[float | None], wanted: str) -> None:
    assert outcome(text, values) == wanted


def test_an_undecided_gate_says_what_would_settle_it() -> None:
    verdict = gate("faithfulness >= 0.86", run(SPREAD * 10))
    assert verdict.outcome == "UNDECIDED"
    assert verdict.value == pytest.approx(0.88)
    # ((1.645 + .842) * .1178 / .02)² = 215, of which there are 50
    assert verdict.more == 170
    assert "mean 0.88 over 50 questions" in verdict.reason
    assert "about 170 more questions would settle it" in verdict.reason
    close = gate("faithfulness >= 0.8795", run(SPREAD * 10))
    assert "it would take thousands of questions more to settle it" in close.reason
    almost = gate("faithfulness >= 0.85", run([1.0] * 18))
    assert almost.more == 1
    assert gate("faithfulness >= 0.88", run(SPREAD * 10)).more is None


def test_a_release_rule_names_the_headroom_that_is_missing() -> None:
    verdict = gate("faithfulness >= 0.9 with 95% confidence", run([1.0] * 47 + [0.0] * 3))
    assert verdict.outcome == "FAIL"
    assert "only at least 0.852 can be vouched for, 0.048 short" in verdict.reason


def test_lower_is_better() -> None:
    values = [0.1, 0.0, 0.2, 0.05]
    assert gate("noise_sensitivity <= 0.2", run(values * 10, "noise_sensitivity")).outcome == "PASS"
    assert gate("noise_sensitivity <= 0.05", run(values * 10, "noise_sensitivity")).outcome == "FAIL"
    assert gate("noise_sensitivity <= 0.09", run(values * 10, "noise_sensitivity")).outcome == "UNDECIDED"
    assert gate("noise_sensitivity <= 0.1", run([0.0] * 29, "noise_sensitivity")).outcome == "PASS"
    assert gate("noise_sensitivity <= 0.1", run([0.0] * 28, "noise_sensitivity")).outcome == "UNDECIDED"
    assert gate("noise_sensitivity <= 0.1", run([1.0] * 28, "noise_sensitivity")).outcome == "FAIL"


@pytest.mark.parametrize("text", ["faithfulness >= 0.5", "faithfulness >= 0.5 with 95% confidence", RULE_4])
@pytest.mark.parametrize(
    "values",
    [[], [None] * 20, [math.nan] * 20, [1.0] * 47 + [None] * 3],
    ids=["none", "errors", "nan", "6 %"],
)
def test_what_has_no_score_never_passes(text: str, values: list[float | None]) -> None:
    verdict = gate(text, run(values), baseline=Baseline(Observations(run([1.0] * 50))))
    assert (verdict.outcome, verdict.broken) == ("UNDECIDED", True)


def test_few_judge_errors_are_left_out_and_counted() -> None:
    verdict = gate("faithfulness >= 0.85", run([1.0] * 48 + [None] * 2))
    assert (verdict.outcome, verdict.n_scored, verdict.n_total) == ("PASS", 48, 50)
    assert "2 of 50 left out" in verdict.reason
    assert outcome("faithfulness >= 0.85", [1.0] * 48 + [None] * 2, max_unscored=0.01) == "UNDECIDED"
    assert outcome("faithfulness >= 0.85", [1.0] * 40 + [None] * 10, max_unscored=0.5) == "PASS"


def test_what_a_test_did_not_come_to_is_missing() -> None:
    """The first assertion fails in every fifth test, so the second is never made there."""
    results = [
        result(f"q{n}", {"faithfulness": 0.2}, outcome="failed", kind="quality", limit=0.8)
        if n % 5 == 0
        else result(f"q{n}", {"faithfulness": 0.9 + n / 1000, "answer_relevancy": 1.0}, limit=0.8)
        for n in range(50)
    ]
    verdict = gate("answer_relevancy >= 0.8", results)
    assert (verdict.outcome, verdict.broken, verdict.n_total) == ("UNDECIDED", True, 50)
    assert "assert_quality" in verdict.reason
    assert gate("faithfulness >= 0.5", results).n_total == 50


def test_a_request_that_failed_counts_for_every_metric_of_its_test() -> None:
    results = run([1.0] * 18)
    lost = [replace(result(f"x{n}", {}, outcome="error", kind="endpoint"), samples=()) for n in range(2)]
    verdict = gate("faithfulness >= 0.5", [*results, *lost])
    assert (verdict.n_scored, verdict.n_total, verdict.broken) == (18, 20, True)
    assert gate("error_rate <= 0.05", [*results, *lost]).value == pytest.approx(0.1)


def test_a_run_that_is_not_complete_passes_nothing() -> None:
    verdict = gate("faithfulness >= 0.5", run([1.0] * 50), complete=False)
    assert (verdict.outcome, verdict.broken) == ("UNDECIDED", True)
    assert outcome("faithfulness >= 0.5", [0.0] * 50, complete=False) == "FAIL"


def test_one_question_scored_several_times_is_one_question() -> None:
    verdict = gate("faithfulness mean >= 0.5", [*run([1.0, 0.0]), *run([0.0, 0.0])])
    assert (verdict.value, verdict.n_scored) == (0.25, 2)


def test_clusters() -> None:
    values = [1.0, 1.0, 1.0, 0.4, 0.5, 0.4, 1.0, 0.9, 1.0] * 4
    results = [
        result(f"q{n}", {"faithfulness": value}, cluster=f"document {n // 3 % 3}")
        for n, value in enumerate(values)
    ]
    assert gate("faithfulness >= 0.7", results).outcome == "UNDECIDED"
    assert gate("faithfulness >= 0.7", results).n_clusters == 3
    assert gate("faithfulness >= 0.65", results).outcome == "UNDECIDED"
    assert gate("faithfulness >= 0.65", results, clusters=False).outcome == "PASS"
    shared = [result(f"q{n}", {"faithfulness": v}, relevant_ids={"d": 1.0}) for n, v in enumerate(values)]
    alone = gate("faithfulness >= 0.7", shared)
    assert alone.n_clusters == 1
    assert alone.bounds is not None
    assert alone.bounds.n_effective == 1


def test_subsets() -> None:
    results = [
        result(
            "q0", {"faithfulness": 0.1}, text="Сколько дней на возврат?", tags=["refunds"], file="a/ru.csv"
        ),
        result("q1", {"faithfulness": 0.9}, text="返品できますか？", tags=["refunds", "ja"], file="a/ja.csv"),
        result("q2", {"faithfulness": 0.8}, text="How long?", lang="en", file="en.csv"),
    ]

    def value(subset: str) -> float | None:
        return gate(f"faithfulness[{subset}] mean >= 0.5", results).value

    assert value("lang=ru") == 0.1
    assert value("lang=ja") == 0.9
    assert value("lang=ru|en") == pytest.approx(0.45)
    assert value("tag=refunds") == pytest.approx(0.5)
    assert value("tag=refunds,lang=ja") == 0.9
    assert value("file=ja.csv") == 0.9
    assert value("tier=generation") == pytest.approx(0.6)
    assert gate("faithfulness[lang=fr] mean >= 0.5", results).broken


def test_pass_rate_and_must_pass() -> None:
    results = [result(f"q{n}", {"faithfulness": n / 10}, limit=0.3, must_pass=n > 7) for n in range(10)]
    assert gate("pass_rate >= 0.5", results).value == 0.7
    assert gate("faithfulness pass_rate >= 0.7", results).value == 0.7
    assert gate("must_pass", results).outcome == "PASS"
    failing = [*results, result("x", {"faithfulness": 0.1}, limit=0.3, must_pass=True)]
    verdict = gate("must_pass", failing)
    assert (verdict.outcome, verdict.reason) == ("FAIL", "1 of 3 questions that must pass did not: x")
    unscored = [*results, result("x", {"faithfulness": None}, must_pass=True)]
    assert gate("must_pass", unscored).outcome == "FAIL"
    assert gate("must_pass", unscored).reason == "1 of 3 have no verdict: x (timeout)"
    assert gate("must_pass", run([1.0])).broken


def test_a_pass_rate_has_clopper_pearson_bounds() -> None:
    results = [result(f"q{n}", {"faithfulness": float(n >= 3)}, limit=0.5) for n in range(50)]
    verdict = gate("pass_rate >= 0.85 with 95% confidence", results)
    assert verdict.outcome == "PASS"
    assert verdict.bounds is not None
    assert verdict.bounds.method == "Clopper-Pearson"
    assert verdict.bounds.low == pytest.approx(0.852163, abs=1e-6)


def test_latency_cost_and_error_rate() -> None:
    results = [result(f"q{n}", {"faithfulness": 1.0}, latency=0.1 * (n + 1)) for n in range(20)]
    assert gate("latency p95 <= 1.9", results).value == pytest.approx(1.9)
    assert gate("latency p95 <= 1.8", results).outcome == "FAIL"
    assert gate("latency mean <= 1.5", results).outcome == "PASS"
    streamed = [result(f"q{n}", {}, latency=1.0, first_token=0.1 * (n + 1)) for n in range(20)]
    assert gate("first_token p95 <= 1.9", streamed).value == pytest.approx(1.9)
    assert gate("first_token p95 <= 1.9", results).value is None
    assert gate("error_rate <= 0.02", results).outcome == "PASS"
    assert (gate("cost <= 1", results).outcome, gate("cost <= 1", results).broken) == ("UNDECIDED", True)
    paid = [replace(each.scores[0], usage=Usage(1, cost=0.01)) for each in results]
    results = [replace(each, scores=(score,)) for each, score in zip(results, paid, strict=True)]
    assert gate("cost <= 0.2", results).value == pytest.approx(0.2)
    assert gate("cost <= 0.1", results).outcome == "FAIL"


def test_scores_of_whole_sets_count_question_by_question() -> None:
    details = {"values": {f"q{n}": n / 3 for n in range(3)}, "unscored": {"q3": "endpoint"}}
    score = ScoreRecord(metric="ndcg@10", tier="retrieval", value=0.5, passed=True, details=details)
    questions = [
        QuestionRecord(id=f"q{n}", question=f"{n}?", tags=("odd",) if n % 2 else ()) for n in range(4)
    ]
    whole = TestRecord(
        test="test_a.py::test_all", outcome="passed", questions=tuple(questions), scores=(score,)
    )
    verdict = gate("ndcg@10 mean >= 0.2", [whole], max_unscored=0.3)
    assert (verdict.n_scored, verdict.n_total) == (3, 4)
    assert verdict.value == pytest.approx(1 / 3)
    assert gate("ndcg@10[tag=odd] mean >= 0.2", [whole], max_unscored=0.5).value == pytest.approx(1 / 3)


# --- against a baseline -------------------------------------------------------------------------


def test_rule_4() -> None:
    old = run([0.9, 0.8, 1.0, 0.7, 0.95, 0.85, 0.9, 0.6, 1.0, 0.9])
    new = run([0.85, 0.8, 0.9, 0.7, 0.9, 0.8, 0.9, 0.65, 0.95, 0.85])
    [same] = paired(old, old)
    assert (same.outcome, same.p) == ("PASS", 1.0)
    [worse] = paired(new, old)
    assert (worse.outcome, worse.p) == ("PASS", 7 / 128)  # 0.030 worse, p = .0547
    assert "which chance may explain" in worse.reason
    [much] = paired(run([0.5] * 10), old)
    assert much.outcome == "FAIL"
    [few] = paired(run([0.1, 0.1, 0.1, 0.1, 0.95, 0.85, 0.9, 0.6, 1.0, 0.9]), old)
    assert (few.outcome, few.broken) == ("UNDECIDED", False)
    [better] = paired(run([1.0] * 10), old)
    assert better.outcome == "PASS"


def test_pass_or_fail_scores_are_compared_by_mcnemar() -> None:
    old = run([1.0] * 10 + [0.0] + [1.0] * 9, "exact_match")
    new = run([0.0] * 10 + [1.0] + [1.0] * 9, "exact_match")
    [verdict] = paired(new, old, "exact_match no worse than baseline")
    assert verdict.outcome == "FAIL"
    assert verdict.p == pytest.approx(0.005859, abs=1e-6)
    assert verdict.comparison is not None
    assert verdict.comparison.method == "McNemar"


def test_regression_rules_share_their_error() -> None:
    """One p of .031 fails alone, and not among two."""
    old, new = run([0.9] * 20), run([0.8] * 5 + [0.9] * 15)
    both_old = [*old, *run([0.9] * 20, "answer_relevancy")]
    both_new = [*new, *run([0.9] * 20, "answer_relevancy")]
    rules = ("faithfulness no worse than baseline", "answer_relevancy no worse than baseline")
    assert [verdict.outcome for verdict in paired(new, old, rules[0])] == ["FAIL"]
    verdicts = paired(both_new, both_old, *rules)
    assert [verdict.outcome for verdict in verdicts] == ["PASS", "PASS"]
    assert verdicts[0].p_holm == 0.0625


def test_a_question_added_or_dropped_leaves_the_others_comparable() -> None:
    old = run([0.9] * 10)
    for new, said in (
        (run([0.9] * 11), "1 question added (q10)"),
        (run([0.9] * 8), "2 questions dropped (q8, q9)"),
        (
            [result("q0", {"faithfulness": 0.9}, text="Something else?"), *run([0.9] * 10)[1:]],
            "1 question reworded (q0)",
        ),
    ):
        [verdict] = paired(new, old)
        assert verdict.comparison is not None
        assert (verdict.outcome, verdict.comparison.notes) == ("PASS", (said,))
    # The drop of the others is seen, whatever the new question came to.
    [worse] = paired(run([0.5] * 10 + [1.0]), old)
    assert (worse.outcome, worse.p) == ("FAIL", 1 / 1024)
    # 3 of 13 are more than a fifth, 2 of 12 are not.
    [many] = paired(run([0.5] * 13), old)
    assert (many.outcome, many.broken) == ("UNDECIDED", False)
    assert "3 questions added (q10, q11, q12); more than 20% are scored in one run only" in many.reason
    assert paired(run([0.5] * 12), old)[0].outcome == "FAIL"
    [allowed] = evaluate(
        [parse_rule(RULE_4)],
        Observations(run([0.5] * 13)),
        Conditions(baseline=Baseline(Observations(old)), max_unpaired=0.3),
    )
    assert allowed.outcome == "FAIL"


def test_a_question_whose_id_changed_is_found_by_its_text() -> None:
    old = run([0.9] * 10)
    renamed = [result("new name", {"faithfulness": 0.9}, text="What is q0?"), *run([0.9] * 10)[1:]]
    [verdict] = paired(renamed, old)
    assert verdict.outcome == "PASS"
    assert verdict.comparison is not None
    assert verdict.comparison.notes == ("1 question renamed (new name)",)


def test_questions_that_failed_are_not_called_added() -> None:
    failed = [result(f"q{n}", {"faithfulness": None}, outcome="error", kind="judge") for n in range(2)]
    early = [result("q2", {}, outcome="error", kind="endpoint", test="test_a.py::test_other")]
    whole = run([0.9] * 10)
    [verdict] = paired(whole, [*failed, *early, *whole[3:]])
    assert verdict.comparison is not None
    assert verdict.comparison.differences == (
        "2 questions without a score in the baseline (timeout) (q0, q1), 1 question without a score in the baseline "
        "(the service failed) (q2); more than 20% are scored in one run only",
    )


def refusals(values: Sequence[float], n: int = 4) -> list[TestRecord]:
    """Answers of which the last ``n`` are refusals without claims."""
    error = ErrorRecord(type="UndefinedScore", code="no_claims")
    records = [
        result(f"r{place}", {"faithfulness": None}, outcome="error", kind="undefined") for place in range(n)
    ]
    return [
        *run(values),
        *(replace(each, scores=(replace(each.scores[0], error=error),)) for each in records),
    ]


def test_refusals_without_claims_in_both_runs_are_equal_and_not_missing() -> None:
    good = refusals([1.0] * 8)
    [same] = paired(good, good)
    assert (same.outcome, same.broken) == ("PASS", False)
    assert "8 questions, 0 of them changed, 4 more without a value in both" in same.reason
    [fallen] = paired(refusals([0.0] * 8), good)
    assert (fallen.outcome, fallen.p) == ("FAIL", 1 / 256)
    # One that is a refusal in one of the runs only has no score there.
    [more] = paired(refusals([1.0] * 4, 8), good)
    assert (more.outcome, more.broken) == ("UNDECIDED", True)
    assert "on_no_claims" in more.reason
    # A judge that is down in both is no such answer.
    down = [*run([1.0] * 8), *run([None] * 12)[8:]]
    assert paired(down, down)[0].broken


def test_samples_without_an_id_and_with_one_text_stay_apart() -> None:
    def unnamed(values: Sequence[float], test: str = "test_a.py::test_it") -> list[TestRecord]:
        found = [
            result(f"{n}", {"faithfulness": value}, text="What?", test=test) for n, value in enumerate(values)
        ]
        return [replace(each, samples=(replace(each.samples[0], id=None),)) for each in found]

    verdict = gate("faithfulness mean >= 0.5", unnamed([1.0, 0.0, 0.2]))
    assert verdict.n_scored == 3
    assert verdict.value == pytest.approx(0.4)
    # The same sample in two tests is one question, and so is a rerun.
    assert (
        gate("faithfulness mean >= 0.5", [*unnamed([1.0]), *unnamed([0.0], "test_a.py::test_two")]).n_scored
        == 1
    )
    [found] = compare_all(
        Baseline(Observations(unnamed([0.1, 1.0]))), Baseline(Observations(unnamed([0.9, 1.0])))
    )
    assert (found.n_changed, found.notes) == (1, ())
    # What stands for the missing id comes from the test's parameters: nobody renamed the question.
    runs = [unnamed([value], f"test_a.py::test_it[{place}]") for value, place in ((0.1, "a"), (0.9, "b"))]
    [found] = compare_all(*(Baseline(Observations(each)) for each in runs))
    assert (found.n_changed, found.notes) == (1, ())


def test_too_few_questions_are_said_in_words() -> None:
    [found] = compare_all(Baseline(Observations(run([1.0, 0.5]))), Baseline(Observations(run([0.0, 0.5]))))
    assert "0.500 better, over 2 questions, 1 of them changed; too few questions to tell" in next(
        found.lines()
    )
    [found] = compare_all(Baseline(Observations(run([0.9] * 6))), Baseline(Observations(run([0.5] * 6))))
    assert "better, over 6 questions, 6 of them changed; p 0.016 (sign flips)" in next(found.lines())
    [better] = paired(run([1.0]), run([0.0]))
    assert (better.outcome, "p 1.000" in better.reason) == ("PASS", False)


def configured(values: Sequence[float], *answered: str, **setup: Any) -> Observations:
    return Observations(set_up(values, *answered, **setup))


def set_up(values: Sequence[float], *answered: str, **setup: Any) -> list[TestRecord]:
    """Scores with what was configured; who answered takes turns."""
    made = SetupRecord(**{"low": 0.0, "high": 1.0, "judge": "grader", **setup})
    records = [
        result(f"q{n}", {"m": value}, judge=answered[n % len(answered)] if answered else "grader")
        for n, value in enumerate(values)
    ]
    return [replace(each, scores=(replace(each.scores[0], setup=made),)) for each in records]


@pytest.mark.parametrize(
    ("new", "old", "said"),
    [
        ({"judge": "b"}, {"judge": "a"}, "the judge was a and is b"),
        ({"embedder": "b"}, {"embedder": "a"}, "the embedder was a and is b"),
        ({"options": {"mode": '"x"'}}, {}, 'the option mode was unset and is "x"'),
        ({"direction": "lower"}, {}, "what is better was higher and is lower"),
        ({"high": 5.0}, {}, "the range was 0..1 and is 0..5"),
        ({"judge": None}, {}, ""),
    ],
)
def test_what_was_configured_makes_runs_comparable(new: Any, old: Any, said: str) -> None:
    rule = Rule("m no worse than baseline", "m", "baseline", Scale("m"))
    [verdict] = evaluate(
        [rule], configured([0.5] * 8, **new), Conditions(baseline=Baseline(configured([0.5] * 8, **old)))
    )
    assert (verdict.outcome, said in verdict.reason) == ("UNDECIDED" if said else "PASS", True)


def test_who_answered_does_not_make_runs_incomparable() -> None:
    cascade = "grader, near the threshold strict (within 0.1)"
    old = configured([0.9] * 8, "grader", judge=cascade)
    new = configured([0.7] * 8, "grader", "strict, after grader", judge=cascade)
    rule = Rule("m no worse than baseline", "m", "baseline", Scale("m"))
    [verdict] = evaluate([rule], new, Conditions(baseline=Baseline(old)))
    assert (verdict.outcome, verdict.p) == ("FAIL", 1 / 256)


def test_which_way_is_better_comes_with_the_scores() -> None:
    old, new = (configured([value] * 8, direction="lower") for value in (0.3, 0.5))
    rule = Rule("m no worse than baseline", "m", "baseline", Scale("m"))
    [verdict] = evaluate([rule], new, Conditions(baseline=Baseline(old)))
    assert (verdict.outcome, "0.200 worse" in verdict.reason) == ("FAIL", True)
    [found] = compare_all(Baseline(new), Baseline(old))
    assert "0.200 worse" in next(found.lines())
    # An earlier version's report does not say it, and nothing is guessed.
    [found] = compare_all(*(Baseline(Observations(run([value] * 8, "m"))) for value in (0.5, 0.3)))
    lines = list(found.lines())
    assert lines[0] == "m: 0.500 after 0.300, 0.200 higher, over 8 questions, 8 of them changed"
    assert "which way m is better is in neither report" in lines[1]
    mixed = Observations([*set_up([1.0]), *set_up([0.0], direction="lower")])
    [verdict] = evaluate([rule], mixed, Conditions(baseline=Baseline(old)))
    assert (verdict.outcome, verdict.broken) == ("UNDECIDED", True)


def test_another_judge_prompt_or_embedder_is_not_comparable() -> None:
    old = Observations(run([0.9] * 10))
    other = Observations(run([0.9] * 10, judge="openai:other"))
    [verdict] = evaluate([parse_rule(RULE_4)], other, Conditions(baseline=Baseline(old)))
    assert (verdict.outcome, "the judge was scripted and is openai:other" in verdict.reason) == (
        "UNDECIDED",
        True,
    )
    prompts = {"split_claims": "1-aa", "verify_claims": "1-bb", "find_entities": "1-cc"}
    for task, wanted in (("verify_claims", "UNDECIDED"), ("find_entities", "PASS")):
        changed = {**prompts, task: "2-dd"}
        conditions = Conditions(baseline=Baseline(old, prompts), new=Baseline(old, changed))
        assert evaluate([parse_rule(RULE_4)], old, conditions)[0].outcome == wanted


def test_what_moved_broke_and_was_mended_is_named() -> None:
    old = [
        result(f"q{n}", {"faithfulness": value}, limit=0.8) for n, value in enumerate([0.9, 0.2, 0.9, 0.85])
    ]
    new = [
        result(f"q{n}", {"faithfulness": value}, limit=0.8) for n, value in enumerate([0.1, 0.9, 0.9, 0.84])
    ]
    [found] = compare_all(Baseline(Observations(new)), Baseline(Observations(old)))
    assert (found.broken, found.mended) == (("q0",), ("q1",))
    assert found.moved(2) == [("q0", 0.9, 0.1), ("q1", 0.2, 0.9)]
    assert any("newly broken: q0" in line for line in found.lines())


def test_votes_tell_whether_one_question_broke() -> None:
    def voted(**passed: int) -> Baseline:
        results = []
        for name, n in passed.items():
            found = result(name, {"faithfulness": float(n > 2)}, limit=0.5)
            details = {"votes": [1.0] * n + [0.0] * (5 - n), "votes_passed": n}
            results.append(replace(found, scores=(replace(found.scores[0], details=details),)))
        return Baseline(Observations(results))

    [found] = compare_all(voted(q0=0, q1=3, q2=5), voted(q0=5, q1=4, q2=5))
    assert found.notes == (
        "q0: 5 of 5 votes passed, 0 of 5 do now, and chance can't explain it; p 0.004 (Fisher)",
        "q1: 4 of 5 votes passed, 3 of 5 do now, which chance may explain; p 0.500 (Fisher)",
    )


def test_a_baseline_is_read_as_every_report_is(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    preflight = {"judge": "j", "passed": True, "fingerprint": "f", "checks": []}
    later = {"run": {"id": "r", "started": 1.0, "prompts": {"split_claims": "1-a"}, "new": 1}}
    path.write_text(json.dumps(report(run([0.5, None]), preflight=preflight, **later)))
    read = read_baseline(path)
    assert (read.prompts, read.preflight, read.name) == ({"split_claims": "1-a"}, "f", str(path))
    assert read.observed.entries == Observations(run([0.5, None])).entries
    path.write_text(json.dumps(report([]) | {"results": [{"scores": [3]}]}))
    with pytest.raises(UsageError, match=r"baseline .*old.json: results\.0\.test: Field required"):
        read_baseline(path)
    path.write_text(json.dumps(report([], version=2)))
    with pytest.raises(UsageError, match="reads up to version 1"):
        read_baseline(path)


@pytest.mark.parametrize(
    ("outcomes", "given", "undecided_fails", "wanted"),
    [
        ((), 0, True, 0),
        (("PASS",), 0, True, 0),
        (("PASS", "FAIL"), 0, False, 1),
        (("FAIL",), 5, False, 1),
        (("FAIL",), 8, False, 1),
        (("UNDECIDED",), 0, True, 10),
        (("UNDECIDED",), 8, True, 8),
        (("UNDECIDED",), 0, False, 0),
        (("UNDECIDED",), 5, True, 5),
        (("FAIL",), 2, True, 2),
        (("FAIL",), 4, True, 4),
    ],
)
def test_the_exit_code_is_the_worst_that_is_known(
    outcomes: tuple[str, ...], given: int, undecided_fails: bool, wanted: int
) -> None:
    rule = parse_rule("faithfulness >= 0.8")
    verdicts = [Verdict(rule, each, "") for each in outcomes]  # type: ignore[arg-type]
    assert exit_code_of(verdicts, given, undecided_fails=undecided_fails) == wanted


@pytest.mark.parametrize(("given", "wanted"), [(0, 9), (8, 9), (5, 5), (1, 1)])
def test_a_broken_gate_has_an_exit_code_of_its_own(given: int, wanted: int) -> None:
    broken = gate("faithfulness >= 0.8", [])
    assert exit_code_of([broken], given, undecided_fails=False) == wanted


def test_subsets_choose_by_what_was_asserted_and_where() -> None:
    results = [
        *run([1.0] * 30, limit=0.5),
        *run([0.0] * 30, "mrr", limit=0.5, test="test_b.py::test_other"),
    ]
    for subset, wanted in (
        ("metric=faithfulness", "PASS"),
        ("metric=mrr", "FAIL"),
        ("test=test_it", "PASS"),
        ("test=test_other", "FAIL"),
    ):
        verdict = gate(f"pass_rate[{subset}] >= 0.5", results)
        assert (verdict.outcome, verdict.n_scored) == (wanted, 30), subset


def test_a_rule_against_no_baseline_is_broken() -> None:
    verdict = gate(RULE_4, run([1.0] * 50))
    assert (verdict.outcome, verdict.broken, verdict.value) == ("UNDECIDED", True, 1.0)
    assert "there is no baseline to compare with" in verdict.reason


def test_a_percentile_is_decided_by_how_many_meet_the_threshold() -> None:
    rule = "faithfulness p10 >= 0.7 with 95% confidence"
    verdict = gate(rule, run([0.7] * 20))
    assert verdict.bounds is not None
    assert [verdict.bounds.low, verdict.bounds.high] == pytest.approx([0.05 ** (1 / 20), 1.0])
    assert verdict.outcome == "FAIL"
    assert verdict.more == 9  # .9 ** 29 < .05
