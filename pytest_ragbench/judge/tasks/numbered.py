"""Replies, and tasks that want one verdict for each item of a numbered list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from pytest_ragbench.judge.base import Task, in_language, schema_of
from pytest_ragbench.judge.reading.fields import Text, YesNo


class Reply(BaseModel):
    """Base of all replies: unknown keys are ignored, values are frozen."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, defer_build=True)


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

    items_from: ClassVar[str] = ""
    """The field that holds the list."""
    source: ClassVar[str] = ""
    """Key of a verdict that numbers what it rests on, from 1 to :meth:`last_source`."""

    @property
    def items(self) -> Sequence[str]:
        found: Sequence[str] = getattr(self, self.items_from)
        return found

    def last_source(self, number: int) -> int:
        """The highest number that the verdict on ``number`` can rest on."""
        raise NotImplementedError

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers that a reply must carry: all of them, or the rest after a partial reply."""
        return range(1, len(self.items) + 1)

    def reply_schema(self) -> dict[str, Any]:
        """One required key per number, so that a provider with structured output can't miscount."""
        verdict_type = get_args(self.reply_type.model_fields["verdicts"].annotation)[1]
        # JSON's keys are strings.
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
            # Both are named: a judge that counts from 0 shows at once.
            missing, extra = sorted(asked - set(verdicts)), sorted(set(verdicts) - asked)
            raise ValueError(
                f"verdict_count_mismatch: {len(asked)} asked, {len(verdicts)} returned"
                + (f", missing {missing}" if missing else "")
                + (f", not asked for {extra}" if extra else "")
            )
        reply = self.reply_type.model_validate({"verdicts": verdicts})
        return self._with_known_sources(reply) if self.source else reply

    def _with_known_sources(self, reply: Verdicts[V]) -> Verdicts[V]:
        kept = {}
        for number, verdict in reply.verdicts.items():
            rests_on = getattr(verdict, self.source)
            # A number that doesn't exist is a slip in the remark, not in the verdict.
            wrong = rests_on is not None and not 1 <= rests_on <= self.last_source(number)
            kept[number] = verdict.model_copy(update={self.source: None}) if wrong else verdict
        return reply.model_copy(update={"verdicts": kept})

    def remainder(self, payload: Mapping[str, Any]) -> Task[Verdicts[V]] | None:
        """The numbers that are missing, where what is there is well numbered."""
        try:
            present = set(numbered(payload))
            self.reply_type.model_validate({"verdicts": numbered(payload)})
        except ValueError:
            return None
        missing = tuple(number for number in self.numbers if number not in present)
        # With numbers that were not asked for, or none that were, the reply is wrong rather than partial.
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
        No verdicts, something that is not a number, or a number given twice.
    """
    # Services without structured output send either shape, whatever the prompt asks for.
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
    # What judges call the number when they send a list instead of the object that the schema wants.
    for name in ("number", "claim", "n", "id", "index", "item"):
        if isinstance(item, Mapping) and name in item:
            return item[name]
    raise ValueError(f"a verdict carries no number: {str(item)[:80]}")


def _number(key: Any) -> int:
    text = str(key).strip()
    if isinstance(key, bool) or not (text.isascii() and text.isdigit()):
        raise ValueError(f"{key!r} is not an item number")
    return int(text)
