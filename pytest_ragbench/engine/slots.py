"""Call slots: how many requests a provider gets at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Slots(Protocol):
    """Hands out call slots. Used on the engine's loop only.

    ``limit`` is what the provider allows at this moment; it may differ from call to call.
    """

    async def enter(self, provider: str, limit: int, urgent: bool) -> None:
        """Wait for one of the provider's slots; what is not urgent (a guess) waits behind what is."""
        ...

    def leave(self, provider: str) -> None:
        """Give one back."""
        ...

    def resize(self, provider: str, limit: int) -> None:
        """What the provider allows has changed; those who wait here feel it at once."""
        ...


class WaitQueue(Generic[T]):
    """Those who wait, in the order of their coming; the urgent ones before the others."""

    def __init__(self) -> None:
        self._urgent: deque[asyncio.Future[T]] = deque()
        self._others: deque[asyncio.Future[T]] = deque()

    def __len__(self) -> int:
        return sum(not turn.done() for queue in (self._urgent, self._others) for turn in queue)

    def join(self, urgent: bool) -> asyncio.Future[T]:
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._others).append(turn)
        return turn

    def first(self) -> asyncio.Future[T] | None:
        """The first who still waits. It stays in the queue until it is served (its future is done)."""
        for queue in (self._urgent, self._others):
            # Those who left stay in the deque until they reach its front: removing them there would cost a search.
            while queue:
                if not queue[0].done():
                    return queue[0]
                queue.popleft()
        return None


class LocalSlots:
    """Slots handed out by this process alone."""

    def __init__(self) -> None:
        self._pools: dict[str, _Pool] = {}

    async def enter(self, provider: str, limit: int, urgent: bool) -> None:
        pool = self._pools.setdefault(provider, _Pool())
        pool.limit = limit
        await pool.enter(urgent)

    def leave(self, provider: str) -> None:
        self._pools[provider].leave()

    def resize(self, provider: str, limit: int) -> None:
        pool = self._pools.get(provider)
        if pool is not None and pool.limit != limit:
            pool.limit = limit
            pool.serve()


class _Pool:
    """A semaphore whose limit may change while it is held."""

    def __init__(self) -> None:
        self.limit = 1
        self._held = 0
        self._waiting = WaitQueue[None]()

    async def enter(self, urgent: bool) -> None:
        # Nobody overtakes: where others wait, so does the newcomer.
        if self._held < self.limit and self._waiting.first() is None:
            self._held += 1
            return
        turn = self._waiting.join(urgent)
        self.serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was ours already: pass it on
                self.leave()
            raise

    def leave(self) -> None:
        self._held -= 1
        self.serve()

    def serve(self) -> None:
        while self._held < self.limit and (turn := self._waiting.first()) is not None:
            self._held += 1
            turn.set_result(None)
