"""The shelf: where the engine looks for replies and puts them, whatever state the store is in."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_ragbench.engine import store as sql
from pytest_ragbench.engine.owners import Owner
from pytest_ragbench.engine.store import DAY, LEASE, DamagedError, Kept, Reply, Store, StoreError
from pytest_ragbench.engine.writer import Writer

POLL = 0.01
"""Seconds between looks at what other processes have written (one number is read)."""
READ = 0.25
"""Seconds that a read may wait for a lock (there hardly is one in WAL mode): it holds up the loop."""
CHECK = 0.25
"""Seconds between looks at whether those waited for still live."""


class Shelf:
    """Replies and claims, for one engine in one process.

    With a store they are shared with other processes; without one, or when it fails, they are kept in
    memory for this process. Used on the engine's loop only, except :meth:`close`.
    """

    def __init__(
        self, path: Path | None, run_id: str, loop: asyncio.AbstractEventLoop, warn: Callable[[str], None]
    ) -> None:
        self._path = path
        self._run = run_id
        self._loop = loop
        self._warn = warn
        self._warned = False
        self._recreated = False
        self._readable = False
        self._owner = Owner.here()
        self._memory: dict[str, Kept] = {}
        self._used: set[str] = set()
        self._claims: set[str] = set()
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._opening: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._store = Store(path, reader_busy=READ) if path is not None else None
        self._writer = Writer(self._store, loop, self._repair) if self._store is not None else None

    @property
    def shared(self) -> bool:
        """Whether other processes will see what is put here, as far as is known."""
        return self._writer is not None

    async def ready(self) -> None:
        """Open the file, once; before the first look at it."""
        if self._opening is None:
            self._opening = self._loop.create_task(self._open())
        await asyncio.shield(self._opening)

    def get(self, digest: str) -> Kept | None:
        """The payload, where there is one."""
        if digest in self._memory:
            return self._memory[digest]
        if self._store is None or not self._readable:
            return None
        try:
            kept = self._store.find(digest)
        except StoreError:  # the claim, which comes next, finds out what is wrong
            self._readable = self._writer is not None
            return None
        if kept is not None:
            self._used.add(digest)
        return kept

    async def claim(self, digest: str) -> Kept | bool:
        """The payload; or True: it is for us to fetch; or False: somebody else is on it."""
        claimed: Kept | bool = True
        if self._writer is not None:
            self._claims.add(digest)  # before it is on file: a renewal must not miss it
            try:
                claimed = await self._writer.do(sql.claim_op(digest, self._owner, time.time()))
            except StoreError as error:
                self._give_up(error)
            except BaseException:
                self.release(digest)
                raise
            if claimed is not True:
                self._claims.discard(digest)
        if isinstance(claimed, Kept):
            self._used.add(digest)
        return claimed

    async def put(self, digest: str, kind: str, provider: str, run: str | None, kept: Kept) -> None:
        """Keep a reply; on return it is on file."""
        self._claims.discard(digest)
        if self._writer is not None:
            now = time.time()
            reply = Reply(digest, kind, provider, run, now, now, *kept)
            try:
                await self._writer.do(sql.put_op(reply, self._owner))
                return
            except StoreError as error:
                self._give_up(error)
        self._memory[digest] = kept

    async def discard(self, digest: str, text: str) -> None:
        """Forget a payload that can't be read."""
        self._memory.pop(digest, None)
        self._used.discard(digest)
        if self._writer is not None:
            try:
                await self._writer.do(sql.discard_op(digest, text))
            except StoreError as error:
                self._give_up(error)

    def release(self, digest: str) -> None:
        """Give up a claim, so that others may try."""
        self._claims.discard(digest)
        if self._writer is not None:
            self._writer.soon(sql.release_op(digest, self._owner))

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
        """Note what was used, give up all claims, prune (once a day), and close the file."""
        if self._writer is not None:
            self._writer.soon(sql.used_op(self._used, time.time()))
            self._writer.soon(sql.leave_op(self._owner))
            self._writer.close()
        if self._store is not None:
            with suppress(StoreError):
                if self._writer is not None and self._store.last_pruned() < time.time() - DAY:
                    self._store.prune(run=self._run)
            self._store.close()

    # On the loop

    async def _open(self) -> None:
        if self._writer is None:
            return
        try:
            await self._writer.do(lambda db: None)
        except StoreError as error:
            self._give_up(error)
        else:
            self._readable = True
            self._start(self._renew())

    async def _renew(self) -> None:
        while self._writer is not None:
            await asyncio.sleep(LEASE / 3)
            if self._claims and self._writer is not None:
                self._writer.soon(sql.renew_op(self._owner, time.time()))

    async def _watch(self) -> None:
        """One look for all who wait in this process."""
        seen, checked = -1, 0.0
        while self._waiting:
            try:
                ready = set(self._waiting)
                if self._store is not None:
                    changes, now = self._store.changes(), time.monotonic()
                    if changes == seen and now - checked < CHECK:
                        await asyncio.sleep(POLL)
                        continue
                    seen, checked = changes, now
                    ready = self._store.ready(self._waiting, time.time())
            except StoreError:
                pass  # the claim, which comes next, finds out what is wrong
            for digest in ready:
                for change in self._waiting.pop(digest, set()):
                    if not change.done():
                        change.set_result(None)
            await asyncio.sleep(POLL)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _give_up(self, error: StoreError) -> None:
        """Write no more. What is on file (of a full disk) may still be read."""
        self._tell(
            f"{self._path}: the store can't be used: {error}; new replies are kept for this process only"
        )
        if self._writer is not None:
            self._writer.close(wait=False)
        self._writer = None
        self._readable = self._readable and not isinstance(error, DamagedError)

    # In the writer's thread

    def _repair(self, error: StoreError) -> bool:
        if not isinstance(error, DamagedError) or self._recreated or self._store is None:
            return False
        self._recreated = True
        try:
            aside = self._store.set_aside(error)
        except StoreError:
            return False
        where = f"moved to {aside.name}" if aside else "another process has moved it aside"
        self._tell(f"{self._path}: the store is damaged ({error}); {where}, and a new one is begun")
        return True

    def _tell(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(message)
