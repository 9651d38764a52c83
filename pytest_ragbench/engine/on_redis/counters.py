"""Counters in a Redis server; what was known last stands here, too, and is all there is when it is lost."""

from __future__ import annotations

from typing import Any, TypeVar

from pytest_ragbench.engine.counters import Change
from pytest_ragbench.engine.inventory import StoreError
from pytest_ragbench.engine.on_redis.link import RowChange, row_of
from pytest_ragbench.engine.on_redis.session import KEPT_S, Session

T = TypeVar("T")


class RedisCounters:
    """As every :class:`~pytest_ragbench.engine.counters.Counters`."""

    def __init__(self, session: Session) -> None:
        self.shift = 0.0
        self._session = session
        self._rows: dict[str, list[float]] = {}
        self._timed = False

    def get(self, name: str, column: int) -> float:
        row = self._rows.get(name)
        return 0.0 if row is None else row[column]

    async def change(self, name: str, work: Change[T]) -> T:
        try:
            result: T
            result, row = await self._session.do(RowChange(self.key(name), work, KEPT_S))
        except StoreError:
            return work(self._row(name))
        self._rows[name] = list(row)
        return result

    def soon(self, name: str, work: Change[Any]) -> None:
        # Seen here at once, and by others when the server has it.
        work(self._row(name))
        if not self._session.lost:
            self._session.start(self._later(name, work))

    def key(self, name: str) -> str:
        return self._session.key("row", name)

    def learn(self, name: str, packed: bytes, now: float, here: float) -> None:
        """A row as the server has it, and its time (seconds) at the moment ``here`` of this host's clock."""
        self._rows[name] = row_of(packed)
        # Once: the clocks of two hosts differ by a constant, and a later look would only add jitter.
        if not self._timed:
            self._timed, self.shift = True, now - here

    async def _later(self, name: str, work: Change[Any]) -> None:
        try:
            _, row = await self._session.do(RowChange(self.key(name), work, KEPT_S))
        except StoreError:
            return
        self._rows[name] = list(row)

    def _row(self, name: str) -> list[float]:
        return self._rows.setdefault(name, row_of(None))
