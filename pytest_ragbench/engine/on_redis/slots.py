"""Call slots that several hosts share."""

from __future__ import annotations

import asyncio
import random
import time

from pytest_ragbench.engine.inventory import StoreError
from pytest_ragbench.engine.on_redis.counters import RedisCounters
from pytest_ragbench.engine.on_redis.link import Script
from pytest_ragbench.engine.on_redis.session import KEPT_MS, Session
from pytest_ragbench.engine.on_redis.store import LEASE_S, ms
from pytest_ragbench.engine.slots import WaitQueue

_LOOK_S = 0.02
"""Mean time between looks for a slot that another host has given back."""


class RedisSlots:
    """Slots of all processes of the run."""

    def __init__(self, session: Session, counters: RedisCounters) -> None:
        self._session = session
        self._counters = counters
        self._pools: dict[str, _Pool] = {}

    async def enter(self, provider: str, limit: int, urgent: bool) -> None:
        pool = self._pools.get(provider)
        if pool is None:
            pool = self._pools[provider] = _Pool(provider, self._session, self._counters)
        pool.limit = limit
        await pool.enter(urgent)

    def leave(self, provider: str) -> None:
        self._pools[provider].leave()

    def resize(self, provider: str, limit: int) -> None:
        pool = self._pools.get(provider)
        if pool is not None:
            pool.limit = limit

    def keys(self) -> list[str]:
        return [pool.key for pool in self._pools.values()]


class _Pool:
    """The slots of one provider of which other hosts take some, too.

    A slot that comes back goes to the next waiter here, unless another host shows that it has to
    wait: then it is given back for whoever looks first, and each takes but few at a look.
    """

    def __init__(self, provider: str, session: Session, counters: RedisCounters) -> None:
        self.limit = 1
        self.key = session.key("slots", provider)
        self._waiting_key = session.key("waiting", provider)
        self._row = f"provider {provider}"
        self._session = session
        self._counters = counters
        self._queue = WaitQueue[None]()
        self._looking: asyncio.Task[None] | None = None
        self._held = 0
        self._others_wait = False

    async def enter(self, urgent: bool) -> None:
        turn = self._queue.join(urgent)
        if self._looking is None or self._looking.done():
            self._looking = self._session.start(self._look())
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was ours already: pass it on
                self.leave()
            raise

    def leave(self) -> None:
        turn = self._queue.first()
        # To the next one here without a round trip, unless the slot is somebody else's by now.
        if turn is None or self._held > self.limit or self._others_wait:
            self._give_back()
        else:
            turn.set_result(None)

    async def _look(self) -> None:
        while (waiting := len(self._queue)) > 0:
            # Small bites while others wait, or the host that looks first takes all.
            share = max(1, self.limit // 16) if self._others_wait else waiting
            granted = await self._granted(min(waiting, share), waiting)
            self._held += granted
            for _ in range(granted):
                if (turn := self._queue.first()) is not None:
                    turn.set_result(None)
                else:
                    self._give_back()  # whoever wanted it has gone
            if self._queue.first() is not None and granted < waiting:
                await asyncio.sleep(_LOOK_S * random.uniform(0.5, 1.5))  # noqa: S311 - so that none is always first

    def _give_back(self) -> None:
        self._held -= 1
        self._session.soon(Script("give_slots", [self.key], [self._session.token, 1]))

    async def _granted(self, wanted: int, waiting: int) -> int:
        session, counters = self._session, self._counters
        script = Script(
            "take_slots",
            [self.key, self._waiting_key, counters.key(self._row), session.own_key],
            [
                session.token,
                self._held,
                wanted,
                waiting,
                self.limit,
                session.alive_keys,
                ms(LEASE_S),
                KEPT_MS,
            ],
        )
        try:
            granted, others, row, now = await session.do(script)
        except StoreError:
            self._others_wait = False
            return max(0, min(wanted, self.limit - self._held))
        counters.learn(self._row, row, float(now), time.monotonic())
        self._others_wait = others > 0
        return int(granted)
