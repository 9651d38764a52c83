from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import GitRecord
from pytest_ragbench.report.history import History
from pytest_ragbench.report.reading import read_report, report_from
from pytest_ragbench.report.revision import _BRANCHES, revision
from pytest_ragbench.report.schema import report_schema
from pytest_ragbench.report.writing import as_dict, to_json

DATA = Path(__file__).parent / "data"
HEAD = {"schema": "ragbench-report", "version": 1, "run": {"id": "r", "started": 1.0}}


def problems(data: Any) -> list[str]:
    found = jsonschema.Draft202012Validator(report_schema()).iter_errors(data)
    return [f"{error.json_path}: {error.message}" for error in found]


def test_the_schema_says_what_each_field_means() -> None:
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$defs"]["SampleRecord"]["properties"]["latency"]["description"].startswith("seconds")
    compared = schema["$defs"]["MetricComparison"]["properties"]
    assert compared["incomparable"] == schema["$defs"]["ComparisonRecord"]["properties"]["incomparable"]


def test_a_report_of_version_0_1_0_is_read_and_written_again_as_it_was() -> None:
    path = DATA / "report-0.1.0.json"
    text = path.read_text(encoding="utf-8")
    assert problems(json.loads(text)) == []
    report = read_report(path)
    assert as_dict(report) == json.loads(text)
    assert read_report(path) == report_from(json.loads(to_json(report)))
    found = {(result.outcome, result.kind) for result in report.results}
    assert found == {("passed", None), ("failed", "quality"), ("error", "usage")}


def test_a_history_of_version_0_1_0_is_read(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "history.sqlite")) as base:
        base.executescript((DATA / "history-0.1.0.sql").read_text(encoding="utf-8"))
    history = History(tmp_path / "history.sqlite")
    whole = read_report(DATA / "report-0.1.0.json")
    [head] = history.runs()
    assert (head.run, head.summary, head.gates, head.results) == (whole.run, whole.summary, whole.gates, ())
    last = history.last("master")
    assert last is not None
    scores = [score.value for result in last.results for score in result.scores]
    assert scores == [score.value for result in whole.results for score in result.scores]


def test_the_schema_refuses_what_no_run_writes() -> None:
    assert problems({**HEAD, "results": [], "complete": False}) == [
        f"$.run: {name!r} is a required property"
        for name in ("ragbench", "pytest", "python", "platform", "settings", "sources", "git", "prompts")
    ]
    assert problems({**HEAD, "version": 2, "results": [{"test": "t", "outcome": "lost"}], "complete": 1})


def test_an_old_or_broken_off_report_can_be_read() -> None:
    report = report_from({**HEAD, "results": [{"test": "t", "outcome": "failed"}], "later": {"a": 1}})
    assert (report.complete, report.exit_code, report.summary, report.run.git) == (False, None, None, None)
    assert report.results[0].scores == ()


def test_the_sample_of_a_score() -> None:
    sample = {"question": "q"}
    scores = [{"metric": "mrr", "tier": "retrieval", "sample": place} for place in (0, None, 3)]
    results = [{"test": "t", "outcome": "passed", "samples": [sample], "scores": scores}]
    result = report_from({**HEAD, "results": results}).results[0]
    found = [result.sample_of(score) for score in result.scores]
    assert [sample and sample.question for sample in found] == ["q", None, None]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON report: Expecting"),
        ("[]", "its 'schema' is not 'ragbench-report'"),
        (json.dumps({**HEAD, "version": 9}), "version 9; this ragbench reads up to version 1"),
        (json.dumps({**HEAD, "results": [{"test": "t", "outcome": "?"}]}), r"results\.0\.outcome: Input"),
        (
            json.dumps({**HEAD, "results": [{"test": "t", "outcome": "passed", "duration": float("nan")}]}),
            r"results\.0\.duration: Input should be a finite number",
        ),
    ],
)
def test_what_is_no_report_is_said_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"run.json: .*{said}"):
        read_report(path)
    with pytest.raises(UsageError, match="can't be read"):
        read_report(tmp_path / "none.json")


def test_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        told = ["-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.check_output(["git", *told], cwd=tmp_path, text=True).strip()

    git("init", "-q", "-b", "ветка")
    sub = tmp_path / "tests"
    sub.mkdir()
    (sub / "a.txt").write_text("1")
    git("add", ".")
    git("commit", "-qm", "one")
    expected = GitRecord(commit=git("rev-parse", "HEAD"), branch="ветка", dirty=False, directory="tests")
    assert revision(sub) == expected
    (sub / "a.txt").write_text("2")
    git("checkout", "-q", "--detach")
    for name in _BRANCHES:
        monkeypatch.delenv(name, raising=False)
    assert revision(tmp_path) == replace(expected, branch=None, dirty=True, directory="")
    monkeypatch.setenv("CI_COMMIT_REF_NAME", "feature/a")
    assert revision(tmp_path) == replace(expected, branch="feature/a", dirty=True, directory="")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision(tmp_path) is None
