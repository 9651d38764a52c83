"""One HTTP client for judges, embedders and RAG services.

aiohttp, not httpx: its pool costs less with many open connections. 1000 calls of 0.3 s, 200 at a time,
on loopback: 1.7 s (0.4 s CPU) against 3.7-4.5 s (3.4-4.4 s CPU); the ideal is 1.5 s. And not the openai
library, whose import takes 1.3 s of CPU and each of whose calls 2 ms: the engine already does the
retrying and counting that it would bring (``benchmarks/speed.py``).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_ragbench.http.connection import Connection
from pytest_ragbench.secrets import Redactor, Secret

if TYPE_CHECKING:
    import aiohttp
    import yarl

_MAX_ERROR_BYTES = 65_536
_MAX_HEADER_BYTES = 65_536

OnClose = Callable[[Callable[[], Awaitable[None]]], None]
"""Registers what has to be awaited before the event loop stops."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply, whatever its status. The body may echo credentials, so no repr shows it."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    charset: str | None
    complete: bool = True
    """False where the body was longer than allowed, and cut there."""
    arrivals: tuple[tuple[int, float], ...] = ()
    """Of a stream: how much of the body was there at which time of :func:`time.monotonic`."""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


STREAMS = (
    "text/event-stream", "application/x-ndjson", "application/ndjson", "application/jsonl",
    "application/x-jsonlines",
)  # fmt: skip
"""Content types of replies that come piece by piece."""


def is_stream(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in STREAMS


class HttpError(Exception):
    """No reply came, or none that is HTTP.

    ``code`` is ``"connection"``, ``"timeout"``, ``"tls"``, ``"not_http"`` or ``"url"``.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_retryable(self) -> bool:
        """Whether sending the same again may help."""
        return self.code in ("connection", "timeout")


class HttpClient:
    """Connections to one service, opened on first use and kept.

    Parameters
    ----------
    url
        The service, whose proxy is looked up once.
    headers
        Sent with every request. They are the session's default headers rather than arguments, so that no
        frame of a traceback shows a credential.
    redact
        Masks credentials in error messages.
    on_close
        Where closing the connections is registered.
    connection
        Proxy and certificates, where they are not those of the environment and the system.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, Secret],
        redact: Redactor,
        on_close: OnClose,
        connection: Connection | None = None,
    ) -> None:
        self._connection = connection or Connection()
        # Once for a client, since the lookup reads the environment, and the registry on Windows.
        self._proxy = self._connection.proxy_for(url)
        self._headers = headers
        self._redact = redact
        self._on_close = on_close
        self._open: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None = None

    async def ready(self) -> None:
        """Import aiohttp: a third of a second, which must not count as the service's latency."""
        # In a thread, so that calls under way on this loop are not held up.
        if "aiohttp" not in sys.modules:
            await asyncio.to_thread(import_module, "aiohttp")

    async def send(
        self,
        method: str,
        url: str | yarl.URL,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
        more_headers: Mapping[str, Secret] | None = None,
        query: Sequence[tuple[str, str]] = (),
        timeout: float | None = None,
        max_bytes: int,
    ) -> HttpReply:
        """One request, one reply; redirects are not followed.

        Parameters
        ----------
        more_headers
            Of this request alone: a token that is renewed.
        timeout
            Seconds until the reply must be complete; None: the caller bounds it.
        max_bytes
            Length at which the body of a successful reply is cut; that of a failure is cut at 64 KiB.

        Raises
        ------
        HttpError
            There was no reply.
        """
        import aiohttp

        try:
            async with asyncio.timeout(timeout):
                async with self._session().request(
                    method,
                    url,
                    data=body,
                    params=query or None,
                    headers={
                        **({} if body is None else {"Content-Type": content_type}),
                        **{name: value.reveal() for name, value in (more_headers or {}).items()},
                    },
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response:
                    return await _received(response, max_bytes)
        # First, since TimeoutError is an OSError too.
        except TimeoutError:
            raise HttpError(f"no complete reply within {timeout or 0:g} s", "timeout") from None
        except aiohttp.InvalidURL:
            raise HttpError("not a valid URL", "url") from None
        except (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError) as error:
            raise HttpError(self._described(error), "tls") from None
        # What came is not HTTP: another kind of server listens there, and will the next time.
        except aiohttp.ClientResponseError as error:
            raise HttpError(self._described(error), "not_http") from None
        except (aiohttp.ClientError, OSError) as error:
            raise HttpError(self._described(error), "connection") from None

    def _described(self, error: Exception) -> str:
        name = type(error).__name__
        return self._redact(f"{name}: {error}" if str(error) else name)

    def _session(self) -> aiohttp.ClientSession:
        """The session of the running loop: a forked child has another loop, and so another session."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop or self._open[1].closed:
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,  # the engine's call slots are the limit
                    ssl=self._connection.tls() or True,
                ),
                headers={
                    name: value.reveal() for name, value in self._headers.items() if name != "Content-Type"
                },
                cookie_jar=aiohttp.DummyCookieJar(),  # no reply may depend on an earlier one
                timeout=aiohttp.ClientTimeout(total=None),
                max_line_size=_MAX_HEADER_BYTES,
                max_field_size=_MAX_HEADER_BYTES,
            )
            # aiohttp repeats a GET by itself when a kept connection turns out to be closed. The engine
            # counts and bounds all calls, so it must be the one to repeat them.
            session._retry_connection = False
            self._on_close(session.close)
            self._open = (loop, session)
        return self._open[1]


async def _received(response: aiohttp.ClientResponse, max_bytes: int) -> HttpReply:
    # An error page can be of any size, and only its beginning is shown.
    limit = max_bytes if 200 <= response.status < 300 else _MAX_ERROR_BYTES
    body = bytearray()
    arrivals: list[tuple[int, float]] = []
    streamed = is_stream(response.headers.get("Content-Type", ""))
    # Piece by piece: Content-Length may be missing, or lie, and gzip may unpack to gigabytes.
    async for piece in response.content.iter_any():
        body += piece
        if streamed:
            arrivals.append((len(body), time.monotonic()))
        if len(body) > limit:
            break
    return HttpReply(
        response.status,
        response.headers,
        bytes(body[:limit]),
        response.charset,
        len(body) <= limit,
        tuple(arrivals),
    )
