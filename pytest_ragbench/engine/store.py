"""The store: raw replies and claims in one SQLite file (WAL), shared by workers and by runs."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench.engine import store_ops
from pytest_ragbench.engine.backend import (
    DAY,
    LEASE,
    RUN_AGE,
    UNUSED,
    DamagedError,
    Kept,
    Look,
    Ops,
    Reply,
    StoreError,
)
from pytest_ragbench.engine.owners import Owner, is_gone
from pytest_ragbench.engine.sqlite_file import Connection, inode_of
from pytest_ragbench.engine.store_ops import (
    CLAIM,
    PUT,
    Op,
    claim_op,
    discard_op,
    kept_in,
    leave_op,
    prune_op,
    put_op,
    release_op,
    renew_op,
    row_of,
    used_op,
)

if TYPE_CHECKING:
    from pytest_ragbench.engine.writer import Writer

__all__ = [
    "DAY", "LEASE", "DamagedError", "Kept", "Op", "Reply", "Store", "StoreError",
    "claim_op", "discard_op", "leave_op", "put_op", "release_op", "renew_op", "used_op",
]  # fmt: skip

BUSY = 10.0
"""Seconds to wait for other writers before the file counts as locked."""
_CHECK = 0.25
"""Seconds between looks at whether those waited for still live."""

_AT_ONCE = (
    "PRAGMA wal_autocheckpoint=0",  # the writer's part: it may wait for the disk
    "PRAGMA temp_store=MEMORY",
    "CREATE TEMP TRIGGER had AFTER INSERT ON main.replies "
    "BEGIN DELETE FROM claims WHERE digest=NEW.digest; END",
)


class Store:
    """One SQLite file. Thread-safe; every method may raise :class:`StoreError`.

    Readers never wait for writers in WAL mode, so :meth:`get` is quick enough for an event loop (some
    20 µs). So are :meth:`claim_now` and :meth:`put_now` (some 50 µs), which leave undone what they would
    have to wait for; everything else that writes belongs in another thread.
    """

    poll = 0.01
    quick = True

    def __init__(self, path: Path, *, busy: float = BUSY, reader_busy: float | None = None) -> None:
        """Nothing is opened yet. ``busy`` and ``reader_busy``: seconds to wait for a lock."""
        self.path = path
        self._reader = Connection(path, busy, busy if reader_busy is None else reader_busy, reads=True)
        self._writer = Connection(path, busy, busy)
        self._quick = Connection(path, 0.0, 0.0, _AT_ONCE)
        self._recreated = False
        self._moved = 0

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def renewals(self) -> int:
        return self._moved + self._writer.renewals + self._quick.renewals

    @property
    def ops(self) -> Ops:
        return store_ops

    # Replies

    def get(self, digest: str) -> str | None:
        """The payload, or None where there is none, or only a damaged one."""
        kept = self.find(digest)
        return kept.text if kept is not None else None

    def find(self, digest: str) -> Kept | None:
        """As :meth:`get`, with the tokens beside the payload."""
        with self._reader.use() as db:
            return kept_in(db, digest)

    def write(self, ops: Sequence[Op]) -> list[Any]:
        """Run the operations in one transaction."""
        with self._writer.use() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                results = [op(db) for op in ops]
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite has rolled back by itself after some errors
                    db.execute("ROLLBACK")
                raise
        return results

    def claim_now(self, digest: str, owner: Owner, now: float) -> bool:
        """As every :class:`~pytest_ragbench.engine.backend.Backend`."""
        row = (digest, owner.token, owner.host, owner.pid, owner.started, now + LEASE)
        return self._at_once(CLAIM, row)

    def put_now(self, reply: Reply, owner: Owner) -> bool:
        """As every :class:`~pytest_ragbench.engine.backend.Backend`. What a process has put is not lost when
        it is killed the next moment.
        """
        return self._at_once(PUT, row_of(reply))

    def _at_once(self, statement: str, row: Sequence[Any]) -> bool:
        """One statement, a transaction by itself: each further one may cost 5 ms of waiting for the
        interpreter lock.
        """
        try:
            with self._quick.use() as db:
                return db.execute(statement, row).rowcount == 1
        except StoreError:  # somebody else writes; or what is wrong, the writer finds out
            return False

    def changes(self) -> int:
        """A number that differs where another connection has written in the meantime."""
        with self._reader.use() as db:
            version: int = db.execute("PRAGMA data_version").fetchone()[0]
        return version

    def ready(self, digests: Collection[str], now: float) -> set[str]:
        """Those that need no more waiting: stored, or claimed by nobody who lives."""
        wanted = list(digests)
        rows: list[tuple[str, str, int, str, float]] = []
        claims = "SELECT digest, host, pid, started, expires FROM claims WHERE digest IN"
        replies = "SELECT digest FROM replies WHERE digest IN"
        stored: set[str] = set()
        with self._reader.use() as db:
            for start in range(0, len(wanted), 500):
                part = wanted[start : start + 500]
                marks = f"({','.join('?' * len(part))})"
                rows += db.execute(f"{claims} {marks}", part)
                stored |= {row[0] for row in db.execute(f"{replies} {marks}", part)}
        gone = {who: is_gone(*who) for who in {row[1:4] for row in rows}}
        held = {row[0] for row in rows if row[4] > now and not gone[row[1:4]]}
        return stored | (set(wanted) - held)

    # For people: the command line and tests

    def items(self) -> Iterator[Reply]:
        """All replies, the oldest first."""
        with self._reader.use() as db:
            rows = db.execute(
                "SELECT digest, kind, provider, scope_run, created, used, payload, prompt_tokens, "
                "completion_tokens, seconds, paid_by FROM replies ORDER BY created, digest"
            ).fetchall()
        return (Reply(*row) for row in rows)

    def stats(self) -> dict[str, Any]:
        """Counts: ``replies``, ``bytes`` of payload, ``claims``, and ``by_kind`` and ``by_provider``."""
        with self._reader.use() as db:
            replies, size = db.execute("SELECT COUNT(*), COALESCE(SUM(size), 0) FROM replies").fetchone()
            claims = db.execute("SELECT COUNT(*) FROM claims").fetchone()[0]
            by_kind = dict(db.execute("SELECT kind, COUNT(*) FROM replies GROUP BY kind"))
            by_provider = dict(db.execute("SELECT provider, COUNT(*) FROM replies GROUP BY provider"))
        return {
            "replies": replies,
            "bytes": size,
            "claims": claims,
            "by_kind": by_kind,
            "by_provider": by_provider,
        }

    def mean_tokens(self, kind: str, provider: str) -> tuple[float, float] | None:
        """Prompt and completion tokens that a reply took in the mean; None where there are none to tell."""
        with self._reader.use() as db:
            prompt, completion = db.execute(
                "SELECT AVG(prompt_tokens), AVG(completion_tokens) FROM replies "
                "WHERE kind=? AND provider=? AND prompt_tokens > 0",
                (kind, provider),
            ).fetchone()
        return None if prompt is None else (prompt, completion)

    def delete(self, digests: Collection[str] | None = None) -> int:
        """Delete these replies, or all; returns how many there were."""

        def op(db: sqlite3.Connection) -> int:
            if digests is None:
                return db.execute("DELETE FROM replies").rowcount
            return sum(db.execute("DELETE FROM replies WHERE digest=?", (each,)).rowcount for each in digests)

        deleted: int = self.write([op])[0]
        return deleted

    def prune(
        self,
        *,
        run: str | None = None,
        run_age: float = RUN_AGE,
        unused: float = UNUSED,
        max_bytes: int = 500_000_000,
        now: float | None = None,
    ) -> int:
        """As every :class:`~pytest_ragbench.engine.backend.Backend`."""
        moment = time.time() if now is None else now
        deleted: int = self.write([prune_op(run, moment - run_age, moment - unused, max_bytes, moment)])[0]
        with self._writer.use() as db:
            db.execute("PRAGMA incremental_vacuum").fetchall()
        return deleted

    def look(self, writer: Writer) -> Look:
        """Here one number tells whether anything has been written; read on the event loop."""
        seen, checked = -1, 0.0

        async def look(digests: Collection[str]) -> set[str] | None:
            nonlocal seen, checked
            changes, now = self.changes(), time.monotonic()
            if changes == seen and now - checked < _CHECK:
                return None
            seen, checked = changes, now
            return self.ready(digests, time.time())

        return look

    def tidy(self, run: str) -> None:
        """Prune, once a day."""
        if self.last_pruned() < time.time() - DAY:
            self.prune(run=run)

    def mend(self, error: StoreError) -> str | None:
        """Move a damaged file aside, once."""
        if not isinstance(error, DamagedError) or self._recreated:
            return None
        self._recreated = True
        try:
            aside = self.set_aside(error)
        except StoreError:
            return None
        where = f"moved to {aside.name}" if aside else "another process has moved it aside"
        return f"the store is damaged ({error}); {where}, and a new one is begun"

    def last_pruned(self) -> float:
        with self._reader.use() as db:
            row = db.execute("SELECT value FROM meta WHERE name='pruned'").fetchone()
        return float(row[0]) if row else 0.0

    def set_aside(self, damage: DamagedError) -> Path | None:
        """Move the damaged file to the first free ``NAME.corrupt-N``; returns where.

        None where another process has moved it already. The directory is locked meanwhile, so that
        nobody moves the new file that another process has just made.
        """
        self.close()
        self._moved += 1
        try:
            directory = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise StoreError(str(error)) from None
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            if damage.inode is None or inode_of(self.path) != damage.inode:
                return None
            return _move_aside(self.path)
        except OSError as error:
            raise StoreError(f"damaged, and can't be moved aside: {error}") from None
        finally:
            os.close(directory)

    def close(self) -> None:
        for connection in (self._reader, self._writer, self._quick):
            connection.close()


def _move_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):  # they belong to the damaged file and would damage the new one
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside
