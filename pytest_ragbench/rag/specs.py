"""A retriever from one line of configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import Spec, maker, spec_of
from pytest_ragbench.rag.base import Retriever
from pytest_ragbench.rag.http import http_retriever
from pytest_ragbench.rag.imported import imported
from pytest_ragbench.rag.sources import retriever_from
from pytest_ragbench.settings import RagSettings, Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

_FORMS = (
    "'MODULE:OBJECT', 'asgi:MODULE:APP', 'chat:PROVIDER:MODEL', 'command:PROGRAM ARGUMENTS', or the keys of [rag] "
    "as a mapping"
)


def retriever_of(
    spec: str | Mapping[str, Any],
    engine: Engine,
    settings: Settings,
    environ: Mapping[str, str] = os.environ,
) -> Retriever:
    """The retriever that a line of configuration or a mapping stands for.

    Parameters
    ----------
    spec
        The URL of a service; ``"asgi:MODULE:APP"``; ``"chat:PROVIDER:MODEL"`` for an OpenAI-compatible chat endpoint
        that returns contexts; ``"command:..."``; what another package brings (:mod:`pytest_ragbench.providers`);
        ``"MODULE:OBJECT"``, where the object is whatever the fixture ``retriever`` may return; or keys of ``[rag]``
        that differ from the configured ones.
    settings
        The keys of ``rag`` hold for all of these but an object.

    Raises
    ------
    UsageError
        Unreadable, or an object that can't be imported or can't be a retriever.
    """
    if isinstance(spec, Mapping):
        return _service({**_given(settings.rag), **spec}, f"retriever {dict(spec)!r}", engine, settings)
    if spec.startswith(("http://", "https://")):
        return _service({**_given(settings.rag), "url": spec}, f"retriever {spec!r}", engine, settings)
    named = spec_of(spec, engine, settings, environ)
    if (make := maker("retriever", named.name)) is not None:
        made: Retriever = make(named)
        return made
    module, colon, attribute = spec.partition(":")
    if not colon or not attribute or not module.replace(".", "").isidentifier():
        raise UsageError(f"retriever {spec!r} must be a URL (http:// or https://) or {_FORMS}")
    return retriever_from(imported(spec), engine)


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
        "url": provider.base_url,
        "path": "/chat/completions",
        "method": "POST",
        "parameter": None,
        "body": {key: value for key, value in body.items() if value != ""},
        "headers": {**rag.headers, **provider.headers},
        "auth_env": provider.api_key_env,
    }
    return _service(keys, f"retriever {spec.text!r}", spec.engine, spec.settings)


def _given(rag: RagSettings) -> dict[str, Any]:
    """The configured keys, without a retriever: that is what is being made."""
    return {name: value for name, value in rag.model_dump(exclude_unset=True).items() if name != "retriever"}


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
        return retriever_of(rag.retriever, engine, settings.model_copy(update={"rag": without}))
    if rag.url is None:
        raise UsageError(f"{where}: needs a url")
    return http_retriever(rag, engine)
