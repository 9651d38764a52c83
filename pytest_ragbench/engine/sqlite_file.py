"""Connections to the store's file, and its schema."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

from pytest_ragbench.engine.backend import DamagedError, FullError, LockedError, StoreError

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


class Connection:
    """A connection that is opened on first use, and anew in the process that a fork makes.

    SQLite must not be carried over a fork: locks would be lost and the file damaged. So the
    connection is closed before the process forks, and comes back where it is needed.
    """

    def __init__(
        self, path: Path, opening: float, busy: float, setup: Sequence[str] = (), *, reads: bool = False
    ) -> None:
        """Seconds to wait for a lock while it is opened, and later; statements to begin with; whether it is
        of use also where nothing can be written.
        """
        self._path = path
        self._opening = opening
        self._busy = busy
        self._setup = setup
        self._reads = reads
        self._lock = RLock()
        self._db: sqlite3.Connection | None = None
        self._inode: int | None = None
        self.renewals = 0
        _connections.add(self)

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is not None and inode_of(self._path) != self._inode:
                    self.close()  # deleted or moved aside: what is written there is lost
                    self.renewals += 1
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
        try:
            return self._open_to_write()
        except (sqlite3.Error, OSError) as error:
            if not self._reads or _code(error) not in _UNWRITABLE:
                raise
            db = self._open_to_read()
            if db is None:
                raise
            return db

    def _open_to_write(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        self._inode = inode_of(self._path)
        db = sqlite3.connect(self._path, timeout=self._opening, isolation_level=None, check_same_thread=False)
        try:
            _prepare(db, self._opening)
            db.execute(f"PRAGMA busy_timeout={int(self._busy * 1000)}")
            for statement in self._setup:
                db.execute(statement)
        except BaseException:
            db.close()
            raise
        return db

    def _open_to_read(self) -> sqlite3.Connection | None:
        """First with the log, where it is there; SQLite makes none in a folder that can't be written to."""
        self._inode = inode_of(self._path)
        for how in ("mode=ro", "immutable=1"):
            try:
                address = f"{self._path.absolute().as_uri()}?{how}"
                db = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
            except sqlite3.Error:
                continue
            with suppress(sqlite3.Error):
                if db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA_VERSION:
                    return db
            db.close()
        return None

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
_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, None)


def _code(error: sqlite3.Error | OSError) -> int | None:
    """SQLite's; extended codes carry the plain one below. None: the file system's error."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _explained(error: sqlite3.Error | OSError, inode: int | None) -> StoreError:
    code = _code(error)
    if code in _BUSY:
        return LockedError(str(error))
    if code in (
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    ):  # the latter for a quota or a limit of the file's size
        return FullError(str(error))
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


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()
_held: list[Connection] = []
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
