from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import JudgeError, RagSample, Score, UsageError
from pytest_ragbench.assertions.failure import failure_text
from pytest_ragbench.clean import clean, one_line
from pytest_ragbench.model.report import RunInfo, RunReport
from pytest_ragbench.model.samples import Location
from pytest_ragbench.model.scores import Finding, JudgeReply, Usage
from pytest_ragbench.model.tests import Outcome, ScoreRecord, TestRecord
from pytest_ragbench.model.thresholds import parse_threshold
from pytest_ragbench.report import records
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.json_report import JsonReport
from pytest_ragbench.report.summary import Summary, table
from pytest_ragbench.report.usage import add_usage
from pytest_ragbench.report.writing import as_dict
from pytest_ragbench.scoring.results import Result
from pytest_ragbench.statistics.percentile import percentile

CONTEXT = ReportContext(RunInfo(id="r", started=1.0))


@given(st.text())
def test_clean_text_is_safe_for_terminal_and_xml(text: str) -> None:
    cleaned = clean(text)
    ET.fromstring(f"<a>{escape(cleaned)}</a>")
    assert "\x1b" not in cleaned
    assert clean(cleaned) == cleaned


def test_readable_text_is_left_alone() -> None:
    text = "Как вернуть?\n返品 — 30 日 👩‍👩‍👧 naïve\t|"
    assert clean(text) == text
    assert clean("\x1b[2J\x00\u202e") == "\\x1b[2J\\x00\\u202e"
    assert one_line("a\n  b\tc" * 50, 20) == "a b ca b ca b ca b…"


def score(value: float = 0.5, **more: object) -> Score:
    fields: dict[str, object] = {
        "metric": "faithfulness",
        "value": value,
        "reason": "the 30-day window is in no chunk",
        "evidence": (
            Finding("A receipt is needed.", True, "", 2),
            Finding("The window is 30 days.", False, "no chunk says so"),
        ),
        "judge": "gpt-4o-mini",
        "usage": Usage(2, 700, 112),
        "duration": 1.3,
    }
    return Score(**{**fields, **more})  # type: ignore[arg-type]


def test_a_judges_replies_are_bounded_and_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    records._redactor.cache_clear()
    node = SimpleNamespace(nodeid="t")
    report = SimpleNamespace(outcome="passed", duration=0.0, when="call")
    said = [
        JudgeReply("sk-planted-0123456789" + "é" * 90, "verify_claims", "j", 2, True),
        JudgeReply("\ud800"),
    ]
    results = [
        Result("faithfulness", None, "generation", score=score(replies=tuple(said))),
        Result("faithfulness", None, "generation", score=score(replies=(JudgeReply("{}"),) * 99)),
        Result("faithfulness", None, "generation", error=JudgeError("no verdict", code="x", raw="Well ...")),
    ]
    try:
        found = as_dict(records.record_of(node, report, None, None, results, reply_limit=50))
        first, many, failed = found["scores"]
        assert first["replies"] == [
            {
                "text": "***" + "é" * 47,
                "cut": 43,
                "task": "verify_claims",
                "judge": "j",
                "vote": 2,
                "cached": True,
            },
            {"text": "\\ud800"},
        ]
        assert len(many["replies"]) == 50
        assert failed["replies"] == [{"text": "Well ..."}]
        assert records.record_of(node, report, None, None, results).scores[0].replies == ()
    finally:
        records._redactor.cache_clear()


def _miss(found: Score) -> Result:
    return Result("faithfulness", None, "generation", parse_threshold(">=0.8"), found)


def test_failure_text() -> None:
    sample = RagSample(
        "How long?",
        "30 days.",
        ["Delivery takes two days.", "Bring the receipt."],
        context_scores=[0.83, 0.79],
        id="window",
        location=Location("questions.csv", 14),
    )
    found = score(error_message="the window is invented")
    assert failure_text(sample, [_miss(found)]) == (
        "faithfulness 0.50, wanted >=0.8: the window is invented\n"
        "  question   How long?   (questions.csv:14)\n"
        "  id         window\n"
        "  answer     30 days.\n"
        "  claims     ✗ The window is 30 days.   no chunk says so\n"
        "             ✓ A receipt is needed.   chunk 2\n"
        "  chunks     [1] 0.83 Delivery takes two days.\n"
        "             [2] 0.79 Bring the receipt.\n"
        "  judge      gpt-4o-mini, 1 vote, 1.3 s, 812 tokens\n"
        '             error_message: "the window is invented"'
    )


def test_the_first_line_is_one_line_whatever_the_judge_says() -> None:
    found = score(error_message="first\nsecond \x1b[31m" + "x" * 1000)
    text = failure_text(RagSample("q"), [_miss(found)], ["other: down"])
    first, second, *_ = text.splitlines()
    assert first.startswith("faithfulness 0.50, wanted >=0.8: first second \\x1b[31mx")
    assert len(first) < 260
    assert second == "  no score: other: down"


def test_json_report_is_valid_after_every_step(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "out.json"

    def now() -> object:
        return json.loads(path.read_text(encoding="utf-8"))

    report = JsonReport(path, CONTEXT)
    found = now()
    assert isinstance(found, dict)
    assert {name: found[name] for name in ("schema", "version", "results", "complete")} == {
        "schema": "ragbench-report",
        "version": 1,
        "results": [],
        "complete": False,
    }
    assert found["run"]["id"] == "r"
    for number in range(3):
        report.add(TestRecord(test=f"Тест は {number}", outcome="passed"))
        found = now()
        assert isinstance(found, dict)
        assert [record["test"] for record in found["results"]] == [f"Тест は {n}" for n in range(number + 1)]
    report.finish(RunReport(run=CONTEXT.run, complete=True, exit_code=1))
    found = now()
    assert isinstance(found, dict)
    assert (found["complete"], found["exit_code"], len(found["results"])) == (True, 1, 3)


def test_json_report_replaces_an_older_longer_one(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("x" * 10_000)
    JsonReport(path, CONTEXT).finish(RunReport(run=CONTEXT.run, complete=True))
    assert json.loads(path.read_text())["complete"] is True
    with pytest.raises(UsageError, match="can't be written"):
        JsonReport(path / "below", CONTEXT)


def test_a_report_has_one_writer_on_every_platform(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    first = JsonReport(path, CONTEXT)
    with pytest.raises(UsageError, match="another run is writing it"):
        JsonReport(path, CONTEXT)
    assert json.loads(path.read_text())["run"]["id"] == "r"  # the second one has not touched it
    first.finish(RunReport(run=CONTEXT.run, complete=True))
    JsonReport(path, CONTEXT).finish(RunReport(run=CONTEXT.run))
    assert json.loads(path.read_text())["complete"] is False


def test_a_report_is_written_where_there_is_no_room_for_a_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    JsonReport(tmp_path / "out.json", CONTEXT).finish(RunReport(run=CONTEXT.run, complete=True))
    assert json.loads((tmp_path / "out.json").read_text())["complete"] is True


def test_sums_over_a_run() -> None:
    summary = Summary()

    def add(outcome: Outcome, kind: str | None, value: float | None, passed: bool | None) -> None:
        found = ScoreRecord(metric="mrr", tier="retrieval", value=value, passed=passed, sample=0)
        summary.add(TestRecord(test="t", outcome=outcome, kind=kind, scores=(found,)))

    add("passed", None, 1.0, True)
    add("failed", "quality", 0.5, False)
    add("error", "judge", None, None)
    assert summary.outcome_line() == "1 passed, 1 quality failure, 1 judge error"
    [row] = summary.record().metrics
    assert as_dict(row) == {
        "metric": "mrr",
        "tier": "retrieval",
        "mean": 0.75,
        "min": 0.5,
        "max": 1.0,
        "n_scored": 2,
        "n_total": 3,
        "n_missed": 1,
        "calls": 0,
        "tokens": 0,
        "cost": None,
        "band": "good",
    }
    assert table(summary.ordered_rows(["retrieval"]), {"mrr": "good"}) == [
        "tier       metric   mean    min  scored  missed  band",
        "retrieval  mrr     0.750  0.500     2/3     1/2  good",
    ]


def test_usage_adds_up() -> None:
    total: dict[str, dict[str, object]] = {}
    add_usage(total, {"rag": {"calls": 1, "latencies": [0.1]}})
    add_usage(total, {"rag": {"calls": 2, "latencies": [0.2, 0.3]}})
    assert total == {"rag": {"calls": 3, "latencies": [0.1, 0.2, 0.3]}}


@given(st.lists(st.floats(0, 100), min_size=1), st.floats(0.01, 1))
def test_percentile_is_an_observed_value(values: list[float], share: float) -> None:
    found = percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9
