"""Call slots: how many requests a provider gets at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol


class Slots(Protocol):
    """Hands out call slots. Used on the engine's loop only.

    ``limit`` is what the provider allows at this moment; it may differ from call to call.
    """

    def slot(self, provider: str, limit: int) -> AbstractAsyncContextManager[None]:
        """Hold one of the provider's slots."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


class LocalSlots:
    """Slots of this process alone; waiters are served in the order of their coming."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def slot(self, provider: str, limit: int) -> AsyncIterator[None]:
        queue = self._queues.setdefault(provider, _Queue())
        queue.limit = limit
        await queue.enter()
        try:
            yield
        finally:
            queue.leave()

    def close(self) -> None:
        self._queues.clear()


class _Queue:
    """A semaphore whose limit may change while it is held."""

    def __init__(self) -> None:
        self.limit = 1
        self._held = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was ours already: pass it on
                self.leave()
            raise

    def leave(self) -> None:
        self._held -= 1
        self._serve()

    def _serve(self) -> None:
        while self._waiting and self._held < self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self._held += 1
                turn.set_result(None)
