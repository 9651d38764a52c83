"""Files that several processes may read and write at once."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path

from pytest_ragbench.model.errors import UsageError


def replace_file(path: Path, text: str) -> None:
    """Write a file as a whole, and the folder that it lies in: a reader finds the old text or the new one.

    Raises
    ------
    UsageError
        It can't be written.
    """
    # Beside it, since only within one file system a move is a single step.
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
            if path.exists():
                shutil.copymode(path, fresh)
            os.replace(fresh, path)
        finally:
            with suppress(OSError):
                fresh.unlink()
    except OSError as error:
        raise UsageError(f"{path}: can't be written: {error.strerror}") from None


def only_writer(path: Path, *, wait: float = 0.0) -> sqlite3.Connection | None:
    """A lock that dies with the process, on every platform: a transaction on an empty database in the temporary
    folder. None where there is no room for one. It is let go of by ``close()``.

    Parameters
    ----------
    wait
        Seconds to wait for a process that holds it.

    Raises
    ------
    BlockingIOError
        Another process holds it.
    """
    name = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    file = Path(tempfile.gettempdir()) / f"ragbench-report-{name}.lock"
    lock = None
    try:
        lock = sqlite3.connect(file, timeout=wait, isolation_level=None, check_same_thread=False)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if lock is not None:
            lock.close()
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
            raise BlockingIOError(f"{path}: another process is writing it") from None
        return None
    return lock
