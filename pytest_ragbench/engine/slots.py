"""Call slots: how many requests a provider gets at a time."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Collection, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Slots(Protocol):
    """Hands out call slots. Used on the engine's loop only.

    ``limit`` is what the provider allows at this moment; it may differ from call to call.
    """

    def slot(self, provider: str, limit: int, urgent: bool = True) -> AbstractAsyncContextManager[None]:
        """Hold one of the provider's slots; what is not urgent (a guess) waits behind what is."""
        ...

    def resize(self, provider: str, limit: int) -> None:
        """What the provider allows has changed; those who wait here feel it at once."""
        ...

    async def firsts(self, numbers: Collection[int]) -> set[int]:
        """Those about which this process, of all of the run that live, has been the first to ask so."""
        ...

    def close(self) -> None:
        """Give back what is held."""
        ...


class LocalSlots:
    """Slots of this process alone; waiters are served in the order of their coming."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def slot(self, provider: str, limit: int, urgent: bool = True) -> AsyncIterator[None]:
        queue = self._queues.setdefault(provider, _Queue())
        queue.limit = limit
        await queue.enter(urgent)
        try:
            yield
        finally:
            queue.leave()

    def resize(self, provider: str, limit: int) -> None:
        queue = self._queues.get(provider)
        if queue is not None and queue.limit != limit:
            queue.limit = limit
            queue.serve()

    async def firsts(self, numbers: Collection[int]) -> set[int]:
        return set(numbers)

    def close(self) -> None:
        self._queues.clear()


class Line(Generic[T]):
    """Those who wait, in the order of their coming; the urgent ones before the others."""

    def __init__(self) -> None:
        self._urgent: deque[asyncio.Future[T]] = deque()
        self._others: deque[asyncio.Future[T]] = deque()

    def __bool__(self) -> bool:
        return bool(self._urgent or self._others)

    def __len__(self) -> int:
        return sum(not turn.done() for queue in (self._urgent, self._others) for turn in queue)

    def join(self, urgent: bool) -> asyncio.Future[T]:
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        (self._urgent if urgent else self._others).append(turn)
        return turn

    def first(self) -> asyncio.Future[T] | None:
        """The first who still waits. It stays in line until it is served (its future is done)."""
        for queue in (self._urgent, self._others):
            while queue:
                if not queue[0].done():
                    return queue[0]
                queue.popleft()
        return None


class _Queue:
    """A semaphore whose limit may change while it is held."""

    def __init__(self) -> None:
        self.limit = 1
        self._held = 0
        self._line = Line[None]()

    async def enter(self, urgent: bool) -> None:
        turn = self._line.join(urgent)
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
        while self._held < self.limit and (turn := self._line.first()) is not None:
            self._held += 1
            turn.set_result(None)


class SharedPool(ABC, Generic[T]):
    """The slots of one provider of which other processes take some, too.

    A slot that comes back goes to the next waiter here, unless another process shows that it has to
    wait: then it is put down for whoever looks first, and each takes but few at a look.
    """

    tick: float
    """Mean seconds between looks for a slot that another process has given back."""

    def __init__(self) -> None:
        self.limit = 1
        self._line = Line[T]()
        self._looking: asyncio.Task[None] | None = None

    async def enter(self, urgent: bool) -> T:
        turn = self._line.join(urgent)
        if self._looking is None or self._looking.done():
            self._looking = self._start(self._look())
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was ours already: pass it on
                self.leave(turn.result())
            raise

    def leave(self, slot: T) -> None:
        turn = self._line.first()
        if turn is None or self._is_over(slot) or self._others_wait():
            self._put_down(slot)
        else:
            turn.set_result(slot)

    async def _look(self) -> None:
        while (waiting := len(self._line)) > 0:
            share = max(1, self.limit // 16) if self._others_wait() else waiting
            taken = await self._take(min(waiting, share), waiting)
            for slot in taken:
                if (turn := self._line.first()) is not None:
                    turn.set_result(slot)
                else:
                    self._put_down(slot)  # whoever wanted it has gone
            if self._line.first() is not None and len(taken) < waiting:
                await asyncio.sleep(self.tick * random.uniform(0.5, 1.5))  # noqa: S311 - so that none is always first
        self._nobody_waits()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)

    @abstractmethod
    async def _take(self, wanted: int, waiting: int) -> Collection[T]:
        """Up to ``wanted`` slots, and a sign for the others that so many wait here."""

    @abstractmethod
    def _put_down(self, slot: T) -> None:
        """For others to take."""

    @abstractmethod
    def _is_over(self, slot: T) -> bool:
        """Whether the limit has come down below what is held with this slot."""

    @abstractmethod
    def _others_wait(self) -> bool: ...

    def _nobody_waits(self) -> None:
        """The sign may be taken down."""
