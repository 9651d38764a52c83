"""A retriever from whatever a test's fixture gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.rag.base import Retriever
from pytest_ragbench.rag.callables import CallableRetriever
from pytest_ragbench.rag.http import http_retriever
from pytest_ragbench.rag.stacks import adapted
from pytest_ragbench.settings import RagSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


def retriever_from(value: object, engine: Engine) -> Retriever:
    """A retriever, the URL of a service (as ``--rag-url`` takes it), a callable, or an object of LangChain,
    LlamaIndex or Haystack (see :func:`~pytest_ragbench.rag.stacks.adapted`).

    Raises
    ------
    UsageError
        For anything else.
    """
    if isinstance(value, type):
        raise UsageError(f"the retriever is the class {value.__name__}; give an instance of it")
    if isinstance(value, Retriever) and adapted(value) is None:
        return value
    if isinstance(value, str):
        try:
            settings = RagSettings(url=value)
        except ValidationError as error:
            raise UsageError(f"retriever {value!r}: {error.errors()[0]['msg']}") from None
        return http_retriever(settings, engine)
    if (known := adapted(value)) is not None:
        function, name = known
        return CallableRetriever(function, engine, name=name)
    if callable(value):
        return CallableRetriever(value, engine)
    raise UsageError(
        f"a {type(value).__name__} is no retriever; give a URL, a function of the question, or an object "
        f"with a name and an async method ask(question)"
    )
