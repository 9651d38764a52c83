"""Tasks that hold an answer against a reference, and the answers of one session against each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import Text, YesNo
from pytest_ragbench.judge.tasks.grades import GradeReply
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Reply, Verdict, Verdicts
from pytest_ragbench.text import detect_language


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

    @property
    def items(self) -> Sequence[str]:
        return (*self.answer_claims, *self.reference_claims)

    @property
    def lang(self) -> str:
        return detect_language(" ".join(self.items))

    def data(self) -> Mapping[str, Any]:
        return {"question": self.question, "claims": self.items}

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

    @property
    def lang(self) -> str:
        return detect_language(f"{self.question} {self.answer}")

    def data(self) -> Mapping[str, Any]:
        return {"question": self.question, "reference": self.reference, "answer": self.answer}


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

    @property
    def items(self) -> Sequence[str]:
        return self.answers

    @property
    def numbers(self) -> Sequence[int]:
        # The first answer has nothing to contradict.
        return range(2, len(self.answers) + 1)

    @property
    def lang(self) -> str:
        return detect_language(" ".join(self.answers))

    def data(self) -> Mapping[str, Any]:
        return {"questions": self.questions, "answers": self.answers}

    def read(self, payload: Mapping[str, Any]) -> Verdicts[TurnVerdict]:
        reply = super().read(payload)
        # A turn that is not an earlier one is a slip in the remark, not in the verdict.
        kept = {
            number: verdict
            if verdict.turn is None or 1 <= verdict.turn < number
            else verdict.model_copy(update={"turn": None})
            for number, verdict in reply.verdicts.items()
        }
        return reply.model_copy(update={"verdicts": kept})
