"""A worker whose tests are over lets what is out come back, and sends nothing more: others may wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from pytest_ragbench.engine import Engine, Limits
from pytest_ragbench.engine.lookahead import looking_ahead
from tests.engine.helpers import Service, fetched

MakeTeam = Callable[..., list[Engine]]


def test_a_guess_that_is_not_out_is_left_to_the_other_worker(make_team: MakeTeam) -> None:
    service = Service()
    _, one, other = make_team(2, limits={"p": Limits(max_concurrency=1)})

    async def guess(key: str, then: str = "") -> list[Any]:
        looking_ahead.set(True)
        found = [(await fetched(one, service.ask(key))).value]
        return [*found, (await fetched(one, service.ask(then))).value] if then else found

    async def ends() -> list[Any]:
        service.open.clear()
        guesses = [asyncio.create_task(each) for each in (guess("a", then="c"), guess("b"))]
        while not service.under_way:
            await asyncio.sleep(0.01)
        draining = asyncio.create_task(drained())
        await asyncio.sleep(0.1)
        service.open.set()
        await draining
        ended: list[Any] = await asyncio.gather(*guesses, return_exceptions=True)
        return ended

    async def drained() -> None:
        assert one._running is not None
        await one._running.drain()

    ended = one.wait(ends())
    assert [type(each) for each in ended] == [asyncio.CancelledError] * 2
    assert service.calls == 1
    assert [other.wait(fetched(other, service.ask(key))).value for key in "abc"] == ["a", "b", "c"]
    assert service.calls == 3  # "a" came back, and is not asked again
