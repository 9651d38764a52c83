"""What a run may use at most."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pytest_ragbench.engine.counters import Counters
from pytest_ragbench.model.errors import BudgetError
from pytest_ragbench.money import dollars


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

    def __init__(self, caps: Caps, counters: Counters) -> None:
        self.caps = caps
        self.queue = asyncio.Lock()
        """For those who wait until more is known of what is under way."""
        self.known = False
        """There is no more to learn: something was put aside by a process that was killed."""
        self._counters = counters

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
                reached = f"max_cost {dollars(caps.cost)}"
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

        # In one step of the counters: two processes that look first and add later would both see room.
        reached, spent = await self._counters.change("budget", put_aside)
        if reached is None:
            return True
        # Estimates of what is under way are mostly too high, so waiting often makes room.
        if patient and not self.known and self._may_fit(spent, tokens, cost):
            return False
        used = f"{spent[_CALLS]:,.0f} calls, {spent[_TOKENS]:,.0f} tokens, {dollars(spent[_COST])}"
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

        self._counters.soon("budget", correct)
