"""Call slots, budget, pace and failed guesses of a run in a Redis server.

When the server is lost, there is one warning, and each process goes on by itself with what it knew last.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pytest_ragbench.engine.backend import DAY, LEASE, StoreError
from pytest_ragbench.engine.board import Change
from pytest_ragbench.engine.meeting import Failure
from pytest_ragbench.engine.on_redis.keys import Keys, has_gone, who
from pytest_ragbench.engine.on_redis.link import Call, Link, RowChange, row_of
from pytest_ragbench.engine.owners import Owner
from pytest_ragbench.engine.slots import SharedPool
from pytest_ragbench.engine.writer import Writer
from pytest_ragbench.model.redis_url import Address

T = TypeVar("T")

_CHECK = 0.5
"""Seconds between looks at whether those who hold slots still live."""
_LASTS = DAY
"""Seconds that what belongs to a run alone is kept."""
_KEPT = int(_LASTS * 1000)
_LEASE = int(LEASE * 1000)


class RedisMeeting:
    """As every :class:`~pytest_ragbench.engine.meeting.Meeting`. All who use the same server, prefix and run
    id meet.
    """

    many = True

    def __init__(
        self,
        address: Address,
        run_id: str,
        session: str,
        loop: asyncio.AbstractEventLoop,
        warn: Callable[[str], None],
    ) -> None:
        """Nothing is opened yet."""
        self.lost = False
        self.owner = Owner.here()
        self._keys = Keys(address.prefix)
        self._run = run_id
        self.session = session
        self._loop = loop
        self._warn = warn
        self._link = Link(address)
        self._writer = Writer(self._link, loop, lambda error: False)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._renewing = False
        self.board = RedisBoard(self)
        self.slots = RedisSlots(self)

    def key(self, *parts: str) -> str:
        """Of what belongs to this run alone."""
        return self._keys("run", self._run, *parts)

    @property
    def alive_keys(self) -> str:
        return self._keys.alive

    @property
    def own_key(self) -> str:
        return self._keys("alive", self.owner.token)

    async def do(self, op: Call | RowChange) -> Any:
        """The operation's result.

        Raises
        ------
        StoreError
            The server is lost; it has been told.
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

    def soon(self, op: Call) -> None:
        if not self.lost:
            self._writer.soon(op)

    def start(self, work: Any) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def bury_the_dead(self, holders: list[bytes]) -> None:
        """Those of this host that are dead give up what they hold at once, not when their lease ends."""
        pairs = zip(holders[::2], holders[1::2], strict=True)
        gone = [self._keys("alive", token.decode()) for token, text in pairs if has_gone(text.decode())]
        if gone:
            await self.do(Call("bury", [*gone, self._keys("changes")]))

    async def leave_failure(self, digest: str, failure: Failure) -> None:
        try:
            text = json.dumps(failure)
            await self.do(Call("leave_failure", [self.key("failed", digest)], [text, _KEPT]))
        except StoreError:
            return

    async def failure(self, digest: str, *, take: bool) -> Failure | None:
        try:
            text = await self.do(Call("failure", [self.key("failed", digest)], [int(take)]))
        except StoreError:
            return None
        return None if text is None else Failure(*json.loads(text))

    def close(self) -> None:
        self.soon(Call("leave", [self.own_key, *self.slots.keys()], [self.owner.token]))
        self._writer.close()
        self._link.close()

    async def _renew(self) -> None:
        while not self.lost:
            await asyncio.sleep(LEASE / 3)
            self.soon(Call("renew", [self.own_key], [who(self.owner), _LEASE]))

    def _give_up(self, error: StoreError) -> None:
        if self.lost:
            return
        self.lost = True
        self._writer.close(wait=False)
        self._warn(
            f"{self._link.address.shown}: {error}; call slots, rates and budget are no longer shared with other "
            "processes: from now on they hold for each by itself"
        )


class RedisBoard:
    """Rows of numbers; those known last stand here, too, and are all there is when the server is lost."""

    def __init__(self, meeting: RedisMeeting) -> None:
        self.shift = 0.0
        self._meeting = meeting
        self._rows: dict[str, list[float]] = {}
        self._timed = False

    def get(self, name: str, column: int) -> float:
        row = self._rows.get(name)
        return 0.0 if row is None else row[column]

    async def change(self, name: str, work: Change[T]) -> T:
        try:
            result: T
            result, row = await self._meeting.do(RowChange(self.key(name), work, _LASTS))
        except StoreError:
            return work(self._row(name))
        self._rows[name] = list(row)
        return result

    def soon(self, name: str, work: Change[Any]) -> None:
        work(self._row(name))
        if not self._meeting.lost:
            self._meeting.start(self._later(name, work))

    async def take(self, digest: str) -> bool:
        try:
            return bool(
                await self._meeting.do(Call("take_mark", [self._meeting.key("paid")], [digest, _KEPT]))
            )
        except StoreError:
            return True

    def key(self, name: str) -> str:
        return self._meeting.key("row", name)

    def learn(self, name: str, packed: bytes, now: float, here: float) -> None:
        """A row as the server has it, and its time (seconds) at the moment ``here`` of this host's clock."""
        self._rows[name] = row_of(packed)
        if not self._timed:
            self._timed, self.shift = True, now - here

    def close(self) -> None:
        """The meeting is closed."""

    async def _later(self, name: str, work: Change[Any]) -> None:
        try:
            _, row = await self._meeting.do(RowChange(self.key(name), work, _LASTS))
        except StoreError:
            return
        self._rows[name] = list(row)

    def _row(self, name: str) -> list[float]:
        return self._rows.setdefault(name, row_of(None))


class RedisSlots:
    """Slots of all processes of the run."""

    def __init__(self, meeting: RedisMeeting) -> None:
        self._meeting = meeting
        self._pools: dict[str, _Pool] = {}

    @asynccontextmanager
    async def slot(self, provider: str, limit: int, urgent: bool = True) -> AsyncIterator[None]:
        pool = self._pools.get(provider)
        if pool is None:
            pool = self._pools[provider] = _Pool(provider, self._meeting)
        pool.limit = limit
        await pool.enter(urgent)
        try:
            yield
        finally:
            pool.leave(None)

    def resize(self, provider: str, limit: int) -> None:
        pool = self._pools.get(provider)
        if pool is not None:
            pool.limit = limit

    async def firsts(self, numbers: Collection[int]) -> set[int]:
        meeting = self._meeting
        call = Call(
            "firsts",
            [meeting.key("first", meeting.session), meeting.own_key],
            [meeting.owner.token, who(meeting.owner), _LEASE, _KEPT, meeting.alive_keys, *numbers],
        )
        try:
            return set(await meeting.do(call))
        except StoreError:
            return set()

    def keys(self) -> list[str]:
        return [pool.key for pool in self._pools.values()]

    def close(self) -> None:
        """The meeting gives back what is held."""


class _Pool(SharedPool[None]):
    """A slot is nothing but one of those that are counted."""

    tick = 0.02

    def __init__(self, provider: str, meeting: RedisMeeting) -> None:
        super().__init__()
        self.key = meeting.key("slots", provider)
        self._hungry = meeting.key("hungry", provider)
        self._row = f"provider {provider}"
        self._meeting = meeting
        self._held = 0
        self._others = False
        self._checked = 0.0

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._meeting.start(work)

    def _put_down(self, slot: None) -> None:
        self._held -= 1
        self._meeting.soon(Call("give_slots", [self.key], [self._meeting.owner.token, 1]))

    def _is_over(self, slot: None) -> bool:
        return self._held > self.limit

    def _others_wait(self) -> bool:
        return self._others

    async def _take(self, wanted: int, waiting: int) -> list[None]:
        granted = await self._granted(wanted, waiting)
        self._held += granted
        return [None] * granted

    async def _granted(self, wanted: int, waiting: int) -> int:
        meeting = self._meeting
        call = Call(
            "take_slots",
            [self.key, self._hungry, meeting.board.key(self._row), meeting.own_key],
            [meeting.owner.token, self._held, wanted, waiting, self.limit, meeting.alive_keys,
             who(meeting.owner), _LEASE, _KEPT],
        )  # fmt: skip
        try:
            granted, others, row, now, holders = await meeting.do(call)
            here = time.monotonic()
            meeting.board.learn(self._row, row, float(now), here)
            if not granted and here - self._checked > _CHECK:
                self._checked = here
                await meeting.bury_the_dead(holders)
        except StoreError:
            self._others = False
            return max(0, min(wanted, self.limit - self._held))
        self._others = others > 0
        return int(granted)
