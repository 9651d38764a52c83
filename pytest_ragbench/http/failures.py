"""Errors that other libraries' clients raise, read as the replies that they stand for.

By what they carry and not by their class: no client library is imported to sort its errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Transient
from pytest_ragbench.http.api import ApiReply, Service

_STATUS_NAMES = ("status_code", "status", "http_status", "code")
_CONNECTION_NAMES = frozenset(
    [
        "APIConnectionError",
        "ClientConnectionError",
        "ConnectError",
        "ConnectionClosedError",
        "ConnectionError",
        "EndpointConnectionError",
        "NetworkError",
        "RemoteProtocolError",
    ]
)
# Libraries wrap errors of libraries: LangChain those of openai, openai those of httpx.
_MAX_CAUSES = 5


def failure_in(error: BaseException, service: Service) -> Exception | None:
    """What an error means for a call, sorted by whether asking again can help; None where it tells neither a status
    nor an outage.
    """
    reply = reply_in(error, service)
    return outage_in(error, service) if reply is None else service.failure(reply)


def reply_in(error: BaseException, service: Service) -> ApiReply | None:
    """The HTTP reply that an error tells of: its status, what it says about waiting, its body; None without a
    status from 400 to 599.
    """
    for each in _chain(error):
        response = getattr(each, "response", None)
        status = _status_of(each, response)
        if status is not None:
            body = service.masked(_body_of(each, response))
            return ApiReply(status, _headers_of(each, response), body)
    return None


def outage_in(error: BaseException, service: Service) -> Transient | None:
    """What to raise for an error that says that no reply came, which another try may bring; None for others."""
    kind = _outage(error)
    if kind is None:
        return None
    told = service.masked(one_line(f"{type(error).__name__}: {error}", 300))
    return Transient(service.outage(kind, told), code=kind)


def _outage(error: BaseException) -> Literal["timeout", "connection"] | None:
    for each in _chain(error):
        names = [kind.__name__ for kind in type(each).__mro__]
        # First: openai's timeout is a connection error as well.
        if any("Timeout" in name for name in names):
            return "timeout"
        if any(name in _CONNECTION_NAMES for name in names):
            return "connection"
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, then those that it was raised from."""
    each: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if each is None:
            return
        yield each
        inner = getattr(each, "original_exception", None)  # any-llm's
        each = inner if isinstance(inner, BaseException) else each.__cause__


def _status_of(error: BaseException, response: Any) -> int | None:
    told = [getattr(error, name, None) for name in _STATUS_NAMES]
    if isinstance(response, Mapping):  # botocore's
        told.append(_inner(response, "ResponseMetadata").get("HTTPStatusCode"))
    else:
        told += [getattr(response, name, None) for name in _STATUS_NAMES[:2]]
    return next((int(status) for status in told if isinstance(status, int) and 400 <= status < 600), None)


def _headers_of(error: BaseException, response: Any) -> Mapping[str, str]:
    """Those that say how long to wait, under the names by which they are looked up."""
    if isinstance(response, Mapping):
        headers: Any = _inner(response, "ResponseMetadata").get("HTTPHeaders")
    else:
        headers = getattr(response, "headers", None) or getattr(error, "headers", None)
    found: dict[str, str] = {}
    if isinstance(headers, Mapping):
        wanted = {"retry-after-ms": "retry-after-ms", "retry-after": "Retry-After"}
        for name, value in headers.items():
            if (key := wanted.get(str(name).lower())) is not None:
                found[key] = str(value)
    seconds = getattr(error, "retry_after", None)
    if not found and isinstance(seconds, (int, float, str)):
        found["Retry-After"] = str(seconds)
    return found


def _body_of(error: BaseException, response: Any) -> str:
    if isinstance(response, Mapping):
        told = _inner(response, "Error")
        return json.dumps({"error": {"code": told.get("Code"), "message": told.get("Message")}}, default=str)
    try:
        text = getattr(response, "text", None)
    except Exception:  # httpx has no text of a reply that is still being read
        text = None
    if isinstance(text, str) and text:
        return text
    body = getattr(error, "body", None)
    if isinstance(body, Mapping):
        return json.dumps({"error": body}, default=str)
    code = getattr(error, "code", None)
    return json.dumps({"error": {"code": code if isinstance(code, str) else None, "message": str(error)}})


def _inner(response: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = response.get(name)
    return inner if isinstance(inner, Mapping) else {}
