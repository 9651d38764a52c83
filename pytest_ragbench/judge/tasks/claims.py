"""Splitting an answer into claims, and holding the claims against the chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import ListedText
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Reply, SupportVerdict, Verdicts
from pytest_ragbench.text import detect_language

Fineness = Literal["low", "high"]


class Claims(Reply):
    claims: list[ListedText] = Field(
        description="Self-contained factual claims, in order; empty where there are none."
    )


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

    @property
    def lang(self) -> str:
        return detect_language(self.answer)

    @property
    def extras(self) -> tuple[str, ...]:
        # High is what the prompt says by itself; low adds a paragraph to it.
        low = {"low_atomicity": self.atomicity, "low_coverage": self.coverage}
        return tuple(name for name, value in low.items() if value == "low")

    def data(self) -> Mapping[str, Any]:
        return {"question": self.question, "answer": self.answer}


@dataclass(frozen=True)
class VerifyClaims(NumberedTask[SupportVerdict]):
    """Is each claim supported by the chunks taken together?"""

    claims: tuple[str, ...]
    contexts: tuple[str, ...]
    question: str = ""

    name = "verify_claims"
    reply_type = Verdicts[SupportVerdict]

    @property
    def items(self) -> Sequence[str]:
        return self.claims

    @property
    def lang(self) -> str:
        return detect_language(" ".join(self.claims))

    def data(self) -> Mapping[str, Any]:
        return {"question": self.question, "chunks": self.contexts, "claims": self.claims}

    def read(self, payload: Mapping[str, Any]) -> Verdicts[SupportVerdict]:
        reply = super().read(payload)
        # A chunk number that does not exist is a slip in the remark, not in the verdict.
        kept = {
            number: verdict
            if verdict.chunk is None or 1 <= verdict.chunk <= len(self.contexts)
            else verdict.model_copy(update={"chunk": None})
            for number, verdict in reply.verdicts.items()
        }
        return reply.model_copy(update={"verdicts": kept})
