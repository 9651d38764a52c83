"""A run that was split in two, with Redis in common, against the same run in one piece."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_ragbench.cli import run
from tests.plugin.conftest import Project
from tests.servers.rag_server import default_answer, rag_server
from tests.servers.redis_server import BINARY, MISSING, redis_server

TESTS = """
import pytest
from pytest_ragbench import assert_metric

@pytest.mark.rag_questions("q.jsonl")
def test_rank(rag_sample):
    assert_metric("mrr", rag_sample, ">=0.4")

@pytest.mark.rag_questions("q.jsonl")
def test_found(rag_sample):
    assert_metric("hit_rate@2", rag_sample, ">=1")

@pytest.mark.skip(reason="not yet")
@pytest.mark.rag_questions("q.jsonl")
def test_skipped(rag_sample): ...
"""
TOML = '[rag]\nurl = "{url}"\n[gates]\nmrr = "mean>=0.3"\n"hit_rate@2" = "mean>=0.9"\n[gating]\nmax_unscored = 0.2\n'
_OF_ONE_RUN = (
    "id",
    "started",
    "finished",
    "duration",
    "latency",
    "latencies",
    "at_once",
    "asked",
    "trace_id",
    "span_id",
    "seconds",
    "cached",
    "settings",
    "sources",
    "shards",
)


def said(value: Any) -> Any:
    """A report but for what differs from run to run."""
    if isinstance(value, dict):
        return {name: said(part) for name, part in value.items() if name not in (*_OF_ONE_RUN, "p50", "p95")}
    return [said(part) for part in value] if isinstance(value, list) else value


@pytest.mark.skipif(BINARY is None, reason=MISSING)
def test_shards_are_one_run(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("redis")

    def answer(question: str) -> Any:
        return (404, "text/plain", "no such question") if question == "Q5?" else default_answer(question)

    relevant = ["d1", "d2", "d9", "d2", "d2", "d1"]
    rows = [{"id": f"q{n}", "question": f"Q{n}?", "relevant_ids": [name]} for n, name in enumerate(relevant)]
    project.write(test_a_py=TESTS, q_jsonl="".join(json.dumps(row) + "\n" for row in rows))
    with redis_server(project.path) as redis, rag_server(answer) as service:
        project.write(ragbench_toml=TOML.format(url=service.url))
        store = f"--ragbench-store={redis.url}"
        whole = project.run(f"{store}?prefix=whole", "--ragbench-json=whole.json")
        asked = sorted(service.questions)
        service.questions.clear()
        project.monkeypatch.setenv("RAGBENCH_RUN", "nightly-1")
        for name, chosen in (("one", "test_rank or test_skipped"), ("two", "test_found")):
            project.run(store, f"--ragbench-json={name}.json", "--ragbench-no-gates", "-k", chosen)
    # Each question once; the one that fails is asked again by whoever needs it.
    assert sorted(set(service.questions)) == sorted(set(asked)) == [f"Q{n}?" for n in range(6)]
    assert all(service.questions.count(f"Q{n}?") == 1 for n in range(5))
    project.monkeypatch.chdir(project.path)
    code = run(["merge", "one.json", "two.json", "--shards", "2", "-o", "merged.json"])
    assert (whole.ret, code) == (1, 1)
    one_run, merged = project.report("whole.json"), project.report("merged.json")
    assert [gate["verdict"] for gate in merged["gates"]] == ["PASS", "FAIL"]
    for report in (one_run, merged):
        report["results"].sort(key=lambda record: str(record["test"]))
        report["summary"]["metrics"].sort(key=lambda row: str(row["metric"]))
    calls = [report["summary"].pop("calls")["rag"]["stored"] for report in (one_run, merged)]
    assert calls[0] == calls[1] == 5
    assert said(merged) == said(one_run)
    # What is lost, or there twice, is no green run.
    assert run(["merge", "one.json", "--shards", "2", "--no-gates"]) == 1
    assert run(["merge", "one.json", "lost.json"]) == 4
    assert run(["merge", "one.json", "one.json"]) == 4
    assert "are reports of the same run" in capsys.readouterr().err
