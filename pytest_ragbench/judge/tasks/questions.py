"""Questions that an answer would answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import Text, YesNo
from pytest_ragbench.judge.tasks.numbered import Reply
from pytest_ragbench.text import is_blank


class WrittenQuestion(Reply):
    question: Text
    noncommittal: YesNo = Field(description="true where the answer evades: 'I don't know' and the like")


class WrittenQuestions(Reply):
    questions: list[WrittenQuestion]


@dataclass(frozen=True)
class WriteQuestions(Task[WrittenQuestions]):
    """Write ``count`` distinct questions to which ``answer`` would be the answer."""

    answer: str
    count: int = 3

    name = "write_questions"
    reply_type = WrittenQuestions
    lang_from = ("answer",)
    shown: ClassVar = {"answer": "answer"}

    def options(self) -> Mapping[str, Any]:
        return {"count": self.count}

    def read(self, payload: Mapping[str, Any]) -> WrittenQuestions:
        reply = super().read(payload)
        # A blank question has no embedding, and no meaning to compare.
        if all(is_blank(item.question) for item in reply.questions):
            raise ValueError("no question was written")
        return reply
