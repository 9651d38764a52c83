"""One suite for all coordinators: in process, asked over a connection, and in a Redis server."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine.budget import Caps
from pytest_ragbench.engine.client import RemoteCoordinator
from pytest_ragbench.engine.coordinator import (
    Attempt,
    Coordinator,
    Event,
    Failure,
    Kept,
    Outcome,
    Refused,
    Reply,
)
from pytest_ragbench.engine.limits import Limits
from pytest_ragbench.engine.local import LocalCoordinator
from pytest_ragbench.engine.prices import Price
from pytest_ragbench.engine.server import Server
from pytest_ragbench.engine.store import Store
from pytest_ragbench.engine.usage import UsageSums
from pytest_ragbench.engine.wire import Address, new_key
from tests.servers.redis_server import BINARY, MISSING, redis_server

Scene = Callable[[list[Coordinator], UsageSums], Awaitable[None]]
Play = Callable[..., UsageSums]

RUN = "run-1"


@pytest.fixture(params=["in process", "over a connection", "in Redis"])
def play(request: pytest.FixtureRequest, tmp_path: Path) -> Play:
    """Runs a scene with three coordinators, as three processes of a run have them."""
    if request.param == "in Redis":
        pytest.importorskip("redis")
        if BINARY is None:
            pytest.skip(MISSING)

    def run(scene: Scene, **options: Any) -> UsageSums:
        usage = UsageSums()
        shares: dict[str, Any] = {
            "caps": Caps(),
            "prices": lambda provider, model: Price(1.0, 10.0),
            "usage": usage,
            "recorder": None,
            "warn": print,
        } | options

        async def played() -> None:
            kind = {"in process": _local, "over a connection": _remote, "in Redis": _redis}[request.param]
            async with asyncio.timeout(60), kind(tmp_path, shares) as coordinators:
                await scene(coordinators, usage)

        asyncio.run(played())
        return usage

    return run


@asynccontextmanager
async def _local(path: Path, shares: dict[str, Any]) -> AsyncIterator[list[Coordinator]]:
    loop = asyncio.get_running_loop()
    owner = LocalCoordinator(Store(path / "store.sqlite", busy=0.0), RUN, loop, **shares)
    owner.shared = True
    yield [owner] * 3
    await owner.close()


@asynccontextmanager
async def _remote(path: Path, shares: dict[str, Any]) -> AsyncIterator[list[Coordinator]]:
    async with _local(path, shares) as (owner, *_):
        key = new_key()
        server, listening = Server(owner, key), socket.create_server(("127.0.0.1", 0))
        await server.start(listening)
        address = Address(listening.getsockname()[1], key)
        clients = [RemoteCoordinator(address, asyncio.get_running_loop()) for _ in range(3)]
        yield [*clients]
        for each in clients:
            await each.close()
        await server.close()


@asynccontextmanager
async def _redis(path: Path, shares: dict[str, Any]) -> AsyncIterator[list[Coordinator]]:
    from pytest_ragbench.engine.on_redis.coordinator import RedisCoordinator

    loop = asyncio.get_running_loop()
    with redis_server(path) as server:
        made = [RedisCoordinator(server.url, RUN, "session", loop, **shares) for _ in range(3)]
        yield [*made]
        for each in made:
            await each.close()


def reply(digest: str, text: str = '"да"') -> Reply:
    now = time.time()
    return Reply(digest, "judge", "p", None, now, now, text, 10, 2, 0.5, RUN)


def attempt(**changes: Any) -> Attempt:
    limits = changes.pop("limits", Limits(max_concurrency=2))
    return Attempt("judge", "p", "m", 30, True, limits)._replace(**changes)


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


GOOD = Outcome(None, prompt_tokens=10, completion_tokens=2, seconds=0.1)


def test_one_claims_and_the_others_get_what_came_of_it(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, third = all_of_them
        assert await one.claim("a", ahead=False) is None
        waiting = [asyncio.create_task(each.claim("a", ahead=False)) for each in (other, third)]
        await asyncio.sleep(0.1)
        assert not any(each.done() for each in waiting)
        one.publish("a", reply("a"))
        for each in waiting:
            kept = await each
            assert isinstance(kept, Kept)
            assert (kept.text, kept.prompt_tokens, kept.paid_by, kept.yours) == ('"да"', 10, RUN, False)

    play(scene)


def test_where_nothing_came_of_it_the_next_may_try(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, third = all_of_them
        assert await one.claim("a", ahead=False) is None
        waiting = {asyncio.create_task(each.claim("a", ahead=False)) for each in (other, third)}
        await asyncio.sleep(0.1)
        one.publish("a", None)
        done, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert [each.result() for each in done] == [None]
        assert len(left) == 1
        one.publish("a", None) if all_of_them[0] is other else None
        for each in left:
            each.cancel()

    play(scene)


def test_who_stops_waiting_holds_up_nobody(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, third = all_of_them
        assert await one.claim("a", ahead=False) is None
        leaves = asyncio.create_task(other.claim("a", ahead=False))
        stays = asyncio.create_task(third.claim("a", ahead=False))
        await asyncio.sleep(0.05)
        leaves.cancel()
        one.publish("a", None)
        assert await stays is None

    play(scene)


def test_what_a_guess_paid_is_put_down_to_the_first_test(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, third = all_of_them
        for digest in "ab":
            assert await one.claim(digest, ahead=True) is None
            one.publish(digest, reply(digest))
        first, second = [await each.claim("a", ahead=False) for each in (other, third)]
        assert isinstance(first, Kept)
        assert isinstance(second, Kept)
        assert (first.yours, second.yours) == (True, False)
        assert await one.take("b")
        assert not await other.take("b")
        kept = await third.claim("b", ahead=False)
        assert isinstance(kept, Kept)
        assert not kept.yours

    play(scene)


def test_what_is_fetched_ahead_of_ones_own_test_is_for_that_test(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, third = all_of_them
        assert await one.claim("a", ahead=True, own=True) is None
        waiting = asyncio.create_task(other.claim("a", ahead=False))
        await asyncio.sleep(0.05)
        one.publish("a", reply("a"))
        for kept in (await waiting, await third.claim("a", ahead=False)):
            assert isinstance(kept, Kept)
            assert not kept.yours
        assert await one.claim("b", ahead=True, own=True) is None
        one.publish("b", None)  # it was given up, so that the next one's is its own
        assert await other.claim("b", ahead=True) is None
        other.publish("b", reply("b"))
        kept = await third.claim("b", ahead=False)
        assert isinstance(kept, Kept)
        assert kept.yours

    play(scene)


def test_the_failure_of_a_guess_is_handed_over_once(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, third = all_of_them
        assert await one.claim("a", ahead=True) is None
        one.publish("a", Failure("status 503", "http_503", None, "busy"))
        assert await third.claim("a", ahead=True) == Failure("status 503", "http_503", None, "busy")
        assert await other.claim("a", ahead=False) == Failure("status 503", "http_503", None, "busy")
        assert await third.claim("a", ahead=False) is None

    play(scene)


def test_what_cannot_be_read_is_forgotten(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, _ = all_of_them
        await one.claim("a", ahead=False)
        one.publish("a", reply("a", '"old"'))
        found = await other.claim("a", ahead=False)
        assert isinstance(found, Kept)
        assert await other.claim("a", ahead=False, unreadable=found.text) is None
        other.publish("a", reply("a", '"new"'))
        again = await one.claim("a", ahead=False)
        assert isinstance(again, Kept)
        assert again.text == '"new"'

    play(scene)


def test_slots_are_those_of_all(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        under_way = peak = 0

        async def call(coordinator: Coordinator) -> None:
            nonlocal under_way, peak
            permit = await coordinator.enter(attempt())
            under_way += 1
            peak = max(peak, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            await coordinator.leave(permit, GOOD)

        await asyncio.gather(*(call(each) for each in all_of_them for _ in range(5)))
        assert peak == 2
        await until(lambda: len(usage.of("judge").latencies) == 15)

    usage = play(scene)
    sums = usage.of("judge p:m")
    assert (sums.calls, sums.prompt_tokens, sums.completion_tokens) == (15, 150, 30)
    assert sums.cost == pytest.approx(15 * 30e-6)


def test_a_waiter_that_leaves_takes_no_slot_with_it(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, _ = all_of_them
        limits = Limits(max_concurrency=1)
        permit = await one.enter(attempt(limits=limits))
        waiting = asyncio.create_task(other.enter(attempt(limits=limits)))
        await asyncio.sleep(0.05)
        waiting.cancel()
        await one.leave(permit, GOOD)
        await other.leave(await other.enter(attempt(limits=limits)), GOOD)

    play(scene)


def test_the_budget_is_that_of_all(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, third = all_of_them
        for each in (one, other):
            await each.leave(await each.enter(attempt()), GOOD)
        with pytest.raises(Refused) as refused:
            await third.enter(attempt())
        assert refused.value.why == "budget"
        assert "max_calls 2" in refused.value.message

    play(scene, caps=Caps(calls=2))


def test_who_is_told_too_fast_slows_down_all(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, _ = all_of_them
        permit = await one.enter(attempt())
        waited = await one.leave(permit, Outcome("http_429", "busy", heals=True, retry_after=0.5))
        began = time.monotonic()
        # The retry has waited for itself; who comes anew waits here.
        await one.leave(await one.enter(attempt(number=2, waited=waited)), GOOD)
        quick = time.monotonic() - began
        await other.leave(await other.enter(attempt()), GOOD)
        assert quick < time.monotonic() - began
        assert time.monotonic() - began > 0.4

    play(scene)


def test_a_used_up_quota_is_heard_by_all(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, _ = all_of_them
        await one.leave(await one.enter(attempt()), Outcome("insufficient_quota"))
        await asyncio.sleep(0.1)
        with pytest.raises(Refused) as refused:
            await other.enter(attempt())
        assert refused.value.why == "quota"

    play(scene)


def test_each_test_is_looked_ahead_to_by_one(play: Play, request: pytest.FixtureRequest) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        one, other, _ = all_of_them
        assert await one.claim_tests([1, 2]) == {1, 2}
        assert await one.claim_tests([2, 3]) == {2, 3}
        if one is not other:
            assert await other.claim_tests([3, 4]) == {4}

    play(scene)


def test_what_needs_no_call_is_counted(play: Play) -> None:
    async def scene(all_of_them: list[Coordinator], usage: UsageSums) -> None:
        for each in all_of_them:
            each.note(Event("stored", "judge", "p", "m", (10, 2)))
            each.note(Event("failed", "rag"))
        await until(lambda: usage.of("rag").failed == 3)

    usage = play(scene)
    sums = usage.of("judge")
    assert (sums.stored, sums.saved_tokens, sums.calls) == (3, 36, 0)
    assert sums.saved_cost == pytest.approx(3 * 30e-6)
