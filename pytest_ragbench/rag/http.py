"""Asking a RAG service over HTTP.

aiohttp, not httpx2: its pool costs less with many open connections. 1000 calls of 0.3 s, 200 at a
time, on loopback: 1.7 s (0.4 s CPU) against 3.7-4.5 s (3.4-4.4 s CPU); the ideal is 1.5 s.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn
from urllib.parse import urljoin, urlsplit

import yarl

from pytest_ragbench.engine.requests import Request, Sender, Sent, Transient
from pytest_ragbench.model.errors import EndpointError, UsageError
from pytest_ragbench.model.samples import Question, RagSample, sample_from
from pytest_ragbench.rag.mapping import BadReply, Reply, ReplyReader
from pytest_ragbench.rag.proxies import proxy_for
from pytest_ragbench.rag.replies import decoded, head, read_reply
from pytest_ragbench.rag.retry_after import parse_retry_after
from pytest_ragbench.rag.secrets import Redactor, Secret, fingerprint, is_secret_name
from pytest_ragbench.rag.sessions import turns_before
from pytest_ragbench.rag.target import target_of
from pytest_ragbench.settings import RagSettings

if TYPE_CHECKING:
    import aiohttp

    from pytest_ragbench.engine.core import Engine

_HEALING = (408, 409, 429)
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 5
_ERROR_BYTES = 65_536


def http_retriever(
    settings: RagSettings,
    engine: Engine,
    environ: Mapping[str, str] = os.environ,
    clock: Callable[[], float] = time.time,
) -> HttpRetriever:
    """A retriever that asks the configured service; nothing is sent yet.

    ``settings.url`` may be a base URL, hold the path already, or be a template with ``{question}``
    or ``{TEXT}``. ``clock`` gives POSIX seconds, for Retry-After dates.

    Raises
    ------
    UsageError
        Where there is no URL, the question would go nowhere, the variable named by ``auth_env`` is
        missing, a header can't be sent, or a reply path can't be parsed.
    """
    return HttpRetriever(settings, _headers(settings, environ, engine.replays("rag")), engine, clock)


@dataclass(frozen=True)
class _Headers:
    sent: Mapping[str, Secret]
    secrets: tuple[Secret, ...]
    key: Mapping[str, Any]


def _headers(settings: RagSettings, environ: Mapping[str, str], keyless: bool) -> _Headers:
    """All headers; secrets among them are in the key by fingerprint, or by their variable's name.
    ``keyless``: nobody will be asked.
    """
    sent: dict[str, str] = {
        "Accept": "application/json, text/plain;q=0.9, */*;q=0.5",
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": "pytest-ragbench",
    }
    sent |= {name.title(): value for name, value in settings.headers.items()}
    key: dict[str, Any] = {
        name.title(): fingerprint(value) if is_secret_name(name) else value
        for name, value in settings.headers.items()
    }
    secrets = [value for name, value in settings.headers.items() if is_secret_name(name)]
    if settings.auth_env:
        value = environ.get(settings.auth_env, "").strip()
        if not value and not keyless:
            raise UsageError(
                f"rag.auth_env names the variable {settings.auth_env}, which is not set or blank; set it, "
                f"or remove auth_env where the service needs no key"
            )
        scheme = settings.auth_scheme.strip()
        sent[settings.auth_header.title()] = f"{scheme} {value}" if scheme else value
        key["auth"] = [settings.auth_header.title(), scheme, settings.auth_env]
        secrets.append(value)
    for name, value in sent.items():
        if not _sendable(name) or not _sendable(value):
            raise UsageError(f"rag: the header {name!r} holds characters that can't be sent in a header")
    parts = [part for value in secrets for part in (value, value.split()[-1] if value.split() else "")]
    return _Headers({name: Secret(value) for name, value in sent.items()}, tuple(map(Secret, parts)), key)


def _sendable(text: str) -> bool:
    return all(char == "\t" or (char >= " " and char != "\x7f") for char in text)


class HttpRetriever:
    """Asks one HTTP service; made by :func:`http_retriever`."""

    shared: ClassVar[bool] = True
    """Replies are kept by the engine, for all workers: asking ahead of a test makes no call twice."""

    def __init__(
        self,
        settings: RagSettings,
        headers: _Headers,
        engine: Engine,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._target = target_of(settings)
        self._reader = ReplyReader(settings.reply)
        self._headers = headers
        self._engine = engine
        self._clock = clock
        self._redact = Redactor([*headers.secrets, *map(Secret, self._target.secrets)])
        self._proxy = proxy_for(self._target.url("x"))
        self._session: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None = None

    @property
    def name(self) -> str:
        """Method and URL, query values cut: ``GET http://host/llm/search-rag?questions=...``."""
        return f"{self._target.method} {self._target.shown}"

    def __repr__(self) -> str:
        return f"<HttpRetriever {self.name}>"

    async def ask(self, question: Question) -> RagSample:
        """Ask the service, or take the kept reply; see :class:`~pytest_ragbench.rag.Retriever`."""
        target, text = self._target, question.question
        session = question.session if target.tells_session else None
        # A service remembers its sessions, and the next run has to begin a new one.
        sent = f"{session}-{self._engine.run_id[:8]}" if session is not None else None
        url, body = target.url(text, sent), target.filled_body(text, sent)
        earlier = [turn.question for turn in turns_before(question)] if session is not None else []

        async def fetch(send: Sender) -> Any:
            if self._session is None:  # a third of a second, which is not the service's latency
                await asyncio.to_thread(import_module, "aiohttp")
            return (await send(lambda: self._attempt(url, body))).payload

        fetched = await self._engine.fetch(
            Request(
                kind="rag",
                provider="rag",
                key={
                    "method": target.method,
                    "url": target.key_url(text, session),
                    "body": target.key_body(text, session),
                    "headers": dict(self._headers.key),
                    **({"earlier": earlier} if earlier else {}),
                },
                fetch=fetch,
                read=self._read,
                scope="store" if self._settings.reuse_answers else "run",
                failure=EndpointError,
            )
        )
        reply, latency = fetched.value
        return sample_from(
            question,
            **found_in(reply),
            latency=latency,
            cached=fetched.cached,
        )

    def _read(self, payload: Any) -> tuple[Reply, float]:
        # The reply is kept as it came and mapped here, so that a changed mapping needs no new call.
        try:
            return read_reply(payload, self._reader), float(payload["latency"])
        except BadReply as problem:
            raise self._bad(str(problem), payload) from None

    def _bad(self, problem: str, payload: Mapping[str, Any]) -> EndpointError:
        content_type = payload["content_type"] or "no content type"
        text = str(payload["text"])
        starts = f"; it starts: {head(text)}" if text.strip() else "; empty body"
        return EndpointError(
            f"{self.name} replied {payload['status']} ({content_type}): {self._redact(problem)}{starts}",
            code="bad_reply",
            raw=text,
        )

    # One attempt

    async def _attempt(self, url: str, body: Any) -> Sent:
        import aiohttp

        started = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.timeout):
                payload = await self._exchange(url, body)
        except TimeoutError:
            message = f"{self.name}: no complete reply within {self._settings.timeout:g} s"
            raise Transient(message, code="timeout") from None
        except aiohttp.InvalidURL:
            raise UsageError(f"rag.url: {self._target.shown} is no URL that can be asked") from None
        except (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError) as error:
            raise EndpointError(f"{self.name}: TLS: {self._told(error)}", code="tls") from None
        except aiohttp.ClientResponseError as error:
            raise EndpointError(
                f"{self.name}: the reply is not valid HTTP: {self._told(error)}", code="not_http"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            message = f"{self.name}: connection failed: {self._told(error)}"
            raise Transient(message, code="connection") from None
        return Sent({**payload, "latency": time.monotonic() - started})

    def _told(self, error: Exception) -> str:
        return head(
            self._redact(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__), 300
        )

    async def _exchange(self, url: str, body: Any) -> dict[str, Any]:
        data = None if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8")
        session = self._session_here()
        for _ in range(_MOST_REDIRECTS + 1):
            async with session.request(
                self._target.method,
                yarl.URL(url, encoded=True),
                data=data,
                headers=None if data is None else {"Content-Type": self._content_type()},
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                location = response.headers.get("Location")
                if response.status in _REDIRECTS and location:
                    url = self._redirected(url, location, response.status)
                    continue
                return await self._received(response)
        raise EndpointError(f"{self.name}: more than {_MOST_REDIRECTS} redirects", code="redirect")

    def _content_type(self) -> str:
        given = self._headers.sent.get("Content-Type")
        return given.reveal() if given else "application/json"

    def _redirected(self, url: str, location: str, status: int) -> str:
        """Where to go next: only to the same origin, which may see the credentials, and only by GET."""
        new = urljoin(url, location).partition("#")[0]
        base = self._redact(new.partition("?")[0])
        if self._target.method != "GET":
            raise EndpointError(
                f"{self.name} replied {status}: {self._target.method} is not redirected; "
                f"set rag.url to {base}",
                code=f"http_{status}",
            )
        if _origin(new) != _origin(url):
            raise EndpointError(
                f"{self.name} replied {status}: it redirects to another origin, {base} (a login page?); "
                f"set rag.url to the service itself",
                code=f"http_{status}",
            )
        return new

    async def _received(self, response: aiohttp.ClientResponse) -> dict[str, Any]:
        failed = not 200 <= response.status < 300
        payload, problem = await self._taken(response, failed)
        if failed:
            self._raise_status(payload, response.headers.get("Retry-After"))
        if problem:
            raise self._bad(problem, payload)
        return payload

    async def _taken(
        self, response: aiohttp.ClientResponse, failed: bool
    ) -> tuple[dict[str, Any], str | None]:
        """The reply as it is kept, secrets masked, and what is wrong with its bytes. Raises nothing of
        ours: ``pytest -l`` would print the unmasked body from this frame.
        """
        most = _ERROR_BYTES if failed else self._settings.max_bytes
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > most:
                break
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        problem = None
        if len(body) > most:
            problem = f"the body is longer than rag.max_bytes ({most})"
        try:
            text = decoded(bytes(body[:most]), content_type, response.charset, strict=not failed)
        except BadReply as error:
            problem = problem or str(error)
            text = decoded(bytes(body[:most]), content_type, response.charset, strict=False)
        payload = {"status": response.status, "content_type": content_type, "text": self._redact(text)}
        return payload, problem

    def _raise_status(self, payload: dict[str, Any], retry_after: str | None) -> NoReturn:
        status = int(payload["status"])
        text = head(str(payload["text"]))
        message = f"{self.name} replied {status}: {text or 'empty body'}"
        if status in _HEALING or status >= 500:
            wait = parse_retry_after(retry_after, self._clock())
            raise Transient(message, code=f"http_{status}", retry_after=wait)
        raise EndpointError(message, code=f"http_{status}", raw=str(payload["text"]))

    # The client

    def _session_here(self) -> aiohttp.ClientSession:
        """The client of this loop. Credentials are its default headers, so that no frame shows them."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._session[0] is not loop or self._session[1].closed:
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # the engine's slots are the limit
                headers={
                    name: value.reveal()
                    for name, value in self._headers.sent.items()
                    if name != "Content-Type"
                },
                cookie_jar=aiohttp.DummyCookieJar(),  # no answer depends on an earlier one
                timeout=aiohttp.ClientTimeout(total=None),
                max_line_size=65_536,
                max_field_size=65_536,
            )
            # aiohttp sends a GET again by itself when a kept connection turns out closed; the engine
            # counts and bounds all calls, so it is the one to do that.
            session._retry_connection = False
            self._session = (loop, session)
            self._engine.on_close(session.close)
        return self._session[1]


def found_in(reply: Reply) -> dict[str, Any]:
    """What the reply says, as columns of a sample; what it doesn't say is left to the question."""
    columns = {
        "answer": reply.answer,
        "contexts": reply.contexts,
        "context_ids": reply.context_ids,
        "context_scores": reply.context_scores,
        "context_urls": reply.context_urls,
    }
    # Ids and scores belong to the contexts beside them: a question's own must not be mixed in.
    own = reply.contexts is not None or reply.context_ids is not None
    found = {
        name: value for name, value in columns.items() if value is not None or (own and name != "answer")
    }
    return {**found, "metadata": reply.metadata}


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
