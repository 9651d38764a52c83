"""A Python callable as embedder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pytest_ragbench.embeddings.base import Vectors, checked_texts, checked_vectors
from pytest_ragbench.engine.threads import call
from pytest_ragbench.model.errors import EmbeddingError, RagbenchError
from pytest_ragbench.rag.callables import callable_name


class CallableEmbedder:
    """Calls ``function(texts) -> vectors``, sync (in a thread) or async; nothing is kept."""

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        self._function = function

    @property
    def name(self) -> str:
        """``callable:module.function``."""
        return f"callable:{callable_name(self._function)}"

    def __repr__(self) -> str:
        return f"<CallableEmbedder {self.name}>"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`~pytest_ragbench.embeddings.Embedder`."""
        # Before the call: a blank text would be paid for and then refused.
        items = checked_texts(texts, self.name)
        if not items:
            return np.empty((0, 0))
        try:
            vectors = await call(self._function, items)
        except RagbenchError:
            raise
        except (Exception, SystemExit) as error:  # sys.exit() there would end the engine's loop
            raise EmbeddingError(
                f"{self.name} raised {type(error).__name__}: {error}", code="exception"
            ) from error
        return checked_vectors(vectors, items, self.name)


def callable_embedder(function: Callable[[list[str]], Any]) -> CallableEmbedder:
    """An embedder over a function of a list of texts; vectors as lists, arrays or tensors."""
    return CallableEmbedder(function)
