"""Conversations in a run: a session's questions in their order, in one process and in two."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.servers.rag_server import rag_server

TESTS = """
import json
import pytest
from pytest_ragbench import assert_metric, assert_multi_turn_consistency, assert_context_preservation

pytestmark = pytest.mark.rag_questions("dialogue.jsonl")

@pytest.fixture(scope="session")
def judge():
    def reply(messages):
        wrong = "forty" in messages[1]["content"]
        return json.dumps({"verdicts": {"2": {"verdict": True}, "3": {
            "verdict": not wrong, "turn": 1, "reason": "first 30 days, then forty"}}})
    return reply

def test_turn(rag_sample):
    assert_metric("token_f1", rag_sample, ">=0")

def test_conversation(rag_conversation):
    assert [sample.session for sample in rag_conversation] == [rag_conversation[0].session] * 3
    assert_multi_turn_consistency(rag_conversation, ">=0.8")

def test_all(rag_samples):
    assert len(rag_samples) == 6
"""


def asked(session: str, turn: int) -> dict[str, Any]:
    return {"question": f"{session}: question {turn}?", "session": session, "reference": "So."}


@pytest.mark.parametrize(
    "how", [[], ["-n", "2"], ["-n", "2", "--dist=worksteal"]], ids=["one", "n2", "steal"]
)
def test_order(project: Project, how: list[str]) -> None:
    lines = [asked(session, turn) for turn in (1, 2, 3) for session in ("a", "b")]
    project.write(
        test_d_py=TESTS,
        dialogue_jsonl="\n".join(json.dumps(line) for line in lines),
        pyproject_toml='[tool.ragbench.rag]\nsession_parameter = "chat"\n',
    )
    seen: dict[str, list[str]] = defaultdict(list)

    def answer(question: str) -> dict[str, Any]:
        session = question[0]
        seen[session].append(question)
        days = "forty" if session == "b" and question.endswith("3?") else "30"
        return {"answer": f"{days} days.", "chunks": []}

    with rag_server(answer) as rag:
        result = project.run("--rag-url", rag.url, *how)
    result.assert_outcomes(passed=8, failed=1)
    result.stdout.fnmatch_lines(
        [
            "FAILED test_d.py::test_conversation?b? - multi_turn_consistency 0.50, wanted >=0.8: contradicts answer 1*"
        ]
    )
    assert seen == {s: [f"{s}: question {turn}?" for turn in (1, 2, 3)] for s in "ab"}


def test_a_conversation_needs_sessions(project: Project) -> None:
    project.write(test_d_py=TESTS, dialogue_jsonl='{"question": "a?", "session": "s"}\n{"question": "b?"}')
    result = project.run("--rag-url", "http://127.0.0.1:9", "-k", "conversation")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stdout.fnmatch_lines(["*dialogue.jsonl:2: rag_conversation needs a session for every question*"])
