"""Embedders: texts to vectors, by the local model, a named one, a service, or a callable.

Names are imported on first use, so that loading the plugin costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.embeddings.base import Embedder as Embedder
    from pytest_ragbench.embeddings.callables import callable_embedder as callable_embedder
    from pytest_ragbench.embeddings.choose import embedder_from as embedder_from
    from pytest_ragbench.embeddings.local import local_embedder as local_embedder
    from pytest_ragbench.embeddings.openai import openai_embedder as openai_embedder
    from pytest_ragbench.embeddings.sentence_transformers import (
        sentence_transformers_embedder as sentence_transformers_embedder,
    )

__getattr__ = lazily(
    __name__,
    base="Embedder",
    callables="callable_embedder",
    choose="embedder_from",
    local="local_embedder",
    openai="openai_embedder",
    sentence_transformers="sentence_transformers_embedder",
)
