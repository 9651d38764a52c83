"""Judges, embedders and retrievers that one line of configuration names, found by the line's first word.

A provider is one file with a function (or class) that takes a :class:`Spec`, and an entry point of the group
``ragbench.judges``, ``ragbench.embedders`` or ``ragbench.retrievers``, whose name is that first word::

    [project.entry-points."ragbench.judges"]
    bedrock = "my_package.bedrock:bedrock_judge"  # judge = "bedrock:MODEL"

The built-in ones come through the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_ragbench.extensions import did_you_mean, loaded, points
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.settings import Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

Kind = Literal["judge", "embedder", "retriever"]

_BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "judge": {
        "local": "pytest_ragbench.judge.local_judge:named_judge",
        "openai": "pytest_ragbench.judge.openai:named_judge",
        "gguf": "pytest_ragbench.judge.gguf:named_judge",
        "any": "pytest_ragbench.judge.any_llm:named_judge",
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
        hint = did_you_mean(spec.name, known)
        raise UsageError(f"{kind} {text!r}: there is no provider {spec.name!r}; {hint}")
    return make(spec)


def maker(kind: Kind, name: str) -> Maker | None:
    """What makes a service of this kind and name; None where nothing is called so.

    Raises
    ------
    UsageError
        The entry point can't be loaded, or can't be called.
    """
    for point in points(f"ragbench.{kind}s", _BUILT_IN[kind]):
        if point.name == name:
            found: Maker = loaded(point, f"the {kind} {name!r}")
            if not callable(found):
                raise UsageError(
                    f"the {kind} {name!r} ({point.value}) is a {type(found).__name__}; "
                    f"it must be a function of a Spec"
                )
            return found
    return None


def names(kind: Kind) -> list[str]:
    """All first words of this kind: the built-in ones, then those of other packages."""
    return list(dict.fromkeys(point.name for point in points(f"ragbench.{kind}s", _BUILT_IN[kind])))
