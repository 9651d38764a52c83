"""Judges, embedders and retrievers that one line of configuration names, found by the line's first word.

A provider is one file with a function (or class) that takes a :class:`Spec`, and an entry point of the group
``ragbench.judges``, ``ragbench.embedders`` or ``ragbench.retrievers``, whose name is that first word::

    [project.entry-points."ragbench.judges"]
    bedrock = "my_package.bedrock:bedrock_judge"  # judge = "bedrock:MODEL"

The built-in ones come through the same table.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.settings import Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

Kind = Literal["judge", "embedder", "retriever"]

# Here and not in pyproject.toml, so that a checkout without installed metadata has them, too.
_BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "judge": {
        "local": "pytest_ragbench.judge.local_judge:named_judge",
        "openai": "pytest_ragbench.judge.openai:named_judge",
        "gguf": "pytest_ragbench.judge.gguf:named_judge",
    },
    "embedder": {
        "local": "pytest_ragbench.embeddings.local:named_embedder",
        "openai": "pytest_ragbench.embeddings.openai:named_embedder",
        "sentence-transformers": "pytest_ragbench.embeddings.sentence_transformers:named_embedder",
    },
    "retriever": {
        "asgi": "pytest_ragbench.rag.asgi:named_retriever",
        "chat": "pytest_ragbench.rag.choose:chat_retriever",
        "command": "pytest_ragbench.rag.command:named_retriever",
    },
}


@dataclass(frozen=True)
class Spec:
    """A line such as ``"lab:qwen3:8b"``, and what there is to make something of it."""

    text: str
    """The whole line."""
    name: str
    """What stands before the first colon: ``"lab"``."""
    rest: str
    """What stands after it, ``""`` where nothing does: ``"qwen3:8b"``."""
    engine: Engine
    """Makes and keeps the calls."""
    settings: Settings
    environ: Mapping[str, str] = field(repr=False)
    """Where keys are looked for."""


Maker = Callable[[Spec], Any]


def spec_of(text: str, engine: Engine, settings: Settings, environ: Mapping[str, str]) -> Spec:
    """The line, taken apart at its first colon."""
    name, _, rest = (part.strip() for part in text.partition(":"))
    return Spec(text, name, rest, engine, settings, environ)


def made(kind: Kind, text: str, engine: Engine, settings: Settings, environ: Mapping[str, str]) -> Any:
    """The judge or embedder that a line names.

    A provider in the settings may be called like a built-in one, and is meant then; it speaks OpenAI's API.

    Raises
    ------
    UsageError
        Nothing is called so.
    """
    spec = spec_of(text, engine, settings, environ)
    make = maker(kind, spec.name if spec.name not in settings.providers else "openai")
    if make is None:
        known = list(dict.fromkeys([*names(kind), *settings.providers]))
        close = difflib.get_close_matches(spec.name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
        raise UsageError(f"{kind} {text!r}: there is no provider {spec.name!r}; {hint}")
    return make(spec)


def maker(kind: Kind, name: str) -> Maker | None:
    """What makes a service of this kind and name; None where nothing is called so.

    Raises
    ------
    UsageError
        The entry point can't be loaded, or can't be called.
    """
    for point in _points(kind):
        if point.name == name:
            return _loaded(kind, point)
    return None


def names(kind: Kind) -> list[str]:
    """All first words of this kind: the built-in ones, then those of other packages."""
    return list(dict.fromkeys(point.name for point in _points(kind)))


def _points(kind: Kind) -> list[EntryPoint]:
    group = f"ragbench.{kind}s"
    # Sorted, so that which of two packages wins does not depend on the order of installation.
    installed = sorted(entry_points(group=group), key=lambda point: point.name)
    return [*(EntryPoint(name, value, group) for name, value in _BUILT_IN[kind].items()), *installed]


def _loaded(kind: Kind, point: EntryPoint) -> Maker:
    origin = f"the {kind} {point.name!r} ({point.value})"
    try:
        found: Maker = point.load()
    except Exception as error:  # another package's code may raise anything
        raise UsageError(f"{origin} can't be loaded: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UsageError(f"{origin} is a {type(found).__name__}; it must be a function of a Spec")
    return found
