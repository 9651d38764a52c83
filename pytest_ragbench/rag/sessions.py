"""Conversations: the questions of a session are asked in their order, each once the one before has its answer.

The order follows from the questions, not from which worker runs which test: a test that needs the third answer
waits for the first two, and asks for them where no other test has. So it holds under xdist and in look-ahead, too.
"""

from __future__ import annotations

import asyncio

from pytest_ragbench.model.errors import BudgetError, EndpointError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.rag.base import Retriever


def turns_before(question: Question) -> list[Question]:
    """The earlier questions of the session, first one first."""
    turns: list[Question] = []
    while question.previous is not None:
        question = question.previous
        turns.append(question)
    return turns[::-1]


class InSessions:
    """Any retriever, asked in the order of each session; questions without a session go straight to it."""

    def __init__(self, inner: Retriever) -> None:
        self.inner = inner
        self._answered: set[int] = set()
        self._turns: dict[int, tuple[Question, asyncio.Task[RagSample]]] = {}

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def shared(self) -> bool:
        """Whether the engine keeps the replies, for all workers."""
        return getattr(self.inner, "shared", False) is True

    def __repr__(self) -> str:
        return repr(self.inner)

    async def ask(self, question: Question) -> RagSample:
        """See :class:`~pytest_ragbench.rag.Retriever`.

        Raises
        ------
        EndpointError, BudgetError
            Of this question, or of an earlier one: what comes after a lost turn is another conversation.
        """
        for turn in turns_before(question):
            # By identity: two questions of a file may have the same text.
            if id(turn) not in self._answered:
                await self._earlier(turn)
        return await (self.inner.ask(question) if question.session is None else self._turn(question))

    async def _earlier(self, turn: Question) -> None:
        try:
            await self._turn(turn)
        except (EndpointError, BudgetError) as error:
            message = f"an earlier question of session {turn.session!r} has no answer ({turn.id}): {error}"
            raise type(error)(message, code=error.code, raw=error.raw) from error

    async def _turn(self, question: Question) -> RagSample:
        if self.shared:
            sample = await self.inner.ask(question)
        else:  # nobody else keeps the answer, and a conversation can't be had twice
            _, task = self._turns.get(id(question), (None, None))
            if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
                task = asyncio.ensure_future(self.inner.ask(question))
                self._turns[id(question)] = (question, task)
            sample = await asyncio.shield(task)
        self._answered.add(id(question))
        return sample


def in_sessions(retriever: Retriever) -> InSessions:
    """The retriever, asked in order."""
    return retriever if isinstance(retriever, InSessions) else InSessions(retriever)
