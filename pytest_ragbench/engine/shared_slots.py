"""Call slots that all processes of a run share, as byte locks on one empty file.

The kernel frees the locks of a process that ends, however it ends, and nothing is written.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pytest_ragbench.engine.slots import SharedPool

_SPAN = 1 << 20
"""Bytes for one provider in one run: slots from the start, signs of hunger in the last ``_SIGNS``."""
_SIGNS = 64


class SharedSlots:
    """Slots of all processes that use the same file with the same run id.

    Raises
    ------
    OSError
        Where the file can't be opened.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self._file = _file(path)
        self._run_id = run_id
        self._pools: dict[str, _Pool] = {}
        self._first_base = _base(run_id, "", "look-ahead")

    @asynccontextmanager
    async def slot(self, provider: str, limit: int, urgent: bool = True) -> AsyncIterator[None]:
        pool = self._pools.get(provider)
        if pool is None:
            pool = self._pools[provider] = _Pool(self._file, _base(self._run_id, provider))
        pool.limit = min(limit, _SPAN - _SIGNS)
        number = await pool.enter(urgent)
        try:
            yield
        finally:
            pool.leave(number)

    def resize(self, provider: str, limit: int) -> None:
        pool = self._pools.get(provider)
        if pool is not None:
            pool.limit = min(limit, _SPAN - _SIGNS)

    async def firsts(self, numbers: Collection[int]) -> set[int]:
        base = self._first_base
        return {number for number in numbers if _lock(self._file, fcntl.LOCK_EX, base + number % _SPAN)}

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()


def _base(*names: str) -> int:
    digest = hashlib.sha256("\n".join(names).encode()).digest()
    return int.from_bytes(digest[:5], "big") * _SPAN


class _Pool(SharedPool[int]):
    """A slot is the number of a byte."""

    tick = 0.01

    def __init__(self, file: int, base: int) -> None:
        super().__init__()
        self._file = file
        self._base = base
        self._signs = base + _SPAN - _SIGNS
        self._held: set[int] = set()
        # Each process begins its search elsewhere, and goes on from its last find: a try that fails is a
        # system call, and may cost the interpreter lock.
        self._from = random.randrange(1 << 16)  # noqa: S311
        self._sign: int | None = None

    async def enter(self, urgent: bool) -> int:
        if self._line.first() is None and (number := self._find()) is not None:
            return number
        return await super().enter(urgent)

    def close(self) -> None:
        for number in list(self._held):
            self._put_down(number)
        self._nobody_waits()

    async def _take(self, wanted: int, waiting: int) -> list[int]:
        if self._sign is None:
            number = os.getpid() % _SIGNS
            if _lock(self._file, fcntl.LOCK_EX, self._signs + number):
                self._sign = number
        taken: list[int] = []
        while len(taken) < wanted and (slot := self._find()) is not None:
            taken.append(slot)
        return taken

    def _find(self) -> int | None:
        if len(self._held) >= self.limit:
            return None
        for step in range(self.limit):
            number = (self._from + step) % self.limit
            if number not in self._held and _lock(self._file, fcntl.LOCK_EX, self._base + number):
                self._held.add(number)
                self._from = number + 1
                return number
        return None

    def _put_down(self, number: int) -> None:
        if number in self._held:
            self._held.discard(number)
            _unlock(self._file, self._base + number)

    def _is_over(self, slot: int) -> bool:
        return slot >= self.limit

    def _nobody_waits(self) -> None:
        if self._sign is not None:
            _unlock(self._file, self._signs + self._sign)
            self._sign = None

    def _others_wait(self) -> bool:
        own = self._sign
        parts = [(0, _SIGNS)] if own is None else [(0, own), (own + 1, _SIGNS)]
        for start, stop in parts:
            if start == stop:
                continue
            if not _lock(self._file, fcntl.LOCK_SH, self._signs + start, stop - start):
                return True
            _unlock(self._file, self._signs + start, stop - start)
        return False


_files: dict[str, int] = {}
"""Kept open while the process lives: closing one descriptor would free the locks of them all."""


def _file(path: Path) -> int:
    name = str(path)
    if name not in _files:
        path.parent.mkdir(parents=True, exist_ok=True)
        _files[name] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    return _files[name]


def _lock(file: int, kind: int, start: int, length: int = 1) -> bool:
    try:
        fcntl.lockf(file, kind | fcntl.LOCK_NB, length, start)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # a file system without locks: the limit then holds for this process alone
        return True
    return True


def _unlock(file: int, start: int, length: int = 1) -> None:
    with suppress(OSError):
        fcntl.lockf(file, fcntl.LOCK_UN, length, start)
