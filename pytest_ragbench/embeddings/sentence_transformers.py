"""Any model that the user names, through sentence-transformers (which brings torch)."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pytest_ragbench.clean import one_line
from pytest_ragbench.embeddings.base import quoted
from pytest_ragbench.embeddings.models import ModelEmbedder
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import Spec

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

_PREFIX = "sentence-transformers:"


def named_embedder(spec: Spec) -> ModelEmbedder:
    """``"sentence-transformers:MODEL"``.

    Raises
    ------
    UsageError
        No model is named.
    """
    if not spec.rest:
        raise UsageError(f"embedder {spec.text!r} names no model; write sentence-transformers:MODEL")
    return sentence_transformers_embedder(spec.rest, spec.engine)


def sentence_transformers_embedder(model: str | Any, engine: Engine) -> ModelEmbedder:
    """An embedder over a ``SentenceTransformer``: a model's name, a folder, or the loaded object.

    A name is looked for on this machine first, and downloaded only where it is not there. The
    model cuts texts that are too long for it; one warning says so.

    Raises
    ------
    UsageError
        On first use, where sentence-transformers is missing or has no such model.
    """
    if isinstance(model, str):
        return ModelEmbedder(_PREFIX + model, lambda: _Model(_loaded(model), _PREFIX + model), engine)
    name = _PREFIX + _name_of(model)
    return ModelEmbedder(name, lambda: _Model(model, name), engine)


def _loaded(name: str) -> Any:
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise UsageError(
            f"the embedder {_PREFIX}{name} needs sentence-transformers ({error}); run: "
            f"pip install 'pytest-ragbench[sentence-transformers]'"
        ) from None
    with suppress(Exception):  # not here, or only in part: each version raises something else
        # Without local_files_only every run would ask the hub for changes, and hang where there is none.
        return SentenceTransformer(name, local_files_only=True)
    try:
        return SentenceTransformer(name)
    except Exception as error:
        raise UsageError(
            f"embedder {_PREFIX}{name}: there is no such model or folder, or it can't be loaded: "
            f"{type(error).__name__}: {one_line(str(error), 300)}"
        ) from error


def _name_of(model: Any) -> str:
    """The name under which the object was loaded, as far as it tells."""
    # What is known of an object that the user loaded depends on how it was loaded.
    card = getattr(model, "model_card_data", None)
    for name in (getattr(card, "base_model", None), getattr(card, "model_id", None)):
        if isinstance(name, str) and name:
            return name
    try:
        path = getattr(model[0].auto_model, "name_or_path", "")
    except (AttributeError, TypeError, IndexError, KeyError):
        path = ""
    return "/".join(str(path).split("/")[-2:]) or type(model).__name__


class _Model:
    """The model's ``encode``, with a warning where it cuts."""

    def __init__(self, model: Any, name: str) -> None:
        self._model = model
        self._name = name
        self._warned = False

    def __call__(self, texts: list[str]) -> Any:
        self._warn_of_cuts(texts)
        return self._model.encode(texts, convert_to_numpy=True, show_progress_bar=False)

    def _warn_of_cuts(self, texts: list[str]) -> None:
        most, tokenizer = (
            getattr(self._model, "max_seq_length", None),
            getattr(self._model, "tokenizer", None),
        )
        if self._warned or not isinstance(most, int) or not callable(tokenizer):
            return
        for text in texts:
            # A token is at least a byte, so short texts need no counting.
            if len(text.encode("utf-8", "replace")) + 2 <= most:
                continue
            count = len(tokenizer(text, truncation=False, verbose=False)["input_ids"])
            if count > most:
                self._warned = True
                warnings.warn(
                    f"{self._name} reads {most} tokens at most: the rest of {quoted(text)} ({count} tokens), "
                    f"and of other long texts, does not count. Use shorter chunks or another model",
                    UserWarning,
                    stacklevel=2,
                )
                return


def is_sentence_transformer(value: object) -> bool:
    """Whether this is a loaded model, without importing the library."""
    return any(
        kind.__name__ == "SentenceTransformer" and kind.__module__.startswith("sentence_transformers")
        for kind in type(value).__mro__
    )
