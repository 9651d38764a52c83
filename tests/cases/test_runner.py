"""The runner says ok where it is, WRONG where it isn't, and never passes over a case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.__main__ import main
from tests.cases.flips import flipped
from tests.cases.judging import wrong
from tests.cases.naming import missing
from tests.cases.nevers import nevers
from tests.cases.outcomes import Outcome
from tests.cases.projects import Run
from tests.cases.running import run_case

OWN = Path(__file__).parent / "own"


@pytest.mark.parametrize("path", sorted(OWN.glob("*.json")), ids=lambda path: path.stem)
def test_own_cases(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    found = flipped(case)
    assert found.wrong == []
    assert found.tried
    assert found.unnoticed == []


def case(op: str, expected: dict[str, Any], **given: Any) -> dict[str, Any]:
    return {"id": "X-1", "input": {"op": op, **given}, "expected": expected}


CONTRACT = {"fields": {"grade": "number 0..1"}, "required": ["grade"]}
GOOD = {"content": '{"grade": 0.5}', "finish_reason": "stop"}


@pytest.mark.parametrize(
    "expected",
    [
        {"outcome": "value", "value": {"grade": 0.6}},
        {"outcome": "judge_error"},
        {"outcome": "one_of", "any": [{"outcome": "judge_error"}, {"outcome": "usage_error"}]},
        {"outcome": "value", "value": {"grade": 0.5}, "never": [0.5]},
        {"outcome": "value", "value": {"grade": 0.5}, "never": ["grade 0.5"]},
        {"each": [{"outcome": "value", "value": {"grade": 0.5}}]},
        {"outcome": "value", "value": {"grade": 0.5}, "machine": {"exit_code": 0}},
    ],
)
def test_a_wrong_outcome_is_told(expected: dict[str, Any]) -> None:
    assert run_case(case("judge_parse", expected, contract=CONTRACT, reply=GOOD))


def test_an_unknown_operation_is_wrong_in_every_case() -> None:
    for outcome in ("pass", "property", "usage_error"):
        [why] = run_case(case("no_such_operation", {"outcome": outcome}))
        assert "unknown operation" in why


@pytest.mark.parametrize("check", ["2 passed", "exit code 1", "exit code is not 0", "1 passed, 1 rerun"])
def test_counts_in_the_words_of_a_check_are_held_against_the_run(check: str) -> None:
    got = Outcome("pass", facts={"machine": Run(0, b"=== 1 passed in 0.1s ===")})
    assert wrong({"outcome": "property", "checks": [check]}, got)
    assert not wrong({"outcome": "property", "checks": ["1 passed", "exit code 0", "0 failed"]}, got)


def test_a_crash_is_no_outcome() -> None:
    crash = Outcome("crash", message="KeyError: 'x'")
    assert wrong({"outcome": "one_of", "any": [{"outcome": "property", "checks": []}]}, crash)


@pytest.mark.parametrize(
    ("wanted", "message", "named"),
    [
        ("4", "line 14", False),
        ("4", "q.jsonl:4: broken", True),
        ("0.8", "wanted >=0.8", True),
        ("0.8", "wanted >=0.85", False),
        ("delimiter or ';' or the header", "no header", True),
        ("lines 1 and 2", "given twice: lines 1, 2", True),
        ("lines 1 and 2", "given twice: lines 1, 12", False),
        ("the raw value", "got -3", True),
        ("200", "replied 200 (text/html)", True),
    ],
)
def test_names(wanted: str, message: str, named: bool) -> None:
    assert (missing([wanted], message, {"raw value": ["-3"]}) == []) is named


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = case("judge_parse", {"outcome": "value", "value": {"grade": 0.5}}, contract=CONTRACT, reply=GOOD)
    (tmp_path / "a.json").write_text(json.dumps(right), encoding="utf-8")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "X-1 ok\n1 cases: 1 ok, 0 WRONG\n"
    (tmp_path / "b.json").write_text(json.dumps(case("nothing", {})), encoding="utf-8")
    (tmp_path / "c.json").write_text("{", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.endswith("3 cases: 1 ok, 2 WRONG\n")
    assert main([str(tmp_path / "nowhere")]) == 1
    right["expected"]["value"] = {"grade": 0.6}
    (tmp_path / "a.json").write_text(json.dumps(right), encoding="utf-8")
    assert main([str(tmp_path / "a.json"), "--flips"]) == 1
    assert "wrong as it is: value.grade: 0.5 is not 0.6" in capsys.readouterr().out


def test_a_key_that_nothing_reads_is_wrong() -> None:
    right = {"outcome": "value", "value": {"grade": 0.5}}
    [why] = run_case(case("judge_parse", right, contract=CONTRACT, reply=GOOD, max_wall_s=1))
    assert "does not read: max_wall_s" in why
    [why] = run_case(case("judge_parse_many", {"each": [right]}, contract=CONTRACT, replies=[GOOD], gate=1))
    assert "gate" in why
    [why] = run_case(
        case(
            "rag_call",
            {"outcome": "value"},
            response={"json": {"answer": "a", "chunks": []}},
            retry={"attempts": 1, "most": 2},
        )
    )
    assert "retry.most" in why
    [why] = run_case(case("judge_parse", {**right, "thresholds": []}, contract=CONTRACT, reply=GOOD))
    assert "'thresholds'" in why
    assert (
        run_case(case("judge_parse", {**right, "note": "for readers"}, contract=CONTRACT, reply=GOOD)) == []
    )


@pytest.mark.parametrize(
    ("never", "got", "broken"),
    [
        ("score 0.5 for grade", Outcome("value", {"grade": 0.5}), True),
        ("score 0.5 for grade", Outcome("value", {"grade": 0.6}), False),
        ("mixed {a: 1.0, b: 0.0}", Outcome("value", {"a": 1.0, "b": 0.0}), True),
        ("mixed {a: 1.0, b: 0.0}", Outcome("value", {"a": 1.0, "b": 1.0}), False),
        ("clamped to 1.0 or 0.0", Outcome("value", 1.0), True),
        ("score reported as > 100 or > 1.0", Outcome("value", {"bleu": 100.00000001}), True),
        ("score reported as > 100 or > 1.0", Outcome("value", {"bleu": 100.0}), False),
        ("bare KeyError", Outcome("judge_error", message="KeyError: 'grade'"), True),
        ("bare KeyError", Outcome("judge_error", message="no field 'grade' (KeyError)"), False),
        ("quality_failure caused by parsing", Outcome("quality_failure"), True),
        ("recall 1.0 for the first", Outcome("value", {"recall@3": 1.0, "second": {"recall@3": 0.5}}), True),
        (
            "recall 1.0 for the second",
            Outcome("value", {"recall@3": 1.0, "second": {"recall@3": 0.5}}),
            False,
        ),
        ("3 or 4 questions loaded without error", Outcome("value", [{}, {}, {}]), True),
        ("3 or 4 questions loaded without error", Outcome("data_error"), False),
        ("exit code 0", Outcome("property", facts={"machine": Run(0, b"")}), True),
        ("no tests ran", Outcome("property", facts={"machine": Run(5, b"no tests ran in 0.1s")}), True),
        ("silent pass", Outcome("pass", facts={"warnings": ["UserWarning: lower is better"]}), False),
        ("RuntimeWarning only", Outcome("value", 1.0, facts={"warnings": ["RuntimeWarning: divide"]}), True),
        ("0.25", Outcome("value", [0.25]), True),
    ],
)
def test_what_must_never_be(never: str, got: Outcome, broken: bool) -> None:
    assert bool(nevers([never], got)) is broken


def test_of_many_outcomes_a_sentence_may_speak_of_some() -> None:
    got = Outcome("property", each=[Outcome("value", 0.0), Outcome("value", 0.5), Outcome("quality_failure")])
    assert nevers(["0.0 for items 2-3", "quality_failure for items 1 and 2", "0.5 for the first"], got) == []
    for never in ("0.0 for item 1", "quality_failure for items 2 and 3", "0.5 for the second"):
        assert nevers([never], got)


@pytest.mark.parametrize("never", ["the sky falls", "exit code 0"])
def test_a_sentence_that_cannot_be_read_is_wrong(never: str) -> None:
    assert nevers([never], Outcome("value", 0.5)) == [f"{never!r} can't be read"]
