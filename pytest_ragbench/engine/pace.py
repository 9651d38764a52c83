"""How fast a provider is asked: its rates, and what it says itself when it is asked too fast.

All processes of a run share what is known, through the :class:`~pytest_ragbench.engine.counters.Counters`.
"""

from __future__ import annotations

from collections.abc import Callable

from pytest_ragbench.engine.counters import Counters

_LIMIT, _QUIET, _CUT, _REQUESTS, _TOKENS, _QUOTA = range(6)
_MINUTE = 60.0
_BURST = 10
"""A tenth of a minute's worth may be sent at once."""
_ROUNDS = 16
"""So many rounds of good replies bring the least concurrency back to the most."""


class Pace:
    """One provider's.

    Concurrency is halved by a reply that says "too fast" (429) and grows again with each good one, as TCP
    does it: additive increase, multiplicative decrease. Replies to what was sent before the last cut cut
    nothing more. ``Retry-After`` silences all processes until then.
    """

    def __init__(self, provider: str, counters: Counters, clock: Callable[[], float]) -> None:
        self._row = f"provider {provider}"
        self._counters = counters
        self._clock = clock

    def limit(self, most: int) -> int:
        """Requests at a time, just now: 1..``most``."""
        adapted = self._counters.get(self._row, _LIMIT)
        return max(1, min(most, int(adapted))) if adapted else most

    @property
    def quiet_until(self) -> float:
        """Nobody asks before this moment of the clock that all share."""
        return self._counters.get(self._row, _QUIET)

    async def turn(self, requests: int | None, tokens: int | None, needed: float, waited: float) -> float:
        """Seconds to wait before asking again for a turn; 0: it is one's turn now.

        ``requests`` and ``tokens``: per minute; ``needed``: tokens that the call will probably take;
        ``waited``: the :attr:`quiet_until` that the caller has waited for already.
        """
        counters, now = self._counters, self._now()
        quiet = self.quiet_until
        if quiet > now and quiet > waited:
            return quiet - now
        # No rate is configured: the common case, without a turn at the counters.
        if requests is None and tokens is None:
            return 0.0
        rates = [
            (column, _Rate(per_minute), amount)
            for column, per_minute, amount in ((_REQUESTS, requests, 1.0), (_TOKENS, tokens, needed))
            if per_minute is not None
        ]

        def take(row: list[float]) -> float:
            wait = max(rate.wait(row[column], now, amount) for column, rate, amount in rates)
            # Nothing is taken while either rate lacks room, or the other one would leak.
            if wait > 0:
                return wait
            for column, rate, amount in rates:
                row[column] = rate.taken(row[column], now, amount)
            return 0.0

        return await counters.change(self._row, take)

    def correct(self, tokens: int | None, needed: float, used: float) -> None:
        """A call took ``used`` tokens, not ``needed``."""
        if tokens is not None and used != needed:
            more = (used - needed) * _Rate(tokens).interval
            self._counters.soon(self._row, lambda row: _add(row, _TOKENS, more))

    def slow_down(self, began: float, most: int, retry_after: float | None) -> None:
        """A request sent at ``began`` was told that this is too fast."""
        now, began, limit = self._now(), began + self._counters.shift, self.limit(most)

        def cut(row: list[float]) -> None:
            if retry_after:
                row[_QUIET] = max(row[_QUIET], now + retry_after)
            # Replies to what was sent before the last cut say what is known already.
            if began >= row[_CUT]:
                row[_LIMIT] = max(1.0, limit / 2)
                row[_CUT] = now

        self._counters.soon(self._row, cut)

    def speed_up(self, most: int) -> None:
        """A good reply came."""
        if not self._counters.get(self._row, _LIMIT):
            return

        def grow(row: list[float]) -> None:
            if row[_LIMIT]:
                # Divided by the limit: a round of good replies adds a sixteenth of the most, however small the limit.
                grown = row[_LIMIT] + max(1.0, most / _ROUNDS) / row[_LIMIT]
                row[_LIMIT] = 0.0 if grown >= most else grown

        self._counters.soon(self._row, grow)

    @property
    def quota_used_up(self) -> bool:
        """Some process of the run was told so."""
        return bool(self._counters.get(self._row, _QUOTA))

    def stop(self) -> None:
        """The provider says that its quota is used up: it is not to be asked again in this run."""
        self._counters.soon(self._row, lambda row: _add(row, _QUOTA, 1.0))

    def _now(self) -> float:
        return self._clock() + self._counters.shift


def _add(row: list[float], column: int, value: float) -> None:
    row[column] += value


class _Rate:
    """A token bucket, as the moment at which it will be full again (seconds of the clock).

    It holds a tenth of a minute's worth, and is filled as fast as it can be without a minute that gets more
    than ``per_minute``: what a full bucket held, and what came during the minute.
    """

    def __init__(self, per_minute: int) -> None:
        self._room = max(1, per_minute // _BURST)
        self.interval = _MINUTE / (per_minute - self._room + 1)

    def wait(self, full_at: float, now: float, amount: float) -> float:
        """Seconds until ``amount`` can be taken; more than the bucket holds, when it is full."""
        return full_at + (min(amount, self._room) - self._room) * self.interval - now

    def taken(self, full_at: float, now: float, amount: float) -> float:
        return max(full_at, now) + amount * self.interval
