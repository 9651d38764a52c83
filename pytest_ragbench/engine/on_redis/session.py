"""A process of a run at the Redis server: its token, its lease, and operations until the server is lost."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from pytest_ragbench.engine.inventory import DAY, PassingError, StoreError
from pytest_ragbench.engine.on_redis.keys import Keys
from pytest_ragbench.engine.on_redis.link import Link, RowChange, Script
from pytest_ragbench.engine.on_redis.store import LEASE_S, ms
from pytest_ragbench.engine.on_redis.writer import Writer
from pytest_ragbench.engine.wire import LINK
from pytest_ragbench.model.redis_url import Address

KEPT_S = DAY
"""That what belongs to a run alone is kept."""
KEPT_MS = ms(KEPT_S)


class Session:
    """Used on the engine's loop. All who use the same server, prefix and run id meet there.

    When the server is lost, there is one warning, and this process goes on by itself.
    """

    def __init__(
        self, address: Address, run_id: str, loop: asyncio.AbstractEventLoop, warn: Callable[[str], None]
    ) -> None:
        """Nothing is opened yet."""
        self.lost = False
        self.full = False
        self.token = uuid.uuid4().hex
        self.keys = Keys(address.prefix)
        self.link = Link(address)
        self._run = run_id
        self._loop = loop
        self._warn = warn
        self._writer = Writer(self.link, loop)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._renewing = False

    def key(self, *parts: str) -> str:
        """Of what belongs to this run alone."""
        return self.keys("run", self._run, *parts)

    @property
    def alive_keys(self) -> str:
        return self.keys.alive

    @property
    def own_key(self) -> str:
        return self.keys("alive", self.token)

    async def do(self, op: Script | RowChange) -> Any:
        """The operation's result.

        Raises
        ------
        StoreError
            The server is lost, or full; it has been told.
        """
        if self.lost:
            raise StoreError("lost")
        if not self._renewing:
            self._renewing = True
            self.start(self._renew())
        try:
            return await self._writer.do(op)
        except StoreError as error:
            self._give_up(error)
            raise

    def soon(self, op: Script) -> None:
        """Do it some time; if it can't be done, that does not matter."""
        if not self.lost:
            self._writer.soon(op)

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self._loop.create_task(work, name=LINK)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def close(self) -> None:
        self._writer.close()
        self.link.close()

    async def _renew(self) -> None:
        while not self.lost:
            await asyncio.sleep(LEASE_S / 3)
            self.soon(Script("renew", [self.own_key], [ms(LEASE_S)]))

    def _give_up(self, error: StoreError) -> None:
        if self.lost:
            return
        self.lost, self.full = True, isinstance(error, PassingError)
        self._writer.close(wait=False)
        read = "; what is in it can still be read" if self.full else ""
        self._warn(
            f"{self.link.address.shown}: the store can't be used: {error}{read}; new replies are kept for this "
            "process only, and call slots, rates and budget are no longer shared with others: from now on they hold "
            "for each by itself"
        )
