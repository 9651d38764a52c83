"""Every way to ask a metric: calls of the tests to come are under way, each is made once, and none is made in vain."""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.plugin.test_lookahead import TOML, grade, most
from tests.servers.openai_server import OpenAIServer
from tests.servers.rag_server import RagServer, rag_server

N = 3
HEAD = """
import asyncio
import pytest
import pytest_ragbench as rb
from pytest_ragbench import assert_faithfulness_holistic as faithful
import checks
from checks import twice_removed

NAMES = ["faithfulness_holistic"]
LIMITS = {"faithfulness_holistic": ">=0.5"}

def check(sample, limit=">=0.5"):
    rb.assert_metric("faithfulness_holistic", sample, limit)

async def acheck(it):
    await rb.aassert_metric("faithfulness_holistic", it, ">=0.5")
"""
CHECKS = """
import pytest_ragbench as rb

def once_removed(anything, *, least):
    rb.assert_faithfulness_holistic(anything, least)

def twice_removed(sample):
    once_removed(least=">=0.5", anything=sample)
"""
WAYS = {
    "metric": 'rb.assert_metric("faithfulness_holistic", rag_sample, ">=0.5")',
    "alias": 'faithful(rag_sample, ">=0.5")',
    "attribute": 'rb.assert_faithfulness_holistic(sample=rag_sample, threshold=">=0.5")',
    "quality": "rb.assert_quality(rag_sample, LIMITS)",
    "score": 'assert rb.score("faithfulness_holistic", rag_sample).value >= 0.5',
    "helper": "check(rag_sample)",
    "imported": "twice_removed(rag_sample)",
    "module": 'checks.once_removed(rag_sample, least=">=0.5")',
    "loop": "for name in NAMES: rb.assert_metric(name, rag_sample, LIMITS[name])",
    "with": 'with open(__file__): rb.assert_metric("faithfulness_holistic", rag_sample, ">=0.5")',
    "async": "asyncio.run(acheck(rag_sample))",
}


class CrowdByName:
    """Grades; holds the first calls that bear each name until two of them are there (or the time is up)."""

    def __init__(self, names: Any, wanted: int = 2) -> None:
        self.crowds = {name: threading.Barrier(wanted) for name in names}
        self.met: set[str] = set()

    def __call__(self, messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Any:
        text = str(messages)
        for name, barrier in self.crowds.items():
            if f"by {name}?" in text and name not in self.met and not barrier.broken:
                try:
                    barrier.wait(timeout=15)
                    self.met.add(name)
                except threading.BrokenBarrierError:
                    pass
        return grade(messages, schema)


@pytest.fixture
def job(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("FAKE_KEY", "sk-fake")
    project.write(checks_py=CHECKS)
    return project


def questions(job: Project, name: str, count: int = N) -> None:
    rows = [
        json.dumps({"id": f"{name}{each}", "question": f"Question {each} by {name}?"})
        for each in range(count)
    ]
    (job.path / f"{name}.jsonl").write_text("\n".join(rows))


def run(job: Project, judge: OpenAIServer, rag: RagServer, *args: str, more: str = "") -> pytest.RunResult:
    (job.path / "ragbench.toml").write_text(
        more + TOML.replace("max_concurrency = 4", "max_concurrency = 40").format(url=judge.url)
    )
    return job.run("--rag-url", rag.url, "--ragbench-json=out.json", "-p", "no:asyncio", *args)


def calls_by_name(judge: OpenAIServer, names: Any) -> Counter[str]:
    texts = [str(request["messages"]) for request in judge.requests]
    return Counter({name: sum(f"by {name}?" in text for text in texts) for name in names})


def judge_calls_foretold(result: pytest.RunResult) -> int:
    [line] = [line for line in result.outlines if line.startswith("judge openai:m")]
    return int(line.split(": ")[1].split(" ")[0])


def both_runs(
    job: Project, judge: OpenAIServer, rag: RagServer, *args: str, more: str = ""
) -> tuple[pytest.RunResult, int]:
    """A dry run, which asks nobody, then the run; and the judge calls that the first foretold."""
    dry = run(job, judge, rag, "--ragbench-dry-run", more=more)
    assert (dry.ret, judge.requests, rag.questions) == (0, [], [])
    assert "not known before" not in dry.stdout.str()
    return run(job, judge, rag, *args, more=more), judge_calls_foretold(dry)


def test_each_way_to_ask_one_metric(job: Project, both: list[str]) -> None:
    for name in WAYS:
        questions(job, name)
    job.write(
        test_job_py=HEAD
        + "".join(
            f'\n@pytest.mark.rag_questions("{name}.jsonl")\ndef test_{name}(rag_sample):\n    {code}\n'
            for name, code in WAYS.items()
        )
    )
    grades = CrowdByName(WAYS)
    with rag_server() as rag, OpenAIServer(grades) as judge:
        result, foretold = both_runs(job, judge, rag, *both)
        result.assert_outcomes(passed=N * len(WAYS))
        assert calls_by_name(judge, WAYS) == dict.fromkeys(WAYS, N)
        assert (most(judge), foretold) == (1, N * len(WAYS))
    assert grades.met == set(WAYS)


@pytest.mark.parametrize(
    ("settings", "calls"),
    [
        ("votes = 3\n", 2),
        ('judges = ["openai:m", "openai:n"]\n', 2),
        ('votes = 3\njudges = ["openai:m", "openai:n"]\n', 4),
        ('judge = "openai:m"\njudge_confirm = "openai:n"\n', 1),
    ],
)
def test_votes_and_panels_are_asked_ahead(
    job: Project, rag: RagServer, both: list[str], settings: str, calls: int
) -> None:
    """A majority of the votes of each member: more are asked only where those disagree."""
    questions(job, "votes")
    job.write(
        test_job_py=HEAD
        + """
@pytest.mark.rag_questions("votes.jsonl")
def test_votes(rag_sample):
    rb.assert_faithfulness_holistic(rag_sample, ">=0.5")
"""
    )
    grades = CrowdByName(["votes"], wanted=min(6, N * calls))
    with OpenAIServer(grades) as judge:
        result, foretold = both_runs(job, judge, rag, *both, more=settings)
        result.assert_outcomes(passed=N)
        assert len(judge.requests) == N * calls
    assert grades.met
    members = 2 if "judges" in settings else 1
    assert foretold * members == N * calls


SETS = (
    HEAD
    + """
@pytest.mark.rag_questions("one.jsonl")
def test_one(rag_samples):
    rb.assert_over(rag_samples, "faithfulness_holistic", ">=0.5")

@pytest.mark.rag_questions("two.jsonl")
def test_two(rag_samples):
    assert rb.score_over(rag_samples, "faithfulness_holistic").value >= 0.5

@pytest.mark.rag_questions("three.jsonl")
def test_three(rag_samples):
    for sample in rag_samples:
        faithful(sample, ">=0.5")
"""
)
OVER = "questions: {}.jsonl\nover: {{faithfulness_holistic: 0.5}}\n"


@pytest.mark.parametrize("kind", ["python", "yaml"])
def test_sets_are_asked_ahead(job: Project, rag: RagServer, both: list[str], kind: str) -> None:
    names = ["one", "two", "three"]
    for name in names:
        questions(job, name, 1)  # so that no two calls of one test could overlap
        if kind == "yaml":
            (job.path / f"{name}.rag.yaml").write_text(OVER.format(name))
    if kind == "python":
        job.write(test_job_py=SETS)
    met = threading.Barrier(3 if not both else 2)

    def together(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Any:
        if len(judge.requests) <= met.parties:
            met.wait(timeout=15)
        return grade(messages, schema)

    with OpenAIServer(together) as judge:
        result, foretold = both_runs(job, judge, rag, *both)
        result.assert_outcomes(passed=3)
        assert calls_by_name(judge, names) == dict.fromkeys(names, 1)
        assert foretold == 3


def test_what_is_not_certain_is_not_asked_ahead_but_told_by_the_dry_run(job: Project, rag: RagServer) -> None:
    questions(job, "perhaps")
    job.write(
        test_job_py=HEAD
        + """
@pytest.mark.rag_questions("perhaps.jsonl")
def test_perhaps(rag_sample):
    if rag_sample.answer == "no":
        check(rag_sample)
    rb.assert_exact_match(rag_sample.with_(reference=rag_sample.answer), ">=1")
"""
    )
    with OpenAIServer(grade) as judge:
        dry = run(job, judge, rag, "--ragbench-dry-run")
        dry.stdout.fnmatch_lines([f"up to {N} calls more of judges, as replies turn out"])
        run(job, judge, rag).assert_outcomes(passed=N)
        assert judge.requests == []
