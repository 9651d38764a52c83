"""The real client against a real server on the loopback."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import RagSample, score_over
from pytest_ragbench.engine import Engine
from pytest_ragbench.http.endpoints import endpoint_of
from pytest_ragbench.judge.base import Answered, Judge
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.reading.schemas import strict_schema
from pytest_ragbench.judge.tasks import GradeSearchRag, VerifyClaims, WriteQuestions
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.settings import ProviderSettings, RetrySettings
from tests.servers.openai_server import OpenAIServer, Reply, error

KEY = "sk-test-FAKE-0000-abcd"
TASK = GradeSearchRag(question="Срок возврата?", answer="45 дней", contexts=("Возврат за 7 дней.",))
GOOD = {"answer_correctness": 0.9, "groundedness": "0.25", "error_message": "45 дней нет"}
RETRY = RetrySettings(attempts=3, wait=0, max_wait=1)


def ask(server: OpenAIServer, engine: Engine, task: Any = TASK, **settings: Any) -> Answered[Any]:
    provider = ProviderSettings(base_url=server.url, **{"retry": RETRY, **settings})
    return engine.wait(openai_judge("lab", provider, "m1", engine, environ={}).ask(task))


def fails(server: OpenAIServer, engine: Engine, **settings: Any) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        ask(server, engine, **settings)
    return caught.value


def formats(server: OpenAIServer) -> list[str | None]:
    return [(request.get("response_format") or {}).get("type") for request in server.requests]


def test_one_task_one_call(engine: Engine) -> None:
    with OpenAIServer([GOOD]) as server:
        answered = ask(server, engine, headers={"X-Team": "qa"}, seed=7, extra_body={"top_k": 1})
    assert (answered.reply.answer_correctness, answered.reply.groundedness) == (0.9, 0.25)
    assert (answered.judge, answered.cached) == ("lab:m1", False)
    assert (answered.usage.calls, answered.usage.prompt_tokens, answered.usage.completion_tokens) == (
        1,
        100,
        20,
    )
    assert answered.duration > 0
    assert [json.loads(text)["groundedness"] for text in answered.said] == ["0.25"]  # as it was sent
    (request,) = server.requests
    assert server.paths == ["/v1/chat/completions"]
    assert (request["model"], request["temperature"], request["seed"], request["top_k"]) == ("m1", 0, 7, 1)
    assert request["max_tokens"] == 2048
    assert server.headers[0]["x-team"] == "qa"
    assert "Возврат за 7 дней." in request["messages"][1]["content"]
    schema = request["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"]) == ("grade_search_rag", True)
    assert schema["schema"]["required"] == ["answer_correctness", "groundedness", "error_message"]


def test_stored_replies_are_not_asked_for_again(make_engine: Callable[..., Engine]) -> None:
    with OpenAIServer([GOOD]) as server:
        first = ask(server, make_engine())
        second = ask(server, make_engine(run_id="later"))
        assert server.calls == 1
        assert (second.reply, second.said) == (first.reply, first.said)
        assert (second.cached, second.usage.calls, second.duration) == (True, 0, 0)
        for other in ({"temperature": 0.5}, {"seed": 1}, {"max_tokens": 100}, {"extra_body": {"a": 1}}):
            assert not ask(server, make_engine(), **other).cached
        assert not ask(server, make_engine(), TASK.__class__("q", "a", ())).cached
        assert ask(server, make_engine(), timeout=7, max_concurrency=2).cached


def test_what_the_service_refuses_does_not_change_the_store_key(make_engine: Callable[..., Engine]) -> None:
    script = [error(400, "json_schema is not supported"), GOOD]
    with OpenAIServer(script) as server:
        assert not ask(server, make_engine()).cached
        assert ask(server, make_engine()).cached


def test_a_stored_reply_knows_what_it_took(make_engine: Callable[..., Engine]) -> None:
    sample, found = RagSample("How?", "Like this.", id="a"), []
    with OpenAIServer([{"grade": 1.0, "reason": ""}]) as server:
        provider = ProviderSettings(base_url=server.url)
        for run in ("one", "two"):
            judge = openai_judge("lab", provider, "m1", make_engine(run_id=run), environ={})
            found.append(score_over([sample], "judge_latency", by="answer_relevancy_holistic", judge=judge))
        assert server.calls == 1
    first, second = found
    assert (first.details["n_stored"], second.details["n_stored"]) == (0, 1)
    assert second.value == first.value > 0
    assert second.reason == "1 stored replies, when they were asked for"


def test_unreadable_replies_are_never_stored(make_engine: Callable[..., Engine]) -> None:
    with OpenAIServer(["no", "no", GOOD]) as server:
        assert fails(server, make_engine()).code == "not_json"
        assert ask(server, make_engine()).reply.answer_correctness == 0.9
        assert server.calls == 3


def test_structured_output_falls_back_and_is_remembered(engine: Engine) -> None:
    script = [
        error(400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported"),
        error(422, "response_format: extra inputs"),
        GOOD,
    ]
    with OpenAIServer(script) as server:
        answered = ask(server, engine)
        assert answered.usage.calls == 3
        ask(server, engine, GradeSearchRag("another", "a", ("c",)))
        assert formats(server) == ["json_schema", "json_object", None, None]
        assert all("JSON" in request["messages"][0]["content"] for request in server.requests)


@pytest.mark.parametrize("wanted", ["json_schema", "json_object", "prompt"])
def test_structured_output_as_configured(engine: Engine, wanted: str) -> None:
    with OpenAIServer([GOOD]) as server:
        ask(server, engine, structured_output=wanted)
        assert formats(server) == [None if wanted == "prompt" else wanted]
    with OpenAIServer([error(400, "response_format is not supported")]) as server:
        assert fails(server, engine, structured_output=wanted).code == "http_400"
        assert server.calls == 1


def test_parameters_of_newer_models(engine: Engine) -> None:
    script = [
        error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        error(400, "Unsupported value: 'temperature' does not support 0 with this model."),
        GOOD,
    ]
    with OpenAIServer(script) as server:
        ask(server, engine)
        last = server.requests[-1]
        assert last["max_completion_tokens"] == 2048
        assert not {"temperature", "max_tokens"} & set(last)


def test_a_bad_reply_is_asked_for_again(engine: Engine) -> None:
    with OpenAIServer([{"answer_correctness": 9, "groundedness": 1}, GOOD]) as server:
        assert ask(server, engine).usage.calls == 2
        first, second = (request["messages"] for request in server.requests)
        assert second[: len(first)] == first
        assert [message["role"] for message in second[len(first) :]] == ["assistant", "user"]
        assert json.loads(second[-2]["content"]) == {"answer_correctness": 9, "groundedness": 1}
        assert "9 is not a number in the range 0..1" in second[-1]["content"]


def test_only_missing_verdicts_are_asked_for_again(engine: Engine) -> None:
    def judge(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> dict[str, Any]:
        assert schema is not None
        numbers = schema["properties"]["verdicts"]["required"]
        numbers = numbers[:2] if len(numbers) == 3 else numbers
        return {"verdicts": {number: {"reason": "", "chunk": None, "verdict": True} for number in numbers}}

    with OpenAIServer(judge) as server:
        answered = ask(server, engine, VerifyClaims(claims=("a", "b", "c"), contexts=("x",)))
        assert sorted(answered.reply.verdicts) == [1, 2, 3]
        assert server.calls == 2


def test_a_cut_reply_gets_twice_the_room(engine: Engine) -> None:
    with OpenAIServer([Reply(GOOD, finish_reason="length"), GOOD]) as server:
        ask(server, engine, max_tokens=100)
        assert [request["max_tokens"] for request in server.requests] == [100, 200]
    with OpenAIServer([Reply(None, finish_reason="length", message={"reasoning_content": "hm"})]) as server:
        assert fails(server, engine).code == "truncated"
        assert server.calls == 2


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (Reply(None, message={"refusal": "I can't judge that."}), "refused"),
        (Reply("", finish_reason="content_filter"), "content_filter"),
        (Reply([{"type": "refusal", "refusal": "No."}]), "refused"),
    ],
    ids=["refusal", "filter", "refusal part"],
)
def test_refusals_take_one_call(engine: Engine, reply: Reply, code: str) -> None:
    with OpenAIServer([reply]) as server:
        assert fails(server, engine).code == code
        assert server.calls == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply([{"type": "thinking", "thinking": "{1.0}"}, {"type": "text", "text": json.dumps(GOOD)}]),
        Reply(
            None,
            finish_reason="tool_calls",
            message={"tool_calls": [{"function": {"name": "reply", "arguments": json.dumps(GOOD)}}]},
        ),
        Reply(GOOD, finish_reason=None, message={"reasoning_content": '{"answer_correctness": 1.0}'}),
        Reply(GOOD, usage=None),
    ],
    ids=["parts", "tool call", "reasoning", "no usage"],
)
def test_shapes_of_a_message(engine: Engine, reply: Reply) -> None:
    with OpenAIServer([reply]) as server:
        assert ask(server, engine).reply.groundedness == 0.25
        assert server.calls == 1


@pytest.mark.parametrize(
    ("reply", "code", "calls"),
    [
        (Reply(body={"choices": []}), "empty", 2),
        (Reply(None, message={"reasoning_content": json.dumps(GOOD)}), "only_reasoning", 1),
        (Reply(body="<html>login</html>", headers={"Content-Type": "text/html"}), "no_completion", 1),
        (Reply(body="{"), "no_completion", 1),
        (Reply(body=[1]), "no_completion", 1),
        (Reply(body={"error": {"code": 403, "message": "no"}}), "http_403", 1),
        (Reply(body={"error": {"code": 502, "message": "upstream"}}), "http_502", 3),
        (Reply(GOOD, cut=True), "connection", 3),
    ],
    ids=["no choices", "only thoughts", "html", "broken", "list", "error inside", "outage inside", "cut"],
)
def test_replies_that_are_none(engine: Engine, reply: Reply, code: str, calls: int) -> None:
    with OpenAIServer([reply]) as server:
        assert fails(server, engine).code == code
        assert server.calls == calls


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422, 499])
def test_permanent_failures_is_not_retried(engine: Engine, status: int) -> None:
    with OpenAIServer([error(status, "it is so")]) as server:
        failure = fails(server, engine)
        assert (failure.code, server.calls) == (f"http_{status}", 1)
        assert f"lab: {status} from {server.url}: it is so" in str(failure)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_transient_failures_are_retried(engine: Engine, status: int) -> None:
    with OpenAIServer([error(status, "later", headers={"Retry-After": "0"}), GOOD]) as server:
        assert ask(server, engine).usage.calls == 2


def test_a_long_retry_after_is_not_waited_for(engine: Engine) -> None:
    with OpenAIServer([error(429, "later", headers={"Retry-After": "3600"})]) as server:
        failure = fails(server, engine)
        assert (failure.code, server.calls) == ("http_429", 1)
        assert "3600" in str(failure)


@pytest.mark.parametrize("fields", [{"type": "insufficient_quota"}, {"code": "insufficient_quota"}])
def test_no_money_is_no_rate_limit(engine: Engine, fields: dict[str, str]) -> None:
    with OpenAIServer([error(429, "You exceeded your current quota", **fields)]) as server:
        failure = fails(server, engine)
        assert (failure.code, server.calls) == ("insufficient_quota", 1)
        assert "quota" in str(failure)


def test_a_hanging_service_is_left(engine: Engine) -> None:
    with OpenAIServer([Reply(hang=True)]) as server:
        failure = fails(server, engine, timeout=0.2, retry=RetrySettings(attempts=2, wait=0))
        assert (failure.code, server.calls) == ("timeout", 2)


def test_nobody_there(engine: Engine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        settings = ProviderSettings(base_url=url, retry=RETRY)
        with pytest.raises(JudgeError, match="no connection to") as caught:
            engine.wait(openai_judge("lab", settings, "m", engine, environ={}).ask(TASK))
    assert caught.value.code == "connection"


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "Bad status line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5000, "longer than 1000 bytes"),
    ],
)
def test_what_no_second_try_can_change(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, reply: bytes, told: str
) -> None:
    """Another kind of server, or one that never ends."""
    monkeypatch.setattr("pytest_ragbench.http.api.MAX_BYTES", 1000)
    asked: list[bytes] = []

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline())
            self.wfile.write(reply)
            self.wfile.flush()
            self.rfile.read()  # until the client closes: what it has not read yet must not be lost

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        settings = ProviderSettings(base_url=f"http://127.0.0.1:{server.server_address[1]}/v1", retry=RETRY)
        with pytest.raises(JudgeError, match=told):
            engine.wait(openai_judge("lab", settings, "m", engine, environ={}).ask(TASK), timeout=20)
        engine.close()
        server.shutdown()
    assert len(asked) == 1


def test_many_at_once(engine: Engine) -> None:
    with OpenAIServer([error(400, "json_schema?"), GOOD]) as server:
        settings = ProviderSettings(base_url=server.url, retry=RETRY, max_concurrency=8)
        judge = openai_judge("lab", settings, "m1", engine, environ={})

        async def all_of_them() -> list[Answered[Any]]:
            tasks = [GradeSearchRag(f"q{number}", "a", ("c",)) for number in range(20)]
            return await asyncio.gather(*(judge.ask(task) for task in tasks))

        found = engine.wait(all_of_them())
        assert [answered.reply.groundedness for answered in found] == [0.25] * 20
        assert server.calls == 21


# Keys and URLs


def test_the_key_is_shown_nowhere(
    make_engine: Callable[..., Engine], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    told = error(401, f"Incorrect API key provided: {KEY}. Bearer {KEY}")
    echoed = {"answer_correctness": 0, "groundedness": 0, "error_message": f"it says {KEY}"}
    with OpenAIServer([told, echoed]) as server:
        settings = ProviderSettings(
            base_url=server.url, api_key_env="LAB_KEY", headers={"X-Api-Key": "hdr-secret"}
        )
        engine = make_engine()
        judge = openai_judge("lab", settings, "m", engine, environ={"LAB_KEY": KEY})
        with pytest.raises(JudgeError) as caught:
            engine.wait(judge.ask(TASK))
        assert engine.wait(judge.ask(TASK)).reply.error_message == "it says ***"
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    failure = caught.value
    assert "401" in str(failure)
    assert "Incorrect API key" in str(failure)
    assert failure.__suppress_context__ or failure.__context__ is None
    engine.close()
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"answer_correctness" in stored
    shown = [str(failure), repr(failure), str(failure.raw), caplog.text, repr(judge), repr(vars(judge))]
    for secret in (KEY, "hdr-secret"):
        assert not [text for text in shown[:-1] if secret in text]
        assert secret.encode() not in stored
    assert KEY not in shown[-1]


def test_keys_come_from_the_variable_that_is_named() -> None:
    remote = "https://llm.example/v1"
    lab = ProviderSettings(base_url=remote, api_key_env="LAB_KEY")
    assert endpoint_of("lab", lab, {"LAB_KEY": f" {KEY}\n"}).key.reveal() == KEY
    for name, settings, variable in [
        ("lab", lab, "LAB_KEY"),
        ("openai", ProviderSettings(), "OPENAI_API_KEY"),
        ("lab", ProviderSettings(base_url="http://localhost:1/v1", api_key_env="LAB_KEY"), "LAB_KEY"),
    ]:
        with pytest.raises(UsageError, match=variable):
            endpoint_of(name, settings, {"OTHER": KEY})
    with pytest.raises(UsageError, match="LAB_KEY") as caught:
        endpoint_of("lab", lab, {"LAB_KEY": f"{KEY}\nключ"})
    assert KEY not in str(caught.value)


def test_the_key_of_openai_goes_to_nobody_else() -> None:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://gateway.example/v1/"}
    found = endpoint_of("openai", ProviderSettings(), environ)
    assert (found.url, found.key.reveal()) == ("http://gateway.example/v1", KEY)
    other = endpoint_of("lab", ProviderSettings(base_url="https://llm.example/v1"), environ)
    assert (other.url, other.key.reveal()) == ("https://llm.example/v1", "no-key")
    with pytest.raises(UsageError, match=r"providers\.lab\.base_url"):
        endpoint_of("lab", ProviderSettings(), environ)
    assert (
        endpoint_of("openai", ProviderSettings(), {"OPENAI_API_KEY": KEY}).url == "https://api.openai.com/v1"
    )
    local = endpoint_of("openai", ProviderSettings(), {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"})
    assert local.key.reveal() == "no-key"
    for url in ("gateway.example", "http://user:pw@gateway.example/v1"):
        with pytest.raises(UsageError, match="OPENAI_BASE_URL") as caught:
            endpoint_of("openai", ProviderSettings(), {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY})
        assert "pw" not in str(caught.value)


def test_secrets_in_the_query_are_sent_and_not_shown(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with OpenAIServer([error(403, "bad key q-secret")]) as server:
        settings = ProviderSettings(base_url=f"{server.url}?api-version=2&key=q-secret", retry=RETRY)
        with pytest.raises(JudgeError) as caught:
            engine.wait(openai_judge("lab", settings, "m", engine, environ={}).ask(TASK))
        assert server.paths == ["/v1/chat/completions?api-version=2&key=q-secret"]
        assert "q-secret" not in str(caught.value)
        assert "q-secret" not in caplog.text


def test_a_judge_needs_a_model(engine: Engine) -> None:
    with pytest.raises(UsageError, match=r"providers\.lab\.model"):
        openai_judge("lab", ProviderSettings(base_url="http://localhost/v1"), None, engine, environ={})
    named = ProviderSettings(base_url="http://localhost/v1", model="m2")
    judge = openai_judge("lab", named, None, engine, environ={})
    assert judge.name == "lab:m2"
    assert isinstance(judge, Judge)


# Schemas

ALLOWED = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "minimum",
    "maximum",
}


@pytest.mark.parametrize(
    "task", [TASK, VerifyClaims(("a", "b"), ("c",)), WriteQuestions("a")], ids=lambda task: task.name
)
def test_schemas_fit_strict_mode(task: Any) -> None:
    schema = strict_schema(task.reply_schema())

    def check(node: dict[str, Any]) -> None:
        if "$ref" in node:
            assert set(node) == {"$ref"}
            assert node["$ref"].removeprefix("#/$defs/") in schema["$defs"]
            return
        assert set(node) <= ALLOWED | {"description", "$defs"}
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        for child in [
            *node.get("properties", {}).values(),
            *node.get("$defs", {}).values(),
            *node.get("anyOf", []),
        ]:
            check(child)
        if "items" in node:
            check(node["items"])

    check(schema)
