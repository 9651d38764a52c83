"""The systems that a run asks side by side: names of ``[retrievers]``, or ``NAME=URL``."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.settings.model import NamedSettings, ServiceSettings, Settings, SystemName

_GIVEN: TypeAdapter[Mapping[str, ServiceSettings]] = TypeAdapter(Mapping[SystemName, NamedSettings])


def systems_of(settings: Settings) -> dict[str, ServiceSettings]:
    """Name -> the keys of ``[rag]`` that differ, in the order of ``rag.retrievers``; empty where none are named.

    Raises
    ------
    UsageError
        A name that ``[retrievers]`` does not have, one given twice, or a value that no retriever can be made from.
    """
    found: dict[str, ServiceSettings] = {}
    for given in settings.rag.retrievers:
        name, equals, spec = given.partition("=")
        if equals:
            system = _given(name.strip(), spec.strip())
        elif name in settings.retrievers:
            system = settings.retrievers[name]
        else:
            near = did_you_mean(name, settings.retrievers, "[retrievers] has")
            raise UsageError(f"there is no retriever {name!r}; {near} (or give NAME=URL)")
        if name.strip() in found:
            raise UsageError(f"two retrievers are called {name.strip()!r}")
        if system.retriever is None and system.url is None and settings.rag.url is None:
            raise UsageError(f"retriever {name!r} needs a url, and [rag] has none either")
        found[name.strip()] = system
    return found


def _given(name: str, spec: str) -> ServiceSettings:
    """What the command line spells out."""
    try:
        return _GIVEN.validate_python({name: spec})[name]
    except ValidationError as error:
        said = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"{name}={spec}: {said}") from None
