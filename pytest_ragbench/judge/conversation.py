"""The conversation with a chat model about one task: a question, and at most one more.

A conversation is nothing but the list of replies that came: :func:`next_turn` says what follows from them.
So a stored conversation is read just as it was read the first time, without a call.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from pytest_ragbench.clean import one_line
from pytest_ragbench.judge.base import Task
from pytest_ragbench.judge.completions import RawReply
from pytest_ragbench.judge.reading.endings import check_end
from pytest_ragbench.judge.reading.fields import shown
from pytest_ragbench.judge.reading.probability import read_word
from pytest_ragbench.judge.reading.strict_json import UnreadableReply
from pytest_ragbench.judge.reading.verdicts import read_reply
from pytest_ragbench.judge.rendering import Message, correction, language_of, render, texts_of
from pytest_ragbench.model.errors import JudgeError

R = TypeVar("R", bound=BaseModel)

# Characters of an unusable reply that are sent back with the request for a better one.
_MAX_ECHO_CHARS = 20_000
# Codes of replies that a second try would not better.
_FINAL = frozenset(
    [
        "refused",
        "content_filter",
        "context_window",
        "repetition",
        "only_reasoning",
        "interrupted",
        "unfinished",
    ]
)


@dataclass(frozen=True)
class Turn(Generic[R]):
    """One thing to send. ``room`` multiplies the token limit: 2 after a reply that was cut."""

    task: Task[R]
    messages: list[Message]
    room: int = 1


@dataclass(frozen=True)
class Done(Generic[R]):
    reply: R


@dataclass(frozen=True)
class Heard(Generic[R]):
    """A typed reply, and the strings that it was read from."""

    reply: R
    said: tuple[str, ...]
    prompts: tuple[Callable[[], list[Message]], ...] = ()
    """What each of them replied to, rendered when it is called."""


class Conversation(Generic[R]):
    """One conversation about one task. The opening is rendered once, and replies that ended the conversation
    are not read a second time just because they have been stored meanwhile.
    """

    def __init__(self, task: Task[R]) -> None:
        self._task = task
        self.first: Turn[R] = Turn(task, render(task))
        self._ended: tuple[list[RawReply], R] | None = None

    def following(self, replies: Sequence[RawReply]) -> Turn[R] | None:
        """What is to be sent after these replies; None where they are enough.

        Raises
        ------
        JudgeError
            There is nothing to be had: refused, or unusable twice.
        """
        turn = next_turn(self._task, replies)
        if isinstance(turn, Turn):
            return turn
        self._ended = list(replies), turn.reply
        return None

    def read(self, replies: Sequence[RawReply]) -> Heard[R]:
        """The typed reply that a conversation ended with.

        Raises
        ------
        JudgeError
            It did not end well.
        """
        said = tuple(raw["content"] or raw["refusal"] or "" for raw in replies)
        prompts = tuple(
            partial(messages_after, self._task, list(replies[:place])) for place in range(len(replies))
        )
        # Compared, since another process may have stored other replies to the same question.
        if self._ended is not None and self._ended[0] == replies:
            return Heard(self._ended[1], said, prompts)
        return Heard(read_conversation(self._task, replies), said, prompts)


Complete = Callable[[Turn[Any]], Awaitable[RawReply]]
"""Sends one turn and returns what came back."""


async def converse(talk: Conversation[Any], complete: Complete) -> list[RawReply]:
    """The replies of a conversation that ended well; asks once more where the first can't be used.

    Raises
    ------
    JudgeError
        Refused, or unusable twice.
    """
    replies: list[RawReply] = []
    turn: Turn[Any] | None = talk.first
    while turn is not None:
        replies.append(await complete(turn))
        turn = talk.following(replies)
    return replies


def read_conversation(task: Task[R], replies: Sequence[RawReply]) -> R:
    """See :meth:`Conversation.read`."""
    end = next_turn(task, replies)
    if isinstance(end, Turn):
        raise JudgeError("the conversation with the judge is not finished", code="incomplete")
    return end.reply


def messages_after(task: Task[Any], replies: Sequence[RawReply]) -> list[Message]:
    """The messages that were sent after these replies; none where nothing was."""
    turn = next_turn(task, replies)
    return turn.messages if isinstance(turn, Turn) else []


def next_turn(task: Task[R], replies: Sequence[RawReply]) -> Turn[R] | Done[R]:
    """What follows from the replies so far: the next thing to send, or the typed reply.

    Raises
    ------
    JudgeError
        There is nothing to be had: the judge refused, or its second reply can't be used either.
    """
    if not replies:
        return Turn(task, render(task))
    if task.one_word:  # asked again, it would say the same
        return Done(cast("R", _word(task, replies[0])))
    quotable = texts_of(task.data())
    first = _Read(task, replies[0], quotable)
    if first.value is not None:
        return Done(first.value)
    if first.code in _FINAL:
        raise _judge_error(first)
    # Verdicts that were readable are kept, and only the missing ones are asked for.
    rest = task.remainder(first.payload) if first.payload is not None else None
    if len(replies) == 1:
        return _second_turn(task, rest, first)
    if rest is None or first.payload is None:
        second = _Read(task, replies[1], quotable)
        problem = second.problem
    else:
        second = _Read(rest, replies[1], quotable)
        if second.value is not None and second.payload is not None:
            # Both parts were read, and the second holds just the numbers that the first lacked.
            return Done(task.read(task.merge(first.payload, second.payload)))
        problem = f"{first.problem}; asked again for those: {second.problem}"
    if second.value is None:
        raise _judge_error(second, problem, code=second.code if rest is None else first.code)
    return Done(second.value)


def _word(task: Task[Any], reply: RawReply) -> BaseModel:
    try:
        check_end(reply, in_a_word=True)
    except UnreadableReply as problem:
        raw = reply["content"] or reply["refusal"]
        raise JudgeError(one_line(str(problem), 600), code=problem.code, raw=raw) from None
    return read_word(reply, language_of(task))


def _second_turn(task: Task[R], rest: Task[R] | None, first: _Read[R]) -> Turn[R]:
    if rest is not None:
        return Turn(rest, render(rest))
    # No correction: the reply was not wrong, only too long.
    if first.code == "truncated":
        return Turn(task, render(task), room=2)
    said = (first.raw["content"] or "").strip()
    echo: list[Message] = [{"role": "assistant", "content": said[:_MAX_ECHO_CHARS]}] if said else []
    return Turn(task, [*render(task), *echo, correction(task, first.problem)])


class _Read(Generic[R]):
    """One reply read: ``value``, or ``code`` and ``problem`` (one line, naming the field).

    ``payload`` is the JSON object where there was one; ``quotable``, the texts that a reply may quote.
    """

    def __init__(self, task: Task[R], raw: RawReply, quotable: Sequence[str]) -> None:
        self.raw = raw
        self.payload: Mapping[str, Any] | None = None
        self.value: R | None = None
        self.code = self.problem = ""
        schema = task.reply_schema()
        try:
            self.payload = read_reply(
                raw["content"],
                finish_reason=raw["finish_reason"],
                refusal=raw["refusal"],
                thought_in=raw.get("thought_in"),
                error=raw.get("error"),
                expected=tuple(schema.get("required", ())),
                known=schema.get("properties", ()),
                quoted=quotable,
            )
            self.value = task.read(self.payload)
        except UnreadableReply as error:
            self.code, self.problem = error.code, str(error)
        except ValidationError as error:
            self.code, self.problem = "invalid_reply", _explained(error)
        except ValueError as error:
            self.problem = str(error)
            # Tasks put the code of an error before its message.
            named = re.match(r"([a-z]+(?:_[a-z]+)+): ", self.problem)
            self.code = named.group(1) if named else "invalid_reply"


def _explained(error: ValidationError) -> str:
    """Field by field what is wrong, with the value as it was sent."""
    lines = []
    # The first few are enough to correct the reply, and fit on a line.
    for problem in error.errors(include_url=False)[:4]:
        path = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "missing":
            message = "missing"
        elif problem["type"] == "value_error":
            message = problem["msg"].removeprefix("Value error, ")
        else:
            message = f"{problem['msg']}, got {shown(problem['input'])}"
        lines.append(f"{path}: {message}")
    return "; ".join(lines)


def _judge_error(read: _Read[Any], problem: str | None = None, code: str | None = None) -> JudgeError:
    raw = read.raw["content"] or read.raw["refusal"]
    message = one_line(problem or read.problem, 600)
    if raw and read.code != "refused":
        message += f"\njudge's reply: {one_line(raw, 200)}"
    return JudgeError(message, code=code or read.code, raw=raw)
