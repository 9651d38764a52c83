"""Posting JSON to OpenAI-compatible services, and sorting their errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Transient
from pytest_ragbench.engine.threads import call
from pytest_ragbench.http.bodies import WrongCharset, decoded, decoded_leniently
from pytest_ragbench.http.client import HttpClient, HttpError, HttpReply, OnClose
from pytest_ragbench.http.endpoints import Endpoint
from pytest_ragbench.http.outages import no_reply, refusal
from pytest_ragbench.http.retry_after import asked_to_wait
from pytest_ragbench.http.service_errors import ServiceError, service_error
from pytest_ragbench.http.tokens import token_source
from pytest_ragbench.model.errors import Unscored, with_details
from pytest_ragbench.secrets import Redactor, Secret

MAX_BYTES = 32 * 2**20
"""Longest body of one reply. A service that never stops sending must not fill the memory."""


def is_retryable(status: int) -> bool:
    """Whether asking again may help after a reply with this status."""
    return status in (408, 409, 429) or status >= 500


@dataclass(frozen=True)
class ApiReply:
    """What came back, credentials masked."""

    status: int
    headers: Mapping[str, str]
    text: str = field(repr=False)


class Service:
    """One OpenAI-compatible service, however it is reached: what is posted to it, and how its errors are sorted."""

    def __init__(self, endpoint: Endpoint, failure: type[Unscored]) -> None:
        self.endpoint = endpoint
        self._failure = failure
        self._redact = Redactor(endpoint.secrets)

    def masked(self, text: str) -> str:
        """Without the service's credentials."""
        return self._redact(text)

    async def ready(self) -> None:
        """Do what must not count as the service's latency."""

    async def post(self, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> ApiReply:
        """One request, one reply, whatever its status.

        Raises
        ------
        Transient, Unscored
            There was no reply (code ``"connection"`` or ``"timeout"``); of the service's error class where
            asking again can't help.
        """
        raise NotImplementedError

    def failure(self, reply: ApiReply, note: str = "", error: ServiceError | None = None) -> Exception:
        """The error for a reply that is one, sorted by whether asking again can help.

        ``error`` is what the reply says, where it has been read already.
        """
        error = error or service_error(reply.text)
        status, where = reply.status, self.endpoint
        said = self._redirected(reply) or one_line(error.message or reply.text, 300) or "empty body"
        cure = refusal(status, "api_key_env")
        message = f"{where.provider}: {status} from {where.url}: {said}{cure}{note}"
        if status == 402 or error.no_money:  # a used-up quota comes as 429, too, and no waiting helps
            why = error.code if error.code and not error.code.isdecimal() else status
            return self._failure(
                f"{message} (quota used up: {why})", code="insufficient_quota", raw=reply.text
            )
        if is_retryable(status):
            return Transient(message, code=f"http_{status}", retry_after=asked_to_wait(reply.headers))
        return self._failure(message, code=f"http_{status}", raw=reply.text)

    def outage(self, code: str, reason: str, *, seconds: float | None = None) -> str:
        """The message that no reply came: the cause first; ``reason`` is what the client library said of it."""
        where = self.endpoint
        cause = no_reply(code, reason, where.url, f"the provider {where.provider}", seconds=seconds)
        return with_details(cause, f"{where.provider}: {reason}")

    def _redirected(self, reply: ApiReply) -> str:
        """Where a redirect leads. It is not followed: whoever answers there would be given the key."""
        location = reply.headers.get("Location")
        if not 300 <= reply.status < 400 or not location:
            return ""
        target = urljoin(f"{self.endpoint.url}/", location).partition("?")[0].partition("#")[0]
        base = target.removesuffix("/").removesuffix("/chat/completions").removesuffix("/embeddings")
        # The path of the request is not known here, and a redirect to a page keeps none of it.
        return self._redact(f"it redirects to {one_line(target)}; set base_url to {one_line(base)}")


class ApiClient(Service):
    """A service that is asked over HTTP, on the running event loop; made from data only."""

    def __init__(self, endpoint: Endpoint, failure: type[Unscored], on_close: OnClose) -> None:
        super().__init__(endpoint, failure)
        self._client = HttpClient(
            endpoint.url, endpoint.sent_headers, self._redact, on_close, endpoint.connection
        )
        self._token = None if endpoint.token is None else token_source(endpoint.token)

    async def ready(self) -> None:
        """Import aiohttp; see :meth:`~pytest_ragbench.http.client.HttpClient.ready`."""
        await self._client.ready()

    async def post(self, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> ApiReply:
        """See :meth:`Service.post`."""
        # A lone surrogate has no bytes in UTF-8, and is written as JSON's own escape.
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
        try:
            reply = await self._client.send(
                "POST",
                self.endpoint.url + path,
                data,
                query=self.endpoint.query,
                more_headers=await self._authorised(),
                timeout=timeout,
                max_bytes=MAX_BYTES,
            )
        except HttpError as problem:
            message = self.outage(problem.code, one_line(str(problem), 300), seconds=timeout)
            code = "timeout" if problem.code == "timeout" else "connection"
            if problem.is_retryable:
                raise Transient(message, code=code) from None
            raise self._failure(message, code=code) from None
        # No verdict and no vector is this long; asking again would only transfer it again.
        if not reply.complete:
            where = f"{self.endpoint.provider}: {self.endpoint.url}"
            message = f"{where} sent a reply that is longer than {len(reply.body)} bytes"
            raise self._failure(message, code="connection")
        text, unreadable = self._masked(reply)
        if unreadable and reply.ok:
            where = f"{self.endpoint.provider}: {self.endpoint.url}"
            raise self._failure(
                f"{where} sent a reply that can't be read: {unreadable}", code="bad_charset", raw=text
            )
        return ApiReply(reply.status, reply.headers, text)

    async def _authorised(self) -> Mapping[str, Secret]:
        """The header with a token, where there is no key: asked for each time, since tokens end."""
        if self._token is None:
            return {}
        try:
            token = Secret(str(await call(self._token)))
        except Exception as error:
            told = one_line(f"{type(error).__name__}: {error}", 300)
            where = self.endpoint
            raise self._failure(
                f"{where.provider}: no token from {where.token!r}: {told}", code="no_token"
            ) from error
        self._redact = Redactor([*self.endpoint.secrets, token])
        return self.endpoint.carrying(token)

    def _masked(self, reply: HttpReply) -> tuple[str, str]:
        """The body, and what is wrong with its bytes: all that these services send is JSON, and so UTF-8."""
        # In a frame of its own, from which nothing is raised: pytest -l would print the unmasked body.
        content_type = "application/json" if reply.ok else ""
        try:
            return self._redact(decoded(reply.body, content_type, reply.charset)), ""
        except WrongCharset as problem:
            return self._redact(decoded_leniently(reply.body, content_type, reply.charset)), str(problem)
