"""Vectors that can't be compared are errors that name the text; never NaN, never a score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.embeddings import callable_embedder, embedder_from
from pytest_ragbench.embeddings.base import checked_vectors
from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.errors import EmbeddingError, UsageError
from pytest_ragbench.settings import ProviderSettings, Settings

TWO = ["первый текст", "第二"]


@pytest.mark.parametrize(
    ("vectors", "says", "code"),
    [
        ([[0, 0, 0], [1, 0, 0]], "первый.*zero or empty", "zero_vector"),
        ([[0.0, 1, 0], [math.nan, 0, 0]], "第二.*NaN", "non_finite"),
        ([[1, 0], [math.inf, 0]], "第二.*non-finite", "non_finite"),
        ([[1, 2], [1, 2, 3]], "2 for 'первый.*3 for '第二", "ragged_vectors"),
        ([[1, 2]], "1 vectors for 2 texts", "vector_count_mismatch"),
        (np.ones(2), r"shape \(2,\)", "vector_count_mismatch"),
        (np.ones((2, 3, 1)), r"shape \(2, 3, 1\)", "vector_count_mismatch"),
        ([1.0, 2.0], "первый.*not a list of numbers", "bad_vectors"),
        ([[], []], "первый", "bad_vectors"),
        ([["a"], ["b"]], "первый.*not a list of numbers", "bad_vectors"),
        ([None, None], "первый", "bad_vectors"),
        (None, "NoneType", "bad_vectors"),
        (3, "int", "bad_vectors"),
    ],
)
def test_refused(vectors: Any, says: str, code: str) -> None:
    with pytest.raises(EmbeddingError, match=says) as caught:
        checked_vectors(vectors, TWO, "m")
    assert caught.value.code == code


@pytest.mark.parametrize(
    "vectors",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2], [3, 4]], dtype=np.float16),
        [np.array([1, 2]), np.array([3, 4])],
        (row for row in [[1, 2], [3, 4]]),
    ],
)
def test_accepted(vectors: Any) -> None:
    found = checked_vectors(vectors, TWO, "m")
    assert found.dtype == np.float64
    assert found.tolist() == [[1, 2], [3, 4]]


@given(st.lists(st.lists(st.floats(), max_size=3), max_size=3))
def test_finite_and_nonzero_or_an_error(rows: list[list[float]]) -> None:
    texts = ["t"] * max(len(rows), 1)
    try:
        found = checked_vectors(rows, texts, "m")
    except EmbeddingError:
        return
    assert np.isfinite(found).all()
    assert found.any(axis=1).all()
    assert found.tolist() == rows


def test_callables_sync_and_async(engine: Engine) -> None:
    def lengths(texts: list[str]) -> list[list[int]]:
        return [[len(text), 1] for text in texts]

    async def later(texts: list[str]) -> list[list[int]]:
        return lengths(texts)

    for function in (lengths, later):
        embedder = embedder_from(function, engine)
        assert embedder.name.startswith("callable:tests.embeddings.test_vectors.")
        assert engine.wait(embedder.embed(["a", "bb"])).tolist() == [[1, 1], [2, 1]]
        assert engine.wait(embedder.embed([])).shape == (0, 0)


def test_a_callable_that_fails(engine: Engine) -> None:
    def broken(texts: list[str]) -> Any:
        raise ValueError("no model")

    for function, says in ((broken, "broken raised ValueError: no model"), (lambda texts: [[0.0]], "zero")):
        with pytest.raises(EmbeddingError, match=says):
            engine.wait(callable_embedder(function).embed(["a"]))
    with pytest.raises(EmbeddingError, match="blank"):
        engine.wait(callable_embedder(broken).embed([" "]))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("loacl", "no provider 'loacl'; did you mean 'local'"),
        ("sentence-transformers", "names no model"),
        ("openai", "embedding_model"),
        ("openai:m", "OPENAI_API_KEY"),
        ("keyed:m", "MY_KEY"),
        (3, "int can't be an embedder"),
        (ProviderSettings, "give an instance"),
    ],
)
def test_what_is_no_embedder(engine: Engine, value: object, says: str) -> None:
    settings = Settings(providers={"keyed": ProviderSettings(base_url="http://h/v1", api_key_env="MY_KEY")})
    with pytest.raises(UsageError, match=says):
        embedder_from(value, engine, settings, {})


def test_names(engine: Engine) -> None:
    settings = Settings(providers={"mine": ProviderSettings(base_url="http://h/v1", embedding_model="bge")})
    assert embedder_from("mine", engine, settings, {}).name == "mine:bge"
    assert embedder_from("mine:e5", engine, settings, {}).name == "mine:e5"
    assert embedder_from("openai:small", engine, environ={"OPENAI_API_KEY": "k"}).name == "openai:small"
    assert embedder_from("sentence-transformers:a/b", engine).name == "sentence-transformers:a/b"
    made = embedder_from("local", engine)
    assert embedder_from(made, engine) is made
