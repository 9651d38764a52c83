"""Shared counters: rows of numbers by name, such as what has been spent and how fast a provider may be asked.

Pace and budget are computed on these rows alone, so that both work wherever the rows are kept: in the
process that owns the run's engine (here), or in a Redis server.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

COLUMNS = 7

T = TypeVar("T")
Change = Callable[[list[float]], T]
"""Changes a row in place."""


class Counters(Protocol):
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


class LocalCounters:
    """Rows in this process."""

    shift = 0.0

    def __init__(self) -> None:
        self._rows: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * COLUMNS)

    def get(self, name: str, column: int) -> float:
        return self._rows[name][column]

    async def change(self, name: str, work: Change[T]) -> T:
        # Nothing to lock: there is one loop, and ``work`` never awaits.
        return work(self._rows[name])

    def soon(self, name: str, work: Change[Any]) -> None:
        work(self._rows[name])

    def learn(self, name: str, row: list[float]) -> None:
        """Begin a row with what was known elsewhere."""
        self._rows[name] = list(row)
