"""The shelf: where the engine looks for replies and puts them, whatever state the store is in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from pytest_ragbench.engine.backend import (
    LEASE,
    Backend,
    DamagedError,
    Kept,
    LockedError,
    Op,
    Ops,
    PassingError,
    Reply,
    StoreError,
)
from pytest_ragbench.engine.owners import Owner
from pytest_ragbench.engine.recent import Recent
from pytest_ragbench.engine.writer import Writer

_MANY = 1000
"""So many replies that were of use are noted at once."""
_SOME = 100
"""After so many replies the writer gets something to do, and with it the store's log."""
_REST = 5.0
"""Seconds for which a locked store is left alone."""
_RECENT = 4_000_000
"""Bytes of replies that are remembered in case the file gets lost under way."""


class Shelf:
    """Replies and claims, for one engine in one process.

    With a store they are shared with other processes; without one, or when it fails, they are kept in
    memory for this process. Used on the engine's loop only, except :meth:`close`.
    """

    def __init__(
        self,
        store: Backend | None,
        run_id: str,
        loop: asyncio.AbstractEventLoop,
        warn: Callable[[str], None],
    ) -> None:
        self._run = run_id
        self._loop = loop
        self._warn = warn
        self._warned = False
        self._readable = False
        self._owner = Owner.here()
        self._memory: dict[str, Kept] = {}
        self._used: set[str] = set()
        self._claims: set[str] = set()
        self._put = 0
        self._failing = False
        self._rests_until = 0.0
        self._unwritten: dict[str, Reply] = {}
        self._recent = Recent(_RECENT)
        self._renewals = 0
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._store = store
        self._writer = Writer(store, loop, self._repair) if store is not None else None

    async def shared(self) -> bool:
        """Whether other processes see what is put here."""
        await self.ready()
        return self._writer is not None and not self._failing

    async def ready(self) -> None:
        """Open the file, once; before the first look at it."""
        if self._opening is None:
            self._opening = self._loop.create_task(self._open())
        await asyncio.shield(self._opening)

    def get(self, digest: str) -> Kept | None:
        """The payload, where there is one."""
        if digest in self._memory:
            return self._memory[digest]
        if self._store is None or not self._readable or not self._store.quick:
            return None
        try:
            kept = self._store.find(digest)
        except StoreError:  # the claim, which comes next, finds out what is wrong
            self._readable = self._writer is not None
            return None
        if kept is not None:
            self._note_use(digest)
        return kept

    async def claim(self, digest: str) -> Kept | bool:
        """The payload; or True: it is for us to fetch; or False: somebody else is on it."""
        claimed: Kept | bool = True
        if self._writes:
            self._claims.add(digest)  # before it is on file: a renewal must not miss it
            if self._claimed_now(digest):
                return True
            try:
                claimed = await self._do(lambda ops: ops.claim_op(digest, self._owner, time.time()))
            except StoreError as error:
                self._give_up(error)
            except BaseException:
                self.release(digest)
                raise
            if claimed is not True:
                self._claims.discard(digest)
        if isinstance(claimed, Kept):
            self._note_use(digest)
        return claimed

    async def put(self, digest: str, kind: str, provider: str, run: str | None, kept: Kept) -> None:
        """Keep a reply; on return it is on file."""
        self._claims.discard(digest)
        now = time.time()
        reply = Reply(digest, kind, provider, run, now, now, *kept)
        if self._writes:
            try:
                if not self._put_now(reply):
                    await self._do(lambda ops: ops.put_op(reply, self._owner))
            except StoreError as error:
                self._give_up(error)
            else:
                self._failing = False
                self._recent.add(reply)
                self._catch_up()
                return
        self._memory[digest] = kept
        if self._writer is not None:
            self._unwritten[digest] = reply
        self.release(digest)

    async def discard(self, digest: str, text: str) -> None:
        """Forget a payload that can't be read."""
        self._memory.pop(digest, None)
        self._used.discard(digest)
        if self._writer is not None:
            try:
                await self._do(lambda ops: ops.discard_op(digest, text))
            except StoreError as error:
                self._give_up(error)

    def release(self, digest: str) -> None:
        """Give up a claim, so that others may try."""
        self._claims.discard(digest)
        self._soon(lambda ops: ops.release_op(digest, self._owner))

    async def changed(self, digest: str) -> None:
        """Wait until the reply that another process fetches is there, or until it has given up."""
        change: asyncio.Future[None] = self._loop.create_future()
        self._waiting.setdefault(digest, set()).add(change)
        if self._watcher is None or self._watcher.done():
            self._watcher = self._start(self._watch())
        try:
            await change
        finally:
            waiters = self._waiting.get(digest, set())
            waiters.discard(change)
            if not waiters:
                self._waiting.pop(digest, None)

    def close(self) -> None:
        """Note what was used, give up all claims, delete what is old, and close the store."""
        if self._writer is not None:
            self._tell_use()
            self._catch_up()
            self._soon(lambda ops: ops.leave_op(self._owner))
            self._writer.close()
        if self._store is not None:
            with suppress(StoreError):
                if self._writer is not None:
                    self._store.tidy(self._run)
            self._store.close()

    # On the loop

    async def _open(self) -> None:
        if self._writer is None:
            return
        try:
            await self._do(lambda ops: ops.open_op())
        except StoreError as error:
            self._give_up(error)
            self._readable = await self._can_be_read(error)
        else:
            self._readable = True
        if self._writer is not None:
            self._start(self._renew())

    async def _can_be_read(self, error: StoreError) -> bool:
        """Though it can't be written: read-only, full or locked."""
        if self._store is None or not self._store.quick or isinstance(error, DamagedError):
            return False
        try:
            await asyncio.to_thread(self._store.find, "")
        except StoreError:
            return False
        return True

    async def _renew(self) -> None:
        while self._writer is not None:
            await asyncio.sleep(LEASE / 3)
            if self._claims:
                self._soon(lambda ops: ops.renew_op(self._owner, time.time()))

    async def _watch(self) -> None:
        """One look for all who wait in this process."""
        look = (
            self._store.look(self._writer) if self._store is not None and self._writer is not None else None
        )
        poll = self._store.poll if self._store is not None else 0.0
        while self._waiting:
            try:
                ready = await look(self._waiting) if look is not None else set(self._waiting)
            except StoreError:  # the claim, which comes next, finds out what is wrong
                ready = set(self._waiting)
            for digest in ready or ():
                for change in self._waiting.pop(digest, set()):
                    if not change.done():
                        change.set_result(None)
            await asyncio.sleep(poll)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _claimed_now(self, digest: str) -> bool:
        store = self._store
        return (
            store is not None
            and self._readable
            and store.quick
            and store.claim_now(digest, self._owner, time.time())
        )

    def _put_now(self, reply: Reply) -> bool:
        """On the loop, so that not a moment lies between a reply and its being on file."""
        store = self._store
        if store is None or not self._readable or not store.quick or not store.put_now(reply, self._owner):
            return False
        self._put += 1
        if self._put % _SOME == 0:
            self._soon(lambda ops: ops.renew_op(self._owner, time.time()))
        return True

    @property
    def _writes(self) -> bool:
        return self._writer is not None and time.monotonic() >= self._rests_until

    def _catch_up(self) -> None:
        """Write what could not be written when it came, and what went with a file that is no more."""
        late, self._unwritten = list(self._unwritten.values()), {}
        renewals = self._store.renewals if self._store is not None else 0
        if renewals != self._renewals:
            self._renewals = renewals
            late += self._recent
        for reply in late:
            self._put_late(reply)

    def _put_late(self, reply: Reply) -> None:
        self._soon(lambda ops: ops.put_op(reply, self._owner))

    def _note_use(self, digest: str) -> None:
        self._used.add(digest)
        if len(self._used) >= _MANY:
            self._tell_use()

    def _tell_use(self) -> None:
        used, self._used = self._used, set()
        if used:
            self._soon(lambda ops: ops.used_op(used, time.time()))

    async def _do(self, make: Callable[[Ops], Op]) -> Any:
        if self._store is None or self._writer is None:
            raise StoreError("it is closed")
        return await self._writer.do(make(self._store.ops))

    def _soon(self, make: Callable[[Ops], Op]) -> None:
        if self._store is not None and self._writer is not None:
            self._writer.soon(make(self._store.ops))

    def _give_up(self, error: StoreError) -> None:
        """Write no more, or not now. What is on file may still be read."""
        assert self._store is not None
        self._failing, passing = True, isinstance(error, PassingError)
        until = " until it can be" if passing else ""
        self._tell(
            f"{self._store.name}: the store can't be used: {error}; "
            f"new replies are kept for this process only{until}"
        )
        if isinstance(error, LockedError):
            self._rests_until = time.monotonic() + _REST
        if passing:
            return
        if self._writer is not None:
            self._writer.close(wait=False)
        self._writer = None
        self._readable = self._readable and not isinstance(error, DamagedError)

    # In the writer's thread

    def _repair(self, error: StoreError) -> bool:
        done = self._store.mend(error) if self._store is not None else None
        if done is None or self._store is None:
            return False
        self._tell(f"{self._store.name}: {done}")
        return True

    def _tell(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(message)
