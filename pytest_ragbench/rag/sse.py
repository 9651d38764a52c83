"""Putting a streamed reply together: Server-Sent Events, or one JSON value a line."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pytest_ragbench.rag.mapping import BadReply, reported_error

_LINE_END = re.compile(r"\r\n|\n|\r")  # not str.splitlines: U+2028 and others may occur within a line
# Events of these kinds report progress or sources; their texts are not part of the answer.
_ASIDE = re.compile(r"status|progress|think|reason|tool|ping|log|debug|meta|retriev|source|citation|context")
_ENDS = (re.compile(rb"\n"), re.compile(rb"\r?\n\r?\n|\r\r"))
"""Of a line, and of an event."""
_PARTS = ("delta", "token", "content", "text", "chunk")


def events(stream: str) -> Iterator[tuple[str, str]]:
    """``(event name, data)`` by the rules of the HTML standard, section 9.2.6."""
    name, data = "", list[str]()
    for line in _LINE_END.split(stream.removeprefix("\ufeff")):
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
    if data:  # many servers end without the last blank line
        yield name, "\n".join(data)


def json_lines(stream: str) -> Iterator[tuple[str, str]]:
    """One event for each line of a ``application/x-ndjson`` reply."""
    return (("", line) for line in _LINE_END.split(stream) if line.strip())


def pieces(stream: str, content_type: str) -> Iterator[tuple[str, str]]:
    """The events of a streamed reply of this content type."""
    return events(stream) if content_type == "text/event-stream" else json_lines(stream)


def first_token(body: bytes, content_type: str, arrivals: Sequence[tuple[int, float]]) -> float | None:
    """When the first piece of the answer was there, on the clock of ``arrivals`` (bytes so far, time).

    None where no event of the stream holds one.
    """
    ends = [0, *(match.end() for match in _ENDS[content_type == "text/event-stream"].finditer(body))]

    def answers(size: int) -> bool:
        # An event that is cut in the middle says nothing yet.
        whole = body if size >= len(body) else body[: ends[bisect_right(ends, size) - 1]]
        try:
            # A first piece may be empty: in OpenAI's form it brings the role alone.
            return bool(assembled(pieces(whole.decode("utf-8", "replace"), content_type))["answer"])
        except BadReply:
            return False

    found = bisect_left(arrivals, True, key=lambda arrival: answers(arrival[0]))
    return arrivals[found][1] if found < len(arrivals) else None


def assembled(stream: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """All events as one object: the deltas joined under ``answer``, other keys as they came last.

    Raises
    ------
    BadReply
        Where an event reports an error, or no event holds a piece of the answer.
    """
    whole: dict[str, Any] = {}
    deltas: list[str] = []
    answers: list[str] = []
    for name, data in stream:
        if data.strip() == "[DONE]":
            break
        value = _json(data)
        # What came before the error is half an answer, and must not be judged as one.
        if name == "error" or reported_error(value):
            raise BadReply(f"the stream reports an error: {reported_error(value) or data[:200]}")
        if isinstance(value, Mapping):
            kind = f"{name} {value.get('type', '')} {value.get('event', '')}".casefold()
            piece = None if _ASIDE.search(kind) else _delta(value)
            if piece is not None:
                deltas.append(piece)
            # Kept apart from the deltas: the last event often repeats the whole answer.
            if isinstance(value.get("answer"), str):
                answers.append(value["answer"])
            whole.update({key: item for key, item in value.items() if key not in _PARTS or item is not piece})
        # An event of its own for the chunks, named after them or not at all.
        elif isinstance(value, list):
            whole[name or "contexts"] = value
        elif not _ASIDE.search(name.casefold()):
            deltas.append(value if isinstance(value, str) else data)
    if not answers and not deltas:
        raise BadReply("no event of the stream holds a piece of an answer")
    whole["answer"] = _complete(answers) if answers else "".join(deltas)
    return whole


def loaded(text: str) -> Any:
    """JSON values, NaN as None: that is not valid JSON, but Python services send it for a missing score."""
    return json.loads(text, parse_constant=lambda _: None)


def _json(data: str) -> Any:
    try:
        value = loaded(data)
    except (ValueError, RecursionError):
        return data
    # A token such as 7 or true is text of the answer, though it reads as JSON.
    return value if isinstance(value, (dict, list, str)) else data


def _delta(event: Mapping[str, Any]) -> str | None:
    choices = event.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        delta = choices[0].get("delta")
        text = delta.get("content") if isinstance(delta, Mapping) else choices[0].get("text")
        return text if isinstance(text, str) else None
    message = event.get("message")
    if isinstance(message, Mapping) and isinstance(message.get("content"), str):
        return str(message["content"])  # Ollama's chat
    for name in _PARTS:
        part = event.get(name)
        if isinstance(part, str):
            return part
        if isinstance(part, Mapping):
            inner = part.get("content", part.get("text"))
            if isinstance(inner, str):
                return inner
    if isinstance(event.get("response"), str):
        return str(event["response"])  # Ollama's generate
    return None


def _complete(answers: list[str]) -> str:
    """Some services repeat the answer so far, others send its next piece under the same name."""
    grows = all(later.startswith(earlier) for earlier, later in pairwise(answers))
    return answers[-1] if grows else "".join(answers)
