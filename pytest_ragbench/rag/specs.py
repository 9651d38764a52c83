"""A retriever from one line of configuration."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.rag.base import Retriever
from pytest_ragbench.settings import ProviderSettings, RagSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

_FORMS = (
    "'MODULE:OBJECT', 'asgi:MODULE:APP', 'chat:PROVIDER:MODEL', 'command:PROGRAM ARGUMENTS', or the keys of [rag] "
    "as a mapping"
)


def retriever_of(
    spec: str | Mapping[str, Any],
    engine: Engine,
    rag: RagSettings,
    providers: Mapping[str, ProviderSettings] = MappingProxyType({}),
) -> Retriever:
    """The retriever that a text or a mapping stands for.

    Parameters
    ----------
    spec
        The URL of a service; ``"MODULE:OBJECT"``, where the object is whatever the fixture ``retriever`` may
        return; ``"asgi:MODULE:APP"``; ``"chat:PROVIDER:MODEL"`` for an OpenAI-compatible chat endpoint that
        returns contexts; ``"command:..."``; or keys of ``[rag]`` that differ from the configured ones.
    rag
        The configured service; its other keys hold for all of these but an object.

    Raises
    ------
    UsageError
        Unreadable, or an object that can't be imported or is no retriever.
    """
    if isinstance(spec, Mapping):
        return _service({**_given(rag), **spec}, f"retriever {dict(spec)!r}", engine)
    if spec.startswith(("http://", "https://")):
        return _service({**_given(rag), "url": spec}, f"retriever {spec!r}", engine)
    kind, _, rest = spec.partition(":")
    if kind == "asgi":
        from pytest_ragbench.rag.asgi import asgi_retriever

        return asgi_retriever(imported(rest), rag, engine, rest)
    if kind == "command":
        from pytest_ragbench.rag.callables import CallableRetriever
        from pytest_ragbench.rag.command import command_function
        from pytest_ragbench.rag.mapping import ReplyReader

        function = command_function(rest, rag.timeout)
        return CallableRetriever(function, engine, ReplyReader(rag.reply), name=spec)
    if kind == "chat":
        return _chat(rest, engine, rag, providers)
    module, colon, attribute = spec.partition(":")
    if not colon or not attribute or not module.replace(".", "").isidentifier():
        raise UsageError(f"retriever {spec!r} must be a URL (http:// or https://) or {_FORMS}")
    from pytest_ragbench.rag.sources import retriever_from

    return retriever_from(imported(spec), engine)


def _chat(
    spec: str, engine: Engine, rag: RagSettings, providers: Mapping[str, ProviderSettings]
) -> Retriever:
    name, _, model = spec.partition(":")
    provider = providers.get(name)
    if provider is None or provider.base_url is None:
        known = ", ".join(providers) or "none"
        raise UsageError(f"retriever 'chat:{spec}': no provider {name!r} with a base_url; providers: {known}")
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
    return _service(keys, f"retriever 'chat:{spec}'", engine)


def _given(rag: RagSettings) -> dict[str, Any]:
    """The configured keys, without a retriever: that is what is being made."""
    return {name: value for name, value in rag.model_dump(exclude_unset=True).items() if name != "retriever"}


def _service(keys: dict[str, Any], where: str, engine: Engine) -> Retriever:
    from pytest_ragbench.rag.http import http_retriever

    try:
        settings = RagSettings.model_validate(keys)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise UsageError(f"{where}: {name}: {said}") from None
    if settings.retriever is not None:
        return retriever_of(settings.retriever, engine, settings.model_copy(update={"retriever": None}))
    if settings.url is None:
        raise UsageError(f"{where}: needs a url")
    return http_retriever(settings, engine)


def imported(spec: str) -> Any:
    """The object that ``"MODULE:OBJECT"`` names; the working directory is on the path.

    Raises
    ------
    UsageError
        The module can't be imported, or has no such object.
    """
    module_name, _, path = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # a module that is not ours may raise anything
        raise UsageError(f"{spec!r}: can't import {module_name}: {type(error).__name__}: {error}") from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"{spec!r}: {module_name} has no {path!r}") from None
    return found
