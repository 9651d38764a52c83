"""The writer: one thread that writes to the store; the event loop never waits for a disk or a lock."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from pytest_ragbench.engine.backend import LockedError, Op, StoreError

_BATCH = 200
"""Operations in one transaction at most: others wait for the file meanwhile."""


class Target(Protocol):
    """What a writer writes to."""

    def write(self, ops: Sequence[Op]) -> list[Any]:
        """Do the operations in order. A result may be an exception: that operation alone failed."""
        ...


_Job = tuple[Op, asyncio.Future[Any] | None]


class Writer:
    """Takes operations from the event loop; those that have gathered share one transaction.

    ``repair`` is called in the writer's thread with the store's error; it returns True where the
    transaction may be tried once more.
    """

    def __init__(
        self, store: Target, loop: asyncio.AbstractEventLoop, repair: Callable[[StoreError], bool]
    ) -> None:
        self._store = store
        self._loop = loop
        self._repair = repair
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ragbench-store", daemon=True)
        self._thread.start()

    async def do(self, op: Op) -> Any:
        """The operation's result, when it is on file.

        Raises
        ------
        StoreError
            Where the file can't be written.
        """
        done: asyncio.Future[Any] = self._loop.create_future()
        self._jobs.put((op, done))
        return await done

    def soon(self, op: Op) -> None:
        """Do it some time; if it can't be done, that does not matter."""
        self._jobs.put((op, None))

    def close(self, *, wait: bool = True) -> None:
        """Do what is waiting, and end the thread."""
        self._jobs.put(None)
        if wait:
            self._thread.join(timeout=60)

    def _run(self) -> None:
        open_ = True
        while open_:
            jobs: list[_Job] = []
            job = self._jobs.get()
            while True:
                if job is None:
                    open_ = False
                    break
                jobs.append(job)
                if len(jobs) == _BATCH:
                    break
                try:
                    job = self._jobs.get_nowait()
                except queue.Empty:
                    break
            if jobs:
                self._write(jobs)

    def _write(self, jobs: list[_Job]) -> None:
        try:
            results = self._twice([op for op, _ in jobs])
        except Exception as error:
            if isinstance(error, LockedError):
                jobs = jobs + self._waiting()  # they would wait as long, one batch after the other
            self._hand_back([(done, None, error) for _, done in jobs])
        else:
            self._hand_back(
                [
                    (done, result, result if isinstance(result, Exception) else None)
                    for (_, done), result in zip(jobs, results, strict=True)
                ]
            )

    def _waiting(self) -> list[_Job]:
        found: list[_Job] = []
        with suppress(queue.Empty):
            while (job := self._jobs.get_nowait()) is not None:
                found.append(job)
            self._jobs.put(None)  # the end is still to come
        return found

    def _twice(self, ops: list[Op]) -> list[Any]:
        try:
            return self._store.write(ops)
        except StoreError as error:
            if not self._repair(error):
                raise
        return self._store.write(ops)

    def _hand_back(self, results: list[tuple[asyncio.Future[Any] | None, Any, Exception | None]]) -> None:
        def deliver() -> None:
            for done, result, error in results:
                if done is None or done.done():
                    continue
                if error is None:
                    done.set_result(result)
                else:
                    done.set_exception(error)

        try:
            self._loop.call_soon_threadsafe(deliver)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return
