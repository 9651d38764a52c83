"""A client object as the fixture `judge`: one pipeline, whichever process asks."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project
from tests.plugin.test_llm_judge import N, bot, honest, run  # noqa: F401 - bot is a fixture
from tests.servers.openai_server import OpenAIServer
from tests.servers.rag_server import RagServer

CONFTEST = """
import openai, pytest
from pytest_ragbench import OpenAIJudge

@pytest.fixture(scope="session")
def judge():
    return OpenAIJudge(openai.{client}(api_key="sk-FAKE-0000-fixture"), model="m1", provider="lab", max_tokens=100)
"""
PRICES = """
[providers.lab.prices]
"m1" = { input = 1.0, output = 2.0 }
"""


@pytest.mark.parametrize("client", ["AsyncOpenAI", "OpenAI"])
def test_a_client_as_a_fixture(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
) -> None:
    with (bot.path / "ragbench.toml").open("a") as toml:
        toml.write(PRICES)
    (bot.path / "conftest.py").write_text(CONFTEST.format(client=client))
    with OpenAIServer(honest) as server:
        told = run(bot, server, monkeypatch, "-n", "2")
        # Two calls a question, whichever worker came first; a second run has all of them.
        assert server.calls == 2 * N
        told.stdout.fnmatch_lines([f"cost: ${12 * 140e-6:.6f}"])
        assert {request["model"] for request in server.requests} == {"m1"}
        again = run(bot, server, monkeypatch)
        assert server.calls == 2 * N
        again.stdout.fnmatch_lines([f"cost: $0, the store saved ${12 * 140e-6:.6f}"])
    [model] = bot.report()["summary"]["models"]
    assert model["model"] == "lab:m1"
