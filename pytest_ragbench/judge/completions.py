"""Chat completions as JSON, reduced to what matters, whatever shape a service gives them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NotRequired, TypedDict

from pytest_ragbench.engine.calls import Sent
from pytest_ragbench.http.service_errors import ServiceError, error_without_key, read_error
from pytest_ragbench.judge.reading.strict_json import check_values

# How many tokens' log probabilities are kept: as many as a word of yes or no may take.
_MAX_POSITIONS = 4


class Token(TypedDict):
    """A token that might have come at some position: its text, natural log of its probability, its bytes."""

    token: str
    logprob: float
    bytes: list[int] | None


class RawReply(TypedDict):
    """What a model sent, as far as it matters. JSON values: this is what the store keeps."""

    content: str | None
    finish_reason: str | None
    refusal: str | None
    logprobs: NotRequired[list[list[Token]]]
    """By position, where they came: the token that was written, then the others, likeliest first."""
    thought_in: NotRequired[str]
    """Where the reply holds reasoning apart from its content: ``"reasoning_content"``."""
    error: NotRequired[str]
    """What the service says went wrong while it wrote this reply."""


def completion_of(data: Any) -> Sent | None:
    """The first choice of a chat completion and its token counts; None where ``data`` is something else."""
    choices = data.get("choices") if isinstance(data, Mapping) else None
    if not isinstance(choices, list):
        return None
    choice = choices[0] if choices and isinstance(choices[0], Mapping) else {}
    check_values(choice, "choices[0]")
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    reply: RawReply = {
        # Some services answer a schema with a tool call.
        "content": text_of(message.get("content")) or _called(message),
        "finish_reason": finish_reason_of(choice.get("finish_reason")),
        "refusal": string_or_none(message.get("refusal")) or _refused_part(message.get("content")),
    }
    if logprobs := _logprobs(choice.get("logprobs")):
        reply["logprobs"] = logprobs
    if thought := _thought_in(message):
        reply["thought_in"] = thought
    if (error := error_in(data)) is not None:
        reply["error"] = error.message or error.code or "without a message"
    return Sent(reply, *tokens_of(data.get("usage")))


def tokens_of(usage: Any) -> tuple[int, int]:
    """Prompt and completion tokens, under OpenAI's names or Anthropic's, in a mapping or an object."""
    given = usage if isinstance(usage, Mapping) else getattr(usage, "__dict__", {})

    def count(*names: str) -> int:
        return next((found for name in names if (found := _count(given.get(name)))), 0)

    return count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens")


def error_in(data: Any) -> ServiceError | None:
    """The error that a reply with status 200 holds, of the whole or of its first choice."""
    if not isinstance(data, Mapping):
        return None
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, Mapping) and (error := read_error(choice.get("error"))) is not None:
        # One without a status came from a service that failed while it wrote.
        return error if error.status is not None or error.no_money else replace(error, status=502)
    error = read_error(data.get("error"), data)
    return error_without_key(data) if error is None and not choices else error


def finish_reason_of(given: Any) -> str | None:
    """A word. Some engines send an object: ``{"type": "stop"}``."""
    if isinstance(given, Mapping):
        given = given.get("type") or given.get("reason") or "an object"
    return given if given is None or isinstance(given, str) else str(given)


def _thought_in(message: Mapping[str, Any]) -> str | None:
    """The field that holds reasoning, where one does."""
    for name in (
        "reasoning_content",
        "reasoning",
        "reasoning_details",
        "thinking",
        "thinking_blocks",
        "thoughts",
    ):
        if message.get(name):
            return name
    parts = message.get("content")
    kinds = (
        [part.get("type") for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    )
    return next((f"a part of type {kind}" for kind in kinds if kind in _THOUGHTS), None)


_THOUGHTS = ("thinking", "reasoning", "redacted_thinking", "thought")


def _logprobs(given: Any) -> list[list[Token]]:
    """The first positions in one shape: the token that was written, then the others, likeliest first."""
    given = given if isinstance(given, Mapping) else {}
    content = given.get("content")
    if isinstance(content, list):
        return [
            _position(place, place.get("top_logprobs"))
            for place in content[:_MAX_POSITIONS]
            if isinstance(place, Mapping)
        ]
    # The older shape: {"tokens": [...], "token_logprobs": [...], "top_logprobs": [{token: logprob}]}
    tokens, chances, tops = (given.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    if not (isinstance(tokens, list) and isinstance(chances, list)):
        return []
    tops = tops if isinstance(tops, list) else []
    found = []
    for place, (token, chance) in enumerate(zip(tokens[:_MAX_POSITIONS], chances, strict=False)):
        top = tops[place] if place < len(tops) and isinstance(tops[place], Mapping) else {}
        others = [{"token": other, "logprob": each} for other, each in top.items()]
        found.append(_position({"token": token, "logprob": chance}, others))
    return found


def _position(written: Mapping[str, Any], others: Any) -> list[Token]:
    tokens = (
        [_token(other) for other in others if isinstance(other, Mapping)] if isinstance(others, list) else []
    )
    known = sorted((token for token in tokens if token), key=lambda token: -token["logprob"])
    first = _token(written)
    if first is None:
        return known
    return [
        first,
        *(token for token in known if (token["token"], token["bytes"]) != (first["token"], first["bytes"])),
    ]


def _token(given: Mapping[str, Any]) -> Token | None:
    text, chance, raw = given.get("token"), given.get("logprob"), given.get("bytes")
    if not isinstance(text, str) or isinstance(chance, bool) or not isinstance(chance, (int, float)):
        return None
    if not chance <= 0:  # a NaN, or no logarithm of a probability
        return None
    whole = isinstance(raw, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in raw)
    # JSON has no -inf, which some services send for what can't come.
    return {"token": text, "logprob": max(float(chance), -1000.0), "bytes": raw if whole else None}


def text_of(content: Any) -> str | None:
    """The text of a message whose content is a string, a list of parts (reasoning left out), or the object itself."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return _part_text(content) if "type" in content else as_text(content)
    if not isinstance(content, list):
        return None
    parts = [part if isinstance(part, str) else _part_text(part) for part in content]
    # Anthropic's form of a tool call is a part, too.
    called = [part for part in content if isinstance(part, Mapping) and part.get("type") == "tool_use"]
    if len(called) == 1 and not "".join(parts).strip():
        return as_text(called[0].get("input"))
    return "".join(parts)


def _part_text(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
        return string_or_none(part.get("text")) or ""
    return ""


def _called(message: Mapping[str, Any]) -> str | None:
    """The arguments of the one tool call, where a service answers a schema that way."""
    calls = message.get("tool_calls")
    function = message.get("function_call")  # the older form
    if isinstance(calls, list) and calls:
        # With several calls there is no telling which one is the verdict.
        if len(calls) != 1 or not isinstance(calls[0], Mapping):
            return None
        function = calls[0].get("function")
    return as_text(function.get("arguments")) if isinstance(function, Mapping) else None


def as_text(value: Any) -> str | None:
    """A string as it is, an object or list as JSON."""
    if isinstance(value, (Mapping, list)):
        return json.dumps(value, ensure_ascii=False)
    return string_or_none(value)


def _refused_part(content: Any) -> str | None:
    parts = content if isinstance(content, list) else []
    found = [part.get("refusal") for part in parts if isinstance(part, Mapping)]
    return next((text for text in found if isinstance(text, str) and text), None)


def string_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
