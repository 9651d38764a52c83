"""What a retriever is, and asking it many questions at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from pytest_ragbench.model.errors import BudgetError, EndpointError
from pytest_ragbench.model.samples import Question, RagSample


@runtime_checkable
class Retriever(Protocol):
    """Something that answers questions: an HTTP service, a callable, a recording."""

    @property
    def name(self) -> str:
        """How headers, messages and reports call it."""
        ...

    async def ask(self, question: Question) -> RagSample:
        """The question's own columns, completed by answer, contexts and latency (seconds).

        Raises
        ------
        EndpointError
            Where the system could not be reached or its reply holds no answer.
        UsageError
            Where the configuration is wrong.
        """
        ...


async def ask_all(
    retriever: Retriever, questions: Sequence[Question]
) -> list[RagSample | EndpointError | BudgetError]:
    """Ask all questions concurrently; the engine's call slots are the limit.

    A question that gets no answer holds its error at its place, and the others go on. A
    :class:`~pytest_ragbench.model.errors.UsageError` ends it all: it would be the same for every question.
    """

    async def ask(question: Question) -> RagSample | EndpointError | BudgetError:
        try:
            return await retriever.ask(question)
        except (EndpointError, BudgetError) as error:
            return error

    tasks = [asyncio.ensure_future(ask(question)) for question in questions]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
