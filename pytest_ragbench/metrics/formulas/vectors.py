"""Cosine of embedding vectors, refusing what can't be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_ragbench.model.errors import EmbeddingError

Floats: TypeAlias = NDArray[np.float64]
Vectors: TypeAlias = "ArrayLike | Sequence[ArrayLike]"
"""One vector a row: an (n, d) array, or a list of vectors."""


def cosine(a: ArrayLike, b: ArrayLike) -> float:
    """Cosine of two vectors, in [-1, 1].

    Raises
    ------
    EmbeddingError
        Different lengths (both named), NaN or infinite values, a zero or empty vector.
    """
    return float(cosines([a], [b])[0])


def cosines(a: Vectors, b: Vectors) -> Floats:
    """Cosines of two (n, d) matrices row by row, as (n,); errors as :func:`cosine`, naming the row."""
    left, right = matrix(a, "first"), matrix(b, "second")
    _check_lengths(left, right)
    if len(left) != len(right):
        raise EmbeddingError(f"{len(left)} vectors against {len(right)}: give pairs", code="vector_count")
    products: Floats = np.einsum("ij,ij->i", unit_rows(left, "first"), unit_rows(right, "second"))
    return np.clip(products, -1.0, 1.0, out=products)


def cosine_matrix(a: Vectors, b: Vectors) -> Floats:
    """Cosines of each row of ``a`` (n, d) with each row of ``b`` (m, d), as (n, m)."""
    left, right = matrix(a, "first"), matrix(b, "second")
    _check_lengths(left, right)
    products: Floats = unit_rows(left, "first") @ unit_rows(right, "second").T
    return np.clip(products, -1.0, 1.0, out=products)


def _check_lengths(left: NDArray[Any], right: NDArray[Any]) -> None:
    if left.shape[1] != right.shape[1]:
        raise EmbeddingError(
            f"vectors of {left.shape[1]} and {right.shape[1]} numbers can't be compared: "
            "they come from different embedding models",
            code="vector_length",
        )


def matrix(vectors: Any, name: str = "") -> NDArray[Any]:
    """``vectors`` as a finite (n, d) float array, float32 and float64 kept as they are.

    Raises
    ------
    EmbeddingError
        Rows of different length, values that aren't numbers, NaN or infinite (the row is named).
    """
    called = f"{name} vector" if name else "vector"
    rows: NDArray[Any] = vectors if isinstance(vectors, np.ndarray) else _stack(vectors, called)
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise EmbeddingError(
            f"expected a matrix of numbers, one {called} a row; got shape {rows.shape} of {rows.dtype}",
            code="vector_type",
        )
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    for start in range(0, len(rows), 4096):  # in parts, because a check of the whole would double the memory
        bad = np.flatnonzero(~np.isfinite(rows[start : start + 4096]).all(axis=1))
        if len(bad):
            raise EmbeddingError(
                f"{called} {start + bad[0]} holds NaN or another non-finite value", code="vector_not_finite"
            )
    return rows


def _stack(vectors: Any, called: str) -> Floats:
    try:
        rows = [np.asarray(row, dtype=np.float64) for row in vectors]
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            f"a {called} holds something that isn't a number: {error}", code="vector_type"
        ) from None
    lengths = {row.shape for row in rows}
    if len(lengths) > 1 or any(row.ndim != 1 for row in rows):
        shown = " and ".join(sorted({str(row.size) for row in rows}))
        raise EmbeddingError(f"{called}s differ in length: {shown} numbers", code="vector_length")
    return np.stack(rows) if rows else np.zeros((0, 0))


def unit_rows(vectors: NDArray[Any], name: str = "", first_row: int = 0) -> Floats:
    """Rows scaled to length 1, as float64; a zero row raises EmbeddingError (naming the row)."""
    rows = vectors.astype(np.float64)
    # Divide by the largest number first: squares of 1e200 or 1e-200 leave the range of a float.
    largest = np.abs(rows).max(axis=1, initial=0.0)
    zero = np.flatnonzero(largest == 0)
    if len(zero):
        called = f"{name} vector" if name else "vector"
        raise EmbeddingError(
            f"{called} {first_row + zero[0]} is zero or empty: its text was blank, or the embedder failed",
            code="zero_vector",
        )
    rows /= largest[:, None]
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows
