"""Waiting for the engine's loop, from anywhere."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pytest_ragbench.engine import Engine, Limits
from pytest_ragbench.engine.loop import begin
from pytest_ragbench.model.errors import Unscored
from tests.engine.helpers import Service, fetched

seen_by: contextvars.ContextVar[str] = contextvars.ContextVar("seen_by", default="nobody")


def test_many_threads_wait_at_once(engine: Engine) -> None:
    service = Service()
    everyone_is_here = threading.Barrier(16)

    def ask(number: int) -> Any:
        everyone_is_here.wait()
        return engine.wait(fetched(engine, service.ask(number % 4))).value

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, range(16))) == [0, 1, 2, 3] * 4
    assert service.calls == 4


def test_inside_another_running_loop(engine: Engine) -> None:
    async def elsewhere() -> Any:
        return engine.wait(fetched(engine, Service().ask())).value

    assert asyncio.run(elsewhere()) == "q"


def test_other_loops_may_await_a_fetch_or_bring_a_coroutine(engine: Engine) -> None:
    service = Service()

    async def elsewhere() -> Any:
        awaited = await fetched(engine, service.ask())
        brought = await engine.bring(fetched(engine, service.ask()))
        return awaited.value, brought.value

    assert (
        asyncio.run(elsewhere()) == asyncio.run(elsewhere()) == ("q", "q")
    )  # two loops, one after the other
    assert service.calls == 1


def test_cancelling_on_another_loop_cancels_the_fetch(engine: Engine) -> None:
    service = Service()
    engine.set_limits("p", Limits(timeout=1000))

    async def elsewhere() -> None:
        service.open.clear()
        task = asyncio.ensure_future(fetched(engine, service.ask()))
        while not service.under_way:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(10):
            while service.under_way:
                await asyncio.sleep(0)

    asyncio.run(elsewhere())


def test_on_its_own_loop_it_is_a_clear_error(engine: Engine) -> None:
    async def inside() -> None:
        engine.wait(asyncio.sleep(0))

    with pytest.raises(RuntimeError, match="engine's own loop"):
        engine.wait(inside())


def test_the_coroutine_sees_the_callers_context(engine: Engine) -> None:
    async def look() -> str:
        return seen_by.get()

    seen_by.set("test")
    assert engine.wait(look()) == "test"


def test_timeout_cancels(engine: Engine) -> None:
    ended = threading.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError, match=r"not done within 0\.01 s"):
        engine.wait(endless(), timeout=0.01)
    assert ended.wait(10)


@pytest.fixture
def ctrl_c_works() -> Iterator[None]:
    """A process that was started in the background by a shell ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_works")
def test_ctrl_c_cancels_and_comes_through_at_once(engine: Engine) -> None:
    ended = threading.Event()

    async def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)  # Python handles it in the main thread, which waits
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        engine.wait(interrupted())
    assert ended.wait(10)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), TimeoutError("their own")])
def test_a_callable_that_exits_does_not_end_the_loop(engine: Engine, error: BaseException) -> None:
    async def leave() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        engine.wait(leave())
    assert caught.value is error
    assert engine.wait(fetched(engine, Service().ask())).value == "q"


def test_closing_ends_what_waits_and_closes_clients_last(engine: Engine) -> None:
    order: list[str] = []
    waiting = threading.Event()

    async def work() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            order.append("work")

    async def close_client(name: str) -> None:
        assert asyncio.get_running_loop() is loop
        order.append(name)

    async def broken_client() -> None:
        raise OSError("connection lost")

    loop = engine.loop
    engine.on_close(lambda: close_client("first client"))
    engine.on_close(broken_client)
    engine.on_close(lambda: close_client("second client"))
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(lambda: engine.wait(work()))
        assert waiting.wait(10)
        engine.close()
        with pytest.raises(Unscored, match="ended before this was done"):
            result.result(10)
    assert order == ["work", "second client", "first client"]
    assert loop.is_closed()
    engine.close()


def test_after_closing_it_says_so(engine: Engine) -> None:
    engine.close()
    with pytest.raises(RuntimeError, match="engine is closed"):
        engine.wait(asyncio.sleep(0))


def test_nothing_is_started_before_the_first_use(make_engine: Callable[..., Engine], store_path: Any) -> None:
    before = threading.active_count()
    engine = make_engine()
    engine.usage()
    engine.close()
    assert threading.active_count() == before
    assert not store_path.parent.exists()


def test_while_all_is_stored_there_is_nothing_to_do_meanwhile(make_engine: Callable[..., Engine]) -> None:
    """Look-ahead would compute every score twice; it begins with the first reply that is not stored."""
    did: list[int] = []

    def ask(engine: Engine, service: Service, key: int) -> None:
        def goes_on(long: bool) -> None:
            assert (
                not engine._is_warm
            )  # it is the missing reply that brought us here, and no patience that ended
            did.append(key)
            engine.loop.call_soon_threadsafe(service.open.set)

        service.open.clear()
        engine.wait(fetched(engine, service.ask(key)), meanwhile=goes_on)

    first, second = (make_engine(), Service()), (make_engine(), Service())
    for key in (1, 2, 3):
        ask(*first, key)
    assert did == [1, 2, 3]
    for key in (1, 2, 3):
        ask(*second, key)
    assert did == [1, 2, 3]
    for key in (4, 5):
        ask(*second, key)
    assert did == [1, 2, 3, 4, 5]
    assert (first[1].calls, second[1].calls) == (3, 2)


@pytest.mark.parametrize("computes", [False, True])
def test_whoever_waits_is_told_where_it_is_a_service_that_takes_long(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, computes: bool
) -> None:
    """A process that computes all the while waits for itself: asking more ahead would only add to it."""
    enough, looks, told = asyncio.Event(), itertools.count(), list[bool]()

    def process_time() -> float:
        look = next(looks)
        if computes and look == 5:
            engine.loop.call_soon_threadsafe(enough.set)
        return float(look) if computes else 0.0

    def meanwhile(long: bool) -> None:
        told.append(long)
        if long:
            engine.loop.call_soon_threadsafe(enough.set)

    monkeypatch.setattr("pytest_ragbench.engine.loop.time.process_time", process_time)
    engine.wait(enough.wait(), meanwhile=meanwhile)
    assert told == ([False] if computes else [False, True])


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_what_was_begun_learns_that_it_is_cancelled(steps: int) -> None:
    """At once, too: a worker that gives up in the same turn of the loop still gets its answer."""
    told: list[str] = []

    async def scene() -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            try:
                await never
            except asyncio.CancelledError:
                await asyncio.sleep(0)  # it may wait while it cleans up
                told.append("cancelled")

        task = begin(work())
        assert task is not None
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await task
        assert never.cancelled()

    asyncio.run(asyncio.wait_for(scene(), 30))
    assert told == ["cancelled"]


def test_what_was_begun_goes_on_as_any_coroutine() -> None:
    told: list[object] = []

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        good, bad = loop.create_future(), loop.create_future()

        async def work() -> None:
            await asyncio.sleep(0)
            told.append(await good)
            try:
                await bad
            except LookupError as error:
                told.append(error)
            raise ValueError("its own")

        task = begin(work())
        assert task is not None
        loop.call_soon(good.set_result, "good")
        bad.set_exception(error := LookupError("bad"))
        with pytest.raises(ValueError, match="its own"):
            await task
        assert told == ["good", error]

        async def at_once() -> None:
            told.append("at once")

        assert begin(at_once()) is None

    asyncio.run(asyncio.wait_for(scene(), 30))
    assert told[-1] == "at once"
