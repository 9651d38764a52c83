"""A judge that speaks Anthropic's API, through any-llm, against a real server on the loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_ragbench.engine import Engine
from pytest_ragbench.engine.prices import prices_of
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.judge.choose import judge_from
from pytest_ragbench.judge.tasks import GradeRelevance
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.settings import PriceSettings, ProviderSettings, RetrySettings, Settings
from tests.servers.openai_server import OpenAIServer, Reply

pytest.importorskip("any_llm")

KEY = "sk-ant-FAKE-0000-any"
GOOD = {"reason": "ok", "grade": 0.75}
TASK = GradeRelevance(question="返品はできますか。", answer="はい、7日以内です。")


def message(content: Any = GOOD, stop: str = "end_turn") -> Reply:
    """As https://docs.claude.com/en/api/messages has it."""
    text = content if isinstance(content, str) else json.dumps(content)
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 20},
    }
    return Reply(body=body)


def refused(status: int, kind: str, text: str, **headers: str) -> Reply:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(
        status=status, headers=sent, body={"type": "error", "error": {"type": kind, "message": text}}
    )


def judge_of(
    server: OpenAIServer, engine: Engine, name: str = "any:anthropic/claude-x", **more: Any
) -> Judge:
    provider = ProviderSettings(
        **{
            "base_url": server.url.removesuffix("/v1"),
            "api_key_env": "CLAUDE_KEY",
            "prices": {"claude-x": PriceSettings(input=1.0, output=2.0)},
            "retry": RetrySettings(attempts=3, wait=0, max_wait=1),
            **more,
        }
    )
    settings = Settings(providers={"anthropic": provider})
    return judge_from(name, engine, settings, environ={"CLAUDE_KEY": KEY})


def test_anthropics_api(make_engine: Callable[..., Engine]) -> None:
    with OpenAIServer([message()]) as server:
        for run in ("first", "second"):
            prices = prices_of(
                {"anthropic": ProviderSettings(prices={"claude-x": PriceSettings(input=1, output=2)})}
            )
            engine = make_engine(run_id=run, prices=prices)
            judge = judge_of(server, engine, max_tokens=300, headers={"X-Team": "qa"})
            answered = engine.wait(judge.ask(TASK))
            assert (answered.reply.grade, answered.judge) == (0.75, "anthropic:claude-x")
            assert answered.cached == (run == "second")
            if run == "first":
                assert (answered.usage.prompt_tokens, answered.usage.completion_tokens) == (100, 20)
                assert answered.usage.cost == pytest.approx(140e-6)
        (request,) = server.requests
        assert server.paths == ["/v1/messages"]
        assert server.headers[0]["x-api-key"] == KEY
        assert server.headers[0]["x-team"] == "qa"
    assert (request["model"], request["max_tokens"]) == ("claude-x", 300)
    assert "はい、7日以内です。" in json.dumps(request["messages"], ensure_ascii=False)
    # Structured output as Anthropic has it, out of the schema of the task.
    assert "grade" in json.dumps(request["output_config"])
    assert getattr(judge, "probabilities", None) is False


@pytest.mark.parametrize(
    ("reply", "code", "calls"),
    [
        (refused(429, "rate_limit_error", "slow down", Retry_After="0"), "http_429", 3),
        (refused(429, "rate_limit_error", "slow down", Retry_After="3600"), "http_429", 1),
        (refused(529, "overloaded_error", "Overloaded"), "http_529", 3),
        (refused(401, "authentication_error", f"invalid x-api-key {KEY}"), "http_401", 1),
        (refused(400, "invalid_request_error", "it is so"), "http_400", 1),
        (Reply({}, cut=True), "connection", 3),
        (message(stop="max_tokens"), "truncated", 2),
        (message("I can't help with that.", stop="refusal"), "refused", 1),
        (message("no idea"), "not_json", 2),
    ],
    ids=["rate", "long wait", "overloaded", "key", "request", "cut", "truncated", "refusal", "prose"],
)
def test_its_errors_are_sorted(engine: Engine, reply: Reply, code: str, calls: int) -> None:
    with OpenAIServer([reply]) as server:
        with pytest.raises(JudgeError) as caught:
            engine.wait(judge_of(server, engine).ask(TASK))
        assert (caught.value.code, server.calls) == (code, calls)
        assert KEY not in f"{caught.value} {caught.value.raw}"


def test_a_parameter_that_the_service_has_not_is_left_out(engine: Engine) -> None:
    with OpenAIServer([message()]) as server:
        judge = judge_of(server, engine, seed=7, extra_body={"top_k": 5})
        assert engine.wait(judge.ask(TASK)).reply.grade == 0.75
        assert server.calls == 1
        assert "seed" not in server.requests[0]
        assert server.requests[0]["top_k"] == 5


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("any:anthropic", "names no model"),
        ("any:/claude", "names no model"),
        ("any:antropic/claude", "'antropic' is not a supported provider"),
        ("any:mistral/large", r'judge "any:mistral/...": '),
    ],
)
def test_names_that_lead_nowhere(
    engine: Engine, name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    with OpenAIServer([]) as server, pytest.raises(UsageError, match=message):
        engine.wait(judge_of(server, engine, name).ask(TASK))


def test_a_key_that_is_not_set(engine: Engine) -> None:
    settings = Settings(providers={"anthropic": ProviderSettings(api_key_env="NO_SUCH_KEY")})
    with pytest.raises(UsageError, match="the variable NO_SUCH_KEY is not set"):
        judge_from("any:anthropic/m", engine, settings, environ={})


def test_without_the_extra(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ragbench.judge.any_llm.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'pytest-ragbench\[any\]'"):
        judge_from("any:anthropic/m", engine, Settings(), environ={})


@pytest.mark.parametrize(
    ("provider", "model", "known"),
    [
        ("anthropic", "claude-haiku-4-5", True),
        ("bedrock", "anthropic.claude-3-5-sonnet-20241022-v2:0", True),
        ("vertexai", "gemini-2.5-flash", True),
        ("anthropic", "no-such-model", False),
        ("lab", "gpt-4o-mini", False),
        ("judge:anthropic", "claude-haiku-4-5", False),
    ],
)
def test_prices_of_services_without_a_url(provider: str, model: str, known: bool) -> None:
    assert (prices_of({})(provider, model) is not None) == known
