"""Splitting an answer into claims, and holding the claims against the chunks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field, PrivateAttr

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import ListedText
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Reply, SupportVerdict, Verdicts

Fineness = Literal["low", "high"]


class Claims(Reply):
    claims: list[ListedText] = Field(
        description="Self-contained factual claims, in order; empty where there are none."
    )
    _left_out: tuple[tuple[str, str], ...] = PrivateAttr(default=())

    @property
    def left_out(self) -> tuple[tuple[str, str], ...]:
        """(text, what it is) of the parts that claim nothing, where the judge tells; in no schema and no reply."""
        return self._left_out

    def leave_out(self, parts: Iterable[tuple[str, str]]) -> None:
        self._left_out = tuple(parts)


@dataclass(frozen=True)
class SplitClaims(Task[Claims]):
    """Split an answer (or a reference) into self-contained claims.

    ``atomicity="low"``: facts that stand together stay together; ``coverage="low"``: only what matters for
    the question.
    """

    answer: str
    question: str = ""
    atomicity: Fineness = "high"
    coverage: Fineness = "high"

    name = "split_claims"
    reply_type = Claims
    lang_from = ("answer",)
    shown: ClassVar = {"question": "question", "answer": "answer"}

    @property
    def extras(self) -> tuple[str, ...]:
        # High is what the prompt says by itself; low adds a paragraph to it.
        low = {"low_atomicity": self.atomicity, "low_coverage": self.coverage}
        return tuple(name for name, value in low.items() if value == "low")


@dataclass(frozen=True)
class VerifyClaims(NumberedTask[SupportVerdict]):
    """Is each claim supported by the chunks taken together?

    ``against``: whether the texts are chunks, or the reference or the answer to the question, which may leave out
    what the question says. In no prompt, so that recorded verdicts are found again.
    """

    claims: tuple[str, ...]
    contexts: tuple[str, ...]
    question: str = ""
    against: Literal["chunks", "reference", "answer"] = "chunks"

    name = "verify_claims"
    reply_type = Verdicts[SupportVerdict]
    items_from = "claims"
    lang_from = ("claims",)
    shown: ClassVar = {"question": "question", "chunks": "contexts", "claims": "claims"}
    source = "chunk"

    def last_source(self, number: int) -> int:
        return len(self.contexts)
