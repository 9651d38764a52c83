"""What an embedder is, and what its vectors must be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from pytest_ragbench.model.errors import EmbeddingError, UsageError
from pytest_ragbench.text import is_blank

Vectors = npt.NDArray[np.float64]
"""One row per text, shape (n, d), float64."""


@runtime_checkable
class Embedder(Protocol):
    """Something that turns texts into vectors whose cosine says how near their meanings are."""

    @property
    def name(self) -> str:
        """Kind and model: ``local:use-multilingual``. Written beside each score, since thresholds do
        not carry over from one model to another.
        """
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Vectors of the texts: shape (n, d), float64, finite, no row all zero; (0, 0) for no texts.

        Raises
        ------
        EmbeddingError
            With code ``"blank"`` for text without visible characters; otherwise where the model or
            service failed, or returned vectors that can't be compared.
        """
        ...


def checked_texts(texts: Sequence[str], name: str) -> list[str]:
    """The texts as a list, in the Unicode form NFC: a model may cut decomposed letters otherwise.

    Raises
    ------
    UsageError
        Something else than a list of strings.
    EmbeddingError
        Code ``"blank"``: there is no meaning to compare.
    """
    # A string is a sequence as well, of texts with one character each.
    if isinstance(texts, (str, bytes)):
        raise UsageError(f"{name}: embed takes a list of texts, not a string: {texts[:40]!r}")
    items = list(texts)
    for number, text in enumerate(items):
        if not isinstance(text, str):
            raise UsageError(f"{name}: text {number} is a {type(text).__name__}, not a string")
        if is_blank(text):
            raise EmbeddingError(f"{name}: text {number} is blank, and has no embedding", code="blank")
    return [normalize("NFC", text) for text in items]


def checked_vectors(vectors: Any, texts: Sequence[str], name: str) -> Vectors:
    """The vectors as an (n, d) array of float64.

    Raises
    ------
    EmbeddingError
        Naming the first text whose vector is missing, of another length, not finite, or all zero.
    """
    try:
        rows = vectors if isinstance(vectors, np.ndarray) else list(_on_cpu(vectors))
    except TypeError:
        raise EmbeddingError(
            f"{name} returned a {type(vectors).__name__}, not one vector for each text", code="bad_vectors"
        ) from None
    if len(rows) != len(texts) or (isinstance(rows, np.ndarray) and rows.ndim != 2):
        shape = f"shape {rows.shape}" if isinstance(rows, np.ndarray) else f"{len(rows)} vectors"
        raise EmbeddingError(
            f"{name} returned {shape} for {len(texts)} texts, the first {quoted(texts[0])}; "
            f"one vector for each is wanted",
            code="vector_count_mismatch",
        )
    found = [_vector(row, text, name) for row, text in zip(rows, texts, strict=True)]
    for vector, text in zip(found, texts, strict=True):
        if len(vector) != len(found[0]):
            raise EmbeddingError(
                f"{name}: vectors of different lengths, {len(found[0])} for {quoted(texts[0])} and "
                f"{len(vector)} for {quoted(text)}",
                code="ragged_vectors",
            )
    return np.stack(found)


def _vector(row: Any, text: str, name: str) -> npt.NDArray[np.float64]:
    try:
        vector = np.asarray(_on_cpu(row), dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.empty((0, 0))
    if vector.ndim != 1 or not vector.size:
        raise EmbeddingError(
            f"{name}: the vector of {quoted(text)} is not a list of numbers", code="bad_vectors"
        )
    # One NaN would make every comparison NaN, and no threshold fails on that.
    if not np.isfinite(vector).all():
        raise EmbeddingError(
            f"{name}: the vector of {quoted(text)} holds NaN or another non-finite number", code="non_finite"
        )
    # Its cosine with anything is 0 / 0.
    if not vector.any():
        raise EmbeddingError(f"{name}: the vector of {quoted(text)} is all zero or empty", code="zero_vector")
    return vector


def _on_cpu(value: Any) -> Any:
    """Numpy can't read a torch tensor that needs a gradient or lies on another device."""
    return value.detach().cpu() if hasattr(value, "detach") and hasattr(value, "cpu") else value


def quoted(text: str) -> str:
    """The beginning of ``text``, for messages."""
    return repr(text if len(text) <= 60 else text[:60] + "...")
