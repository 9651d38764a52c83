"""Tasks about the retrieved chunks: which were useful, what they name, how far they reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import ListedText
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Reply, Verdict, Verdicts
from pytest_ragbench.text import detect_language


@dataclass(frozen=True)
class JudgeChunks(NumberedTask[Verdict]):
    """Was each chunk useful to arrive at the answer (or at the reference)?"""

    question: str
    target: str
    contexts: tuple[str, ...]

    name = "judge_chunks"
    reply_type = Verdicts[Verdict]
    items_from = "contexts"
    # Not of the chunks, which are often in another language, or in several.
    lang_from = ("question", "target")
    shown: ClassVar = {"question": "question", "answer": "target", "chunks": "contexts"}


class Entities(Reply):
    entities: list[ListedText] = Field(
        description="Names, places, organisations, dates, products ...; each once, in its dictionary form."
    )


@dataclass(frozen=True)
class ExtractEntities(Task[Entities]):
    """Name the entities that the texts speak of."""

    texts: tuple[str, ...]

    name = "extract_entities"
    reply_type = Entities
    lang_from = ("texts",)
    shown: ClassVar = {"texts": "texts"}


@dataclass(frozen=True)
class FindEntities(NumberedTask[Verdict]):
    """Is each entity named in the chunks, in whatever form (inflected, abbreviated, transliterated)?"""

    entities: tuple[str, ...]
    contexts: tuple[str, ...]

    name = "find_entities"
    reply_type = Verdicts[Verdict]
    items_from = "entities"
    shown: ClassVar = {"chunks": "contexts", "entities": "entities"}

    @property
    def lang(self) -> str:
        # Names alone tell no language; all chunks would take long to look at.
        return detect_language(" ".join([*self.entities, *self.contexts[:1]]))


class Sentences(Reply):
    sentences: list[ListedText] = Field(description="Sentences copied from the chunks, unchanged.")


@dataclass(frozen=True)
class ExtractSentences(Task[Sentences]):
    """Copy the sentences of the chunks that are needed to answer the question."""

    question: str
    contexts: tuple[str, ...]

    name = "extract_sentences"
    reply_type = Sentences
    lang_from = ("question",)
    shown: ClassVar = {"question": "question", "chunks": "contexts"}
