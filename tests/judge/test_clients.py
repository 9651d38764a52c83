"""Client objects of the openai library as judges, against a real server on the loopback that counts the calls."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import openai
import pytest
from openai.types.chat import ChatCompletion

from pytest_ragbench import OpenAIJudge
from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.base import Answered, Judge
from pytest_ragbench.judge.choose import judge_from
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.judge.tasks import GradeRelevance, VerifyClaims, in_a_word
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.settings import ProviderSettings, RetrySettings, Settings
from tests.servers.openai_server import OpenAIServer, Reply, error

KEY = "sk-test-FAKE-0000-client"
TASK = GradeRelevance(question="返品はできますか。", answer="はい、7日以内です。")
OTHER = GradeRelevance(question="Can I return it?", answer="Yes, within 7 days.")
GOOD = {"reason": "ok", "grade": 0.75}
COMPLETION = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m1",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": json.dumps(GOOD)},
        }
    ],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}
QUICK = Settings(
    providers={"lab": ProviderSettings(retry=RetrySettings(attempts=3, wait=0, max_wait=1), temperature=0.5)}
)
AZURE: dict[str, Any] = {"api_version": "2024-10-21", "api_key": KEY}


def plain(server: OpenAIServer) -> Any:
    return openai.OpenAI(base_url=server.url, api_key=KEY)


def asynchronous(server: OpenAIServer) -> Any:
    return openai.AsyncOpenAI(base_url=server.url, api_key=KEY)


def azure(server: OpenAIServer) -> Any:
    return openai.AzureOpenAI(azure_endpoint=server.url.removesuffix("/v1"), **AZURE)


def asynchronous_azure(server: OpenAIServer) -> Any:
    return openai.AsyncAzureOpenAI(azure_endpoint=server.url.removesuffix("/v1"), **AZURE)


CLIENTS = [plain, asynchronous, azure, asynchronous_azure]


def judge_of(client: Any, engine: Engine, settings: Settings = QUICK, **more: Any) -> Judge:
    return judge_from(
        OpenAIJudge(client, **{"model": "m1", "provider": "lab", **more}), engine, settings, environ={}
    )


def ask(client: Any, engine: Engine, task: Any = TASK, **more: Any) -> Answered[Any]:
    return engine.wait(judge_of(client, engine, **more).ask(task))


@pytest.mark.parametrize("made", CLIENTS)
def test_a_client_gets_what_the_built_in_judge_sends(made: Callable[[Any], Any], engine: Engine) -> None:
    with OpenAIServer([GOOD]) as server:
        answered = ask(made(server), engine, seed=7, max_tokens=300, top_k=1)
        built_in = ProviderSettings(
            base_url=server.url, temperature=0.5, seed=7, max_tokens=300, extra_body={"top_k": 1}
        )
        engine.wait(openai_judge("own", built_in, "m1", engine, environ={}).ask(TASK))
        sent, ours = server.requests
        assert sent == ours
        azures = made in (azure, asynchronous_azure)
        path = "/openai/deployments/m1/chat/completions?api-version=2024-10-21"
        assert server.paths[0] == (path if azures else "/v1/chat/completions")
        assert server.headers[0]["api-key" if azures else "authorization"].endswith(KEY)
    assert (answered.reply.grade, answered.judge, answered.usage.calls) == (0.75, "lab:m1", 1)
    assert (answered.usage.prompt_tokens, answered.usage.completion_tokens) == (100, 20)
    assert sent["response_format"]["json_schema"]["strict"] is True


@pytest.mark.parametrize("made", CLIENTS)
def test_replies_are_stored_and_votes_are_calls_of_their_own(
    made: Callable[[Any], Any], make_engine: Callable[..., Engine]
) -> None:
    with OpenAIServer([GOOD]) as server:
        ask(made(server), make_engine())
        again = ask(made(server), make_engine(run_id="later"))
        assert (again.cached, again.usage.calls, server.calls) == (True, 0, 1)
        assert not ask(made(server), make_engine(), OTHER).cached
        assert not ask(made(server), make_engine(), temperature=1.0).cached


@pytest.mark.parametrize("made", [plain, asynchronous])
def test_its_retries_are_ours(made: Callable[[Any], Any], engine: Engine) -> None:
    limited = error(429, "slow down", headers={"Retry-After": "0"})
    with OpenAIServer([limited, error(503, "busy"), GOOD]) as server:
        client = made(server)
        assert ask(client, engine).usage.calls == server.calls == 3
        assert client.max_retries == 2  # the user's own object stays as it is
    with OpenAIServer([error(500, "down")]) as server:
        with pytest.raises(JudgeError, match="after 3 attempts") as caught:
            ask(made(server), engine)
        assert (caught.value.code, server.calls) == ("http_500", 3)


@pytest.mark.parametrize("made", [plain, asynchronous])
@pytest.mark.parametrize(
    ("reply", "code", "calls"),
    [
        (error(401, "no such key: " + KEY), "http_401", 1),
        (error(400, "it is so"), "http_400", 1),
        (error(429, "later", headers={"Retry-After": "3600"}), "http_429", 1),
        (error(429, "no money", code="insufficient_quota"), "insufficient_quota", 1),
        (Reply(GOOD, cut=True), "connection", 3),
        (Reply(body={"choices": []}), "empty", 2),
        (Reply("", finish_reason="content_filter"), "content_filter", 1),
        (Reply(GOOD, finish_reason="length"), "truncated", 2),
    ],
    ids=["key", "bad request", "long wait", "quota", "cut", "empty", "filter", "truncated"],
)
def test_errors_are_sorted_as_those_of_the_built_in_judge(
    made: Callable[[Any], Any], engine: Engine, reply: Reply, code: str, calls: int
) -> None:
    with OpenAIServer([reply]) as server:
        with pytest.raises(JudgeError) as caught:
            ask(made(server), engine)
        assert (caught.value.code, server.calls) == (code, calls)
        assert KEY not in f"{caught.value} {caught.value.raw}"


@pytest.mark.parametrize("made", [plain, asynchronous])
def test_a_reply_that_never_comes(made: Callable[[Any], Any], engine: Engine) -> None:
    with OpenAIServer([Reply(hang=True)]) as server:
        with pytest.raises(JudgeError) as caught:
            ask(made(server), engine, timeout=0.3)
        assert (caught.value.code, server.calls) == ("timeout", 3)


@pytest.mark.parametrize("made", [plain, asynchronous])
def test_what_the_service_refuses_is_left_out_from_then_on(
    made: Callable[[Any], Any], engine: Engine
) -> None:
    script = [
        error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        error(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
        GOOD,
    ]
    with OpenAIServer(script) as server:
        ask(made(server), engine)
        ask(made(server), engine, OTHER)
        assert server.calls == 4
        assert server.requests[-1]["max_completion_tokens"] == 2048
        assert server.requests[-1]["response_format"] == {"type": "json_object"}


def test_verdicts_by_probability(engine: Engine) -> None:
    yes, no = (
        {"token": "Yes", "logprob": -0.1, "bytes": None},
        {
            "token": "No",
            "logprob": -2.4,
            "bytes": None,
        },
    )
    completion = {
        **COMPLETION,
        "choices": [
            {
                "index": 0,
                "finish_reason": "length",
                "message": {"role": "assistant", "content": "Yes"},
                "logprobs": {"content": [{**yes, "top_logprobs": [yes, no]}], "refusal": None},
            }
        ],
    }
    task = in_a_word(VerifyClaims(claims=("It is open.",), contexts=("It is open on Sundays.",)))[0]
    with OpenAIServer([Reply(body=completion)]) as server:
        judge = judge_of(asynchronous(server), engine)
        assert getattr(judge, "probabilities", False)
        engine.wait(judge.ask(task))
        assert server.requests[0]["logprobs"] is True


def test_a_sync_client_leaves_the_loop_free(engine: Engine) -> None:
    met = threading.Barrier(2, timeout=20)

    def both_are_there(messages: list[dict[str, str]], schema: Any) -> dict[str, Any]:
        met.wait()  # passes only while the other call is under way, too
        return GOOD

    async def both(judge: Judge) -> list[Any]:
        return list(await asyncio.gather(judge.ask(TASK), judge.ask(OTHER)))

    with OpenAIServer(both_are_there) as server:
        replies = engine.wait(both(judge_of(plain(server), engine)))
    assert [answered.reply.grade for answered in replies] == [0.75, 0.75]


def test_slots_are_the_engines(engine: Engine) -> None:
    under_way: list[int] = []

    def counted(messages: list[dict[str, str]], schema: Any) -> dict[str, Any]:
        under_way.append(engine.out)
        return GOOD

    async def many(judge: Judge) -> None:
        tasks = [GradeRelevance(question=f"q{number}?", answer="a") for number in range(6)]
        await asyncio.gather(*(judge.ask(task) for task in tasks))

    with OpenAIServer(counted) as server:
        engine.wait(many(judge_of(asynchronous(server), engine, max_concurrency=1)))
        assert server.calls == 6
    assert max(under_way) == 1


# What a fixture may return


def test_a_bare_client_takes_provider_and_model_from_the_configuration(engine: Engine) -> None:
    with OpenAIServer([GOOD]) as server:
        settings = Settings(providers={"lab": ProviderSettings(base_url=server.url, model="m7", seed=3)})
        judge = judge_from(asynchronous(server), engine, settings, environ={})
        assert engine.wait(judge.ask(TASK)).judge == "lab:m7"
        assert (server.requests[0]["model"], server.requests[0]["seed"]) == ("m7", 3)
        named = judge_from(plain(server), engine, Settings(judge="127.0.0.1:m8"), environ={})
        assert named.name == "127.0.0.1:m8"
        deployed = openai.AzureOpenAI(azure_endpoint=server.url, azure_deployment="d1", **AZURE)
        assert judge_from(deployed, engine, Settings(), environ={}).name == "127.0.0.1:d1"
        assert judge_from(openai.OpenAI(api_key=KEY), engine, Settings(), environ={}).name == (
            "openai:gpt-4o-mini"
        )
        with pytest.raises(UsageError, match=r"names no model; return OpenAIJudge\(client, model=...\)"):
            judge_from(plain(server), engine, Settings(), environ={})


def test_a_panel_of_clients(engine: Engine) -> None:
    with OpenAIServer([GOOD]) as server:
        members = [OpenAIJudge(plain(server), model="a"), OpenAIJudge(asynchronous(server), model="b")]
        panel = judge_from(members, engine, Settings(), environ={})
    assert isinstance(panel, Panel)
    assert panel.name == "127.0.0.1:a, 127.0.0.1:b"
    assert panel.shared is True


@pytest.mark.parametrize(
    "reply",
    [
        COMPLETION,
        ChatCompletion.model_validate(COMPLETION),
        SimpleNamespace(
            choices=[SimpleNamespace(message=SimpleNamespace(content=json.dumps(GOOD)))],
            usage=SimpleNamespace(prompt_tokens=7, completion_tokens=3),
        ),
        Mock(
            choices=[Mock(message=Mock(content=json.dumps(GOOD)))],
            usage=Mock(prompt_tokens=7, completion_tokens=3),
        ),
    ],
    ids=["dict", "completion", "object", "mock"],
)
@pytest.mark.parametrize("kind", ["mock", "async mock", "spec", "object"])
def test_objects_with_the_same_methods(kind: str, reply: Any, make_engine: Callable[..., Engine]) -> None:
    def client() -> tuple[Any, Mock]:
        create = AsyncMock(return_value=reply) if kind == "async mock" else Mock(return_value=reply)
        if kind == "object":
            return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create))), create
        mock = Mock(spec=openai.OpenAI) if kind == "spec" else Mock()
        mock.chat.completions.create = create
        return mock, create

    for expected in (1, 1):
        mock, create = client()
        engine = make_engine(run_id=f"run {expected} {id(mock)}")
        judge = judge_from(OpenAIJudge(mock, model="m1"), engine, Settings(), environ={})
        answered = engine.wait(judge.ask(TASK))
        assert (answered.reply.grade, answered.usage.prompt_tokens) == (0.75, 7)
        # No URL says where its replies come from: another run asks again.
        assert create.call_count == expected


def test_a_bare_mock_is_a_client_and_no_judge(engine: Engine) -> None:
    mock = Mock()
    mock.chat.completions.create.return_value = COMPLETION
    settings = Settings(providers={"client": ProviderSettings(model="m1")})
    assert engine.wait(judge_from(mock, engine, settings, environ={}).ask(TASK)).reply.grade == 0.75
    assert mock.chat.completions.create.call_count == 1


class Handing:
    """As tracing libraries wrap a client: what it doesn't know, it hands on."""

    def __init__(self, inner: Any, seen: list[str]) -> None:
        self._inner = inner
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self._create))
        self._seen = seen

    def _create(self, **body: Any) -> Any:
        self._seen.append(body["model"])
        return self._inner.chat.completions.create(**body)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def patched(inner: Any, seen: list[str]) -> Any:
    """As others do it: the method of this very object is another one."""
    create = inner.chat.completions.create

    def noted(**body: Any) -> Any:
        seen.append(body["model"])
        return create(**body)

    inner.chat.completions.create = noted
    return inner


@pytest.mark.parametrize("made", [plain, asynchronous])
@pytest.mark.parametrize("wrapped", [Handing, patched])
def test_wrapped_clients_are_asked_through_their_wrapper(
    wrapped: Callable[..., Any], made: Callable[[Any], Any], make_engine: Callable[..., Engine]
) -> None:
    seen: list[str] = []
    told: list[str] = []
    with OpenAIServer([GOOD]) as server:
        engine = make_engine(on_warning=told.append)
        answered = ask(wrapped(made(server), seen), engine)
        assert (answered.reply.grade, seen, server.calls) == (0.75, ["m1"], 1)
        assert "make it with max_retries=0" in told[0]
        told.clear()
        ask(wrapped(made(server).with_options(max_retries=0), seen), engine, OTHER)
        assert (seen, told) == (["m1", "m1"], [])


def test_a_client_that_raises_something_else(engine: Engine) -> None:
    client = Mock()
    client.chat.completions.create.side_effect = TypeError("no such argument 'seed'")
    with pytest.raises(JudgeError, match="the client raised, asking .*TypeError: no such argument") as caught:
        ask(client, engine)
    assert caught.value.code == "client_raised"


@pytest.mark.parametrize("wrong", [object(), openai.OpenAI, "gpt-4o", Mock(spec=[])])
def test_objects_that_are_no_client(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"needs a client of the library openai"):
        OpenAIJudge(wrong, model="m1")


def test_an_option_out_of_range(engine: Engine) -> None:
    with pytest.raises(UsageError, match="OpenAIJudge.*temperature"):
        judge_of(Mock(), engine, temperature=9)
