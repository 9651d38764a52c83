"""An embedder from a setting or from whatever a test's fixture gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ragbench.embeddings.base import Embedder
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.settings import ProviderSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

_KNOWN = "'local', 'sentence-transformers:MODEL', 'PROVIDER:MODEL' or 'PROVIDER'"


def embedder_from(
    value: object,
    engine: Engine,
    providers: Mapping[str, ProviderSettings] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Embedder:
    """An embedder, its name as in the settings, a loaded SentenceTransformer, or a callable.

    ``providers`` are those of the settings; ``openai`` is known without being configured.

    Raises
    ------
    UsageError
        For anything else, an unknown provider, or a missing key.
    """
    if isinstance(value, type):
        raise UsageError(f"the embedder is the class {value.__name__}; give an instance of it")
    if isinstance(value, Embedder):
        return value
    if isinstance(value, str):
        return _named(value.strip(), engine, providers or {}, environ)
    from pytest_ragbench.embeddings.sentence_transformers import (
        is_sentence_transformer,
        sentence_transformers_embedder,
    )

    if is_sentence_transformer(value):  # before callables: a torch module is one
        return sentence_transformers_embedder(value, engine)
    if callable(value):
        from pytest_ragbench.embeddings.callables import callable_embedder

        return callable_embedder(value)
    raise UsageError(
        f"a {type(value).__name__} is no embedder; give {_KNOWN}, or a function of a list of texts"
    )


def _named(
    spec: str, engine: Engine, providers: Mapping[str, ProviderSettings], environ: Mapping[str, str]
) -> Embedder:
    kind, _, model = spec.partition(":")
    if spec == "local":
        from pytest_ragbench.embeddings.local import local_embedder

        return local_embedder(engine)
    if kind == "sentence-transformers":
        from pytest_ragbench.embeddings.sentence_transformers import sentence_transformers_embedder

        if not model:
            raise UsageError(f"embedder {spec!r} names no model; write sentence-transformers:MODEL")
        return sentence_transformers_embedder(model, engine)
    settings = providers.get(kind, ProviderSettings() if kind == "openai" else None)
    if settings is None:
        known = ", ".join(sorted({*providers, "openai"}))
        raise UsageError(f"embedder {spec!r}: no provider {kind!r} is configured ({known}); write {_KNOWN}")
    model = model or settings.embedding_model or ""
    if not model:
        raise UsageError(
            f"embedder {spec!r} names no model; write {kind}:MODEL, or set providers.{kind}.embedding_model"
        )
    from pytest_ragbench.embeddings.openai import openai_embedder

    return openai_embedder(settings, model, engine, provider=kind, environ=environ)
