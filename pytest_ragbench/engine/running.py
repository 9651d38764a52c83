"""What an engine has while it runs: its loop, and the fetches that are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from pytest_ragbench.engine.board import Budget
from pytest_ragbench.engine.calls import Adapters
from pytest_ragbench.engine.lookahead import Advances
from pytest_ragbench.engine.loop import LoopThread
from pytest_ragbench.engine.meeting import Meeting
from pytest_ragbench.engine.requests import Obtained
from pytest_ragbench.engine.sending import CountingSender, Provider
from pytest_ragbench.engine.shelf import Shelf

T = TypeVar("T")
AsyncCallable = Callable[[], Awaitable[Any]]


class Flight:
    """A fetch under way, and how many wait for it."""

    def __init__(self, task: asyncio.Task[Obtained[Any]], ahead: bool) -> None:
        self._task = task
        self._waiters = 0
        self.abandoned = False
        self.ahead = ahead
        """Launched by a guess, and no test has joined yet."""

    async def join(self) -> Obtained[Any]:
        """Wait with the others; the last to leave early ends the fetch."""
        self._waiters += 1
        try:
            return await asyncio.shield(self._task)
        finally:
            self._waiters -= 1
            if not self._waiters:
                self.abandoned = True
                self._task.cancel()


class Running:
    """What an engine has while it runs, in one process."""

    def __init__(
        self, thread: LoopThread, shelf: Shelf, meeting: Meeting, budget: Budget, adapters: Adapters
    ) -> None:
        self.thread = thread
        self.shelf = shelf
        self.meeting = meeting
        self.budget = budget
        self.adapters = adapters
        self.providers: dict[str, Provider] = {}
        self.flights: dict[str, Flight] = {}
        self.sending: dict[str, CountingSender] = {}
        self.advances = Advances()
        self.closers: list[AsyncCallable] = []

    def guessed(self, digest: str) -> bool:
        """Whether a fetch under way is nobody's but a guess's."""
        flight = self.flights.get(digest)
        return flight is not None and flight.ahead

    def launch(self, digest: str, work: Coroutine[Any, Any, Obtained[Any]], ahead: bool) -> Flight:
        task = self.thread.loop.create_task(work)
        flight = self.flights[digest] = Flight(task, ahead)

        def landed(task: asyncio.Task[Obtained[Any]]) -> None:
            if self.flights.get(digest) is flight:
                del self.flights[digest]
            if flight.ahead:
                self.advances.note(digest, task)
            if not task.cancelled():
                task.exception()  # seen, also where all who waited have left

        task.add_done_callback(landed)
        return flight

    async def land(self) -> None:
        out = [self.flights[digest] for digest, sender in self.sending.items() if sender.out]
        await asyncio.gather(*(flight.join() for flight in out), return_exceptions=True)

    def close(self) -> None:
        with suppress(Exception):  # a client that won't close must not keep the run from ending
            asyncio.run_coroutine_threadsafe(self._wind_up(), self.thread.loop).result(timeout=10)
        self.thread.stop()
        self.shelf.close()
        self.meeting.close()

    async def _wind_up(self) -> None:
        """End the fetches first: they use the clients."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        for close in reversed(self.closers):
            with suppress(Exception):
                await asyncio.wait_for(_awaited(close), timeout=5)


async def _awaited(close: AsyncCallable) -> None:
    await close()
