"""Tasks that hold an answer against a reference, and the answers of one session against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import Text, YesNo
from pytest_ragbench.judge.tasks.grades import GradeReply
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Reply, Verdict, Verdicts


@dataclass(frozen=True)
class CompareClaims(NumberedTask[Verdict]):
    """Does each claim of one side stand among the claims of the other?

    The claims of the answer come first, those of the reference after them, under one numbering, so that
    one call has a verdict on each: TP and FP are counted on the answer's, FN on the reference's.
    """

    answer_claims: tuple[str, ...]
    reference_claims: tuple[str, ...]
    question: str = ""

    name = "compare_claims"
    reply_type = Verdicts[Verdict]
    lang_from = ("items",)
    shown: ClassVar = {"question": "question", "claims": "items"}

    @property
    def items(self) -> Sequence[str]:
        return (*self.answer_claims, *self.reference_claims)

    def options(self) -> Mapping[str, Any]:
        last = len(self.answer_claims)
        return {"last": last, "first": last + 1, "end": len(self.items)}


@dataclass(frozen=True)
class GradeEndToEnd(Task[GradeReply]):
    """How useful is the answer beside the reference? One grade in 0..1."""

    question: str
    answer: str
    reference: str

    name = "grade_end_to_end"
    reply_type = GradeReply
    lang_from = ("question", "answer")
    shown: ClassVar = {"question": "question", "reference": "reference", "answer": "answer"}


class TurnVerdict(Reply):
    reason: Text = Field(default="", description="One short sentence.")
    turn: int | None = Field(default=None, description="Number of the earlier answer, or null.")
    verdict: YesNo = Field(description="true: it agrees with all earlier answers; false: it contradicts one.")


@dataclass(frozen=True)
class CheckConsistency(NumberedTask[TurnVerdict]):
    """Does each answer of a session agree with the answers before it? The first has none before it."""

    questions: tuple[str, ...]
    answers: tuple[str, ...]

    name = "check_consistency"
    reply_type = Verdicts[TurnVerdict]
    items_from = "answers"
    lang_from = ("answers",)
    shown: ClassVar = {"questions": "questions", "answers": "answers"}
    source = "turn"

    @property
    def numbers(self) -> Sequence[int]:
        # The first answer has nothing to contradict.
        return range(2, len(self.answers) + 1)

    def last_source(self, number: int) -> int:
        return number - 1
