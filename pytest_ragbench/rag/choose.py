"""A retriever from a line of configuration, or from whatever a test's fixture gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_ragbench.extensions import imported
from pytest_ragbench.http.endpoints import auth_of, deployment_url
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.retrievers import NamedRetriever
from pytest_ragbench.providers import Spec, maker, spec_of
from pytest_ragbench.rag.base import Retriever
from pytest_ragbench.rag.callables import CallableRetriever
from pytest_ragbench.rag.http import HttpRetriever, http_retriever
from pytest_ragbench.rag.stacks import adapted
from pytest_ragbench.secrets import masked_url
from pytest_ragbench.settings import RagSettings, ServiceSettings, Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

_FORMS = (
    "'MODULE:OBJECT', 'asgi:MODULE:APP', 'chat:PROVIDER:MODEL', 'command:PROGRAM ARGUMENTS', or the keys of [rag] "
    "as a mapping"
)


def retriever_from(
    value: object, engine: Engine, settings: Settings | None = None, environ: Mapping[str, str] = os.environ
) -> Retriever:
    """The retriever that a line of configuration, or whatever a test's fixture gives, stands for.

    Parameters
    ----------
    value
        A retriever; a function of the question; an object of LangChain, LlamaIndex or Haystack (see
        :func:`~pytest_ragbench.rag.stacks.adapted`); keys of ``[rag]`` that differ from the configured ones; or one
        of these lines: a name of ``[retrievers]``, the URL of a service, ``"asgi:MODULE:APP"``,
        ``"chat:PROVIDER:MODEL"`` for an OpenAI-compatible chat endpoint that returns contexts, ``"command:..."``,
        what another package brings (:mod:`pytest_ragbench.providers`), ``"MODULE:OBJECT"`` for an object of the
        first kinds.
    settings
        The keys of ``rag`` hold for all services.

    Raises
    ------
    UsageError
        Unreadable, an object that can't be imported, or something else.
    """
    settings = settings or Settings()
    if isinstance(value, str):
        return _named(value, engine, settings, environ)
    if isinstance(value, NamedRetriever):
        made = retriever_from(value.spec, engine, settings, environ)
        if value.name and isinstance(made, (HttpRetriever, CallableRetriever)):
            made.provider = f"{made.provider}:{value.name}"
        return made
    if isinstance(value, ServiceSettings):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return _service({**_given(settings.rag), **value}, _shown(value), engine, settings)
    if isinstance(value, type):
        raise UsageError(f"the retriever is the class {value.__name__}; give an instance of it")
    stack = adapted(value)
    if isinstance(value, Retriever) and stack is None:
        return value
    if stack is not None:
        function, name = stack
        return CallableRetriever(function, engine, name=name)
    if callable(value):
        return CallableRetriever(value, engine)
    raise UsageError(
        f"a {type(value).__name__} can't be a retriever; give a URL, a function of the question, or an object "
        f"with a name and an async method ask(question)"
    )


def _named(text: str, engine: Engine, settings: Settings, environ: Mapping[str, str]) -> Retriever:
    if text in settings.retrievers:
        # One that names itself is looked up once.
        others = {name: keys for name, keys in settings.retrievers.items() if name != text}
        rest = settings.model_copy(update={"retrievers": others})
        return retriever_from(settings.retrievers[text], engine, rest, environ)
    if text.startswith(("http://", "https://")):
        return _service({**_given(settings.rag), "url": text}, f"retriever {text!r}", engine, settings)
    spec = spec_of(text, engine, settings, environ)
    if (make := maker("retriever", spec.name)) is not None:
        made: Retriever = make(spec)
        return made
    module, colon, attribute = text.partition(":")
    if not colon or not attribute or not module.replace(".", "").isidentifier():
        raise UsageError(f"retriever {text!r} must be a URL (http:// or https://) or {_FORMS}")
    return retriever_from(imported(text, settings.folder), engine, settings, environ)


def chat_retriever(spec: Spec) -> Retriever:
    """``"chat:PROVIDER:MODEL"``: a chat endpoint as a RAG service.

    Raises
    ------
    UsageError
        No such provider, or it has no ``base_url``.
    """
    rag, providers = spec.settings.rag, spec.settings.providers
    name, _, model = spec.rest.partition(":")
    provider = providers.get(name)
    if provider is None or provider.base_url is None:
        known = ", ".join(providers) or "none"
        raise UsageError(f"retriever {spec.text!r}: no provider {name!r} with a base_url; providers: {known}")
    model = model or provider.model or ""
    body = {"model": model, "messages": [{"role": "user", "content": "{question}"}], **provider.extra_body}
    keys = _given(rag) | {
        "url": deployment_url(provider.base_url, provider.api_version, model),
        "path": "/chat/completions",
        "method": "POST",
        "parameter": None,
        "body": {key: value for key, value in body.items() if value != ""},
        "headers": {**rag.headers, **provider.headers},
        "auth_env": provider.api_key_env,
        **auth_of(provider),
    }
    return _service(keys, f"retriever {spec.text!r}", spec.engine, spec.settings)


def _given(rag: RagSettings) -> dict[str, Any]:
    """The configured keys, without a retriever: that is what is being made."""
    given = rag.model_dump(exclude_unset=True)
    return {name: value for name, value in given.items() if name not in ("retriever", "retrievers")}


def _shown(keys: Mapping[str, Any]) -> str:
    """Without headers and body, which may hold a key."""
    return f"retriever {masked_url(str(keys.get('retriever') or keys.get('url') or sorted(keys)))!r}"


def _service(keys: dict[str, Any], where: str, engine: Engine, settings: Settings) -> Retriever:
    try:
        rag = RagSettings.model_validate(keys)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where}: {name}: {said}") from None
    if rag.retriever is not None:
        without = rag.model_copy(update={"retriever": None})
        return retriever_from(rag.retriever, engine, settings.model_copy(update={"rag": without}))
    if rag.url is None:
        raise UsageError(f"{where}: needs a url")
    return http_retriever(rag, engine)
