"""What a gate says of made-up runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragbench.gates.baseline import Baseline
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import parse_rule
from pytest_ragbench.gates.verdicts import Verdict, exit_code_of
from pytest_ragbench.model.scores import Usage
from pytest_ragbench.model.tests import QuestionRecord, ScoreRecord, SetupRecord, TestRecord
from tests.gates.runs import RULE_4, gate, paired, result, run

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
        ("faithfulness min >= 0.7", SPREAD * 10, "PASS"),
        ("faithfulness max >= 1", SPREAD * 10, "PASS"),
        ("faithfulness max >= 0.9", [0.8] * 10, "FAIL"),
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


def test_what_is_known_is_said_in_one_sentence() -> None:
    def reason(text: str, values: Sequence[float | None], metric: str = "faithfulness") -> str:
        return gate(text, run(values, metric)).reason

    assert reason("faithfulness >= 0.85", [1.0] * 19) == (
        "mean 1.00 over 19 questions: with 95% confidence at least 0.854"
    )
    assert reason("faithfulness >= 0.85", [0.0] * 50).endswith(": with 95% confidence at most 0.058")
    assert reason("faithfulness >= 0.85", [1.0]) == (
        "mean 1.00 over 1 question: the truth may lie anywhere from 0.050 to 1.000; about 18 more questions would "
        "settle it"
    )
    assert "at most 0.098" in reason("noise_sensitivity <= 0.1", [0.0] * 29, "noise_sensitivity")
    assert "at least 0.902" in reason("noise_sensitivity <= 0.1", [1.0] * 29, "noise_sensitivity")
    confident = "noise_sensitivity <= 0.05 with 95% confidence"
    assert reason(confident, [0.0] * 29, "noise_sensitivity").endswith(
        "only at most 0.098 can be vouched for, 0.048 short"
    )
    tenth = "faithfulness p10 >= 0.7 with 95% confidence"
    assert reason(tenth, [0.7] * 29).endswith("with 95% confidence at least 90.2% of all meet 0.7")
    assert reason(tenth, [0.7] * 28).endswith(
        "with 95% confidence 89.9% of all can be vouched for, 0.001 short"
    )
    assert reason("faithfulness mean >= 0.8", [1.0, None] + [1.0] * 40).startswith(
        "mean 1.00 over 41 questions (1 of 42 left out, without a score: 1 timeout), taken as it is"
    )
    rates = [result(f"q{n}", {"faithfulness": 1.0}, limit=0.5) for n in range(20)]
    assert gate("pass_rate >= 0.8", rates).reason.startswith("share 1.00 over 20 questions")
    assert gate("error_rate <= 0.8", rates).reason.startswith("share 0.00 over 20 questions")
    assert gate("faithfulness pass_rate >= 0.8", rates).reason.startswith("share that passed 1.00 over")


def test_a_percentile_of_times_with_confidence() -> None:
    results = [result(f"q{n}", {}, latency=1.0 + (n > 50)) for n in range(52)]
    verdict = gate("latency p90 <= 1.5 with 90% confidence", results)
    assert (verdict.outcome, verdict.value) == ("PASS", 1.0)
    assert verdict.bounds is not None
    assert (verdict.bounds.confidence, verdict.bounds.method) == (0.9, "Clopper-Pearson")
    assert gate("latency p90 <= 0.9 with 90% confidence", results).outcome == "FAIL"
    assert gate("latency p99 <= 1.5 with 90% confidence", results).outcome == "FAIL"


def test_a_verdict_as_a_report_has_it() -> None:
    told = gate("faithfulness[lang=en] >= 0.85 with 95% confidence", run([1.0] * 18, lang="en")).record()
    assert (told.gate, told.metric, told.subset, told.rule, told.statistic, told.threshold) == (
        "faithfulness[lang=en] >= 0.85 with 95% confidence",
        "faithfulness",
        {"lang": ("en",)},
        "confident",
        "mean",
        ">=0.85",
    )
    assert (told.verdict, told.broken, told.value, told.high, told.n_scored, told.n_total) == (
        "FAIL",
        False,
        1.0,
        1.0,
        18,
        18,
    )
    assert told.low == pytest.approx(0.05 ** (1 / 18))
    assert (told.method, told.confidence, told.more_questions) == ("Clopper-Pearson", 0.95, 1)
    assert (told.p, told.p_holm, told.comparison, told.n_clusters) == (None, None, None, None)
    bare = gate("must_pass", []).record()
    assert (bare.threshold, bare.value, bare.low, bare.high, bare.method) == (None, None, None, None, None)
    [dropped] = paired(run([0.8] * 10), run([0.9] * 10))
    told = dropped.record()
    assert (told.p, told.p_holm, told.comparison is not None) == (1 / 1024, 1 / 1024, True)


def test_questions_that_must_pass_are_named() -> None:
    def reason(*results: TestRecord) -> tuple[str, float | None]:
        verdict = gate("must_pass", results)
        return verdict.reason, verdict.value

    def marked(name: str, value: float | None) -> TestRecord:
        return result(name, {"faithfulness": value}, limit=0.5, must_pass=True)

    good = marked("good", 1.0)
    assert reason(good) == ("the question that must pass does", 1.0)
    assert reason(good, marked("other", 1.0)) == ("all 2 questions that must pass do", 1.0)
    text, value = reason(good, *(marked(f"bad{n}", 0.0) for n in range(6)), marked("lost", None))
    assert text == (
        "6 of 8 questions that must pass did not: bad0, bad1, bad2, bad3, bad4 ...; 1 of 8 have no verdict: lost "
        "(timeout)"
    )
    assert value == 1 / 8
    # Half of its assertions is not all of them.
    assert gate("must_pass", [good, marked("good", 0.0)]).outcome == "FAIL"
    early = result("early", {}, outcome="failed", must_pass=True)
    assert "have no verdict: early (whose test failed before)" in reason(good, early)[0]
    nothing = gate("must_pass", run([1.0]))
    assert nothing.reason == "the run has no question that must pass, so there is nothing to decide on"


def test_files_that_were_not_chosen_are_named() -> None:
    left_out = {"not_chosen": ("a.py", "b.py", "c.py", "d.py")}
    verdict = gate("faithfulness >= 0.5", run([1.0] * 50), **left_out)
    assert "(not chosen: a.py, b.py, c.py ...)" in verdict.reason
    verdict = gate("faithfulness >= 0.5", run([1.0] * 50), not_chosen=("a.py", "b.py", "c.py"))
    assert "(not chosen: a.py, b.py, c.py)" in verdict.reason


def test_a_gate_that_points_the_wrong_way_for_the_scores_is_broken() -> None:
    made = SetupRecord(direction="lower", low=0.0, high=1.0)
    results = [replace(each, scores=(replace(each.scores[0], setup=made),)) for each in run([0.1] * 50)]
    verdict = gate("faithfulness >= 0.5", results)
    assert (verdict.outcome, verdict.broken) == ("UNDECIDED", True)
    assert "of faithfulness, as the tests ask for it, lower is better" in verdict.reason
    # How many passed, and what is compared, goes by the scores' own direction.
    assert not gate("faithfulness pass_rate >= 0.5", results).reason.startswith("of faithfulness")
    [dropped] = paired(
        [replace(each, scores=(replace(each.scores[0], value=0.3),)) for each in results], results
    )
    assert (dropped.outcome, "0.200 worse" in dropped.reason) == ("FAIL", True)
    mixed = [
        *results,
        *(replace(each, scores=(replace(each.scores[0], setup=SetupRecord()),)) for each in results),
    ]
    for text in ("faithfulness >= 0.5", "faithfulness mean >= 0.5"):
        assert "its scores have no mean" in gate(text, mixed).reason


def test_chance_is_mentioned_where_a_run_is_worse() -> None:
    def reasons(new: Sequence[float], old: Sequence[float], margin: str = "0.02") -> str:
        [verdict] = paired(run(new), run(old), f"faithfulness no worse than baseline by more than {margin}")
        return f"{verdict.outcome}: {verdict.reason}"

    assert (
        reasons([0.9] * 6, [0.9] * 6)
        == "PASS: the same as the baseline, 0.900 over 6 questions, 0 of them changed"
    )
    assert reasons([0.5] * 6, [0.9] * 6).endswith("6 of them changed, and chance can't explain it; p 0.016")
    assert reasons([0.5] * 6, [0.9] * 6, "0.5").endswith("6 of them changed; p 0.016")
    assert reasons([0.5] * 12, [0.9] * 12).endswith("; p < 0.001")
    assert reasons([1.0] * 6, [0.9] * 6).endswith("0.100 better, over 6 questions, 6 of them changed")
    assert reasons([0.88] * 2, [0.9] * 2).endswith("2 of them changed; too few questions to tell")
    assert reasons([0.5] * 4 + [0.9], [0.9] * 5).endswith(
        "with fewer than 5 changed questions chance can't be ruled out"
    )
    assert reasons([0.5] * 4 + [0.9], [0.9] * 5).startswith("UNDECIDED")
    both = [*run([0.8] * 5 + [0.9] * 15), *run([0.9] * 20, "answer_relevancy")]
    rules = ("faithfulness no worse than baseline", "answer_relevancy no worse than baseline")
    dropped, _ = paired(both, [*run([0.9] * 20), *run([0.9] * 20, "answer_relevancy")], *rules)
    assert dropped.reason.endswith("which chance may explain; p 0.062 among 2 such rules")
