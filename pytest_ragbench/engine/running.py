"""What an engine has while it runs: its loop, its coordinator, and the fetches that are under way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from pytest_ragbench.engine.calls import Adapters
from pytest_ragbench.engine.coordinator import Coordinator
from pytest_ragbench.engine.lookahead import Obtained, Prefetched
from pytest_ragbench.engine.loop import LoopThread
from pytest_ragbench.engine.sending import CountingSender
from pytest_ragbench.engine.server import Server
from pytest_ragbench.engine.wire import LINK

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
        self.give_up: Callable[[], None] = lambda: None
        """Called when the last waiter leaves early: others need not wait until the fetch has ended."""

    async def join(self) -> Obtained[Any]:
        """Wait with the others; the last to leave early ends the fetch."""
        self._waiters += 1
        try:
            return await asyncio.shield(self._task)
        finally:
            self._waiters -= 1
            if not self._waiters:
                self.abandon()

    def abandon(self) -> None:
        """End the fetch, and let others have it."""
        self.abandoned = True
        if not self._task.done():
            self.give_up()
            self._task.cancel()


class Running:
    """What an engine has while it runs, in one process."""

    def __init__(self, thread: LoopThread, coordinator: Coordinator, adapters: Adapters) -> None:
        self.thread = thread
        self.coordinator = coordinator
        self.adapters = adapters
        self.server: Server | None = None
        self.flights: dict[str, Flight] = {}
        self.sending: dict[str, CountingSender] = {}
        self.prefetched = Prefetched()
        self.closers: list[AsyncCallable] = []
        self.draining = False

    def launch(self, digest: str, work: Coroutine[Any, Any, Obtained[Any]], ahead: bool) -> Flight:
        task = self.thread.loop.create_task(work)
        flight = self.flights[digest] = Flight(task, ahead)

        def landed(task: asyncio.Task[Obtained[Any]]) -> None:
            # A flight that was abandoned may have been replaced by the next one's.
            if self.flights.get(digest) is flight:
                del self.flights[digest]
            if flight.ahead:
                self.prefetched.note(digest, task)
            if not task.cancelled():
                task.exception()  # seen, also where all who waited have left

        task.add_done_callback(landed)
        return flight

    async def drain(self) -> None:
        """Wait for the requests that are out; no guess sends another one from now on."""
        self.draining = True
        out = {digest for digest, sender in self.sending.items() if sender.out}
        for digest, flight in list(self.flights.items()):
            # One that goes out while the others are waited for would be cut off on its way, and asked again elsewhere.
            if flight.ahead and digest not in out:
                flight.abandon()
        landing = [self.flights[digest].join() for digest in out]
        await asyncio.gather(*landing, return_exceptions=True)

    def close(self) -> None:
        with suppress(Exception):  # a client that won't close must not keep the run from ending
            asyncio.run_coroutine_threadsafe(self._wind_up(), self.thread.loop).result(timeout=20)
        self.thread.stop()

    async def _wind_up(self) -> None:
        """End the fetches first: they use the clients, and tell the coordinator."""
        if self.server is not None:
            await self.server.close()
        # Tasks that hold a connection end last: the others still have to say what became of their calls.
        links = {task for task in asyncio.all_tasks() if task.get_name() == LINK}
        await _cancelled(asyncio.all_tasks() - links - {asyncio.current_task()})
        for close in reversed(self.closers):
            with suppress(Exception):
                await asyncio.wait_for(_awaited(close), timeout=5)
        with suppress(Exception):
            await asyncio.wait_for(self.coordinator.close(), timeout=10)
        await _cancelled(asyncio.all_tasks() - {asyncio.current_task()})


async def _cancelled(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    ending = [task for task in tasks if task is not None]
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending, timeout=5)


async def _awaited(close: AsyncCallable) -> None:
    await close()
