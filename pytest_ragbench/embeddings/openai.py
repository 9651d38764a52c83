"""An embedder behind an OpenAI-compatible embeddings API, or behind a client object of the user's."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pytest_ragbench.embeddings.api import FLOAT32, EmbeddingRequest, EmbeddingsAdapter
from pytest_ragbench.embeddings.base import Vectors, checked_texts, checked_vectors
from pytest_ragbench.engine.calls import Call, Scope, Sender
from pytest_ragbench.engine.limits import limits_of
from pytest_ragbench.http.api import Service
from pytest_ragbench.http.clients import EMBEDDINGS, ClientService, OpenAIClient, client_of
from pytest_ragbench.http.endpoints import OPENAI_URL, endpoint_of
from pytest_ragbench.model.errors import EmbeddingError, UsageError
from pytest_ragbench.providers import Spec
from pytest_ragbench.settings import ProviderSettings, Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


def named_embedder(spec: Spec) -> ApiEmbedder:
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
) -> ApiEmbedder:
    """Embeds through ``POST {base_url}/embeddings``; vectors are kept in the store, text by text.

    The key comes from the variable ``api_key_env``; without it from OPENAI_API_KEY, but only where no
    other ``base_url`` is configured: a key is never sent to a service that it was not given for.

    Raises
    ------
    UsageError
        No base URL, or no key: named.
    """
    endpoint = endpoint_of(
        provider,
        settings,
        environ,
        keyless=engine.replays("embedding"),  # a replayed recording needs no key
        key_for_other_url=False,
        purpose="the embedder of provider",
        model=model,
    )
    asked = EmbeddingRequest(endpoint, model, dimensions, settings.timeout)
    url = settings.base_url or environ.get("OPENAI_BASE_URL") or OPENAI_URL
    return ApiEmbedder(asked, engine, url=url, client=None)


class OpenAIEmbedder(OpenAIClient):
    """An embedder that asks through a client object, for a fixture ``embedder`` or an argument of that name.

    Parameters
    ----------
    client
        ``OpenAI``, ``AsyncOpenAI``, ``AzureOpenAI`` or ``AsyncAzureOpenAI`` of the library ``openai``, also wrapped
        or instrumented, or any object whose ``embeddings.create`` takes the same arguments.
    model
        The model, or Azure's deployment. Default: the provider's ``embedding_model``.
    provider
        Name of a provider in the configuration whose limits, prices and retries hold, and the name that reports
        show. Default: the provider with the client's URL, else the URL's host.
    dimensions
        Length of the vectors, where the model has a choice.
    **sampling
        ``timeout`` and ``max_concurrency``, as a provider has them in the configuration.

    Raises
    ------
    UsageError
        The object has no such method, or no model is named anywhere.
    """

    path = EMBEDDINGS

    def __init__(
        self,
        client: Any,
        model: str | None = None,
        *,
        provider: str | None = None,
        dimensions: int | None = None,
        **sampling: Any,
    ) -> None:
        super().__init__(client, model, provider=provider, **sampling)
        self.dimensions = dimensions


def client_embedder(value: OpenAIEmbedder, engine: Engine, settings: Settings) -> ApiEmbedder:
    """The embedder that ``value`` describes.

    Raises
    ------
    UsageError
        No model is named anywhere.
    """
    found = client_of(value, settings, engine.warn)
    named, _, configured = (settings.embedder or "").partition(":")
    model = value.model or found.settings.embedding_model or (configured if named == found.provider else "")
    if not model:
        raise UsageError(
            f"the embedder's client ({found.provider}) names no model; return OpenAIEmbedder(client, model=...) "
            f"or set providers.{found.provider}.embedding_model"
        )
    engine.set_limits(found.provider, limits_of(found.settings))
    return ApiEmbedder(
        EmbeddingRequest(found.endpoint, model, value.dimensions, found.settings.timeout),
        engine,
        url=found.endpoint.url,
        client=ClientService(found.methods, found.endpoint, EmbeddingError),
        scope="store" if found.has_url else "run",
    )


class ApiEmbedder:
    """Made by :func:`openai_embedder` and :func:`client_embedder`."""

    shared: ClassVar[bool] = True
    """Vectors are kept by the engine, for all workers: asking ahead of a test makes no call twice."""

    def __init__(
        self,
        asked: EmbeddingRequest,
        engine: Engine,
        *,
        url: str,
        client: Service | None,
        scope: Scope = "store",
    ) -> None:
        self._asked = asked
        self._engine = engine
        self._provider = asked.endpoint.provider
        self._url = url
        self._client = client
        self._scope = scope

    @property
    def name(self) -> str:
        """``provider:model``."""
        return f"{self._provider}:{self._asked.model}"

    def __repr__(self) -> str:
        return f"<ApiEmbedder {self.name}>"

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
            scope=self._scope,
        )
        send = None if self._client is None else partial(self._through_client, text)
        fetched = await self._engine.fetch(call, lambda payload: self._unpacked(payload, text), send=send)
        return fetched.value

    async def _through_client(self, text: str, sender: Sender) -> str:
        adapter = self._engine.adapter("embeddings")
        assert isinstance(adapter, EmbeddingsAdapter)
        return await adapter.embed(self._asked, text, sender, self._client)

    def _unpacked(self, payload: Any, text: str) -> Vectors:
        # Stored as the bytes of float32, a third of the size of JSON numbers.
        row = np.frombuffer(base64.b64decode(payload), dtype=FLOAT32)
        vector: Vectors = checked_vectors([row], [text], self.name)[0]
        return vector
