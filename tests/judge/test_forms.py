"""What services refuse, in their own words, and what is then asked instead."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.engine import Engine
from pytest_ragbench.http.service_errors import service_error
from pytest_ragbench.judge.forms import ChatRequest, RequestForm, better_form, first_form, request_body
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.tasks import GradeSearchRag
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.settings import ProviderSettings, RetrySettings
from tests.servers.openai_server import OpenAIServer, Reply, error

ASKED: ChatRequest = {
    "model": "m",
    "messages": [],
    "max_tokens": 9,
    "temperature": 0.0,
    "seed": 3,
    "output": "auto",
    "schema": {"name": "x"},
}
GOOD = {"answer_correctness": 0.5, "groundedness": 0.5, "error_message": ""}


def changed(message: Any, asked: ChatRequest = ASKED, **more: Any) -> Any:
    """What would be asked otherwise after an error with this message; None where nothing would."""
    body = message if isinstance(message, dict) else {"error": {"message": message, **more}}
    form = first_form(asked)
    better = better_form(service_error(json.dumps(body)), form, asked)
    if better is None:
        return None
    if better.without:
        (part,) = better.without
        return part
    return next(
        name
        for name in ("output", "limit_name", "top_logprobs")
        if getattr(better, name) != getattr(form, name)
    )


@pytest.mark.parametrize(
    "message",
    [
        "Temperature is deprecated for models of this family; `temperature` is ignored.",
        "`temperature` has been removed in this version of the API",
        "invalid value for temperature: only 1.0 is permitted",
        "BadRequestError: o-series models don't support temperature=0. Only temperature=1 is supported.",
        "Unsupported value: 'temperature' does not support 0 with this model.",
        "Input validation error: `temperature` must be strictly positive",
        "temperature must be greater than 0",
        "This model samples in a fixed way; remove 'temperature' from your request.",
        "Please do not send the parameter `temperature` to reasoning models",
        "Unrecognized request argument supplied: temperature",
        'Unknown name "temperature": Cannot find field.',
        "temperature and top_p cannot both be specified for this model.",
        "`temperature` may only be set to 1 when thinking is enabled.",
        "the parameter temperature is not available here",
        "该模型不支持 temperature 参数",
        "temperature 参数无效，必须为 1",
        "Параметр temperature не поддерживается этой моделью",
        "Недопустимое значение: temperature должно быть больше 0",
        "temperatureはサポートされていません",
        "このモデルでは「temperature」は使用できません",
        {"detail": [{"loc": ["body", "temperature"], "msg": "Input should be greater than 0", "input": 0}]},
        {"error": {"message": "Bad request", "param": "temperature", "code": "unsupported_value"}},
        {"error": "Bad Request", "message": "temperature is not supported"},
        {"error": {"message": "Provider error", "metadata": {"raw": {"message": "`temperature` is deprecated"}}}},
        {"error": {"message": "Azure - {'error': {'message': \"'temperature' is unsupported\", 'param': None}}."}},
        {"object": "error", "message": "[{'loc': ('body', 'temperature'), 'msg': 'Extra inputs are not permitted', "
         "'type': 'extra_forbidden', 'input': {'messages': [], 'response_format': {}}}]", "code": 400},
    ],
)  # fmt: skip
def test_the_temperature_that_we_chose_is_dropped(message: Any) -> None:
    assert changed(message) == "temperature"


@pytest.mark.parametrize(
    ("message", "part"),
    [
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "limit_name"),
        ("max_tokens is not supported with this model", "limit_name"),
        ("This response_format type is unavailable now", "output"),
        ("Invalid schema for response_format 'grade'", "output"),
        ("Model does not support structured outputs", "output"),
        ("JSON mode is not enabled for this model", "output"),
        ("response_format が無効です", "output"),
        ("response_format.type 仅支持 text", "output"),
        ("json_schema?", "output"),
        ("seed is not supported by this backend", "seed"),
        (
            {
                "detail": [
                    {"loc": ["body", "response_format", "type"], "msg": "Extra inputs are not permitted"}
                ]
            },
            "output",
        ),
    ],
)
def test_other_parts(message: Any, part: str) -> None:
    assert changed(message) == part


ECHOED = (
    "{'model': 'm', 'messages': [{'role': 'user', 'content': 'x'}], 'response_format': {'type': 'json_schema'}, "
    "'max_completion_tokens': None, 'temperature': 0.0, 'seed': 3}"
)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. messages: 9000 response_format: not supported here",
        f"The prompt is too long. Unsupported request: {ECHOED}",
        f"Invalid request {ECHOED}",
        f"Value error, the model `x` is unknown [type=value_error, input_value={ECHOED}, input_type=dict]",
        "Invalid prompt: 'What is the temperature of boiling water?' was flagged as not allowed",
        "Invalid message content: the user asks how temperature changes and if it is supported",
        "The model `x` does not exist",
        "max_tokens is too large: 9. This model supports at most 4",
        "Invalid 'messages[1].content': string too long. Expected at most 5 characters; response_format is unsupported",
        {"error": {"message": "not allowed: temperature", "param": "messages"}},
        {
            "detail": [
                {
                    "loc": ["body", "messages", 0],
                    "msg": "Value error, unsupported",
                    "input": {"temperature": 0},
                }
            ]
        },
        {
            "message": f"[{{'type': 'value_error', 'loc': ('body',), 'msg': 'Value error, bad', 'input': {ECHOED}}}]"
        },
    ],
)
def test_what_an_error_repeats_is_no_complaint(message: Any) -> None:
    assert changed(message) is None


@given(st.text(max_size=60), st.sampled_from(["messages", "prompt", "input"]))
def test_an_echoed_prompt_changes_nothing(text: str, name: str) -> None:
    request = {name: [{"content": f"{text} `temperature` is not supported, response_format is invalid"}]}
    assert changed(f"Bad request: {json.dumps(request)}") is None
    assert changed(f"Bad request: {request!r}") is None


def test_a_temperature_of_the_users_is_dropped_only_where_none_is_taken() -> None:
    warm: ChatRequest = {**ASKED, "temperature": 1.7}
    assert changed("temperature must be between 0 and 1", warm) is None
    assert changed("`temperature` is deprecated for this model", warm) == "temperature"


def test_log_probabilities_by_what_is_taken() -> None:
    asked: ChatRequest = {**ASKED, "schema": None}
    assert changed("top_logprobs must be less than or equal to 5", asked) == "top_logprobs"
    assert request_body(asked, RequestForm(top_logprobs=5), {})["top_logprobs"] == 5


def test_log_probabilities_are_asked_for_in_the_place_of_a_schema() -> None:
    asked: ChatRequest = {**ASKED, "schema": None}
    body = request_body(asked, first_form(asked), {})
    assert (body["logprobs"], body["top_logprobs"], "response_format" in body) == (True, 20, False)
    few = RequestForm(top_logprobs=5)
    told = service_error(json.dumps({"error": {"message": "top_logprobs must be at most 3"}}))
    assert better_form(told, few, asked) is None
    # No structured output was asked for that could be refused.
    assert changed("response_format is not supported", asked) is None
    assert changed("top_logprobs is not supported") is None


@pytest.mark.parametrize(
    ("output", "sent"),
    [
        ("json_schema", {"type": "json_schema", "json_schema": {"name": "x", "strict": True}}),
        ("json_object", {"type": "json_object"}),
        ("prompt", None),
    ],
)
def test_how_structured_output_is_asked_for(output: str, sent: Any) -> None:
    body = request_body(ASKED, RequestForm(output=output), {})
    assert body.get("response_format") == sent
    assert "logprobs" not in body


def test_what_is_none_is_left_out_and_ones_own_part_wins() -> None:
    asked: ChatRequest = {**ASKED, "temperature": None, "seed": None}
    assert request_body(asked, RequestForm(output="prompt"), {"top_p": 0.5, "max_tokens": 7}) == {
        "model": "m", "messages": [], "max_tokens": 7, "top_p": 0.5,
    }  # fmt: skip
    form = RequestForm(output="prompt", limit_name="max_completion_tokens", without=frozenset(["seed"]))
    assert request_body(ASKED, form, {}) == {
        "model": "m", "messages": [], "max_completion_tokens": 9, "temperature": 0.0,
    }  # fmt: skip


def after(message: str, form: RequestForm, **asked: Any) -> RequestForm | None:
    told = service_error(json.dumps({"error": {"message": message}}))
    return better_form(told, form, {**ASKED, **asked})  # type: ignore[typeddict-item]


def test_structured_output_is_given_up_step_by_step() -> None:
    refused = "response_format is not supported"
    assert first_form(ASKED).output == "json_schema"
    assert after(refused, RequestForm()) == RequestForm(output="json_object")
    assert after(refused, RequestForm(output="json_object")) == RequestForm(output="prompt")
    assert after(refused, RequestForm(output="prompt")) is None
    # What the user chose is the user's to change.
    chosen: ChatRequest = {**ASKED, "output": "json_object"}
    assert first_form(chosen).output == "json_object"
    assert after(refused, first_form(chosen), output="json_object") is None


def test_a_part_that_is_not_sent_is_not_complained_of() -> None:
    form = RequestForm(without=frozenset(["temperature"]), limit_name="max_completion_tokens")
    assert after("temperature is not supported", form) is None
    assert after("temperature is not supported", RequestForm(), temperature=None) is None
    assert after("max_tokens is not supported", form) is None
    assert after("seed is not supported", form) == RequestForm(
        without=frozenset(["temperature", "seed"]), limit_name="max_completion_tokens"
    )
    # Its value is the user's.
    assert after("seed must be between 0 and 9", RequestForm()) is None
    assert after("max_tokens must be at most 4", RequestForm()) is None


@pytest.mark.parametrize(
    ("param", "code", "message", "part"),
    [
        ("temperature", "", "Bad request", "temperature"),
        ("body.temperature", "", "Bad request", "temperature"),
        ("temperatures", "", "`temperature` is not supported", None),
        ("response_format", "", "Bad request", "output"),
        ("max_tokens", "unsupported_parameter", "Bad request", "limit_name"),
        ("max_tokens", "", "Bad request", None),
        ("max_tokens", "", "it is not supported", "limit_name"),
    ],
)
def test_the_parameter_that_an_error_names(param: str, code: str, message: str, part: str | None) -> None:
    assert changed({"error": {"message": message, "param": param, "code": code}}) == part


def test_the_words_of_refusal_are_near_to_the_part() -> None:
    """Ninety characters away they are about something else."""
    near, far = "x" * 70, "x" * 95
    assert changed(f"temperature is {near} unsupported") == "temperature"
    assert changed(f"temperature is {far} unsupported") is None
    assert changed(f"unsupported: {near} 'temperature'") == "temperature"
    assert changed(f"unsupported: {far} 'temperature'") is None
    assert changed("`temperature` was given. The model is not supported") is None


def test_forms_learnt_at_once_are_put_together() -> None:
    """What the proven form changed of the one before it is taken over; the rest stays as it has been learnt since."""
    first = RequestForm()
    cold = RequestForm(without=frozenset(["temperature"]))
    assert RequestForm(output="prompt").merged(first, cold) == RequestForm(
        output="prompt", without=frozenset(["temperature"])
    )
    learnt = RequestForm("json_object", "max_completion_tokens", 5, frozenset(["seed"]))
    assert first.merged(first, learnt) == learnt
    assert learnt.merged(first, first) == learnt
    assert learnt.merged(learnt, RequestForm("prompt", "max_tokens", 20)) == RequestForm(
        "prompt", "max_tokens", 5, frozenset(["seed"])
    )


# Against a server


def judge_at(server: OpenAIServer, engine: Engine, **settings: Any) -> Callable[[str], Any]:
    provider = ProviderSettings(
        base_url=server.url, retry=RetrySettings(attempts=3, wait=0, max_wait=1), **settings
    )
    judge = openai_judge("lab", provider, "m1", engine, environ={})
    return lambda question: engine.wait(judge.ask(GradeSearchRag(question, "an answer", ("c",))))


def test_a_refused_temperature_costs_one_call_a_model(engine: Engine) -> None:
    told = error(400, "`temperature` is deprecated for this model.")
    with OpenAIServer([told, GOOD]) as server:
        ask = judge_at(server, engine)
        for question in ("one", "two", "three"):
            assert ask(question).reply.groundedness == 0.5
        assert ["temperature" in request for request in server.requests] == [True, False, False, False]


def test_a_refusal_in_a_reply_with_status_200(engine: Engine) -> None:
    told = Reply(body={"error": {"code": "400", "message": "invalid temperature: only 1 is allowed"}})
    with OpenAIServer([told, GOOD]) as server:
        assert judge_at(server, engine)("one").usage.calls == 2


def test_one_oversized_question_changes_nothing_for_the_others(engine: Engine) -> None:
    def echo(request: dict[str, Any]) -> Reply:
        told = [
            {
                "type": "value_error",
                "loc": ["body"],
                "msg": "Value error, maximum context length is 10",
                "input": request,
            }
        ]
        return Reply(status=422, body={"detail": told})

    with OpenAIServer(
        [error(400, f"maximum context length exceeded, messages: ... {ECHOED}"), GOOD]
    ) as server:
        ask = judge_at(server, engine)
        with pytest.raises(JudgeError) as caught:
            ask("long")
        assert (caught.value.code, server.calls) == ("http_400", 1)
        ask("short")
        first, second = server.requests
        assert {**first, "messages": 0} == {**second, "messages": 0}
    with OpenAIServer([echo(first), GOOD]) as server:
        ask = judge_at(server, engine)
        with pytest.raises(JudgeError):
            ask("long again")
        ask("short again")
        assert server.calls == 2
        assert server.requests[1]["response_format"]["type"] == "json_schema"


def test_a_form_that_brought_no_reply_is_not_kept(engine: Engine) -> None:
    with OpenAIServer(
        [error(400, "response_format is not supported"), error(400, "the prompt was flagged"), GOOD]
    ) as server:
        ask = judge_at(server, engine)
        with pytest.raises(JudgeError, match="flagged"):
            ask("odd")
        ask("even")
        assert server.requests[2]["response_format"]["type"] == "json_schema"


def test_a_value_out_of_range_names_its_setting(engine: Engine) -> None:
    with OpenAIServer([error(400, "temperature must be between 0 and 1")]) as server:
        with pytest.raises(JudgeError, match=r"change providers\.lab\.temperature"):
            judge_at(server, engine, temperature=1.7)("one")
        assert server.calls == 1
