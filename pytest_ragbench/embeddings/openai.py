"""An embedder behind an OpenAI-compatible embeddings API."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pytest_ragbench.embeddings.api import FLOAT32, EmbeddingRequest
from pytest_ragbench.embeddings.base import Vectors, checked_texts, checked_vectors
from pytest_ragbench.engine.calls import Call
from pytest_ragbench.http.endpoints import OPENAI_URL, endpoint_of
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import Spec
from pytest_ragbench.settings import ProviderSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


def named_embedder(spec: Spec) -> OpenAIEmbedder:
    """``"PROVIDER"`` or ``"PROVIDER:MODEL"``; see :func:`openai_embedder`.

    Raises
    ------
    UsageError
        No model is named here or in the settings.
    """
    settings = spec.settings.providers.get(spec.name, ProviderSettings())
    model = spec.rest or settings.embedding_model or ""
    if not model:
        raise UsageError(
            f"embedder {spec.text!r} names no model; write {spec.name}:MODEL, or set "
            f"providers.{spec.name}.embedding_model"
        )
    return openai_embedder(settings, model, spec.engine, provider=spec.name, environ=spec.environ)


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
        No base URL, or no key: named.
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
        self._engine = engine
        self._provider = provider
        self._url = settings.base_url or environ.get("OPENAI_BASE_URL") or OPENAI_URL
        # A replayed recording needs no key.
        endpoint = endpoint_of(
            provider,
            settings,
            environ,
            keyless=engine.replays("embedding"),
            key_for_other_url=False,
            purpose="the embedder of provider",
        )
        self._asked = EmbeddingRequest(endpoint, model, dimensions, settings.timeout)

    @property
    def name(self) -> str:
        """``provider:model``."""
        return f"{self._provider}:{self._asked.model}"

    def __repr__(self) -> str:
        return f"<OpenAIEmbedder {self.name}>"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`~pytest_ragbench.embeddings.Embedder`."""
        items = checked_texts(texts, self.name)
        if not items:
            return np.empty((0, 0))
        # Equal texts have one vector, and cost one.
        different = list(dict.fromkeys(items))
        found = await asyncio.gather(*(self._one(text) for text in different))
        vectors = dict(zip(different, found, strict=True))
        return checked_vectors([vectors[text] for text in items], items, self.name)

    async def _one(self, text: str) -> Vectors:
        call = Call(
            kind="embedding",
            provider=self._provider,
            adapter="embeddings",
            config=self._asked,
            body=text,
            key={
                "url": self._url,
                "model": self._asked.model,
                "dimensions": self._asked.dimensions,
                "text": text,
            },
        )
        fetched = await self._engine.fetch(call, lambda payload: self._unpacked(payload, text))
        return fetched.value

    def _unpacked(self, payload: Any, text: str) -> Vectors:
        # Stored as the bytes of float32, a third of the size of JSON numbers.
        row = np.frombuffer(base64.b64decode(payload), dtype=FLOAT32)
        vector: Vectors = checked_vectors([row], [text], self.name)[0]
        return vector
