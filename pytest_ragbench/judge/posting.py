"""Posting JSON to a chat service.

aiohttp by itself, as for the RAG service, and not the openai client above it: of that client nothing is left
to use where the engine bounds, retries and counts, and its import takes 1.3 s of CPU and each of its calls
2 ms, in every worker (``benchmarks/speed.py``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_ragbench.judge.endpoints import Endpoint
from pytest_ragbench.rag.proxies import proxy_for

if TYPE_CHECKING:
    import aiohttp

    from pytest_ragbench.engine.core import Engine

_MOST_BYTES = 32 * 2**20
"""Of one reply. A verdict has some thousand; a service that never ends one must not fill the memory."""


@dataclass(frozen=True)
class Posted:
    """What came back, secrets masked."""

    status: int
    headers: Mapping[str, str]
    text: str


class NotPosted(Exception):
    """Nothing came back, or nothing that is HTTP. ``heals``: asking again can help."""

    def __init__(self, reason: str, *, heals: bool) -> None:
        super().__init__(reason)
        self.heals = heals


class Poster:
    """One service, on the engine's loop; connections are opened on first use and kept.

    The key is among the connection's default headers, so that no frame of a traceback shows it.
    """

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str], engine: Engine) -> None:
        self._endpoint = endpoint
        self._headers = headers
        self._engine = engine
        self._proxy = proxy_for(endpoint.url)
        self._open: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None = None

    async def ready(self) -> None:
        """Import what is needed: half a second, which is no part of a call's time."""
        if self._open is None:
            await asyncio.to_thread(import_module, "aiohttp")

    async def post(self, path: str, body: Mapping[str, Any]) -> Posted:
        """One request, one reply, whatever its status; time limits are the caller's.

        Raises
        ------
        NotPosted
            There was no reply.
        """
        import aiohttp

        session = self._session()
        # A lone surrogate, which UTF-8 has no bytes for, is written as JSON's own escape.
        data = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")
        try:
            async with session.post(
                self._endpoint.url + path,
                data=data,
                params=self._endpoint.query or None,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                raw = await _body_of(response)
                return Posted(response.status, response.headers, self._text(raw, response.charset))
        except (
            aiohttp.ClientSSLError,
            aiohttp.ClientConnectorCertificateError,
            aiohttp.InvalidURL,
            aiohttp.ClientResponseError,  # what came is no HTTP
        ) as error:
            raise NotPosted(self._told(error), heals=False) from None
        except (aiohttp.ClientError, OSError) as error:
            raise NotPosted(self._told(error), heals=True) from None

    def _text(self, raw: bytes, charset: str | None) -> str:
        try:
            text = raw.decode(charset or "utf-8", "replace")
        except LookupError:  # a charset that nobody knows
            text = raw.decode("utf-8", "replace")
        return self._endpoint.redacted(text)

    def _told(self, error: Exception) -> str:
        return self._endpoint.redacted(str(error) or type(error).__name__)

    def _session(self) -> aiohttp.ClientSession:
        """That of the running loop: made on first use, and again in a forked worker."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._open is None or self._open[0] is not loop:
            headers = {
                "Accept": "application/json",
                "Content-Type": "application/json",
                "User-Agent": "pytest-ragbench",
                "Authorization": f"Bearer {self._endpoint.key.reveal()}",
            }
            headers |= {name.title(): value for name, value in self._headers.items()}
            session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),  # the engine's slots are the limit
                headers=headers,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                max_line_size=65_536,
                max_field_size=65_536,
            )
            session._retry_connection = False  # the engine counts all requests, so no hidden second one
            self._engine.on_close(session.close)
            self._open = (loop, session)
        return self._open[1]


async def _body_of(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > _MOST_BYTES:
            raise NotPosted(f"the reply is longer than {_MOST_BYTES} bytes", heals=False)
    return bytes(body)
