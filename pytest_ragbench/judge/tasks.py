"""The tasks that judged metrics are made of, and the replies that count as answers to them.

Replies are strict: a verdict word is yes or no in some language or it is invalid, a grade lies on
its scale or it is invalid, and there is exactly one verdict for each item that was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from pytest_ragbench.judge.base import Task, in_language, schema_of
from pytest_ragbench.judge.fields import Grade01, ListedText, Text, YesNo
from pytest_ragbench.text import detect_language


class Reply(BaseModel):
    """Base of all replies: unknown keys are ignored, values are frozen."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)


# Claims

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
        low = {"low_atomicity": self.atomicity, "low_coverage": self.coverage}
        return tuple(name for name, value in low.items() if value == "low")

    def data(self) -> Mapping[str, Any]:
        return {"question": self.question, "answer": self.answer}


# Numbered verdicts: one for each item that is sent


class _Verdict(Reply):
    """``probability``: P(yes), where the verdict was asked for in a word; in no schema and in no reply."""

    _probability: float | None = PrivateAttr(default=None)

    @property
    def probability(self) -> float | None:
        return self._probability

    def weigh(self, probability: float) -> None:
        self._probability = probability


class Verdict(_Verdict):
    reason: Text = Field(default="", description="One short sentence.")
    verdict: YesNo = Field(description="true or false")


class SupportVerdict(_Verdict):
    reason: Text = Field(default="", description="One short sentence.")
    chunk: int | None = Field(default=None, description="Number of the chunk that decides it, or null.")
    verdict: YesNo = Field(description="true: the chunks say so; false: they do not, or say otherwise.")


V = TypeVar("V", bound=Reply)


class Verdicts(Reply, Generic[V]):
    """One verdict per item number, from 1."""

    verdicts: dict[int, V]

    def in_order(self) -> list[V]:
        return [self.verdicts[number] for number in sorted(self.verdicts)]


@dataclass(frozen=True)
class NumberedTask(Task[Verdicts[V]], Generic[V]):
    """A task that sends a numbered list and wants exactly one verdict for each number."""

    @property
    def items(self) -> Sequence[str]:
        raise NotImplementedError

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers that a reply must carry: all of them, or the rest after a partial reply."""
        return range(1, len(self.items) + 1)

    def reply_schema(self) -> dict[str, Any]:
        """One required key per number, so that a provider with structured output can't miscount."""
        verdict_type = get_args(self.reply_type.model_fields["verdicts"].annotation)[1]
        numbers = [str(number) for number in self.numbers]
        return {
            "type": "object",
            "properties": {
                "verdicts": {
                    "type": "object",
                    "properties": {number: {"$ref": "#/$defs/verdict"} for number in numbers},
                    "required": numbers,
                    "additionalProperties": False,
                }
            },
            "required": ["verdicts"],
            "additionalProperties": False,
            "$defs": {"verdict": schema_of(verdict_type)},
        }

    def read(self, payload: Mapping[str, Any]) -> Verdicts[V]:
        verdicts = numbered(payload)
        asked = set(self.numbers)
        if set(verdicts) != asked:
            missing, extra = sorted(asked - set(verdicts)), sorted(set(verdicts) - asked)
            raise ValueError(
                f"verdict_count_mismatch: {len(asked)} asked, {len(verdicts)} returned"
                + (f", missing {missing}" if missing else "")
                + (f", not asked for {extra}" if extra else "")
            )
        return self.reply_type.model_validate({"verdicts": verdicts})

    def remainder(self, payload: Mapping[str, Any]) -> Task[Verdicts[V]] | None:
        """The numbers that are missing, where what is there is well numbered."""
        try:
            present = set(numbered(payload))
            self.reply_type.model_validate({"verdicts": numbered(payload)})
        except ValueError:
            return None
        missing = tuple(number for number in self.numbers if number not in present)
        if not missing or not present or not present <= set(self.numbers):
            return None
        return in_language(_Remainder(self, missing), self.language)

    def merge(self, payload: Mapping[str, Any], rest: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"verdicts": {str(k): v for k, v in {**numbered(payload), **numbered(rest)}.items()}}


@dataclass(frozen=True)
class _Remainder(NumberedTask[Any]):
    """A numbered task again, with only the numbers that are still missing."""

    whole: NumberedTask[Any]
    missing: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.whole.name

    @property
    def reply_type(self) -> type[Verdicts[Any]]:
        return self.whole.reply_type

    @property
    def lang(self) -> str:
        return self.whole.lang

    @property
    def items(self) -> Sequence[str]:
        return self.whole.items

    @property
    def numbers(self) -> Sequence[int]:
        return self.missing

    def data(self) -> Mapping[str, Any]:
        return self.whole.data()

    def options(self) -> Mapping[str, Any]:
        return {**self.whole.options(), "numbers": ", ".join(str(number) for number in self.missing)}

    def remainder(self, payload: Mapping[str, Any]) -> None:
        return None


def numbered(payload: Mapping[str, Any]) -> dict[int, Any]:
    """``{number: verdict}`` from the two shapes that judges send: an object keyed by number, or a
    list of objects that each carry their number.

    Raises
    ------
    ValueError
        No verdicts, a number that is none, or one given twice.
    """
    verdicts = payload.get("verdicts") if isinstance(payload, Mapping) else None
    if isinstance(verdicts, Mapping):
        pairs = list(verdicts.items())
    elif isinstance(verdicts, list):
        pairs = [(_own_number(item), item) for item in verdicts]
    else:
        raise ValueError('"verdicts" is missing: an object with one entry per number is expected')
    found: dict[int, Any] = {}
    for key, verdict in pairs:
        number = _number(key)
        if number in found:
            raise ValueError(f"verdict_count_mismatch: number {number} has two verdicts")
        found[number] = verdict if isinstance(verdict, Mapping) else {"verdict": verdict}
    return found


def _own_number(item: Any) -> Any:
    for name in ("number", "claim", "n", "id", "index", "item"):
        if isinstance(item, Mapping) and name in item:
            return item[name]
    raise ValueError(f"a verdict carries no number: {str(item)[:80]}")


def _number(key: Any) -> int:
    text = str(key).strip()
    if isinstance(key, bool) or not (text.isascii() and text.isdigit()):
        raise ValueError(f"{key!r} is no item number")
    return int(text)


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


# Questions that an answer would answer


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

    @property
    def lang(self) -> str:
        return detect_language(self.answer)

    def data(self) -> Mapping[str, Any]:
        return {"answer": self.answer}

    def options(self) -> Mapping[str, Any]:
        return {"count": self.count}

    def read(self, payload: Mapping[str, Any]) -> WrittenQuestions:
        reply = super().read(payload)
        if not any(item.question.strip() for item in reply.questions):
            raise ValueError("no question was written")
        return reply


# Grades


class GradeReply(Reply):
    reason: Text = Field(default="", description="One short sentence.")
    grade: Grade01 = Field(description="0..1")


class SearchRagReply(Reply):
    answer_correctness: Grade01 = Field(description="0..1: does the answer answer the question?")
    groundedness: Grade01 = Field(description="0..1: is all of the answer in the chunks?")
    error_message: Text = Field(default="", description="The main fault in one short sentence, or empty.")


@dataclass(frozen=True)
class _AnswerTask(Task[Any]):
    question: str
    answer: str

    @property
    def lang(self) -> str:
        return detect_language(f"{self.question} {self.answer}")

    def data(self) -> Mapping[str, Any]:
        return {"question": self.question, "answer": self.answer}


@dataclass(frozen=True)
class GradeRelevance(_AnswerTask, Task[GradeReply]):
    """How well does the answer address the question, true or not? One grade in 0..1."""

    name = "grade_relevance"
    reply_type = GradeReply


@dataclass(frozen=True)
class _GroundedTask(_AnswerTask):
    contexts: tuple[str, ...]

    def data(self) -> Mapping[str, Any]:
        return {"question": self.question, "chunks": self.contexts, "answer": self.answer}


@dataclass(frozen=True)
class GradeFaithfulness(_GroundedTask, Task[GradeReply]):
    """How much of the answer do the chunks support? One grade in 0..1 for the whole answer."""

    name = "grade_faithfulness"
    reply_type = GradeReply


@dataclass(frozen=True)
class GradeSearchRag(_GroundedTask, Task[SearchRagReply]):
    """The founding document's judge of a search-and-answer service: two grades and a message."""

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


__all__ = [
    "AbstentionReply",
    "CheckAbstention",
    "Claims",
    "GradeFaithfulness",
    "GradeRelevance",
    "GradeReply",
    "GradeSearchRag",
    "NumberedTask",
    "Reply",
    "SearchRagReply",
    "SplitClaims",
    "SupportVerdict",
    "Verdict",
    "Verdicts",
    "VerifyClaims",
    "WriteQuestions",
    "WrittenQuestion",
    "WrittenQuestions",
    "numbered",
]
