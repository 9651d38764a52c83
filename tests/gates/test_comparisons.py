"""A run held against an earlier one: what is paired, what is compared, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.gates.baseline import Baseline, compare_all
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import Rule, parse_rule
from pytest_ragbench.gates.verdicts import Conditions, evaluate
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.tests import ErrorRecord, QuestionRecord, ScoreRecord, SetupRecord, TestRecord
from pytest_ragbench.model.thresholds import Scale
from pytest_ragbench.report.earlier import read_baseline
from tests.gates.runs import RULE_4, gate, paired, report, result, run


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


def whole_set(values: dict[str, float], text: str = "") -> list[TestRecord]:
    """Scores of a set, whose questions the report knows by id only."""
    score = ScoreRecord(metric="mrr", tier="retrieval", value=0.5, details={"values": values})
    questions = tuple(QuestionRecord(id=name, question=text) for name in values if text)
    return [TestRecord(test="test_a.py::test_all", outcome="passed", questions=questions, scores=(score,))]


def test_a_question_that_one_run_knows_by_id_only_is_found_by_it() -> None:
    bare, known = whole_set({"q0": 0.5, "q1": 0.6}), whole_set({"q0": 0.5}, "What?")
    [found] = compare_all(Baseline(Observations(known)), Baseline(Observations(bare)))
    assert ([key[0] for key in found.pairs], found.n_changed) == (["q0"], 0)
    assert "1 question dropped (q1)" in found.differences[0]


def test_what_moved_most_comes_first_and_no_more_than_asked() -> None:
    old = run([0.5] * 8)
    new = run([0.5, 0.4, 0.3, 0.2, 0.9, 1.0, 0.55, 0.45])
    [found] = compare_all(Baseline(Observations(new)), Baseline(Observations(old)))
    names = [name for name, _, _ in found.moved()]
    assert names == ["q3", "q2", "q1", "q4", "q5"]
    assert [name for name, _, _ in found.moved(2)] == ["q4", "q5"]
    lines = list(found.lines())
    assert lines[1:] == [
        "  worse  0.50 -> 0.20  q3",
        "  worse  0.50 -> 0.30  q2",
        "  worse  0.50 -> 0.40  q1",
        "  better 0.50 -> 0.90  q4",
        "  better 0.50 -> 1.00  q5",
    ]
    [turned] = compare_all(
        Baseline(configured([0.1, 0.9], direction="lower")),
        Baseline(configured([0.5, 0.5], direction="lower")),
    )
    assert [name for name, _, _ in turned.moved()] == ["q1", "q0"]
    assert turned.drop == 0.0


def test_a_comparison_as_a_report_has_it() -> None:
    old, new = run([0.5] * 12, limit=0.5), run([0.4] * 12, limit=0.5)
    [found] = compare_all(Baseline(Observations(new)), Baseline(Observations(old)))
    told = found.metric_record()
    assert (told.metric, told.n_pairs, told.n_changed, told.method) == (
        "faithfulness",
        12,
        12,
        "sign flips",
    )
    assert told.mean_difference == pytest.approx(-0.1)
    assert told.p == 1 / 2**12
    assert (len(told.moved), told.moved[0].old, told.moved[0].new) == (10, 0.5, 0.4)
    assert (len(told.broken), told.mended) == (12, ())
    [line] = [line for line in found.lines() if "newly broken" in line]
    assert (line.count("q"), line.endswith(" ...")) == (10, True)
    [alone] = compare_all(
        Baseline(Observations(whole_set({"a": 0.5}))), Baseline(Observations(whole_set({"b": 1.0})))
    )
    told = alone.metric_record()
    assert (told.n_pairs, told.mean_difference, told.p) == (0, None, None)
    assert found.record().p is not None
    [verdict] = paired(whole_set({"a": 0.5}), whole_set({"b": 1.0}), "mrr no worse than baseline")
    assert (verdict.outcome, verdict.broken) == ("UNDECIDED", True)
    assert (
        "no question with mrr is in both runs: 1 question added (a), 1 question dropped (b)" in verdict.reason
    )


def test_a_question_whose_score_got_lost_is_told_from_one_that_is_new() -> None:
    old = [*run([0.9] * 9), result("r", {"faithfulness": None}, outcome="error", kind="judge")]
    new = [*run([0.9] * 8), *run([None] * 9)[8:], result("r", {"faithfulness": 0.9})]
    [verdict] = evaluate(
        [parse_rule(RULE_4)],
        Observations(new),
        Conditions(baseline=Baseline(Observations(old)), max_unscored=0.2),
    )
    assert verdict.outcome == "PASS"
    assert verdict.comparison is not None
    [note] = verdict.comparison.notes
    assert "1 question without a score now (timeout) (q8)" in note
    assert "1 question without a score in the baseline (timeout) (r)" in note
    # Its test has other metrics there, or ended before this one; by its text where the id is not known.
    elsewhere = [*run([0.9] * 8), result("q8", {"mrr": 1.0}), result("q9", {}, outcome="skipped")]
    [verdict] = paired(run([0.9] * 10), elsewhere)
    assert verdict.comparison is not None
    said = verdict.comparison.notes[0]
    assert "1 question without a score in the baseline (their tests have other metrics) (q8)" in said
    assert "1 question without a score in the baseline (skipped) (q9)" in said
    unnamed = result("q9", {}, outcome="failed", text="What is q9?", test="test_a.py::test_other")
    [verdict] = paired(
        run([0.9] * 10), [*run([0.9] * 9), replace(unnamed, samples=(replace(unnamed.samples[0], id="x"),))]
    )
    assert verdict.comparison is not None
    assert verdict.comparison.notes == (
        "1 question without a score in the baseline (their test ended before) (q9)",
    )


def test_many_names_are_cut() -> None:
    [verdict] = paired(run([0.9] * 30), run([0.9] * 26))
    assert verdict.comparison is not None
    assert verdict.comparison.notes == ("4 questions added (q26, q27, q28 ...)",)


def test_votes_are_compared_by_their_share() -> None:
    def voted(passed: int, votes: int) -> Baseline:
        found = result("q", {"faithfulness": 1.0})
        details = {"votes": [1.0] * votes, "votes_passed": passed}
        return Baseline(
            Observations([replace(found, scores=(replace(found.scores[0], details=details),)), *run([1.0])])
        )

    def notes(new: tuple[int, int], old: tuple[int, int]) -> tuple[str, ...]:
        return compare_all(voted(*new), voted(*old))[0].notes

    assert notes((3, 5), (2, 3)) == (
        "q: 2 of 3 votes passed, 3 of 5 do now, which chance may explain; p 0.714 (Fisher)",
    )
    assert notes((2, 3), (3, 5)) == notes((4, 6), (2, 3)) == ()
    # Of a question that was judged once before, votes can't be compared.
    once = Baseline(Observations([result("q", {"faithfulness": 1.0}), *run([1.0])]))
    assert compare_all(voted(1, 5), once)[0].notes == compare_all(once, voted(5, 5))[0].notes == ()
    # Three votes never show that one question broke: p is exactly .05.
    assert "which chance may explain; p 0.050" in notes((0, 3), (3, 3))[0]


def test_the_judges_verdicts_on_the_anchors_and_its_tasks_count() -> None:
    observed = Observations(run([0.9] * 10))

    def outcome(new: Baseline, old: Baseline) -> tuple[str, str]:
        [verdict] = evaluate([parse_rule(RULE_4)], new.observed, Conditions(baseline=old, new=new))
        return verdict.outcome, verdict.reason

    for before, now, wanted in (("a", "b", "UNDECIDED"), ("a", "a", "PASS"), (None, "b", "PASS")):
        found = outcome(Baseline(observed, preflight=now), Baseline(observed, preflight=before))
        assert found[0] == wanted
        assert ("verdicts on the anchors changed" in found[1]) == (wanted == "UNDECIDED")
    # Which prompts a metric of one's own needs is in the report; else all count.
    rule = Rule("m no worse than baseline", "m", "baseline", Scale("m"))
    for tasks, wanted in ((("verify",), "UNDECIDED"), (("split",), "PASS"), ((), "UNDECIDED")):
        scored = configured([0.9] * 8, tasks=tasks)
        new, old = (Baseline(scored, {"split": "1", "verify": version}) for version in "12")
        [verdict] = evaluate([rule], scored, Conditions(baseline=old, new=new))
        assert verdict.outcome == wanted
        assert ("the judge's prompt changed (verify)" in verdict.reason) == (wanted == "UNDECIDED")
    # Where no judge scored, no prompt matters.
    plain = Observations(run([0.9] * 10, judge=None))
    found = outcome(Baseline(plain, {"verify_claims": "1"}), Baseline(plain, {"verify_claims": "2"}))
    assert found[0] == "PASS"


def test_a_question_of_several_tests_has_several_setups() -> None:
    def twice(*judges: str) -> Observations:
        return Observations(
            [
                replace(each, test=f"test_a.py::test_{name}[{each.question_id}]")
                for name in judges
                for each in set_up([0.5] * 8, judge=name)
            ]
        )

    rule = Rule("m no worse than baseline", "m", "baseline", Scale("m"))

    def reason(new: Observations, old: Observations) -> str:
        return evaluate([rule], new, Conditions(baseline=Baseline(old)))[0].reason

    assert "judge" not in reason(twice("a", "b"), twice("b", "a"))
    assert "the judge was a and b and is a and c" in reason(twice("a", "c"), twice("a", "b"))
    # A report from before setups were kept tells who answered.
    bare = Observations(run([0.5] * 8, "m", judge="a"))
    assert "the judge was a and is b" in reason(configured([0.5] * 8, "b"), bare)
