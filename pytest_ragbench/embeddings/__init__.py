"""Embedders: texts to vectors, by the local model, a named one, a service, or a callable.

Names are imported on first use, so that loading the plugin costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ragbench.embeddings.base import Embedder
    from pytest_ragbench.embeddings.callables import callable_embedder
    from pytest_ragbench.embeddings.choose import embedder_from
    from pytest_ragbench.embeddings.local import local_embedder
    from pytest_ragbench.embeddings.openai import openai_embedder
    from pytest_ragbench.embeddings.sentence_transformers import sentence_transformers_embedder

__all__ = [
    "Embedder",
    "callable_embedder",
    "embedder_from",
    "local_embedder",
    "openai_embedder",
    "sentence_transformers_embedder",
]

_HOME = {
    "Embedder": "base",
    "callable_embedder": "callables",
    "embedder_from": "choose",
    "local_embedder": "local",
    "openai_embedder": "openai",
    "sentence_transformers_embedder": "sentence_transformers",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
