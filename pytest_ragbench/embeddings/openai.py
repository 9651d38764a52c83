"""Embeddings from an OpenAI-compatible service."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pytest_ragbench.embeddings.base import Vectors, checked_texts, checked_vectors, quoted
from pytest_ragbench.embeddings.batches import Batches
from pytest_ragbench.engine.requests import Request, Sender, Sent, Transient
from pytest_ragbench.model.errors import EmbeddingError, RagbenchError, UsageError
from pytest_ragbench.rag.replies import head
from pytest_ragbench.rag.retry_after import parse_retry_after
from pytest_ragbench.rag.secrets import Redactor, Secret, is_secret_name
from pytest_ragbench.settings import ProviderSettings

if TYPE_CHECKING:
    import openai

    from pytest_ragbench.engine.core import Engine

_HEALING = (408, 409, 429)
_TOO_MUCH = (400, 413, 422)
_MOST_TEXTS = 128
# Concurrent callers reach the batch by way of the store, a little apart from each other.
_WINDOW = 0.01
_FLOAT32 = np.dtype("<f4")


@dataclass(frozen=True)
class _Item:
    text: str
    send: Sender


def openai_embedder(
    settings: ProviderSettings,
    model: str,
    engine: Engine,
    *,
    provider: str = "openai",
    dimensions: int | None = None,
    environ: Mapping[str, str] = os.environ,
) -> OpenAIEmbedder:
    """Embeds through ``POST {base_url}/embeddings``; vectors are kept in the store, text by text.

    The key comes from the variable ``api_key_env``; without it from OPENAI_API_KEY, but only where no
    other ``base_url`` is configured: a key is never sent to a service that it was not given for.

    Raises
    ------
    UsageError
        Where the key is missing.
    """
    return OpenAIEmbedder(settings, model, engine, provider, dimensions, environ)


class OpenAIEmbedder:
    """Made by :func:`openai_embedder`."""

    shared: ClassVar[bool] = True
    """Vectors are kept by the engine, for all workers: asking ahead of a test makes no call twice."""

    def __init__(
        self,
        settings: ProviderSettings,
        model: str,
        engine: Engine,
        provider: str,
        dimensions: int | None,
        environ: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._model = model
        self._engine = engine
        self._provider = provider
        self._dimensions = dimensions
        self._base_url = settings.base_url or environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        self._key = None if engine.replays("embedding") else _api_key(settings, provider, environ)
        hidden = [Secret(value) for name, value in settings.headers.items() if is_secret_name(name)]
        self._redact = Redactor([*hidden, *([self._key] if self._key else [])])
        self._client: tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI, Batches[_Item, str]] | None = None

    @property
    def name(self) -> str:
        """``provider:model``."""
        return f"{self._provider}:{self._model}"

    def __repr__(self) -> str:
        return f"<OpenAIEmbedder {self.name}>"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`~pytest_ragbench.embeddings.Embedder`."""
        items = checked_texts(texts, self.name)
        if not items:
            return np.empty((0, 0))
        different = list(dict.fromkeys(items))
        found = await asyncio.gather(*(self._one(text) for text in different))
        vectors = dict(zip(different, found, strict=True))
        return checked_vectors([vectors[text] for text in items], items, self.name)

    async def _one(self, text: str) -> Vectors:
        async def fetch(send: Sender) -> Any:
            return await self._batches_here().submit(_Item(text, send))

        fetched = await self._engine.fetch(
            Request(
                kind="embedding",
                provider=self._provider,
                key={
                    "url": self._base_url,
                    "model": self._model,
                    "dimensions": self._dimensions,
                    "text": text,
                },
                fetch=fetch,
                read=lambda payload: _unpacked(payload, text, self.name),
                scope="store",
                failure=EmbeddingError,
            )
        )
        return fetched.value

    async def _run(self, items: Sequence[_Item]) -> Sequence[str | Exception]:
        """One call for all; where the service refuses it as too much or wrong, halves, to find whose."""
        texts = [item.text for item in items]
        try:
            sent = await items[0].send(lambda: self._attempt(texts))
        except EmbeddingError as error:
            if len(items) == 1 or error.code not in [f"http_{status}" for status in _TOO_MUCH]:
                raise
            middle = len(items) // 2
            return [*await self._part(items[:middle]), *await self._part(items[middle:])]
        return [_or_error(vector, text, self.name) for vector, text in zip(sent.payload, texts, strict=True)]

    async def _part(self, items: Sequence[_Item]) -> Sequence[str | Exception]:
        try:
            return await self._run(items)
        except RagbenchError as error:
            return [error] * len(items)

    async def _attempt(self, texts: list[str]) -> Sent:
        import openai

        _, client, _ = self._client_here()
        try:
            reply = await client.embeddings.with_raw_response.create(
                input=texts,
                model=self._model,
                encoding_format="base64",
                dimensions=openai.omit if self._dimensions is None else self._dimensions,
            )
            body = reply.http_response.text
        except openai.APITimeoutError:
            message = f"{self.name}: no reply from {self._base_url} within {self._settings.timeout:g} s"
            raise Transient(message, code="timeout") from None
        except openai.APIStatusError as error:
            raise self._refused(error, texts) from None
        except openai.APIConnectionError as error:
            cause = head(self._redact(str(error.__cause__ or error)), 200)
            raise Transient(
                f"{self.name}: no connection to {self._base_url}: {cause}", code="connection"
            ) from None
        return self._read(body, texts)

    def _refused(self, error: openai.APIStatusError, texts: list[str]) -> RagbenchError:
        status, told = error.status_code, self._redact(error.response.text)
        message = f"{self.name}: {self._base_url} replied {status}: {head(told, 300) or 'empty body'}"
        # A used-up quota comes as 429 too, and no waiting helps.
        if (status in _HEALING or status >= 500) and "insufficient_quota" not in told:
            wait = parse_retry_after(error.response.headers.get("Retry-After"), time.time())
            return Transient(message, code=f"http_{status}", retry_after=wait)
        if "insufficient_quota" in told or status == 402:
            return EmbeddingError(f"{message} (quota used up)", code="insufficient_quota", raw=told)
        whose = f" (text: {quoted(texts[0])})" if len(texts) == 1 else ""
        return EmbeddingError(message + whose, code=f"http_{status}", raw=told)

    def _read(self, body: str, texts: list[str]) -> Sent:
        """The vectors in the order of the texts."""
        try:
            reply = json.loads(body)
            entries = reply["data"]
            rows = {_index(entry, place): entry["embedding"] for place, entry in enumerate(entries)}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise EmbeddingError(
                f"{self.name}: {self._base_url} replied with something that holds no embeddings: "
                f"{head(self._redact(body))}",
                code="bad_reply",
                raw=self._redact(body),
            ) from None
        if len(entries) != len(texts) or sorted(rows) != list(range(len(texts))):
            raise EmbeddingError(
                f"{self.name} returned {len(entries)} vectors for {len(texts)} texts, the first "
                f"{quoted(texts[0])}, with the indexes {head(str(list(rows)), 80)}",
                code="vector_count_mismatch",
            )
        usage = reply.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return Sent([rows[place] for place in range(len(texts))], tokens if isinstance(tokens, int) else 0)

    # The client

    def _batches_here(self) -> Batches[_Item, str]:
        return self._client_here()[2]

    def _client_here(self) -> tuple[asyncio.AbstractEventLoop, openai.AsyncOpenAI, Batches[_Item, str]]:
        """The client of this loop; its own retries are off, since the engine bounds and counts them."""
        import openai

        loop = asyncio.get_running_loop()
        if self._client is None or self._client[0] is not loop:
            client = openai.AsyncOpenAI(
                api_key=self._key.reveal() if self._key else "none",
                base_url=self._base_url,
                max_retries=0,
                timeout=self._settings.timeout,
                default_headers=dict(self._settings.headers),
                http_client=openai.DefaultAioHttpClient(),
            )
            batches = Batches[_Item, str](self._run, most=_MOST_TEXTS, window=_WINDOW)
            self._client = (loop, client, batches)
            self._engine.on_close(client.close)
        return self._client


def _api_key(settings: ProviderSettings, provider: str, environ: Mapping[str, str]) -> Secret | None:
    name = settings.api_key_env or (None if settings.base_url else "OPENAI_API_KEY")
    if name is None:
        return None
    value = environ.get(name, "").strip()
    if not value:
        raise UsageError(
            f"the embedder of provider {provider!r} needs the key in the variable {name}, which is not set"
        )
    return Secret(value)


def _index(entry: Mapping[str, Any], place: int) -> int:
    index = entry.get("index")
    return place if index is None else int(index)


def _or_error(row: Any, text: str, name: str) -> str | Exception:
    """A checked vector, ready to be kept: base64 of little-endian float32, as the services send it."""
    try:
        if isinstance(row, str):
            row = np.frombuffer(base64.b64decode(row, validate=True), dtype=_FLOAT32)
        vector = checked_vectors([row], [text], name)[0]
    except EmbeddingError as error:
        return error
    except (ValueError, binascii.Error):
        return EmbeddingError(
            f"{name}: the vector of {quoted(text)} is no base64 of float32", code="bad_vectors"
        )
    return base64.b64encode(vector.astype(_FLOAT32).tobytes()).decode("ascii")


def _unpacked(payload: Any, text: str, name: str) -> Vectors:
    row = np.frombuffer(base64.b64decode(payload), dtype=_FLOAT32)
    vector: Vectors = checked_vectors([row], [text], name)[0]
    return vector
