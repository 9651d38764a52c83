"""The store: replies in one SQLite file (WAL), written by the process that owns a run, shared by runs."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

from pytest_ragbench.engine.coordinator import Kept, Reply
from pytest_ragbench.engine.inventory import (
    DAY,
    MOST_BYTES,
    RUN_AGE,
    UNUSED,
    DamagedError,
    LockedError,
    PassingError,
    StoreError,
)

OPENING_S = 10.0
"""To wait for other writers before the file counts as locked."""

SCHEMA_VERSION = 4
_SCHEMA = """
CREATE TABLE replies(
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, provider TEXT NOT NULL, scope_run TEXT,
    created REAL NOT NULL, used REAL NOT NULL, size INTEGER NOT NULL, checksum TEXT NOT NULL,
    payload TEXT NOT NULL, prompt_tokens INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0, seconds REAL NOT NULL DEFAULT 0, paid_by TEXT);
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
    3: ("DROP TABLE claims",),
}
"""From each version of the schema to the next."""

_PUT = "INSERT OR REPLACE INTO replies VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ALL = (
    "SELECT digest, kind, provider, scope_run, created, used, payload, prompt_tokens, completion_tokens, "
    "seconds, paid_by FROM replies ORDER BY created, digest"
)


class Store:
    """One SQLite file. Thread-safe; every method may raise :class:`StoreError`.

    Parameters
    ----------
    busy
        Seconds to wait for a lock, once it is open. An event loop has none to spare: its writes are tried again.
    """

    def __init__(self, path: Path, *, busy: float = OPENING_S) -> None:
        """Nothing is opened yet."""
        self.path = path
        self._busy = busy
        self._lock = RLock()
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._set_aside = False
        self.met_damage = False
        """Whether a row was found that is not what was written."""
        _stores.add(self)

    @property
    def name(self) -> str:
        return str(self.path)

    def open(self) -> None:
        """Make or open the file; may wait for others."""
        with self._use():
            pass

    def wait_for_locks(self, seconds: float) -> None:
        """From now on."""
        self._busy = seconds
        with self._lock, suppress(sqlite3.Error):
            if self._db is not None:
                self._db.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")

    def check(self) -> None:
        """As :meth:`open`."""
        self.open()

    def can_be_read(self) -> bool:
        """Whether it is of use though it can't be written: read-only, full, or locked."""
        try:
            self.find("")
        except StoreError:
            return False
        return True

    def find(self, digest: str) -> Kept | None:
        """The reply, or None where there is none, or only a damaged one."""
        with self._use() as db:
            row = db.execute(
                "SELECT checksum, payload, prompt_tokens, completion_tokens, seconds, paid_by FROM replies "
                "WHERE digest=?",
                (digest,),
            ).fetchone()
        if row and row[0] != checksum(digest, row[1]):
            self.met_damage, row = True, None
        return Kept(*row[1:]) if row else None

    def get(self, digest: str) -> str | None:
        """The payload alone."""
        kept = self.find(digest)
        return None if kept is None else kept.text

    def put(self, replies: Iterable[Reply]) -> None:
        """Keep them, in one transaction."""
        rows = [_row(reply) for reply in replies]
        with self._lock:
            if self._db is not None and inode_of(self.path) != self._inode:
                self.close()  # deleted by somebody: what is written there is lost
            with self._writing() as db:
                db.executemany(_PUT, rows)

    def discard(self, digest: str, payload: str) -> None:
        """Forget a payload, unless it has been replaced."""
        with self._writing() as db:
            db.execute("DELETE FROM replies WHERE digest=? AND payload=?", (digest, payload))

    def note_use(self, digests: Collection[str], now: float) -> None:
        """Note that these were of use; to the day, so that a run that only reads hardly writes."""
        if digests:
            with self._writing() as db:
                rows = [(now, digest, now - DAY) for digest in digests]
                db.executemany("UPDATE replies SET used=? WHERE digest=? AND used<?", rows)

    def checkpoint(self) -> None:
        """Take the log into the file; waits for the disk, so it uses a connection of its own."""
        with suppress(sqlite3.Error):
            db = sqlite3.connect(self.path, timeout=0.0)
            try:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                db.close()

    def tidy(self, run: str) -> None:
        """Prune, once a day."""
        with self._use() as db:
            row = db.execute("SELECT value FROM meta WHERE name='pruned'").fetchone()
        if row is None or row[0] < time.time() - DAY:
            self.prune(run=run)

    def set_aside(self, damage: DamagedError) -> str | None:
        """Move the damaged file to the first free ``NAME.corrupt-N``, once, and begin a new one; its new name.

        None where that can't be done.
        """
        with self._lock:
            self.close()
            if self._set_aside:
                return None
            self._set_aside = True
            if damage.inode != inode_of(self.path):  # another run was quicker
                return "its place by another run"
            try:
                aside = _moved_aside(self.path)
                self.open()
            except (OSError, StoreError):
                return None
            return aside.name

    def close(self) -> None:
        with self._lock:
            db, self._db = self._db, None
            if db is not None:
                with suppress(sqlite3.Error):
                    db.close()

    # For people: see Inventory

    def items(self) -> Iterator[Reply]:
        with self._use() as db:
            rows = db.execute(_ALL).fetchall()
        return (Reply(*row) for row in rows)

    def stats(self) -> dict[str, Any]:
        with self._use() as db:
            replies, size = db.execute("SELECT COUNT(*), COALESCE(SUM(size), 0) FROM replies").fetchone()
            by_kind = dict(db.execute("SELECT kind, COUNT(*) FROM replies GROUP BY kind"))
            by_provider = dict(db.execute("SELECT provider, COUNT(*) FROM replies GROUP BY provider"))
        return {"replies": replies, "bytes": size, "by_kind": by_kind, "by_provider": by_provider}

    def mean_tokens(self, kind: str, provider: str) -> tuple[float, float] | None:
        with self._use() as db:
            prompt, completion = db.execute(
                "SELECT AVG(prompt_tokens), AVG(completion_tokens) FROM replies "
                "WHERE kind=? AND provider=? AND prompt_tokens > 0",
                (kind, provider),
            ).fetchone()
        return None if prompt is None else (prompt, completion)

    def delete(self, digests: Collection[str] | None = None) -> int:
        with self._writing() as db:
            if digests is None:
                return db.execute("DELETE FROM replies").rowcount
            return sum(db.execute("DELETE FROM replies WHERE digest=?", (each,)).rowcount for each in digests)

    def prune(
        self,
        *,
        run: str | None = None,
        run_age: float = RUN_AGE,
        unused: float = UNUSED,
        max_bytes: int = MOST_BYTES,
        now: float | None = None,
    ) -> int:
        moment = time.time() if now is None else now
        with self._writing() as db:
            deleted = db.execute(
                "DELETE FROM replies WHERE scope_run IS NOT NULL AND scope_run IS NOT ? AND created < ?",
                (run, moment - run_age),
            ).rowcount
            deleted += db.execute(
                "DELETE FROM replies WHERE scope_run IS NULL AND used < ?", (moment - unused,)
            ).rowcount
            deleted += db.execute(
                "DELETE FROM replies WHERE digest IN (SELECT digest FROM (SELECT digest, SUM(size) OVER "
                "(ORDER BY used DESC, digest ROWS UNBOUNDED PRECEDING) AS total FROM replies) WHERE total > ?)",
                (max_bytes,),
            ).rowcount
            db.execute("INSERT OR REPLACE INTO meta VALUES('pruned', ?)", (moment,))
        with self._use() as db:
            db.execute("PRAGMA incremental_vacuum").fetchall()
        return deleted

    # Connections

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = self._opened()
                yield self._db
            except (sqlite3.Error, OSError) as error:
                raise _explained(error, self._inode) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction."""
        with self._use() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite has rolled back by itself after some errors
                    db.execute("ROLLBACK")
                raise

    def _opened(self) -> sqlite3.Connection:
        try:
            return self._open_to_write()
        except (sqlite3.Error, OSError) as error:
            db = self._open_to_read() if _code(error) in _UNWRITABLE else None
            if db is None:
                raise
            self._db = db  # of use from now on, though not for what was to be done now
            raise

    def _open_to_write(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._inode = inode_of(self.path)
        opening = max(self._busy, OPENING_S)
        db = sqlite3.connect(self.path, timeout=opening, isolation_level=None, check_same_thread=False)
        try:
            _prepare(db, opening)
            db.execute(f"PRAGMA busy_timeout={int(self._busy * 1000)}")
            db.execute("PRAGMA wal_autocheckpoint=0" if not self._busy else "PRAGMA temp_store=MEMORY")
        except BaseException:
            db.close()
            raise
        return db

    def _open_to_read(self) -> sqlite3.Connection | None:
        """First with the log, where it is there; SQLite makes none in a folder that can't be written to."""
        self._inode = inode_of(self.path)
        for how in ("mode=ro", "immutable=1"):
            try:
                address = f"{self.path.absolute().as_uri()}?{how}"
                db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            except sqlite3.Error:
                continue
            with suppress(sqlite3.Error):
                if db.execute("PRAGMA user_version").fetchone()[0] in (SCHEMA_VERSION - 1, SCHEMA_VERSION):
                    return db
            db.close()
        return None

    # SQLite must not be carried over a fork: locks would be lost and the file damaged. So the connection is
    # closed before the process forks, and comes back where it is needed.

    def before_fork(self) -> None:
        self._lock.acquire()
        self.close()

    def after_fork(self) -> None:
        self._lock.release()

    def in_child(self) -> None:
        self._lock = RLock()


def checksum(digest: str, payload: str) -> str:
    """Tells whether a payload is what was put under its digest."""
    return hashlib.blake2b(f"{digest}\n{payload}".encode(), digest_size=8).hexdigest()


def _row(reply: Reply) -> tuple[Any, ...]:
    return (
        *(reply.digest, reply.kind, reply.provider, reply.run, reply.created, reply.used),
        *(len(reply.payload.encode()), checksum(reply.digest, reply.payload), reply.payload),
        *(reply.prompt_tokens, reply.completion_tokens, reply.seconds, reply.paid_by),
    )


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
        except sqlite3.OperationalError as error:  # SQLite doesn't wait here by itself
            if _code(error) not in _BUSY or time.monotonic() > deadline:
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


_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)  # the latter for a quota, or a limit of the file's size
_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, *_BUSY, *_FULL, None)


def _code(error: sqlite3.Error | OSError) -> int | None:
    """SQLite's; extended codes carry the plain one below. None: the file system's error."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _explained(error: sqlite3.Error | OSError, inode: int | None) -> StoreError:
    code = _code(error)
    if code in _BUSY:
        return LockedError(str(error))
    if code in _FULL:
        return PassingError(str(error))
    if code not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(str(error))
    damage = DamagedError(str(error))
    damage.inode = inode
    return damage


def inode_of(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _moved_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.corrupt-{number}")).exists():
        number += 1
    path.rename(aside)
    for suffix in ("-wal", "-shm"):  # they belong to the damaged file and would damage the new one
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
    return aside


_stores: weakref.WeakSet[Store] = weakref.WeakSet()


class _Forks:
    """Closes all stores while the process forks."""

    def __init__(self) -> None:
        self._held: list[Store] = []

    def before(self) -> None:
        self._held = list(_stores)  # others may be made meanwhile
        for store in self._held:
            store.before_fork()

    def after(self) -> None:
        for store in self._held:
            store.after_fork()
        self._held = []

    def in_child(self) -> None:
        for store in list(_stores):
            store.in_child()


def _watch_forks(register: Callable[..., None]) -> None:
    forks = _Forks()
    register(before=forks.before, after_in_parent=forks.after, after_in_child=forks.in_child)


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    _watch_forks(os.register_at_fork)
