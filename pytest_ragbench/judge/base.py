"""What a judge is: something that answers tasks with typed replies.

An LLM, the local judge, a panel and a recording are interchangeable behind :class:`Judge`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable

from pydantic import BaseModel

from pytest_ragbench.model.scores import Usage
from pytest_ragbench.text import detect_language

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True)
class Task(Generic[R]):
    """One thing to ask a judge.

    Subclasses are frozen dataclasses whose fields are the task's input. ``name`` picks the prompt,
    ``reply_type`` the reply; :meth:`reply_schema` may narrow the schema to this very task (how many
    verdicts, which grades).

    ``language`` is that of the prompt where the sample names one; see :func:`in_language`.

    ``vote`` tells apart independent calls with the same input: it goes into the key that replies are
    stored under, and nowhere else. See :func:`again`.
    """

    lang_from: ClassVar[tuple[str, ...]] = ()
    """Fields whose texts tell the language; several where one alone is often too short to tell."""
    shown: ClassVar[Mapping[str, str]] = {}
    """Label in the prompt to field, in the order in which the prompt shows them."""
    vote: ClassVar[int] = 0
    language: ClassVar[str | None] = None
    fresh: ClassVar[bool] = False
    """Whether a reply that an earlier run stored is none: it has to be known what the judge says now."""
    one_word: ClassVar[bool] = False
    """Whether the reply is one word whose probability counts; see :mod:`~pytest_ragbench.judge.tasks.one_word`."""

    @property
    def name(self) -> str:
        """The prompt's name: ``split_claims``."""
        raise NotImplementedError

    @property
    def reply_type(self) -> type[R]:
        raise NotImplementedError

    @property
    def lang(self) -> str:
        """The language of the texts under judgement, which the prompt follows: that of ``lang_from`` together."""
        found = (getattr(self, name) for name in self.lang_from)
        return detect_language(" ".join(text if isinstance(text, str) else " ".join(text) for text in found))

    @property
    def extras(self) -> tuple[str, ...]:
        """Parts of the prompt that this very task has, by their names in the prompt's file."""
        return ()

    def data(self) -> Mapping[str, Any]:
        """Untrusted texts by label (text, or list of texts that the prompt numbers from 1): those of ``shown``."""
        return {label: getattr(self, name) for label, name in self.shown.items()}

    def options(self) -> Mapping[str, Any]:
        """Trusted values that the instructions mention: ``{"count": 3}``."""
        return {}

    def reply_schema(self) -> dict[str, Any]:
        """JSON schema that a reply to this very task must fit. Shared: not to be changed in place."""
        return schema_of(self.reply_type)

    def read(self, payload: Mapping[str, Any]) -> R:
        """The typed reply.

        Raises
        ------
        pydantic.ValidationError, ValueError
            Where the payload does not fit this very task.
        """
        return self.reply_type.model_validate(payload)

    def remainder(self, payload: Mapping[str, Any]) -> Task[R] | None:
        """The part of this task that ``payload`` leaves open, where asking just for that makes sense."""
        return None

    def merge(self, payload: Mapping[str, Any], rest: Mapping[str, Any]) -> Mapping[str, Any]:
        """``payload`` completed by the reply to :meth:`remainder`."""
        return {**payload, **rest}


# By class: schemas of a task's own items are made from it in reply_schema.
@cache
def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Pydantic's JSON schema, made once (2 ms): a task is asked many times."""
    return model.model_json_schema()


def again(task: Task[R], vote: int) -> Task[R]:
    """The same task as another, independent call: its reply is not that of any other ``vote``."""
    # copy and not dataclasses.replace: a vote is not a field, so tasks that differ in it are still equal.
    other = copy(task)
    object.__setattr__(other, "vote", vote)
    return other


def anew(task: Task[R]) -> Task[R]:
    """The same task, asked once in this run, whatever earlier runs stored."""
    # Past frozen=True: these are not fields, so equality and the stored key do not see them.
    other = copy(task)
    object.__setattr__(other, "fresh", True)
    return other


def in_language(task: Task[R], language: str | None) -> Task[R]:
    """The same task, asked in ``language`` where there is a prompt in it, else in that of the texts."""
    if language is None or task.language is not None:
        return task
    other = copy(task)
    object.__setattr__(other, "language", language)
    return other


@dataclass(frozen=True)
class Answered(Generic[R]):
    """A judge's reply, and what it took to get it.

    ``duration`` is in seconds, successful attempts only; 0 for a stored reply.
    """

    reply: R
    judge: str
    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0
    cached: bool = False
    took: float | None = None
    """Of a stored reply: the seconds that it took when it was asked for; None: not known, or not stored."""
    votes: int = 1
    said: tuple[str, ...] = ()
    """The texts that came, in their order; empty of a judge that sends none."""
    prompts: tuple[Callable[[], Sequence[Mapping[str, str]]], ...] = ()
    """Render what each of those texts replied to."""


def identity_of(judge: Judge) -> str:
    """What makes a judge the same one in two runs: its name, and what else is configured of it.

    A judge that has more to say than its name has an attribute ``identity``.
    """
    return str(getattr(judge, "identity", judge.name))


def all_are(judges: Iterable[Judge], ability: Literal["probabilities", "shared"]) -> bool:
    """Whether all judges have the ability; one that says nothing of it hasn't."""
    return all(getattr(judge, ability, False) for judge in judges)


@runtime_checkable
class Judge(Protocol):
    """Answers tasks. ``name`` is what reports show, e.g. ``"openai:gpt-4o-mini"``.

    ``tasks`` holds the names of the tasks it can do, or None where it can do all: a metric that
    needs another is a usage error before any call.

    A judge with an attribute ``probabilities = True`` can be asked for a word with its probability, too.
    """

    @property
    def name(self) -> str: ...

    @property
    def tasks(self) -> Collection[str] | None: ...

    async def ask(self, task: Task[R]) -> Answered[R]:
        """Answer one task.

        Raises
        ------
        JudgeError
            Unreachable, refused, truncated, or unreadable after one more try. Never a default.
        """
        ...
