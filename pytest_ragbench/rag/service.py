"""Sending questions to a RAG service over HTTP."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypedDict
from urllib.parse import urljoin, urlsplit

import yarl

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Call, Closing, Sender, Sent, Transient
from pytest_ragbench.engine.recording import MEASURED
from pytest_ragbench.http.api import is_retryable
from pytest_ragbench.http.bodies import WrongCharset, decoded, decoded_leniently
from pytest_ragbench.http.client import HttpClient, HttpError, HttpReply
from pytest_ragbench.http.outages import no_reply, refusal
from pytest_ragbench.http.retry_after import asked_to_wait
from pytest_ragbench.http.service_errors import service_error
from pytest_ragbench.model.errors import EndpointError, UsageError, with_details
from pytest_ragbench.rag.sse import first_token
from pytest_ragbench.rag.trace_context import HEADER, Trace, new_trace
from pytest_ragbench.secrets import Redactor, Secret

_REDIRECTS = (301, 302, 303, 307, 308)
_MAX_REDIRECTS = 5


@dataclass(frozen=True)
class Service:
    """A RAG service as data: enough to ask it from any process."""

    name: str
    """For messages: method and URL, query values cut."""
    method: str
    url: str = field(repr=False)  # may hold a key
    timeout: float
    max_bytes: int
    headers: Mapping[str, Secret]
    secrets: tuple[Secret, ...]

    @cached_property
    def identity(self) -> str:
        """Tells services apart, and gives no secret away."""
        headers = sorted((name, value.reveal()) for name, value in self.headers.items())
        parts = repr((self.name, self.url, self.timeout, self.max_bytes, headers))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


class Sending(TypedDict):
    """What is sent for one question: the whole URL, and the JSON body or None."""

    url: str
    body: Any


class Transport(Protocol):
    """What carries a request to the service: HTTP, or a call of an ASGI app in this process."""

    async def ready(self) -> None:
        """Whatever must not count as the service's latency."""
        ...

    async def send(
        self,
        method: str,
        url: yarl.URL,
        body: bytes | None,
        *,
        content_type: str,
        more_headers: Mapping[str, Secret],
        max_bytes: int,
    ) -> HttpReply:
        """One request, one reply, in whatever time it takes. ``more_headers`` are those of this request alone.

        Raises
        ------
        HttpError
            There was no reply.
        """
        ...


class RagAdapter:
    """Asks RAG services. It is given data only, so any process of the run can do it."""

    def __init__(self, engine: Closing) -> None:
        self._engine = engine
        self._clients: dict[str, ServiceClient] = {}

    async def fetch(self, call: Call, sender: Sender) -> dict[str, Any]:
        """See :meth:`ServiceClient.ask`. ``call.config`` is a :class:`Service`, ``call.body`` a :class:`Sending`."""
        service: Service = call.config
        client = self._clients.get(service.identity)
        if client is None:
            redact = Redactor(service.secrets)
            transport = HttpClient(service.url, service.headers, redact, self._engine.on_close)
            client = self._clients[service.identity] = ServiceClient(service, transport)
        return await client.ask(call.body, sender)


class ServiceClient:
    """Asks one service through a transport."""

    def __init__(self, service: Service, transport: Transport) -> None:
        self._service = service
        self._transport = transport
        self._redact = Redactor(service.secrets)

    async def ask(self, sending: Sending, sender: Sender) -> dict[str, Any]:
        """The reply as it is stored: ``status``, ``content_type``, ``text`` (credentials masked), and what was
        measured (see :func:`measured`). It is mapped to an answer later, so that another mapping needs no new call.

        Raises
        ------
        EndpointError
            The service refused, or sent something that can't be read as text.
        """
        await self._transport.ready()
        traces: list[Trace] = []

        def attempt() -> Awaitable[Sent]:
            traces.append(new_trace())
            return self._attempt(sending["url"], sending["body"], traces[-1])

        try:
            payload: dict[str, Any] = (await sender(attempt)).payload
        except EndpointError as error:
            # Nobody got the question, so nobody traced it.
            if traces and self._own_trace and error.code not in ("connection", "tls"):
                error.trace_id = traces[-1].trace_id
            raise
        # A header that is configured is not replaced, and its trace is not ours.
        return {
            **payload,
            "at_once": getattr(sender, "at_once", None),
            **(traces[-1]._asdict() if self._own_trace else {}),
        }

    @property
    def _own_trace(self) -> bool:
        return HEADER not in self._service.headers

    async def _attempt(self, url: str, body: Any, trace: Trace) -> Sent:
        name = self._service.name
        headers = {HEADER: Secret(trace.header)} if self._own_trace else {}
        started = time.monotonic()
        try:
            # Around all redirects; the engine's own limit is a second later, and could not name the URL.
            async with asyncio.timeout(self._service.timeout):
                reply = await self._exchange(url, body, headers)
        except TimeoutError:
            raise Transient(self._outage("timeout", "no complete reply"), code="timeout") from None
        except HttpError as problem:
            reason = one_line(str(problem), 300)
            if problem.code == "url":
                raise UsageError(f"rag.url: {name.partition(' ')[2]} can't be used as a URL") from None
            if problem.code == "connection":
                told = self._outage("connection", f"connection failed: {reason}")
                raise Transient(told, code="connection") from None
            what = "TLS" if problem.code == "tls" else "the reply is not valid HTTP"
            raise EndpointError(self._outage(problem.code, f"{what}: {reason}"), code=problem.code) from None
        # The status first: a page of an error in another charset is still that error.
        payload, problem_found = self._payload(reply)
        if not reply.ok:
            raise self._failure(payload, asked_to_wait(reply.headers))
        if problem_found:
            raise EndpointError(
                bad_reply(name, self._redact(problem_found), payload), code="bad_reply", raw=payload["text"]
            )
        payload["latency"] = time.monotonic() - started
        if reply.arrivals:
            began = first_token(reply.body, payload["content_type"], reply.arrivals)
            payload["first_token"] = None if began is None else began - started
        return Sent(payload)

    def _outage(self, code: str, reason: str) -> str:
        name = self._service.name
        place = urlsplit(name.rpartition(" ")[2])
        cause = no_reply(
            code, reason, f"{place.scheme}://{place.netloc}", "the service", seconds=self._service.timeout
        )
        return with_details(cause, f"{name}: {reason}")

    async def _exchange(self, url: str, body: Any, headers: Mapping[str, Secret]) -> HttpReply:
        """One request, and those that the service redirects it to."""
        service = self._service
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8")
        given = service.headers.get("Content-Type")
        content_type = given.reveal() if given else "application/json"
        for _ in range(_MAX_REDIRECTS + 1):
            reply = await self._transport.send(
                service.method,
                yarl.URL(url, encoded=True),
                data,
                content_type=content_type,
                more_headers=headers,
                max_bytes=service.max_bytes,
            )
            location = reply.headers.get("Location")
            if reply.status not in _REDIRECTS or not location:
                return reply
            url = self._redirected(url, location, reply.status)
        raise EndpointError(f"{service.name}: more than {_MAX_REDIRECTS} redirects", code="redirect")

    def _redirected(self, url: str, location: str, status: int) -> str:
        """Where to go next: only to the same origin, which may see the credentials, and only by GET."""
        name, method = self._service.name, self._service.method
        new = urljoin(url, location).partition("#")[0]
        base = self._redact(new.partition("?")[0])
        if method != "GET":
            raise EndpointError(
                f"{name} replied {status}: {method} is not redirected; set rag.url to {base}",
                code=f"http_{status}",
            )
        if _origin(new) != _origin(url):
            raise EndpointError(
                f"{name} replied {status}: it redirects to another origin, {base} (a login page?); "
                f"set rag.url to the service itself",
                code=f"http_{status}",
            )
        return new

    def _payload(self, reply: HttpReply) -> tuple[dict[str, Any], str | None]:
        """The reply as it is stored, and what is wrong with its bytes. Nothing is raised here: ``pytest -l``
        would print the unmasked body from this frame.
        """
        content_type = reply.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        problem = None
        if reply.ok and not reply.complete:
            problem = f"the body is longer than rag.max_bytes ({len(reply.body)})"
        try:
            text = decoded(reply.body, content_type, reply.charset)
        except WrongCharset as error:
            problem = problem or str(error)
            text = decoded_leniently(reply.body, content_type, reply.charset)
        return {"status": reply.status, "content_type": content_type, "text": self._redact(text)}, problem

    def _failure(self, payload: Mapping[str, Any], wait: float | None) -> Exception:
        status, text = int(payload["status"]), str(payload["text"])
        said = one_line(service_error(text).message) or one_line(text) or "empty body"
        message = f"{self._service.name} replied {status}: {said}{refusal(status, 'auth_env')}"
        if is_retryable(status):
            return Transient(message, code=f"http_{status}", retry_after=wait)
        return EndpointError(message, code=f"http_{status}", raw=text)


def measured(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What a stored reply says of how it came, where known: the fields of a sample that are named in ``MEASURED``."""
    return {name: payload[name] for name in MEASURED if payload.get(name) is not None}


def bad_reply(name: str, problem: str, payload: Mapping[str, Any]) -> str:
    """The message about a stored reply that holds no answer."""
    content_type = payload["content_type"] or "no content type"
    text = str(payload["text"])
    starts = f"; it starts: {one_line(text)}" if text.strip() else "; empty body"
    return f"{name} replied {payload['status']} ({content_type}): {problem}{starts}"


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
