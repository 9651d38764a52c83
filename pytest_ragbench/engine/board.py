"""Numbers that all processes of a run share: what has been spent, and how fast each provider may be asked.

They stand in a (mostly empty) file that every process maps. Changes are made under a lock of the file, which
the kernel frees when a process ends; single numbers are read without it.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import mmap
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pytest_ragbench.model.errors import BudgetError

_ROW = 64
_ROWS = 64
_MARKS = 1 << 20
_NUMBER = struct.Struct("=d")
_NUMBERS = struct.Struct("=7d")

T = TypeVar("T")
Change = Callable[[list[float]], T]
"""Changes a row in place."""


class Numbers(Protocol):
    """Rows of seven numbers, by name, all zero at first. Used on the engine's loop only."""

    shift: float
    """Seconds to add to this host's clock for moments that stand in the rows."""

    def get(self, name: str, column: int) -> float:
        """As far as is known here."""
        ...

    async def change(self, name: str, work: Change[T]) -> T:
        """Let ``work`` change a row in place while nobody else does; what it returns.

        It may be called more than once, and must do nothing but read and write the row.
        """
        ...

    def soon(self, name: str, work: Change[Any]) -> None:
        """As :meth:`change`, not waited for; seen here at once."""
        ...

    async def take(self, digest: str) -> bool:
        """Whether nobody of the run has taken this (hexadecimal) digest before."""
        ...

    def close(self) -> None: ...


class Board:
    """Numbers in a file of this host.

    Parameters
    ----------
    path
        A file for this run, made where it is missing; None: the numbers are this process' own.

    Raises
    ------
    OSError
        The file can't be used.
    """

    shift = 0.0

    def __init__(self, path: Path | None) -> None:
        self._file: int | None = None
        if path is None:
            self._map = mmap.mmap(-1, _ROW * _ROWS + _MARKS)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._file, _ROW * _ROWS + _MARKS)
            self._map = mmap.mmap(self._file, _ROW * _ROWS + _MARKS)
        self._rows: dict[str, int] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else changes anything meanwhile. Not to be nested."""
        if self._file is None:
            yield
            return
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def get(self, name: str, column: int) -> float:
        value: float = _NUMBER.unpack_from(self._map, self._place(name, column))[0]
        return value

    async def change(self, name: str, work: Change[T]) -> T:
        return self.soon(name, work)

    def soon(self, name: str, work: Change[T]) -> T:
        """At once, here."""
        place = self._place(name, 0)
        with self.locked():
            row = list(_NUMBERS.unpack_from(self._map, place))
            result = work(row)
            _NUMBERS.pack_into(self._map, place, *row)
        return result

    async def take(self, digest: str) -> bool:
        """Without a lock: two who ask in the same microsecond may both be told so, and of two digests of a
        million one is taken for the other.
        """
        place = _mark(digest)
        free = self._map[place] == 0
        self._map[place] = 1
        return free

    def close(self) -> None:
        self._map.close()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _place(self, name: str, column: int) -> int:
        # Rows are found by hash, so that no process need tell another which is whose; two of a run's few
        # names that share one (a chance of 1 in 1,000 for ten names) would share numbers, and so go on to
        # the next row: the first eight bytes say whose it is.
        if name not in self._rows:
            mark = hashlib.sha256(name.encode()).digest()[:8]
            row = int.from_bytes(mark[:2], "big") % _ROWS
            with self.locked():
                for _ in range(_ROWS):
                    held = self._map[row * _ROW : row * _ROW + 8]
                    if held in (mark, bytes(8)):
                        break
                    row = (row + 1) % _ROWS
                self._map[row * _ROW : row * _ROW + 8] = mark
            self._rows[name] = row
        return self._rows[name] * _ROW + 8 + 8 * column


def _mark(digest: str) -> int:
    return _ROW * _ROWS + int(digest[:8], 16) % _MARKS


@dataclass(frozen=True)
class Caps:
    """What a run may use at most, all its processes together; None: no limit.

    ``calls`` counts every request that is sent, retries included; ``cost`` is in US dollars.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def __bool__(self) -> bool:
        return (self.calls, self.tokens, self.cost) != (None, None, None)


_CALLS, _TOKENS, _COST, _TOKENS_ASIDE, _COST_ASIDE = range(5)


class Budget:
    """Holds a run to its caps. What a call will take is put aside before it is made, and made right after."""

    def __init__(self, caps: Caps, board: Numbers) -> None:
        self.caps = caps
        self.line = asyncio.Lock()
        """For those who wait until more is known of what is under way."""
        self.known = False
        """There is no more to learn: something was put aside by a process that was killed."""
        self._board = board

    async def reserve(self, what: str, tokens: float, cost: float, *, patient: bool = False) -> bool:
        """Put aside one call and what it will probably take, before it is made.

        False (only where ``patient``): not now, but the calls under way may take less than was put aside
        for them.

        Raises
        ------
        BudgetError
            The budget does not allow for the call.
        """
        caps = self.caps
        if not caps:
            return True

        def put_aside(spent: list[float]) -> tuple[str | None, list[float]]:
            reached = None
            if caps.calls is not None and spent[_CALLS] + 1 > caps.calls:
                reached = f"max_calls {caps.calls:,}"
            elif caps.tokens is not None and spent[_TOKENS] + tokens > caps.tokens:
                reached = f"max_tokens {caps.tokens:,}"
            elif caps.cost is not None and spent[_COST] + cost > caps.cost:
                reached = f"max_cost {caps.cost:g}"
            before = list(spent)
            if reached is None:
                more = (
                    (_CALLS, 1.0),
                    (_TOKENS, tokens),
                    (_COST, cost),
                    (_TOKENS_ASIDE, tokens),
                    (_COST_ASIDE, cost),
                )
                for column, value in more:
                    spent[column] += value
            return reached, before

        reached, spent = await self._board.change("budget", put_aside)
        if reached is None:
            return True
        if patient and not self.known and self._may_fit(spent, tokens, cost):
            return False
        used = f"{spent[_CALLS]:,.0f} calls, {spent[_TOKENS]:,.0f} tokens, ${spent[_COST]:.4f}"
        raise BudgetError(
            f"{what} was not asked: the run's budget does not allow for it ({reached}; used or under way: {used})",
            code="budget",
        )

    def _may_fit(self, spent: list[float], tokens: float, cost: float) -> bool:
        """Were the calls under way to take nothing."""
        caps = self.caps
        return (
            (caps.calls is None or spent[_CALLS] + 1 <= caps.calls)
            and (caps.tokens is None or spent[_TOKENS] - spent[_TOKENS_ASIDE] + tokens <= caps.tokens)
            and (caps.cost is None or spent[_COST] - spent[_COST_ASIDE] + cost <= caps.cost)
        )

    def settle(self, reserved: tuple[float, float], tokens: float, cost: float) -> None:
        """The call is over: what it took instead of what was put aside (tokens, dollars)."""
        if not self.caps:
            return

        def correct(spent: list[float]) -> None:
            spent[_TOKENS] += tokens - reserved[0]
            spent[_COST] += cost - reserved[1]
            spent[_TOKENS_ASIDE] -= reserved[0]
            spent[_COST_ASIDE] -= reserved[1]

        self._board.soon("budget", correct)
