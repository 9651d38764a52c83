"""The store: raw replies and claims in one SQLite file (WAL), shared by workers and by runs."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
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
from pytest_ragbench.engine.owners import is_gone
from pytest_ragbench.engine.store_ops import (
    Op,
    claim_op,
    discard_op,
    kept_in,
    leave_op,
    prune_op,
    put_op,
    release_op,
    renew_op,
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

SCHEMA_VERSION = 3
_SCHEMA = """
CREATE TABLE replies(
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, provider TEXT NOT NULL, scope_run TEXT,
    created REAL NOT NULL, used REAL NOT NULL, size INTEGER NOT NULL, checksum TEXT NOT NULL,
    payload TEXT NOT NULL, prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0, paid_by TEXT);
CREATE TABLE claims(
    digest TEXT PRIMARY KEY, token TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
    started TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE meta(name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
"""

_STEPS = {
    1: (
        "ALTER TABLE replies ADD COLUMN prompt_tokens INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE replies ADD COLUMN completion_tokens INTEGER NOT NULL DEFAULT 0",
    ),
    2: (
        "ALTER TABLE replies ADD COLUMN seconds REAL NOT NULL DEFAULT 0",
        "ALTER TABLE replies ADD COLUMN paid_by TEXT",
    ),
}
"""From each version of the schema to the next."""


class Store:
    """One SQLite file. Thread-safe; every method may raise :class:`StoreError`.

    Two connections: readers never wait for writers in WAL mode, so :meth:`get` is quick enough for an
    event loop (some 20 µs); everything that writes belongs in another thread.
    """

    poll = 0.01
    quick = True

    def __init__(self, path: Path, *, busy: float = BUSY, reader_busy: float | None = None) -> None:
        """Nothing is opened yet. ``busy`` and ``reader_busy``: seconds to wait for a lock."""
        self.path = path
        self._reader = _Connection(path, busy, busy if reader_busy is None else reader_busy)
        self._writer = _Connection(path, busy, busy)
        self._recreated = False

    @property
    def name(self) -> str:
        return str(self.path)

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
        try:
            directory = os.open(self.path.parent, os.O_RDONLY)
        except OSError as error:
            raise StoreError(str(error)) from None
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            if damage.inode is None or _inode(self.path) != damage.inode:
                return None
            return _move_aside(self.path)
        except OSError as error:
            raise StoreError(f"damaged, and can't be moved aside: {error}") from None
        finally:
            os.close(directory)

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class _Connection:
    """A connection that is opened on first use, and anew in the process that a fork makes.

    SQLite must not be carried over a fork: locks would be lost and the file damaged. So the
    connection is closed before the process forks, and comes back where it is needed.
    """

    def __init__(self, path: Path, opening: float, busy: float) -> None:
        self._path = path
        self._opening = opening
        self._busy = busy
        self._lock = RLock()
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        _connections.add(self)

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = self._open()
                yield self._db
            except (sqlite3.Error, OSError) as error:
                raise _explained(error, self._inode) from error

    def close(self) -> None:
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                with suppress(sqlite3.Error):
                    db.close()

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._inode = _inode(self._path)
        db = sqlite3.connect(self._path, timeout=self._opening, isolation_level=None, check_same_thread=False)
        try:
            _prepare(db, self._opening)
            db.execute(f"PRAGMA busy_timeout={int(self._busy * 1000)}")
        except BaseException:
            db.close()
            raise
        return db

    def before_fork(self) -> None:
        self._lock.acquire()
        self.close()

    def after_fork(self) -> None:
        self._lock.release()

    def in_child(self) -> None:
        self._lock = RLock()


def _prepare(db: sqlite3.Connection, busy: float) -> None:
    """Pragmas and schema. Many processes may do this to a new file at once."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")
    deadline = time.monotonic() + busy
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError:  # SQLite doesn't wait here by itself
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    # In WAL mode NORMAL loses nothing when a process is killed, only when the machine is.
    db.execute("PRAGMA synchronous=NORMAL")
    if version == SCHEMA_VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    version = db.execute("PRAGMA user_version").fetchone()[0]
    _bring_up_to_date(db, version)
    db.execute("COMMIT")
    if version > SCHEMA_VERSION:
        raise StoreError(f"it was written by a newer version (schema {version}, here {SCHEMA_VERSION})")


def _bring_up_to_date(db: sqlite3.Connection, version: int) -> None:
    if version == 0:
        if db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
            raise StoreError("it is some other database")
        for statement in _SCHEMA.split(";"):
            db.execute(statement)
    else:
        for step in range(version, SCHEMA_VERSION):
            for statement in _STEPS[step]:
                db.execute(statement)
    if version < SCHEMA_VERSION:
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")


def _explained(error: sqlite3.Error | OSError, inode: int | None) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # extended codes carry the plain one below
    if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(str(error))
    damage = DamagedError(str(error))
    damage.inode = inode
    return damage


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _move_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):  # they belong to the damaged file and would damage the new one
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


_connections: weakref.WeakSet[_Connection] = weakref.WeakSet()
_held: list[_Connection] = []
"""Those that are closed while the process forks: others may be made meanwhile."""


def _before_fork() -> None:
    _held[:] = list(_connections)
    for connection in _held:
        connection.before_fork()


def _after_fork() -> None:
    for connection in _held:
        connection.after_fork()
    _held.clear()


def _in_child() -> None:
    for connection in list(_connections):
        connection.in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
