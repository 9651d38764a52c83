"""The system under test: an HTTP service or a callable that turns a question into a sample.

Names are imported on first use, so that loading the plugin costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.rag.base import Retriever as Retriever
    from pytest_ragbench.rag.base import ask_all as ask_all
    from pytest_ragbench.rag.callables import CallableRetriever as CallableRetriever
    from pytest_ragbench.rag.choose import retriever_from as retriever_from
    from pytest_ragbench.rag.http import HttpRetriever as HttpRetriever
    from pytest_ragbench.rag.http import http_retriever as http_retriever

__getattr__ = lazily(
    __name__,
    base="Retriever ask_all",
    callables="CallableRetriever",
    choose="retriever_from",
    http="HttpRetriever http_retriever",
)
