"""How replies end, and what becomes of those that did not end well."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.completions import completion_of
from pytest_ragbench.judge.conversation import read_conversation
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.reading.endings import check_end, ending, repeated
from pytest_ragbench.judge.reading.strict_json import UnreadableReply, loaded
from pytest_ragbench.judge.tasks import GradeSearchRag, SplitClaims, VerifyClaims, in_a_word
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.settings import ProviderSettings, RetrySettings
from tests.servers.openai_server import OpenAIServer, Reply, error

TASK = GradeSearchRag("q", "a", ("c",))
GOOD = {"answer_correctness": 0.75, "groundedness": 0.5, "error_message": "x"}


def ask(server: OpenAIServer, engine: Engine, task: Any = TASK) -> Any:
    provider = ProviderSettings(base_url=server.url, retry=RetrySettings(attempts=2, wait=0, max_wait=1))
    return engine.wait(openai_judge("lab", provider, "m1", engine, environ={}).ask(task))


def fails(server: OpenAIServer, engine: Engine, task: Any = TASK) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        ask(server, engine, task)
    return caught.value


@pytest.mark.parametrize(
    ("reasons", "kind"),
    [
        ([None, "", "stop", "STOP", "FinishReason.STOP", "eos", "eos_token", "end_turn", "endTurn", "tool_calls",
          "tool_use", "function_call", "stop_sequence", "COMPLETE", "null", " stop "], "good"),
        (["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "max_new_tokens", "token_limit"],
         "truncated"),
        (["model_context_window_exceeded", "context_length_exceeded", "context_window", "CONTEXT_LIMIT"],
         "context_window"),
        (["content_filter", "SAFETY", "IMAGE_SAFETY", "sensitive", "guardrail_intervened", "content_filtered",
          "RECITATION", "PROHIBITED_CONTENT", "moderation", "risk_control"], "content_filter"),
        (["refusal", "refused"], "refused"),
        (["error", "network_error", "insufficient_system_resource", "abort", "cancelled", "server_error", "timeout",
          "engine_overloaded"], "interrupted"),
        (["pause_turn", "OTHER", "LANGUAGE", "banana", "MALFORMED_FUNCTION_CALL", "compaction"], "unfinished"),
    ],
)  # fmt: skip
def test_words_for_the_end(reasons: list[str | None], kind: str) -> None:
    assert {reason: ending(reason) for reason in reasons} == dict.fromkeys(reasons, kind)


@given(st.text(min_size=1))
def test_no_other_word_is_a_good_end(reason: str) -> None:
    if ending(reason) == "good":
        assert completion_of({"choices": [{"finish_reason": reason}]})
        return
    content = json.dumps(GOOD)
    reply: Any = {"content": content, "finish_reason": reason, "refusal": None}
    with pytest.raises(JudgeError):
        read_conversation(TASK, [reply, reply])


@pytest.mark.parametrize(
    ("choice", "code", "calls"),
    [
        ({"finish_reason": "error"}, "interrupted", 2),
        ({"finish_reason": "network_error"}, "interrupted", 2),
        ({"finish_reason": {"type": "abort"}}, "interrupted", 2),
        ({"finish_reason": "error", "error": {"code": 502, "message": "upstream went away"}}, "http_502", 2),
        ({"error": {"code": "429", "message": "slow down"}}, "http_429", 2),
        ({"error": {"message": "upstream went away"}}, "http_502", 2),
        ({"error": {"code": 403, "message": "not for you"}}, "http_403", 1),
        ({"finish_reason": "model_context_window_exceeded"}, "context_window", 1),
        ({"finish_reason": "sensitive"}, "content_filter", 1),
        ({"finish_reason": "something_new"}, "unfinished", 1),
        ({"finish_reason": 7}, "unfinished", 1),
    ],
)
def test_a_whole_verdict_that_did_not_end_well_is_none(
    engine: Engine, choice: dict[str, Any], code: str, calls: int
) -> None:
    body = {"choices": [{"message": {"content": json.dumps(GOOD)}, "finish_reason": "stop", **choice}]}
    with OpenAIServer([Reply(body=body, headers={"Retry-After": "0"})]) as server:
        failure = fails(server, engine)
        assert failure.code == code
        if code != "http_429":  # asked with patience
            assert server.calls == calls


def test_an_outage_heals(engine: Engine) -> None:
    with OpenAIServer([Reply(GOOD, finish_reason="insufficient_system_resource"), GOOD]) as server:
        assert ask(server, engine).reply.groundedness == 0.5
        assert server.calls == 2


def test_of_a_function_too() -> None:
    async def answer(messages: Any) -> Any:
        return json.dumps(GOOD), "network_error"

    import asyncio

    with pytest.raises(JudgeError) as caught:
        asyncio.run(callable_judge(answer, "mine").ask(TASK))
    assert caught.value.code == "interrupted"


@pytest.mark.parametrize(
    "told",
    [
        {"error": {"code": "429", "message": "slow down"}},
        {"error": {"type": "rate_limit_error", "message": "slow down"}},
        {"error": {"code": "RESOURCE_EXHAUSTED", "message": "per minute"}},
        {"error": "busy", "status_code": "503"},
        {"error": {"message": "Provider returned error", "code": "529"}},
        {"code": "503", "message": "busy", "choices": None},
    ],
)
def test_errors_with_status_200_are_sorted_by_their_own(engine: Engine, told: dict[str, Any]) -> None:
    with OpenAIServer([Reply(body=told), GOOD]) as server:
        assert ask(server, engine).usage.calls == 2


@pytest.mark.parametrize("nothing", [None, "", {}, "none", {"code": 0, "message": ""}, {"code": 200}])
def test_an_error_that_says_nothing_is_none(engine: Engine, nothing: Any) -> None:
    body = {
        "error": nothing,
        "choices": [{"message": {"content": json.dumps(GOOD)}, "finish_reason": "stop"}],
    }
    with OpenAIServer([Reply(body=body)]) as server:
        assert ask(server, engine).usage.calls == 1


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (429, {"type": "exceeded_current_quota_error", "message": "Your account is suspended, check your plan"}),
        (402, {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}),
        (200, {"message": "Insufficient Balance", "code": "402"}),
        (400, {"message": "Your credit balance is too low to access the API."}),
        (403, {"message": "Your team doesn't have any credits yet."}),
        (429, {"code": "1113", "message": "您的账户已欠费，请充值后重试"}),
        (400, {"code": "Arrearage", "message": "make sure your account is in good standing"}),
        (429, {"message": "Provider error", "metadata": {"raw": '{"error":{"message":"insufficient credits"}}'}}),
    ],
)  # fmt: skip
def test_an_account_without_money_is_asked_once_a_run(
    engine: Engine, status: int, told: dict[str, Any]
) -> None:
    with OpenAIServer([Reply(status=status, body={"error": told})]) as server:
        assert fails(server, engine).code == "insufficient_quota"
        assert fails(server, engine, GradeSearchRag("another", "a", ("c",))).code == "insufficient_quota"
        assert server.calls == 1


def test_a_quota_by_the_minute_is_waited_for(engine: Engine) -> None:
    told = error(429, "You exceeded your current quota, retry in 1 s", headers={"Retry-After": "0"})
    with OpenAIServer([told, GOOD]) as server:
        assert ask(server, engine).usage.calls == 2


def test_a_redirect_is_named_with_its_target(engine: Engine) -> None:
    to = "https://other.example/v2/chat/completions?key=s"
    with OpenAIServer([Reply(status=308, headers={"Location": to}, body="")]) as server:
        failure = fails(server, engine)
        assert (failure.code, server.calls) == ("http_308", 1)
        assert "set base_url to https://other.example/v2" in str(failure)
        assert "key=s" not in str(failure)


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [{"function": {"name": "out", "arguments": GOOD}}]},
        {"content": None, "tool_calls": [{"function": {"name": "out", "arguments": json.dumps(GOOD)}}]},
        {"content": "", "function_call": {"name": "out", "arguments": GOOD}},
        {"content": GOOD},
        {"content": [{"type": "tool_use", "name": "out", "input": GOOD}]},
        {"content": json.dumps(GOOD), "reasoning_content": "hm"},
    ],
)
def test_arguments_and_content_as_objects(message: dict[str, Any]) -> None:
    sent = completion_of({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert sent is not None
    assert read_conversation(TASK, [sent.payload]).groundedness == 0.5


def test_an_object_with_a_key_given_twice_is_refused() -> None:
    text = (
        '{"choices": [{"message": {"function_call": {"arguments": {"groundedness": 0, "groundedness": 1}}}}]}'
    )
    with pytest.raises(UnreadableReply, match="groundedness: given twice"):
        completion_of(loaded(text))


@pytest.mark.parametrize(
    "message",
    [
        {"content": "", "reasoning_content": json.dumps(GOOD)},
        {"content": None, "reasoning": "hm"},
        {"content": [{"type": "thinking", "thinking": "hm"}]},
        {"content": " ", "reasoning_details": [{"text": "hm"}]},
    ],
)
def test_a_reply_that_only_thinks_says_so(engine: Engine, message: dict[str, Any]) -> None:
    with OpenAIServer([Reply(message=message)]) as server:
        failure = fails(server, engine)
        assert (failure.code, server.calls) == ("only_reasoning", 1)
        assert "reasoning" in str(failure)


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "reasoning_content": "No, wait"},
        {"content": "Yes", "reasoning_content": "No, wait"},
        {"content": "No", "reasoning_content": "No, wait"},
        {"content": "Yes"},  # the thoughts are cut off by the server
        {"content": ""},
    ],
)
def test_log_probabilities_of_thoughts_are_no_verdict(engine: Engine, message: dict[str, Any]) -> None:
    token = {"token": "No", "logprob": -0.01, "top_logprobs": [{"token": "Yes", "logprob": -9.0}]}
    choice = {"message": message, "finish_reason": "length", "logprobs": {"content": [token]}}
    (task,) = in_a_word(VerifyClaims(("The sky is blue.",), ("The sky is blue.",)))
    with OpenAIServer([Reply(body={"choices": [choice]})]) as server:
        failure = fails(server, engine, task)
        assert server.calls == 1
    if "reasoning_content" in message:
        assert failure.code == "only_reasoning"
    else:
        assert "not those of the judge's answer" in str(failure)


@pytest.mark.parametrize("reason", ["error", "content_filter", "something_new"])
def test_a_word_that_did_not_end_well_is_none(engine: Engine, reason: str) -> None:
    choice = {"message": {"content": "Yes"}, "finish_reason": reason,
              "logprobs": {"content": [{"token": "Yes", "logprob": -0.01, "top_logprobs": []}]}}  # fmt: skip
    (task,) = in_a_word(VerifyClaims(("The sky is blue.",), ("The sky is blue.",)))
    with OpenAIServer([Reply(body={"choices": [choice]})]) as server:
        fails(server, engine, task)


@pytest.mark.parametrize(
    "claim", ["Возврат возможен в течение 30 дней.", "返品は30日以内です。", "x", "\n\t"]
)
def test_babble_is_told_from_a_reply_that_needs_room(engine: Engine, claim: str) -> None:
    babble = (
        '{"claims": ["one", ' + f"{json.dumps(claim, ensure_ascii=False)}, " * 400
        if claim.strip()
        else claim * 900
    )
    with OpenAIServer([Reply(babble[:-3], finish_reason="length")]) as server:
        failure = fails(server, engine, SplitClaims("an answer"))
        assert (failure.code, server.calls) == ("repetition", 1)
        assert "raise max_tokens" not in str(failure)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x" * 300, "x"),
        ("x" * 299, None),
        (f"{'unit of forty characters ':-<40}" * 8, f"{'unit of forty characters ':-<40}"),
        (f"{'unit of forty characters ':-<40}" * 8 + "u", f"{'nit of forty characters ':-<39}u"),
        (f"{'unit of forty characters ':-<40}" * 7, None),
        (
            ("".join(map(chr, range(0x4E00, 0x4E00 + 750)))) * 9,
            "".join(map(chr, range(0x4E00, 0x4E00 + 750))),
        ),
        (("".join(map(chr, range(0x4E00, 0x4E00 + 751)))) * 9, None),  # of 6,000 characters less than 8 times
    ],
    ids=["300", "299", "eight times", "and a letter", "seven times", "long", "too long"],
)
def test_how_often_and_how_long(text: str, found: str | None) -> None:
    assert repeated(text) == found


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            {"content": "", "thought_in": "reasoning"},
            "truncated at max_tokens, all of it reasoning (finish_reason",
        ),
        ({"content": '{"a', "thought_in": "reasoning"}, "truncated at max_tokens (finish_reason length)"),
        ({"content": ""}, "truncated at max_tokens (finish_reason length)"),
        (
            {"content": " ", "thought_in": "reasoning", "finish_reason": "stop"},
            "nothing but reasoning (reasoning)",
        ),
        ({"content": "x", "refusal": "I won't."}, "the judge refused: I won't."),
        ({"content": "x", "finish_reason": "refusal"}, "the judge refused (finish_reason refusal)"),
        ({"content": "x", "finish_reason": "abort"}, "the reply was interrupted (finish_reason abort)"),
        ({"content": "x", "finish_reason": "banana"}, "did not end as a reply should (finish_reason banana)"),
        ({"content": "x", "finish_reason": "safety"}, "content filter cut the reply (finish_reason safety)"),
        (
            {"content": "x", "finish_reason": "context_window"},
            "the model's context is full (finish_reason context",
        ),
        ({"content": "x", "error": "upstream"}, "the service reports an error in the reply: upstream"),
        ({"content": "\n" * 400}, "repeats itself without end ('white space')"),
        ({"content": "ha " * 300}, "repeats itself without end ('ha')"),
    ],
)
def test_how_a_reply_ended_is_told(reply: dict[str, Any], said: str) -> None:
    raw: Any = {"finish_reason": "length", "refusal": None, **reply}
    with pytest.raises(UnreadableReply) as caught:
        check_end(raw)
    assert said in str(caught.value)


def test_one_word_may_be_cut_behind_the_word() -> None:
    raw: Any = {"content": "Yes", "finish_reason": "length", "refusal": " "}
    check_end(raw, in_a_word=True)
    with pytest.raises(UnreadableReply, match="truncated"):
        check_end(raw)


def test_a_long_list_does_not_repeat() -> None:
    claims = [f"Item {number} costs {number * 3} euros." for number in range(300)]
    assert repeated(json.dumps(claims)[:-20]) is None


@given(st.text("abc \n", min_size=1, max_size=40), st.integers(0, 39))
def test_whatever_is_repeated_is_found_wherever_it_is_cut(unit: str, cut: int) -> None:
    found = repeated("start: " + unit * 400 + unit[: cut % len(unit)])
    assert found is not None
    assert len(unit) % len(found) == 0
