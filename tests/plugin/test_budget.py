"""A run's budget and what it cost, as the user sees it."""

from __future__ import annotations

import pytest

from pytest_ragbench.money import dollars
from tests.plugin.conftest import Project
from tests.plugin.test_llm_judge import N, bot, honest, run  # noqa: F401 - bot is a fixture
from tests.servers.openai_server import OpenAIServer, error
from tests.servers.rag_server import RagServer

PRICES = """
[providers.openai.prices]
"gpt-4o-mini" = { input = 1.0, output = 2.0 }
"""


def test_two_workers_keep_to_one_budget(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OpenAIServer(honest) as server:
        result = run(bot, server, monkeypatch, "--ragbench-max-calls=8", "-n", "2")
        assert server.calls + len(rag.questions) == 8
        assert result.ret == 8
        report = bot.report()
        assert set(report["summary"]["outcomes"]) <= {"passed", "budget"}
        assert sum(report["summary"]["outcomes"].values()) == N
        assert report["summary"]["outcomes"]["budget"] >= N - 2
        result.stdout.fnmatch_lines(["*BudgetError: * was not asked: the run's budget*max_calls 8*"])


def test_what_it_cost_and_what_the_store_saved(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (bot.path / "ragbench.toml").open("a") as toml:
        toml.write(PRICES)
    tokens: list[int] = []
    with OpenAIServer(honest) as server:
        for told in (f"cost: {dollars(12 * 140e-6)}", f"cost: $0, the store saved {dollars(12 * 140e-6)}"):
            result = run(bot, server, monkeypatch, "-n", "2")
            result.stdout.fnmatch_lines(["tier*missed*", told])
            tokens.append(bot.report()["summary"]["metrics"][0]["tokens"])
        assert server.calls == 2 * N
    assert tokens == [12 * 120, 0]  # whichever worker had asked
    summary = bot.report()["summary"]
    [model] = summary["models"]
    assert (model["kind"], model["model"]) == ("judge", "openai:gpt-4o-mini")
    assert (model["calls"], model["stored"], model["saved_tokens"]) == (0, 12, 12 * 120)
    assert "judge openai:gpt-4o-mini" not in summary["calls"]


def test_a_quota_that_is_used_up_ends_the_asking(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (bot.path / "ragbench.toml").read_text()
    (bot.path / "ragbench.toml").write_text(
        text.replace("timeout = 2\n", "timeout = 2\nmax_concurrency = 1\n")
    )
    with OpenAIServer([error(429, "no money", code="insufficient_quota")]) as server:
        result = run(bot, server, monkeypatch, "-n", "2")
        assert server.calls == 1
        result.assert_outcomes(errors=N)
        result.stdout.fnmatch_lines(["*JudgeError: openai: the quota is used up; it is not asked again*"])


def test_a_dry_run_says_what_a_run_would_ask_and_asks_nothing(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with (bot.path / "ragbench.toml").open("a") as toml:
        toml.write(PRICES)
    (bot.path / "test_more.py").write_text(MORE)
    with OpenAIServer(honest) as server:
        run(bot, server, monkeypatch, "test_bot.py")
        asked, rag.questions[:] = server.calls, []
        result = run(bot, server, monkeypatch, "--ragbench-dry-run", "-n", "2", "--ragbench-max-calls=3")
        assert (result.ret, server.calls, rag.questions) == (0, asked, [])
    result.stdout.fnmatch_lines(
        [
            "*RAG dry run: nothing was asked*",
            f"rag: {N} calls",  # the other tests have the same questions
            f"judge openai:gpt-4o-mini: {3 * N} calls, about {3 * N * 120:,} tokens (as the calls in the store), "
            f"about {dollars(3 * N * 140e-6)}",
            f"  faithfulness: {2 * N} calls",
            f"  faithfulness_holistic: {N} calls",
            f"in all: {4 * N} calls, about {3 * N * 120:,} tokens, about {dollars(3 * N * 140e-6)}",
            f"not known before they run: the metrics of {N} tests, such as test_more.py::test_by_reply*",
            "that is more than the budget allows: max_calls is 3",
        ]
    )


def test_a_dry_run_counts_the_preflight(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with OpenAIServer(honest) as server:
        result = run(bot, server, monkeypatch, "--ragbench-dry-run", "--ragbench-preflight")
        assert (result.ret, server.calls, rag.questions) == (0, 0, [])
    result.stdout.fnmatch_lines(
        [
            f"judge openai:gpt-4o-mini: {2 * N + 17} calls, *",
            f"  faithfulness: {2 * N} calls",
            "  preflight: 17 calls",
        ]
    )


MORE = """
import pytest
from pytest_ragbench import assert_faithfulness, assert_metric

@pytest.mark.rag_questions("q.jsonl")
def test_holistic(rag_sample):
    assert_metric("faithfulness_holistic", rag_sample, ">=0.8")

@pytest.mark.rag_questions("q.jsonl")
def test_loop(rag_sample):
    for metric in ("faithfulness",):
        assert_metric(metric, rag_sample, ">=0.8")

@pytest.mark.rag_questions("q.jsonl")
def test_by_reply(rag_sample):
    assert_metric(rag_sample.metadata.get("metric", "faithfulness"), rag_sample, ">=0.8")

@pytest.mark.skip
@pytest.mark.rag_questions("q.jsonl")
def test_skipped(rag_sample):
    assert_faithfulness(rag_sample, ">=0.8")
"""
