"""A second judge, asked where the first one can't be."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from pytest_ragbench.judge.base import Answered, Judge, Task, all_are, identity_of
from pytest_ragbench.model.errors import JudgeError, RagbenchError

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

R = TypeVar("R", bound=BaseModel)

_OUTAGES = ("timeout", "connection", "unavailable", "interrupted", "insufficient_quota", "not_recorded")


class FallbackJudge:
    """Asks ``first``, and ``second`` where the first one's provider is down, refuses the key, or has no quota left.

    A reply that can't be read is not an outage: it stays the first judge's error. Otherwise the two judges would
    take turns, and the scores of a run would not be comparable. Scores name who judged; the run warns where it was
    the second.
    """

    def __init__(self, first: Judge, second: Judge, engine: Engine) -> None:
        self._first = first
        self._second = second
        self._engine = engine

    @property
    def name(self) -> str:
        return self._first.name

    @property
    def identity(self) -> str:
        """Both: who of them was asked depends on outages."""
        return f"{identity_of(self._first)}, else {identity_of(self._second)}"

    @property
    def tasks(self) -> Collection[str] | None:
        return self._first.tasks

    @property
    def probabilities(self) -> bool:
        """Whether both can be asked for a word with its probability."""
        return all_are((self._first, self._second), "probabilities")

    @property
    def shared(self) -> bool:
        """Whether the replies of both are kept by the engine, for all workers."""
        return all_are((self._first, self._second), "shared")

    def __repr__(self) -> str:
        return f"<judge {self._first.name}, else {self._second.name}>"

    async def ask(self, task: Task[R]) -> Answered[R]:
        """See :class:`~pytest_ragbench.judge.base.Judge`."""
        try:
            return await self._first.ask(task)
        except JudgeError as error:
            # A fallback that can't do the task would replace a clear error by a confusing one.
            able = self._second.tasks is None or task.name in self._second.tasks
            if not (is_outage(error) and able):
                raise
            first = error
        try:
            answered = await self._second.ask(task)
        except RagbenchError as error:
            raise JudgeError(f"{first}; and the fallback: {error}", code=first.code, raw=first.raw) from None
        # Scores of two judges are not comparable, so the run says that they were mixed.
        self._engine.warn(
            f"the judge {self._first.name} could not be asked ({first.code}); {self._second.name} judged instead"
        )
        return answered


def is_outage(error: JudgeError) -> bool:
    """Whether the judge could not be asked at all, rather than sent a reply that can't be used."""
    return error.code in _OUTAGES or error.code.startswith("http_")
