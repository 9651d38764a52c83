"""Models that run in this process, one call at a time in a thread of their own."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_ragbench.embeddings.base import Vectors, checked_texts, checked_vectors
from pytest_ragbench.model.errors import EmbeddingError, RagbenchError

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

Encode = Callable[[list[str]], Any]
# Up to so many texts of a call are encoded one by one.
_MAX_SINGLES = 8
# Texts whose vectors are kept in memory.
_MAX_REMEMBERED = 10_000


class ModelEmbedder:
    """An embedder over a blocking ``encode(texts)``, which ``load()`` gives on first use.

    A vector depends in its last digits on the texts that are encoded with it (about 3e-7). To
    make scores the same in every order and with any number of workers, concurrent calls are never
    encoded together: a call of few texts is encoded one by one (and remembered), a call of many as
    one batch of its own.
    """

    def __init__(self, name: str, load: Callable[[], Encode], engine: Engine) -> None:
        self._name = name
        self._load = load
        self._engine = engine
        self._encode: Encode | None = None
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._known: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()

    @property
    def name(self) -> str:
        """Kind and model."""
        return self._name

    def __repr__(self) -> str:
        return f"<ModelEmbedder {self._name}>"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`~pytest_ragbench.embeddings.Embedder`."""
        items = checked_texts(texts, self._name)
        if not items:
            return np.empty((0, 0))
        return await asyncio.get_running_loop().run_in_executor(self._thread(), self._embed, items)

    def _thread(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                # One thread: models use the cores themselves, and few are safe to call from several.
                self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ragbench-embedder")
                self._engine.on_close(self._close)
            return self._pool

    async def _close(self) -> None:
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None

    # In the thread

    def _embed(self, texts: list[str]) -> Vectors:
        different = list(dict.fromkeys(texts))
        if len(different) > _MAX_SINGLES:
            row_of = {text: row for row, text in enumerate(different)}
            return self._run(different)[[row_of[text] for text in texts]]
        return np.stack([self._one(text) for text in texts]).astype(np.float64)

    def _one(self, text: str) -> npt.NDArray[np.float32]:
        if text in self._known:
            self._known.move_to_end(text)
            return self._known[text]
        # The models compute in float32, so nothing is lost by keeping that.
        vector: npt.NDArray[np.float32] = self._run([text])[0].astype(np.float32)
        self._known[text] = vector
        if len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)
        return vector

    def _run(self, texts: list[str]) -> Vectors:
        try:
            if self._encode is None:
                self._encode = self._load()
            vectors = self._encode(texts)
        # Warnings are exceptions under -W error, and must stay what they are.
        except (RagbenchError, Warning):
            raise
        except Exception as error:
            raise EmbeddingError(
                f"{self._name}: {type(error).__name__}: {error}", code="exception"
            ) from error
        return checked_vectors(vectors, texts, self._name)
