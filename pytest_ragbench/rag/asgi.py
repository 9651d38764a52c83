"""An ASGI app (FastAPI, Starlette, Django ...) asked in this process: no port, no server."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import yarl

from pytest_ragbench.engine.calls import Sender
from pytest_ragbench.extensions import imported
from pytest_ragbench.http.client import HttpReply, is_stream
from pytest_ragbench.model.errors import EndpointError
from pytest_ragbench.providers import Spec
from pytest_ragbench.rag.http import Headers, HttpRetriever, headers_of
from pytest_ragbench.rag.service import Sending, ServiceClient
from pytest_ragbench.secrets import Secret
from pytest_ragbench.settings import RagSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

App = Callable[
    [Mapping[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]

_HOST = "asgi.app"
_STARTUP_TIMEOUT_S = 60.0


def named_retriever(spec: Spec) -> AsgiRetriever:
    """``"asgi:MODULE:APP"``; see :func:`asgi_retriever`."""
    return asgi_retriever(
        imported(spec.rest, spec.settings.folder), spec.settings.rag, spec.engine, spec.rest
    )


def asgi_retriever(app: App, settings: RagSettings, engine: Engine, name: str) -> AsgiRetriever:
    """A retriever that calls ``app`` as the configured service would be asked (method, path, body, reply).

    Parameters
    ----------
    app
        ``async app(scope, receive, send)``. Its lifespan begins with the first question and ends with the run.
    name
        How messages call it.

    Raises
    ------
    UsageError
        As :func:`~pytest_ragbench.rag.http_retriever`.
    """
    here = settings.model_copy(update={"url": f"http://{_HOST}"})
    return AsgiRetriever(app, here, headers_of(here, os.environ, keyless=False), engine, name)


class AsgiRetriever(HttpRetriever):
    """Asks an app in this process; made by :func:`asgi_retriever`."""

    def __init__(self, app: App, settings: RagSettings, headers: Headers, engine: Engine, name: str) -> None:
        self._called = name
        super().__init__(settings, engine, headers)
        self._client = ServiceClient(self._service, AsgiTransport(app, headers, engine, self.name))

    @property
    def name(self) -> str:
        """``ASGI my_app:app GET /llm/search-rag?questions=...``."""
        return f"ASGI {self._called} {super().name.replace(f'http://{_HOST}', '')}"

    def _own_sending(self, sending: Sending) -> Callable[[Sender], Awaitable[Any]]:
        return lambda sender: self._client.ask(sending, sender)


class AsgiTransport:
    """Carries requests to an app in this process."""

    def __init__(self, app: App, headers: Headers, engine: Engine, name: str) -> None:
        self._app = app
        self._headers = headers
        self._engine = engine
        self._name = name
        self._lifespan: tuple[asyncio.AbstractEventLoop, _Lifespan] | None = None

    async def ready(self) -> None:
        """Nothing to prepare: the app starts within its first request's time, as it always has."""

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
        """See :class:`~pytest_ragbench.rag.service.Transport`."""
        state = await self._started()
        given = {**self._headers.sent, **more_headers}
        headers = {name: value.reveal() for name, value in given.items()} | {"Host": _HOST}
        if body is not None:
            headers |= {"Content-Type": content_type, "Content-Length": str(len(body))}
        response = _Response()
        try:
            scope = _scope(method, str(url), headers, state)
            await self._app(scope, _request(body or b""), response.take)
        except Exception as error:
            # An app may fail after its response was sent, as servers tolerate, too.
            if response.status == 0:
                raise EndpointError(
                    f"{self._name} raised {type(error).__name__}: {error}", code="exception"
                ) from error
        if response.status == 0:
            raise EndpointError(f"{self._name} ended without a response", code="no_response")
        return response.reply(max_bytes)

    async def _started(self) -> Mapping[str, Any]:
        loop = asyncio.get_running_loop()
        if self._lifespan is None or self._lifespan[0] is not loop:
            lifespan = _Lifespan(self._app, self._name)
            self._lifespan = (loop, lifespan)
            self._engine.on_close(lifespan.stop)
        return await self._lifespan[1].start()


def _scope(method: str, url: str, headers: Mapping[str, str], state: Mapping[str, Any]) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(parts.path) or "/",
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 0),
        "server": (_HOST, 80),
        "state": dict(state),
    }


def _request(data: bytes) -> Callable[[], Awaitable[Any]]:
    messages = [{"type": "http.request", "body": data, "more_body": False}]

    async def receive() -> Any:
        if not messages:
            await asyncio.Event().wait()  # the client stays until it has the reply
        return messages.pop()

    return receive


class _Response:
    """What the app sends, put together."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Message = Message()
        self._body = bytearray()
        self._arrivals: list[tuple[int, float]] = []

    async def take(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = int(message["status"])
            for name, value in message.get("headers", ()):
                self.headers[bytes(name).decode("latin-1")] = bytes(value).decode("latin-1")
        elif message["type"] == "http.response.body":
            self._body += message.get("body", b"")
            self._arrivals.append((len(self._body), time.monotonic()))

    def reply(self, max_bytes: int) -> HttpReply:
        body = bytes(self._body)
        charset = self.headers.get_content_charset()
        headers = {name.title(): value for name, value in self.headers.items()}
        arrivals = self._arrivals if is_stream(headers.get("Content-Type", "")) else ()
        return HttpReply(
            self.status, headers, body[:max_bytes], charset, len(body) <= max_bytes, tuple(arrivals)
        )


class _Lifespan:
    """Startup and shutdown of the app, where it has them."""

    def __init__(self, app: App, name: str) -> None:
        self._app = app
        self._name = name
        self._state: dict[str, Any] = {}
        self._to_app: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        self._replies: dict[str, asyncio.Future[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> Mapping[str, Any]:
        """The app's state, once it has started; at most once."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        # One asker who gives up must not stop the start that others wait for.
        await asyncio.shield(self._starting)
        return self._state

    async def stop(self) -> None:
        if self._task is not None and not self._task.done():
            with suppress(Exception):
                await self._announce("shutdown")
            self._task.cancel()

    async def _start(self) -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self._state}
        self._task = asyncio.ensure_future(self._app(scope, self._receive, self._take))
        failed = await self._announce("startup")
        if failed:
            raise EndpointError(f"{self._name} did not start: {failed}", code="startup")

    async def _announce(self, event: str) -> str:
        """What the app answers to the event: an empty string, or why it failed. An app without lifespan just ends."""
        reply: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._replies[event] = reply
        await self._to_app.put({"type": f"lifespan.{event}"})
        tasks: set[asyncio.Future[Any]] = {reply, self._task}  # type: ignore[arg-type]
        await asyncio.wait(tasks, timeout=_STARTUP_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED)
        if reply.done():
            return reply.result()
        if self._task is not None and self._task.done():
            self._task.exception()  # retrieved, so that asyncio does not complain: the app has no lifespan
            return ""
        return f"nothing within {_STARTUP_TIMEOUT_S:g} s"

    async def _receive(self) -> dict[str, str]:
        try:
            return await self._to_app.get()
        except asyncio.CancelledError:  # the engine ends all tasks before it closes what they use
            return {"type": "lifespan.shutdown"}

    async def _take(self, message: MutableMapping[str, Any]) -> None:
        _, event, outcome = str(message["type"]).split(".")
        if event in self._replies and not self._replies[event].done():
            failed = outcome == "failed"
            self._replies[event].set_result(
                str(message.get("message") or "no reason given") if failed else ""
            )
