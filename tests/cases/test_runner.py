"""The runner says ok where it is, WRONG where it isn't, and never passes over a case."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.__main__ import main
from tests.cases.judging import wrong
from tests.cases.naming import missing
from tests.cases.outcomes import Outcome
from tests.cases.projects import Run
from tests.cases.running import run_case

OWN = Path(__file__).parent / "own"


@pytest.mark.parametrize("path", sorted(OWN.glob("*.json")), ids=lambda path: path.stem)
def test_own_cases(path: Path) -> None:
    assert run_case(json.loads(path.read_text(encoding="utf-8"))) == []


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
