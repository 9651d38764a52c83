"""The system under test: an HTTP service or a callable that turns a question into a sample.

Names are imported on first use, so that loading the plugin costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ragbench.rag.base import Retriever, ask_all
    from pytest_ragbench.rag.callables import CallableRetriever
    from pytest_ragbench.rag.choose import retriever_from
    from pytest_ragbench.rag.http import HttpRetriever, http_retriever

__all__ = [
    "CallableRetriever",
    "HttpRetriever",
    "Retriever",
    "ask_all",
    "http_retriever",
    "retriever_from",
]

_HOME = {
    "CallableRetriever": "callables",
    "HttpRetriever": "http",
    "Retriever": "base",
    "ask_all": "base",
    "http_retriever": "http",
    "retriever_from": "choose",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
