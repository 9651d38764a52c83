"""Collecting what concurrent callers ask for into few calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batches(Generic[Item, Result]):
    """Gathers items that come within ``window_s`` seconds of the first, at most ``max_items`` together.

    For use on one event loop. ``run(items)`` returns one result per item, or raises for all of them. A caller
    that is cancelled does not disturb the others.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Awaitable[Sequence[Result | Exception]]],
        *,
        max_items: int,
        window_s: float,
    ) -> None:
        self._run = run
        self._max_items = max_items
        self._window_s = window_s
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, item: Item) -> Result:
        """The result for this item, from a call shared with others."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._waiting.append((item, future))
        if len(self._waiting) >= self._max_items:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(self._window_s, self._flush)
        return await future

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Callers that were cancelled meanwhile must not be paid for.
        batch = [(item, future) for item, future in self._waiting if not future.done()]
        self._waiting = []
        if batch:
            # A task of its own: the call must outlive the caller whose item came first.
            task = asyncio.get_running_loop().create_task(self._call(batch))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _call(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._run([item for item, _ in batch])
        except BaseException as error:
            for _, future in batch:
                if not future.done():
                    if isinstance(error, asyncio.CancelledError):
                        future.cancel()
                    else:
                        future.set_exception(error)
            # A cancellation or an interrupt is also the task's own.
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), result in zip(batch, results, strict=True):
            if not future.done():
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)
