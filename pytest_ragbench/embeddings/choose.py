"""An embedder from a setting or from whatever a test's fixture gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ragbench.embeddings.base import Embedder
from pytest_ragbench.embeddings.callables import callable_embedder
from pytest_ragbench.embeddings.openai import OpenAIEmbedder, client_embedder
from pytest_ragbench.embeddings.sentence_transformers import (
    is_sentence_transformer,
    sentence_transformers_embedder,
)
from pytest_ragbench.http.clients import EMBEDDINGS, is_client
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import made
from pytest_ragbench.settings import Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


def embedder_from(
    value: object,
    engine: Engine,
    settings: Settings | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Embedder:
    """An embedder, its name as in the settings, a client of the library openai, a loaded SentenceTransformer, or a
    callable.

    A name is that of a provider in the settings (``openai`` need not be there), or of another package's embedder
    (:mod:`pytest_ragbench.providers`).

    Raises
    ------
    UsageError
        For anything else, an unknown provider, or a missing key.
    """
    if isinstance(value, type):
        raise UsageError(f"the embedder is the class {value.__name__}; give an instance of it")
    if isinstance(value, OpenAIEmbedder):
        return client_embedder(value, engine, settings or Settings())
    # A mock has all attributes that it is asked for: an embedder's name is a string.
    if isinstance(value, Embedder) and isinstance(value.name, str):
        return value
    if is_client(value, EMBEDDINGS):
        return client_embedder(OpenAIEmbedder(value), engine, settings or Settings())
    if isinstance(value, str):
        embedder: Embedder = made("embedder", value.strip(), engine, settings or Settings(), environ)
        return embedder
    if is_sentence_transformer(value):  # before callables: a torch module is one
        return sentence_transformers_embedder(value, engine)
    if callable(value):
        return callable_embedder(value)
    raise UsageError(
        f"a {type(value).__name__} can't be an embedder; give 'local', 'sentence-transformers:MODEL', "
        f"'PROVIDER:MODEL', 'PROVIDER', a client of the library openai, or a function of a list of texts"
    )
