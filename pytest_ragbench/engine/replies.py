"""Replies by digest: on file where there is one, in memory where there is none, or where it fails.

Whatever happens to the file, a run goes on: there is one warning, and new replies stay in memory. What could
not be written is tried again as long as that makes sense: a file that is locked or a disk that is full may be
free again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

from pytest_ragbench.engine.coordinator import Kept, Reply
from pytest_ragbench.engine.inventory import DamagedError, LockedError, PassingError, StoreError
from pytest_ragbench.engine.store import Store

_LOCKED_S = 10.0
"""Another run writes for some milliseconds; a file that is locked for longer is told of."""
_CLOSING_S = 5.0
"""To wait for a lock when the run is over."""
_AGAIN_S = 0.05
_AGAIN_FULL_S = 5.0
_CHECKPOINT = 500
"""After so many replies the store's log is taken into its file, in another thread: it waits for the disk."""


class Replies:
    """Used on the engine's loop only, except :meth:`close`."""

    def __init__(
        self,
        store: Store | None,
        run_id: str,
        loop: asyncio.AbstractEventLoop,
        warn: Callable[[str], None],
    ) -> None:
        self._store = store
        self._run = run_id
        self._loop = loop
        self._warn = warn
        self._warned = False
        self._told_of_row = False
        self._readable = self._writable = False
        self._memory: dict[str, Kept] = {}
        self._unwritten: dict[str, Reply] = {}
        self._used: set[str] = set()
        self._written = 0
        self._locked_since: float | None = None
        self._flushing: asyncio.TimerHandle | asyncio.Handle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._checkpoint: asyncio.Future[None] | None = None

    async def ready(self) -> None:
        """Open the file, once; before the first look at it."""
        if self._opening is None:
            self._opening = self._loop.create_task(self._open())
        # Shielded: a claim that is cancelled must not end the opening for all.
        if not self._opening.done():
            await asyncio.shield(self._opening)

    def get(self, digest: str) -> Kept | None:
        kept = self._memory.get(digest)
        if kept is not None or self._store is None or not self._readable:
            return kept
        try:
            kept = self._store.find(digest)
        except StoreError as error:
            self._failed(error)
            return None
        if kept is not None:
            self._used.add(digest)
        elif self._store.met_damage:
            self._tell_of_row()
        return kept

    def put(self, reply: Reply) -> None:
        """It is on file at the end of the loop's turn, together with all others of that turn."""
        # Readable at once, also before the file has it.
        self._memory[reply.digest] = reply.kept
        if self._writable:
            self._unwritten[reply.digest] = reply
            # One transaction for a turn of the loop: SQLite's cost is by transaction, not by row.
            if self._flushing is None:
                self._flushing = self._loop.call_soon(self._flush)

    def discard(self, digest: str, text: str) -> None:
        """Forget a payload that can't be read, unless it has been replaced."""
        kept = self._memory.get(digest)
        if kept is not None and kept.text == text:
            del self._memory[digest]
            self._unwritten.pop(digest, None)
        if self._store is not None and self._writable:
            with suppress(StoreError):  # then the reply that comes next replaces it
                self._store.discard(digest, text)

    def close(self) -> None:
        """Write what is left, note what was of use, delete what is old."""
        if self._store is None:
            return
        if self._writable:
            # The loop is done with; only now may a write wait for another run.
            self._store.wait_for_locks(_CLOSING_S)
            self._flush()
            with suppress(StoreError):
                self._store.note_use(self._used, time.time())
                self._store.tidy(self._run)
        self._store.close()

    async def _open(self) -> None:
        if self._store is None:
            return
        try:
            await asyncio.to_thread(self._store.open)
            self._readable = self._writable = True
        except StoreError as error:
            self._readable = not isinstance(error, DamagedError) and await asyncio.to_thread(
                self._store.can_be_read
            )
            self._writable = isinstance(error, PassingError)
            self._failed(error)

    def _flush(self) -> None:
        """Write all that has gathered, in one transaction that waits for nobody."""
        self._flushing = None
        if self._store is None or not self._writable or not self._unwritten:
            return
        batch = list(self._unwritten.values())
        try:
            self._store.put(batch)
        except StoreError as error:
            self._failed(error)
            return
        self._locked_since = None
        self._unwritten.clear()
        # The file has them; what it can't give back stays in memory.
        if self._readable:
            for reply in batch:
                self._memory.pop(reply.digest, None)
        self._written += len(batch)
        if self._written >= _CHECKPOINT:
            self._written = 0
            self._checkpoint = self._loop.run_in_executor(None, self._store.checkpoint)

    def _failed(self, error: StoreError) -> None:
        """What can be put right is; else new replies stay in memory."""
        assert self._store is not None
        if isinstance(error, DamagedError) and (aside := self._store.set_aside(error)) is not None:
            self._tell(f"the store is damaged ({error}); moved to {aside}, and a new one is begun")
            self._readable = self._writable = True
            return
        passing = isinstance(error, PassingError)
        self._writable = self._writable and passing
        self._readable = self._readable and not isinstance(error, DamagedError)
        # They would pile up for a file that can't be written again in this run.
        if not passing:
            self._unwritten.clear()
        elif self._flushing is None and not self._loop.is_closed():
            again = _AGAIN_S if isinstance(error, LockedError) else _AGAIN_FULL_S
            self._flushing = self._loop.call_later(again, self._flush)
        if isinstance(error, LockedError):
            now = time.monotonic()
            self._locked_since = now if self._locked_since is None else self._locked_since
            # Another run writes for milliseconds at a time: not worth a warning.
            if now - self._locked_since < _LOCKED_S:
                return
        until = " until it can be" if passing else ""
        self._tell(f"the store can't be used: {error}; new replies are kept for this process only{until}")

    def _tell_of_row(self) -> None:
        """Once: the run is none the worse, but pays for what it thought it had."""
        if not self._told_of_row and self._store is not None:
            self._told_of_row = True
            self._warn(
                f"{self._store.name}: a reply in the store is damaged and is asked for again; so are others like it"
            )

    def _tell(self, message: str) -> None:
        if not self._warned and self._store is not None:
            self._warned = True
            self._warn(f"{self._store.name}: {message}")
