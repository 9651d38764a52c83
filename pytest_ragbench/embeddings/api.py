"""Sending texts to an OpenAI-compatible embeddings API; concurrent texts share requests."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_ragbench.clean import one_line
from pytest_ragbench.embeddings.base import checked_vectors, quoted
from pytest_ragbench.embeddings.batches import Batches
from pytest_ragbench.engine.calls import Call, Closing, Sender, Sent
from pytest_ragbench.http.api import ApiClient, ApiReply, Service
from pytest_ragbench.http.endpoints import Endpoint
from pytest_ragbench.model.errors import EmbeddingError, RagbenchError

FLOAT32 = np.dtype("<f4")
"""Services send vectors as base64 of little-endian float32, and so they are stored."""
# Texts in one request.
_MAX_TEXTS = 128
# How long a request waits for more texts: concurrent callers come by way of the store, a little
# apart.
_WINDOW_S = 0.01
_TOO_MUCH = frozenset({"http_400", "http_413", "http_422"})


@dataclass(frozen=True)
class EmbeddingRequest:
    """Who embeds, and how: texts with equal requests may go out together."""

    endpoint: Endpoint
    model: str
    dimensions: int | None
    timeout: float


@dataclass(frozen=True)
class _Item:
    text: str
    sender: Sender


class EmbeddingsAdapter:
    """Embeds one text a call. It is given data only, so any process of the run can do it."""

    def __init__(self, engine: Closing) -> None:
        self._engine = engine
        self._services: dict[tuple[Any, ...], _Service] = {}

    async def fetch(self, call: Call, sender: Sender) -> str:
        """The vector of the text ``call.body``, as base64 of little-endian float32. ``call.config`` is an
        :class:`EmbeddingRequest`.

        Raises
        ------
        EmbeddingError
            The service refused the text, or sent no vector that can be compared.
        """
        return await self.embed(call.config, call.body, sender)

    async def embed(
        self, asked: EmbeddingRequest, text: str, sender: Sender, client: Service | None = None
    ) -> str:
        """As :meth:`fetch`; ``client`` is a service that need not be data, in the place of the endpoint."""
        loop = asyncio.get_running_loop()
        known_by = (
            asked.endpoint.identity,
            asked.model,
            asked.dimensions,
            asked.timeout,
            id(client),
            id(loop),
        )
        service = self._services.get(known_by)
        if service is None:
            client = client or ApiClient(asked.endpoint, EmbeddingError, self._engine.on_close)
            service = self._services[known_by] = _Service(asked, client)
        return await service.batches.submit(_Item(text, sender))


class _Service:
    """One model of one service."""

    def __init__(self, asked: EmbeddingRequest, client: Service) -> None:
        self._asked = asked
        self._name = f"{asked.endpoint.provider}:{asked.model}"
        self._client = client
        self.batches = Batches[_Item, str](self._run, max_items=_MAX_TEXTS, window_s=_WINDOW_S)

    async def _run(self, items: Sequence[_Item]) -> Sequence[str | Exception]:
        """One request for all. Where the service refuses it as too much or wrong, halves, to find whose fault
        it is.
        """
        texts = [item.text for item in items]
        await self._client.ready()
        try:
            # The request counts as that of the first text: the others came along for nothing.
            sent = await items[0].sender(lambda: self._attempt(texts))
        except EmbeddingError as error:
            if len(items) == 1 or error.code not in _TOO_MUCH:
                raise
            middle = len(items) // 2
            return [*await self._part(items[:middle]), *await self._part(items[middle:])]
        return [_packed(vector, text, self._name) for vector, text in zip(sent.payload, texts, strict=True)]

    async def _part(self, items: Sequence[_Item]) -> Sequence[str | Exception]:
        try:
            return await self._run(items)
        except RagbenchError as error:
            return [error] * len(items)

    async def _attempt(self, texts: list[str]) -> Sent:
        asked = self._asked
        body: dict[str, Any] = {"input": texts, "model": asked.model, "encoding_format": "base64"}
        if asked.dimensions is not None:
            body["dimensions"] = asked.dimensions
        reply = await self._client.post("/embeddings", body, timeout=asked.timeout)
        if not 200 <= reply.status < 300:
            raise self._client.failure(reply, f" (text: {quoted(texts[0])})" if len(texts) == 1 else "")
        return self._read(reply, texts)

    def _read(self, reply: ApiReply, texts: list[str]) -> Sent:
        """The vectors in the order of the texts."""
        try:
            data = json.loads(reply.text)
            entries = data["data"]
            rows = {_index(entry, place): entry["embedding"] for place, entry in enumerate(entries)}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise EmbeddingError(
                f"{self._name}: {self._asked.endpoint.url} replied with something that holds no embeddings: "
                f"{one_line(reply.text)}",
                code="bad_reply",
                raw=reply.text,
            ) from None
        # A vector at the wrong place would be a wrong score that looks right.
        if len(entries) != len(texts) or sorted(rows) != list(range(len(texts))):
            raise EmbeddingError(
                f"{self._name} returned {len(entries)} vectors for {len(texts)} texts, the first "
                f"{quoted(texts[0])}, with the indexes {one_line(str(list(rows)), 80)}",
                code="vector_count_mismatch",
            )
        usage = data.get("usage")
        tokens = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return Sent([rows[place] for place in range(len(texts))], tokens if isinstance(tokens, int) else 0)


def _index(entry: Mapping[str, Any], place: int) -> int:
    index = entry.get("index")
    return place if index is None else int(index)


def _packed(row: Any, text: str, name: str) -> str | Exception:
    """A checked vector in the form in which it is stored, or what is wrong with it."""
    try:
        if isinstance(row, str):
            row = np.frombuffer(base64.b64decode(row, validate=True), dtype=FLOAT32)
        vector = checked_vectors([row], [text], name)[0]
    except EmbeddingError as error:
        return error
    except (ValueError, binascii.Error):
        return EmbeddingError(
            f"{name}: the vector of {quoted(text)} is not base64 of float32", code="bad_vectors"
        )
    return base64.b64encode(vector.astype(FLOAT32).tobytes()).decode("ascii")
