from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.metrics.formulas import vectors as v
from pytest_ragbench.model.errors import EmbeddingError


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([0, 0, 0], [1, 0, 0], ["zero"]),
        ([], [], ["empty"]),
        ([0.0, 1, 0], [float("nan"), 0, 0], ["NaN", "non-finite"]),
        ([0.0, 1, 0], [float("inf"), 0, 0], ["non-finite"]),
        ([1, 2], [1, 2, 3], ["2", "3"]),
        ([1, 2], ["x", 2], ["isn't a number"]),
        ([[1, 2]], [[1, 2]], ["matrix", "length"]),
    ],
)
def test_what_can_not_be_compared_is_named(a: Any, b: Any, words: list[str]) -> None:
    with pytest.raises(EmbeddingError) as caught:
        v.cosine(a, b)
    assert any(word in str(caught.value) for word in words)


def test_rows_are_named() -> None:
    with pytest.raises(EmbeddingError, match="second vector 1 is zero"):
        v.cosines([[1, 0], [1, 0]], [[1, 0], [0, 0]])
    with pytest.raises(EmbeddingError, match="2 vectors against 1"):
        v.cosines([[1, 0], [1, 0]], [[1, 0]])
    with pytest.raises(EmbeddingError, match="differ in length: 1 and 2"):
        v.matrix([[1, 0], [1]])


def test_rows_far_down_are_named_too() -> None:
    """They are read a few thousand at a time."""
    rows = np.ones((5000, 2))
    rows[4999] = np.nan
    with pytest.raises(EmbeddingError, match="first vector 4999 holds NaN") as caught:
        v.cosine_matrix(rows, rows)
    assert caught.value.code == "vector_not_finite"


def test_known_values() -> None:
    assert v.cosine([1, 0], [0.6, 0.8]) == pytest.approx(0.6)
    assert v.cosine([1, 2], [-2, -4]) == pytest.approx(-1.0, abs=1e-15)
    assert v.cosine([3e200, 4e200], [3e-200, 4e-200]) == pytest.approx(1.0)
    assert v.cosine(np.array([1, 1], dtype=np.float16), np.array([1, 0], dtype=np.int8)) == pytest.approx(
        0.5**0.5
    )


numbers = st.floats(-1e6, 1e6).filter(lambda number: abs(number) > 1e-3)


@given(
    st.lists(
        st.tuples(st.tuples(numbers, numbers, numbers), st.tuples(numbers, numbers, numbers)), min_size=1
    )
)
def test_as_scikit_learn(pairs: Any) -> None:
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    a, b = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
    oracle = pairwise.cosine_similarity(a, b)
    assert np.allclose(v.cosine_matrix(a, b), oracle, rtol=0, atol=1e-9)
    assert np.allclose(v.cosines(a, b), np.diag(oracle), rtol=0, atol=1e-9)
    assert np.abs(v.cosines(a, a)).max() <= 1.0
