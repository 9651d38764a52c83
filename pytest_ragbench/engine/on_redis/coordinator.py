"""The coordinator of several hosts: replies, claims, slots, counters and look-ahead in a Redis server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from pytest_ragbench.engine.budget import Budget, Caps
from pytest_ragbench.engine.coordinator import Attempt, Event, Failure, Kept, Outcome, Permit, Reply
from pytest_ragbench.engine.inventory import StoreError
from pytest_ragbench.engine.local import LocalCoordinator, count, hosted
from pytest_ragbench.engine.on_redis.counters import RedisCounters
from pytest_ragbench.engine.on_redis.link import Script, Value
from pytest_ragbench.engine.on_redis.session import KEPT_MS, Session
from pytest_ragbench.engine.on_redis.slots import RedisSlots
from pytest_ragbench.engine.on_redis.store import LEASE_S, RedisInventory, ReplyScripts, ms
from pytest_ragbench.engine.permits import Clock, Permits, Sleep
from pytest_ragbench.engine.prices import Prices
from pytest_ragbench.engine.recording import Recorder
from pytest_ragbench.engine.usage import UsageSums
from pytest_ragbench.model.redis_url import Address

_LOOK_S = 0.02
"""Between looks at whether somebody else's call has come to its end."""
_CHECK_S = 0.5
"""Between looks at whether those waited for still live."""
_MANY_USED = 1000


class RedisCoordinator:
    """As every :class:`~pytest_ragbench.engine.coordinator.Coordinator`.

    What this process' own callers share is settled here first, so that the server is asked once for them all.
    When the server is lost, that goes on, with replies in memory.
    """

    def __init__(
        self,
        place: str,
        run_id: str,
        session: str,
        loop: asyncio.AbstractEventLoop,
        *,
        caps: Caps,
        prices: Prices,
        usage: UsageSums,
        recorder: Recorder | None,
        warn: Callable[[str], None],
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self.shared = True
        address = Address.parse(place)
        self._session = Session(address, run_id, loop, warn)
        self._scripts = ReplyScripts(self._session.keys, self._session.token)
        self._inventory = RedisInventory(address)
        self._counters = RedisCounters(self._session)
        self._slots = RedisSlots(self._session, self._counters)
        budget = Budget(caps, self._counters)
        self.permits = Permits(self._slots, self._counters, budget, prices, usage, sleep=sleep, clock=clock)
        self._here = LocalCoordinator(
            None, run_id, loop, caps=caps, prices=prices, usage=usage, recorder=None, warn=warn
        )
        self._run = run_id
        self._tests_key = self._session.key("tests", session)
        self._loop = loop
        self._prices = prices
        self._usage = usage
        self._recorder = recorder
        self._used: set[str] = set()
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._watcher: asyncio.Task[None] | None = None

    def stored(self, digest: str) -> Kept | None:
        return None

    async def claim(
        self, digest: str, *, ahead: bool, own: bool = False, unreadable: str | None = None
    ) -> Kept | Failure | None:
        # Callers of this process meet here first: one question to the server for all of them.
        found = await self._here.claim(digest, ahead=ahead, own=own, unreadable=unreadable)
        if found is not None:
            return found
        try:
            found = await self._claim_there(digest, ahead, own, unreadable)
        except StoreError:
            found = await self._still_readable(digest)
        except BaseException:
            self._here.publish(digest, None)
            self._session.soon(self._scripts.release(digest))
            raise
        if found is not None:
            self._here.publish(digest, None)
        return found

    async def _claim_there(
        self, digest: str, ahead: bool, own: bool, unreadable: str | None
    ) -> Kept | Failure | None:
        do, scripts = self._session.do, self._scripts
        if unreadable is not None:
            await do(scripts.discard(digest, unreadable))
        while not isinstance(claimed := await do(scripts.claim(digest)), Kept):
            if claimed is True:
                return await self._claimed(digest, ahead, own)
            await self._change(digest)
        self._note_use(digest)
        if claimed.paid_by == self._run:
            return claimed._replace(yours=ahead or await self.take(digest))
        return claimed

    async def _claimed(self, digest: str, ahead: bool, own: bool) -> Failure | None:
        """It is ours, unless a guess has come to grief over it."""
        text = await self._session.do(Script("failure", [self._failed_key(digest)], [int(not ahead)]))
        if text is not None:
            self._session.soon(self._scripts.release(digest))
            return Failure(*json.loads(text))
        if own or not ahead:
            self._session.soon(Script("take_mark", [self._paid_key], [digest, KEPT_MS]))
        return None

    async def _still_readable(self, digest: str) -> Kept | None:
        """A server that is full takes nothing more, but what is in it is there."""
        if not self._session.full:
            return None
        try:
            return await asyncio.to_thread(self._inventory.find, digest)
        except StoreError:
            return None

    def publish(self, digest: str, outcome: Reply | Failure | None) -> None:
        if self._session.lost:
            self._here.publish(digest, outcome if isinstance(outcome, Reply) else None)
        else:
            self._session.start(self._publish(digest, outcome))

    async def _publish(self, digest: str, outcome: Reply | Failure | None) -> None:
        kept: Reply | None = None
        try:
            if isinstance(outcome, Reply):
                await self._session.do(self._scripts.put(outcome))
            else:
                if outcome is not None:
                    text = json.dumps(outcome)
                    await self._session.do(
                        Script("leave_failure", [self._failed_key(digest)], [text, KEPT_MS])
                    )
                # Nothing was paid: whoever asks next is the first again.
                self._session.soon(Script("untake", [self._paid_key], [digest]))
                await self._session.do(self._scripts.release(digest))
        except StoreError:
            kept = outcome if isinstance(outcome, Reply) else None
        self._here.publish(digest, kept)

    async def enter(self, attempt: Attempt) -> Permit:
        return await self.permits.enter(attempt)

    async def leave(self, permit: Permit, outcome: Outcome) -> float:
        return self.permits.leave(permit, outcome)

    async def take(self, digest: str) -> bool:
        try:
            await self._session.do(Script("failure", [self._failed_key(digest)], [1]))
            return bool(await self._session.do(Script("take_mark", [self._paid_key], [digest, KEPT_MS])))
        except StoreError:
            return await self._here.take(digest)

    async def claim_tests(self, numbers: Collection[int]) -> set[int]:
        session = self._session
        values: list[Value] = [session.token, ms(LEASE_S), KEPT_MS, session.alive_keys, *numbers]
        try:
            return set(await session.do(Script("claim_tests", [self._tests_key, session.own_key], values)))
        except StoreError:
            return set()

    def note(self, event: Event) -> None:
        count(event, self._usage, self._prices, self._recorder)

    async def host(self, name: str, arguments: list[Any]) -> Any:
        return await hosted(name, arguments)

    async def close(self) -> None:
        session = self._session
        if self._used:
            session.soon(self._scripts.used(self._used, time.time()))
        session.soon(
            Script("leave", [session.own_key, session.keys("changes"), *self._slots.keys()], [session.token])
        )
        session.close()
        self._inventory.close()

    # Waiting for other hosts

    async def _change(self, digest: str) -> None:
        """Wait until the reply that another host fetches is there, or until it has given up."""
        # One future for all of this process that wait for the same reply.
        change = self._waiting.setdefault(digest, self._loop.create_future())
        if self._watcher is None or self._watcher.done():
            self._watcher = self._session.start(self._watch())
        # Shared with others, so one who leaves must not cancel it.
        await asyncio.shield(change)

    async def _watch(self) -> None:
        """One look for all who wait in this process."""
        seen, checked = "", 0.0
        while self._waiting:
            digests: Sequence[str] = list(self._waiting)
            if time.monotonic() - checked > _CHECK_S:  # leases run out without a change
                seen, checked = "", time.monotonic()
            try:
                changes, *over = await self._session.do(self._scripts.look(digests, seen))
                seen = changes.decode()
            except StoreError:  # the claim, which comes next, finds out what is wrong
                over = [1] * len(digests)
            for digest, is_over in zip(digests, over, strict=False):
                if is_over and (change := self._waiting.pop(digest, None)) is not None:
                    change.set_result(None)
            await asyncio.sleep(_LOOK_S)

    def _note_use(self, digest: str) -> None:
        # Gathered: a write for each reply that was read would double the traffic.
        self._used.add(digest)
        if len(self._used) >= _MANY_USED:
            used, self._used = self._used, set()
            self._session.soon(self._scripts.used(used, time.time()))

    @property
    def _paid_key(self) -> str:
        return self._session.key("paid")

    def _failed_key(self, digest: str) -> str:
        return self._session.key("failed", digest)
