"""Chat completions as JSON: the few things that matter, whatever shape a service gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_ragbench.engine.requests import Sent
from pytest_ragbench.judge.asking import RawReply


def completion_of(data: Any) -> Sent | None:
    """The first choice of a chat completion and its tokens; None where ``data`` is none."""
    choices = data.get("choices") if isinstance(data, Mapping) else None
    if not isinstance(choices, list):
        return None
    choice = choices[0] if choices and isinstance(choices[0], Mapping) else {}
    message = choice.get("message")
    message = message if isinstance(message, Mapping) else {}
    reply: RawReply = {
        "content": text_of(message.get("content")) or _called(message),
        "finish_reason": _text(choice.get("finish_reason")),
        "refusal": _text(message.get("refusal")) or _refused_part(message.get("content")),
    }
    usage = data.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return Sent(reply, _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def text_of(content: Any) -> str | None:
    """The text of a message whose content is a text or a list of parts (thoughts left out)."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, Mapping) and part.get("type", "text") in ("text", "output_text"):
            parts.append(_text(part.get("text")) or "")
    return "".join(parts)


def _called(message: Mapping[str, Any]) -> str | None:
    """The arguments of the one tool call, where a service answers a schema that way."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or len(calls) != 1 or not isinstance(calls[0], Mapping):
        return None
    function = calls[0].get("function")
    return _text(function.get("arguments")) if isinstance(function, Mapping) else None


def _refused_part(content: Any) -> str | None:
    parts = content if isinstance(content, list) else []
    found = [part.get("refusal") for part in parts if isinstance(part, Mapping)]
    return next((text for text in found if isinstance(text, str) and text), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
