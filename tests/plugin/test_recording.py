"""A run that records, and runs that replay it, with a judge and a service that are gone or have changed."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import MODES, Project
from tests.plugin.test_llm_judge import N, bot, honest, run  # noqa: F401 - bot is a fixture
from tests.servers.openai_server import OpenAIServer
from tests.servers.rag_server import RagServer, default_answer, rag_server


def test_recorded_with_two_workers_and_replayed_in_any_way_without_a_key(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tape = bot.path / "tape.jsonl"
    with OpenAIServer(honest) as server:
        result = run(bot, server, monkeypatch, "--ragbench-record=tape.jsonl", "-n", "2")
        result.stdout.fnmatch_lines([f"recorded in *tape.jsonl: {3 * N} replies: {3 * N} new, 0 changed"])
        first = tape.read_bytes()
        assert server.calls == 2 * N
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("CI", "1")
    rag.questions.clear()
    for name in ("none", "n2", "no-xdist"):
        result = bot.run("--ragbench-replay=tape.jsonl", "--ragbench-store=off", *MODES[name])
        result.assert_outcomes(passed=N)
    assert rag.questions == []
    assert tape.read_bytes() == first
    assert [path.name for path in bot.path.glob("tape*")] == ["tape.jsonl"]


def test_judge_alone_is_replayed_and_a_changed_answer_is_an_error_that_says_so(
    bot: Project,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = default_answer("")
    with OpenAIServer(honest) as server, rag_server(lambda question: answer) as rag:
        monkeypatch.setenv("RAGBENCH_RAG_URL", rag.url)
        run(bot, server, monkeypatch, "--ragbench-record=tape.jsonl", "--ragbench-recorded=judge")
        calls = server.calls
        answer["answer"] = "Another answer."
        rag.questions.clear()
        replay = ["--ragbench-replay=tape.jsonl", "--ragbench-recorded=judge", "-n", "2"]
        result = run(bot, server, monkeypatch, *replay)
        result.assert_outcomes(errors=N)
        assert len(rag.questions) == N
        assert result.ret == 8
        result.stdout.fnmatch_lines(
            ["*JudgeError: tape.jsonl does not hold this judge request*nearest is line*"]
        )
        result = run(bot, server, monkeypatch, "--ragbench-replay=nowhere.jsonl")
        assert result.ret == 4
        result.stderr.fnmatch_lines(["*nowhere.jsonl: there is no such recording*"])
        assert server.calls == calls
