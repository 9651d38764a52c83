"""One grade in 0..1 for a whole answer, and whether it is an answer at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.reading.fields import Grade01, Text, YesNo
from pytest_ragbench.judge.tasks.numbered import Reply


class GradeReply(Reply):
    reason: Text = Field(default="", description="One short sentence.")
    grade: Grade01 = Field(description="0..1")


class SearchRagReply(Reply):
    answer_correctness: Grade01 = Field(description="0..1: does the answer answer the question?")
    groundedness: Grade01 = Field(description="0..1: is all of the answer in the chunks?")
    # After the grades, in the order of the document that asked for this judge.
    error_message: Text = Field(default="", description="The main fault in one short sentence, or empty.")


@dataclass(frozen=True)
class _AnswerTask(Task[Any]):
    question: str
    answer: str

    lang_from = ("question", "answer")
    shown: ClassVar = {"question": "question", "answer": "answer"}


@dataclass(frozen=True)
class GradeRelevance(_AnswerTask, Task[GradeReply]):
    """How well does the answer address the question, true or not? One grade in 0..1."""

    name = "grade_relevance"
    reply_type = GradeReply


@dataclass(frozen=True)
class _GroundedTask(_AnswerTask):
    contexts: tuple[str, ...]

    shown: ClassVar = {"question": "question", "chunks": "contexts", "answer": "answer"}


@dataclass(frozen=True)
class GradeFaithfulness(_GroundedTask, Task[GradeReply]):
    """How much of the answer do the chunks support? One grade in 0..1 for the whole answer."""

    name = "grade_faithfulness"
    reply_type = GradeReply


@dataclass(frozen=True)
class GradeSearchRag(_GroundedTask, Task[SearchRagReply]):
    """Two grades of an answer with its chunks, and a message: whether it answers, and whether it is grounded."""

    name = "grade_search_rag"
    reply_type = SearchRagReply


class AbstentionReply(Reply):
    reason: Text = Field(default="", description="One short sentence.")
    abstains: YesNo = Field(description="true where the answer says that it has no answer")


@dataclass(frozen=True)
class CheckAbstention(_AnswerTask, Task[AbstentionReply]):
    """Does the answer decline to answer, rather than answer (rightly or wrongly)?"""

    name = "check_abstention"
    reply_type = AbstentionReply
