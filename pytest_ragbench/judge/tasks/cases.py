"""Tasks that write questions: from documents, and in other words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import Text, YesNo
from pytest_ragbench.judge.tasks.numbered import Reply
from pytest_ragbench.text import is_blank

Kind = Literal["single", "multi", "paraphrased", "unanswerable"]


class WrittenCase(Reply):
    question: str
    answer: str = ""
    chunks: list[int] = Field(default_factory=list)


class WrittenCases(Reply):
    cases: list[WrittenCase]


@dataclass(frozen=True)
class WriteCases(Task[WrittenCases]):
    """Write up to ``count`` test questions about ``chunks``, with answers and the numbers of their chunks."""

    chunks: tuple[str, ...]
    kind: Kind
    count: int = 2

    name = "write_cases"
    reply_type = WrittenCases
    lang_from = ("chunks",)
    shown: ClassVar = {"chunks": "chunks"}

    @property
    def extras(self) -> tuple[str, ...]:
        return (self.kind,)

    def options(self) -> Mapping[str, Any]:
        return {"count": self.count}

    def read(self, payload: Mapping[str, Any]) -> WrittenCases:
        reply = super().read(payload)
        for case in reply.cases:
            # A question whose source can't be found would be a test that nothing can pass.
            wrong = [number for number in case.chunks if not 1 <= number <= len(self.chunks)]
            if wrong:
                raise ValueError(f"chunks names {wrong}, and there are {len(self.chunks)}")
        return reply


class CaseVerdict(Reply):
    reason: Text = ""
    answerable: YesNo
    right: YesNo


@dataclass(frozen=True)
class CheckCase(Task[CaseVerdict]):
    """Do ``chunks`` answer the question, and is ``answer`` (blank: none) what they say?"""

    question: str
    answer: str
    chunks: tuple[str, ...]

    name = "check_case"
    reply_type = CaseVerdict
    lang_from = ("question",)

    def data(self) -> Mapping[str, Any]:
        # Without an answer the judge is asked about the question alone: an empty one would be judged as wrong.
        given = {} if is_blank(self.answer) else {"answer": self.answer}
        return {"chunks": self.chunks, "question": self.question, **given}


class Rephrased(Reply):
    questions: list[str]


@dataclass(frozen=True)
class Rephrase(Task[Rephrased]):
    """Write ``count`` other ways to ask exactly the same."""

    question: str
    count: int = 2

    name = "rephrase"
    reply_type = Rephrased
    lang_from = ("question",)
    shown: ClassVar = {"question": "question"}

    def options(self) -> Mapping[str, Any]:
        return {"count": self.count}
