"""A client object as the fixture `judge`: one pipeline, whichever process asks."""

from __future__ import annotations

import pytest

from pytest_ragbench.money import dollars
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
        told.stdout.fnmatch_lines([f"cost: {dollars(12 * 140e-6)}"])
        assert {request["model"] for request in server.requests} == {"m1"}
        again = run(bot, server, monkeypatch)
        assert server.calls == 2 * N
        again.stdout.fnmatch_lines([f"cost: $0, the store saved {dollars(12 * 140e-6)}"])
    [model] = bot.report()["summary"]["models"]
    assert model["model"] == "lab:m1"


FUNCTION = """
import httpx2, os, pytest

@pytest.fixture(scope="session")
def judge():
    def company(messages):
        reply = httpx2.post(
            os.environ["COMPANY_URL"] + "/chat/completions",
            json={"model": "m-2", "messages": messages, "schema": None},
        ).json()
        return {"content": reply["choices"][0]["message"]["content"], "usage": reply["usage"], "model": "m-2"}

    return company
"""


def test_a_function_keeps_to_a_budget_in_dollars(
    bot: Project,  # noqa: F811
    rag: RagServer,
    monkeypatch: pytest.MonkeyPatch,
    both: list[str],
) -> None:
    """Counted at the server; without a price, it is not asked at all."""
    (bot.path / "conftest.py").write_text(FUNCTION)
    with OpenAIServer([{"claims": []}]) as server:
        monkeypatch.setenv("COMPANY_URL", server.url)
        refused = run(bot, server, monkeypatch, "--ragbench-max-cost=1", *both)
        assert server.calls == 0
        assert refused.ret == 4
        refused.stdout.fnmatch_lines(["*UsageError: max_cost is set, but what 'company' costs is not known*"])
        with (bot.path / "ragbench.toml").open("a") as toml:
            toml.write('[providers.company.prices]\n"m-2" = { input = 1.0, output = 2.0 }\n')
        # $140e-6 a call; what a long prompt may take is put aside before the first.
        run(bot, server, monkeypatch, "--ragbench-max-cost=0.0012", *both)
        assert 0 < server.calls <= 9
        asked = server.calls
    [model] = bot.report()["summary"]["models"]
    assert (model["model"], model["calls"]) == ("judge:company:m-2", asked)
