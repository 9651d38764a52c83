"""One thread that talks to the server, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Any

from pytest_ragbench.engine.on_redis.link import Link, RowChange, Script

_BATCH = 200
"""Operations that travel together at most."""


Op = Script | RowChange
_Job = tuple[Op, asyncio.Future[Any] | None]


class Writer:
    """Takes operations from the event loop; those that have gathered travel together."""

    def __init__(self, link: Link, loop: asyncio.AbstractEventLoop) -> None:
        self._link = link
        self._loop = loop
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="ragbench-redis", daemon=True)
        self._thread.start()

    async def do(self, op: Op) -> Any:
        """The operation's result, when it is done.

        Raises
        ------
        StoreError
            Where the server can't be reached.
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
            # Wait for the first, then take what has gathered: a round trip serves them all.
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
            results = self._link.write([op for op, _ in jobs])
        except Exception as error:
            self._hand_back([(done, None, error) for _, done in jobs])
        else:
            self._hand_back(
                [
                    (done, result, result if isinstance(result, Exception) else None)
                    for (_, done), result in zip(jobs, results, strict=True)
                ]
            )

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
