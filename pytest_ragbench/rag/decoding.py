"""Reading an HTTP reply: bytes to text, text to a JSON value or a plain answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pytest_ragbench.http.bodies import is_json
from pytest_ragbench.http.client import STREAMS
from pytest_ragbench.rag.mapping import BadReply, Reply, ReplyReader
from pytest_ragbench.rag.sse import assembled, loaded, pieces

_HTML = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.I | re.S
)
_PLAIN = (
    "", "text/plain", "text/markdown", "text/x-markdown", "application/octet-stream", "binary/octet-stream",
)  # fmt: skip


def read_reply(payload: Mapping[str, Any], reader: ReplyReader) -> Reply:
    """What a kept reply (``content_type``, ``text``) says.

    Raises
    ------
    BadReply
        The reply holds no answer.
    """
    content_type, text = str(payload["content_type"]), str(payload["text"])
    if not text.strip() and content_type != "text/plain":
        raise BadReply("the body is empty")
    if content_type in STREAMS:
        return reader.read(assembled(pieces(text, content_type)))
    value, problem = _json(text)
    # Some services send JSON as text/plain, so what is not declared is tried as well.
    declared = is_json(content_type)
    if declared and problem:
        raise BadReply(f"it says {content_type}, but is not JSON{problem}")
    if not problem and (declared or _is_reply(value, content_type, reader)):
        return reader.read(value)
    return _plain(content_type, text, reader, problem)


def _is_reply(value: Any, content_type: str, reader: ReplyReader) -> bool:
    """Whether JSON under another content type is meant as JSON: "42" in a plain text is an answer."""
    if isinstance(value, list):
        return reader.names_answer or content_type not in _PLAIN
    return isinstance(value, dict) or (isinstance(value, str) and content_type != "text/plain")


def _plain(content_type: str, text: str, reader: ReplyReader, problem: str) -> Reply:
    # A login page with status 200 must not be judged as the answer.
    if content_type in ("text/html", "application/xhtml+xml") or _HTML.match(text):
        raise BadReply("an HTML page, not JSON: a proxy, a login page or another service may answer there")
    if content_type not in _PLAIN or "\x00" in text:
        raise BadReply("neither JSON nor plain text")
    if reader.names_answer:
        raise BadReply(f"rag.reply.answer is set, but the reply is not JSON{problem}")
    if not text.strip():
        raise BadReply("the body is empty")
    return Reply(answer=text.removesuffix("\n"))


def _json(text: str) -> tuple[Any, str]:
    """The value, and an empty string; or None, and where it stops being JSON, as the end of a message."""
    try:
        return loaded(text), ""
    except json.JSONDecodeError as error:
        return None, f" (line {error.lineno}, column {error.colno}: {error.msg})"
    except (ValueError, RecursionError) as error:  # an integer or a nesting beyond Python's limits
        return None, f" ({error})"
