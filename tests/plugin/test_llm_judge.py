"""The main job with an LLM behind a real OpenAI-compatible server: each call counted, each fault told."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.servers.openai_server import OpenAIServer, Reply, error
from tests.servers.rag_server import RagServer

KEY = "sk-test-FAKE-0000-abcd"
N = 6


def honest(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> dict[str, Any]:
    """Two claims for every answer, both supported."""
    wanted = (schema or {}).get("properties", {})
    if "claims" in wanted:
        return {"claims": ["A receipt is needed.", "It is needed to return a product."]}
    numbers = wanted["verdicts"]["properties"]
    return {"verdicts": {number: {"reason": "", "chunk": 2, "verdict": True} for number in numbers}}


@pytest.fixture
def bot(project: Project, rag: RagServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    rows = [json.dumps({"id": f"q{number}", "question": f"Question {number}?"}) for number in range(N)]
    project.write(
        q_jsonl="\n".join(rows),
        test_bot_py="""
import pytest
from pytest_ragbench import assert_faithfulness

@pytest.mark.rag_questions("q.jsonl")
def test_answer(rag_sample):
    assert_faithfulness(rag_sample, ">=0.8")
""",
        ragbench_toml="""
[providers.openai]
timeout = 2
[providers.openai.retry]
attempts = 3
wait = 0
""",
    )
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("RAGBENCH_RAG_URL", rag.url)
    yield project
    for path in project.files():  # in no report, log, cache or store
        assert KEY.encode() not in path.read_bytes(), path


def run(bot: Project, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, *args: str) -> pytest.RunResult:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    result = bot.run("--ragbench-json=out.json", "--junitxml=j.xml", *args)
    assert KEY not in result.stdout.str() + result.stderr.str()
    return result


def prompts(server: OpenAIServer) -> Counter[str]:
    return Counter(json.dumps(request["messages"]) for request in server.requests)


def test_each_call_once_and_none_in_the_second_run(
    bot: Project, rag: RagServer, mode: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer(honest) as server:
        result = run(bot, server, monkeypatch, *mode)
        result.assert_outcomes(passed=N)
        # The answers are all alike: one list of claims is split once, the verdicts depend on the question.
        assert set(prompts(server).values()) == {1}
        asked = len(server.requests)
        assert asked == 2 * N
        assert len(rag.questions) == N
        calls = bot.report()["summary"]["calls"]
        assert calls["judge"]["calls"] == asked
        assert calls["judge"]["prompt_tokens"] == 100 * asked
        run(bot, server, monkeypatch, *mode).assert_outcomes(passed=N)
        assert len(server.requests) == asked
        assert len(rag.questions) == 2 * N  # the service may have changed: it is asked in every run
        score = bot.report()["results"][0]["scores"][0]
        assert (score["cached"], score["usage"]["calls"], score["judge"]) == (True, 0, "openai:gpt-4o-mini")


UNREADABLE: dict[str, tuple[list[Reply], str]] = {
    "prose": ([Reply("Everything is fine, 10/10!")], "JSON"),
    "schema": ([Reply({"score": 1.0})], "claims"),
    "verdict": ([Reply({"claims": ["a"]}), Reply({"verdicts": {"1": {"verdict": "maybe"}}})], "verdict"),
    "cut-reply": ([Reply('{"claims": ["a', finish_reason="length")], "cut|truncated|length"),
    "refusal": ([Reply(None, message={"refusal": "I can't help with that."})], "refus"),
    "html": ([Reply(body="<html>proxy</html>")], "html|JSON"),
}


def test_a_reply_that_can_not_be_read_is_an_error_never_a_score(
    bot: Project, both: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All kinds in one run: such a reply says nothing about the next one."""
    rows = [{"id": name, "question": f"What of {name}?"} for name in UNREADABLE]
    bot.write(q_jsonl="\n".join(map(json.dumps, rows)))
    seen: Counter[str] = Counter()

    def handler(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Reply:
        [name] = [name for name in UNREADABLE if f"What of {name}?" in messages[1]["content"]]
        script, place = UNREADABLE[name][0], seen[name]
        seen[name] += 1
        return script[min(place, len(script) - 1)]

    with OpenAIServer(handler) as server:
        result = run(bot, server, monkeypatch, "-l", "-vv", "--log-level=DEBUG", *both)
    result.assert_outcomes(errors=len(UNREADABLE))
    assert result.ret == 8
    for name, (_, said) in UNREADABLE.items():
        line = rf"ERROR test_bot.py::test_answer\[{name}\] - JudgeError: .*({said}).*"
        assert re.search(line, result.stdout.str()), name
    for record in bot.report()["results"]:
        assert (record["outcome"], record["kind"]) == ("error", "judge")
        assert record["scores"][0]["value"] is None
    assert (bot.path / "j.xml").read_text(encoding="utf-8").count("<error") == len(UNREADABLE)


@pytest.mark.parametrize(
    ("script", "said", "ways"),
    [
        ([error(500, "overloaded")], "500", ["-n", "2"]),
        ([error(401, f"Incorrect API key provided: {KEY}. Bearer {KEY}")], "401", []),
        ([error(429, "You exceeded your current quota", code="insufficient_quota")], "quota", []),
        ([Reply(hang=True)], "timeout|no reply within|timed out", []),
        ([Reply({"claims": ["a"]}, cut=True)], "connection|cut|closed", []),
    ],
    ids=["500", "401", "quota", "hang", "cut"],
)
def test_a_broken_judge_is_an_error_never_a_score(
    bot: Project, monkeypatch: pytest.MonkeyPatch, script: list[Reply], said: str, ways: list[str]
) -> None:
    """Each in a run of its own: a provider that is down or refuses the key is asked no more."""
    check_broken(bot, monkeypatch, script, said, *ways)


def check_broken(
    bot: Project, monkeypatch: pytest.MonkeyPatch, script: list[Reply], said: str, *ways: str
) -> None:
    with OpenAIServer(script) as server:
        result = run(bot, server, monkeypatch, "-k", "q1", "-l", "-vv", "--log-level=DEBUG", *ways)
    result.assert_outcomes(errors=1, deselected=0 if "2" in ways else N - 1)
    assert result.ret == 8
    result.stdout.re_match_lines([rf"ERROR test_bot.py::test_answer\[q1\] - JudgeError: .*({said}).*"])
    [record] = bot.report()["results"]
    assert (record["outcome"], record["kind"]) == ("error", "judge")
    assert record["scores"][0]["value"] is None
    assert "error" in (bot.path / "j.xml").read_text(encoding="utf-8")


def test_a_judge_that_is_busy_is_asked_again(
    bot: Project, both: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: Counter[str] = Counter()

    def busy(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Reply | dict[str, Any]:
        key = json.dumps(messages)
        seen[key] += 1
        if seen[key] == 1:
            return error(429, "slow down", headers={"Retry-After": "0.01"})
        return honest(messages, schema)

    with OpenAIServer(busy) as server:
        run(bot, server, monkeypatch, *both).assert_outcomes(passed=N)
        assert set(prompts(server).values()) == {2}


def test_a_judge_that_lies_about_the_claims_fails_the_test_with_its_words(
    bot: Project, both: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> dict[str, Any]:
        reply = honest(messages, schema)
        for verdict in reply.get("verdicts", {}).values():
            verdict.update(verdict=False, reason="no chunk mentions a receipt", chunk=None)
        return reply

    with OpenAIServer(no) as server:
        result = run(bot, server, monkeypatch, *both)
    result.assert_outcomes(failed=N)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["FAILED *q1* - faithfulness 0.00, wanted >=0.8: no chunk mentions a receipt*"]
    )
    result.stdout.fnmatch_lines(["E *judge *openai:gpt-4o-mini, 1 vote, * s, 240 tokens"])


def test_after_a_kill_only_the_missing_calls_are_made(bot: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    bot.write(
        conftest_py="""
import os, signal

def pytest_runtest_teardown(item):
    if "q3" in item.nodeid and os.environ.get("KILL"):
        os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    with OpenAIServer(honest) as server:
        monkeypatch.setenv("KILL", "1")
        # With look-ahead the calls of the last tests may be made, or be out, by then.
        assert run(bot, server, monkeypatch, "--ragbench-lookahead=0").ret != 0
        report = bot.report()
        assert report["complete"] is False
        assert [record["question_id"] for record in report["results"]][:3] == ["q0", "q1", "q2"]
        before = len(server.requests)
        assert before < 2 * N
        monkeypatch.delenv("KILL")
        run(bot, server, monkeypatch).assert_outcomes(passed=N)
        assert len(server.requests) == 2 * N
        assert set(prompts(server).values()) == {1}


def test_two_runs_at_once_share_what_is_stored(bot: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    with OpenAIServer(honest) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", "test_bot.py"]
        runs = [subprocess.Popen(command, cwd=bot.path, stdout=subprocess.DEVNULL) for _ in range(2)]
        assert [process.wait(timeout=120) for process in runs] == [0, 0]
        # What one run asks while the other asks it, too, is asked twice; a third run finds all of it stored.
        asked = prompts(server)
        assert set(asked.values()) <= {1, 2}
        assert subprocess.run(command, cwd=bot.path, stdout=subprocess.DEVNULL, check=False).returncode == 0
        assert prompts(server) == asked


def test_in_ci_a_judge_is_chosen_on_purpose(bot: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("CI", "true")
    result = bot.run()
    assert result.ret == 4
    text = result.stdout.str() + result.stderr.str()
    assert 'judge = "local"' in text
    assert bot.run("--ragbench-judge=local", "-k", "q1").ret == 0
