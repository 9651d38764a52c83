"""An embedder from a setting or from whatever a test's fixture gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pytest_ragbench.embeddings.base import Embedder
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import maker, names, spec_of
from pytest_ragbench.settings import Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

_FORMS = "'local', 'sentence-transformers:MODEL', 'PROVIDER:MODEL' or 'PROVIDER'"


def embedder_from(
    value: object,
    engine: Engine,
    settings: Settings | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Embedder:
    """An embedder, its name as in the settings, a loaded SentenceTransformer, or a callable.

    A name is that of a provider in the settings (``openai`` need not be there), or of another package's embedder
    (:mod:`pytest_ragbench.providers`).

    Raises
    ------
    UsageError
        For anything else, an unknown provider, or a missing key.
    """
    if isinstance(value, type):
        raise UsageError(f"the embedder is the class {value.__name__}; give an instance of it")
    if isinstance(value, Embedder):
        return value
    if isinstance(value, str):
        return _named(value.strip(), engine, settings or Settings(), environ)
    from pytest_ragbench.embeddings.sentence_transformers import (
        is_sentence_transformer,
        sentence_transformers_embedder,
    )

    if is_sentence_transformer(value):  # before callables: a torch module is one
        return sentence_transformers_embedder(value, engine)
    if callable(value):
        from pytest_ragbench.embeddings.callables import callable_embedder

        return callable_embedder(value)
    raise UsageError(
        f"a {type(value).__name__} can't be an embedder; give {_FORMS}, or a function of a list of texts"
    )


def _named(text: str, engine: Engine, settings: Settings, environ: Mapping[str, str]) -> Embedder:
    spec = spec_of(text, engine, settings, environ)
    # A configured provider may be called like a built-in embedder, and is meant then.
    make = maker("embedder", spec.name if spec.name not in settings.providers else "openai")
    if make is None:
        known = ", ".join(sorted({*names("embedder"), *settings.providers}))
        raise UsageError(
            f"embedder {text!r}: no provider {spec.name!r} is configured ({known}); write {_FORMS}"
        )
    embedder: Embedder = make(spec)
    return embedder
