"""Slots, time limits, retries, the circuit breaker. No test here really waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.engine import Engine, Limits, Transient
from pytest_ragbench.engine.breaker import FAILURES, PAUSE_S
from pytest_ragbench.engine.sending import UnderWay
from pytest_ragbench.engine.slots import LocalSlots
from pytest_ragbench.model.errors import EndpointError, JudgeError
from tests.engine.helpers import Asked, Clock, Service, fetched, unavailable

LIMITS = Limits(attempts=3, wait=0.5, max_wait=30.0)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(make_engine: Callable[..., Engine], clock: Clock) -> Engine:
    return make_engine(store=None, limits={"p": LIMITS}, sleep=clock.sleep, clock=clock)


def error_of(engine: Engine, request: Asked) -> JudgeError:
    with pytest.raises(JudgeError) as caught:
        engine.wait(fetched(engine, request))
    return caught.value


@pytest.mark.parametrize(
    ("retry_after", "least", "most"),
    [
        (2.0, 2.0, 10.0),
        (7.0, 7.0, 15.0),
        (1.5, 1.5, 10.0),
        (0.0, 0.0, 10.0),
        (None, 0.5, 1.0),
        (30.0, 30.0, 30.0),
    ],
)
def test_retry_after_is_waited_for(
    engine: Engine, clock: Clock, retry_after: float | None, least: float, most: float
) -> None:
    service = Service([unavailable(429, retry_after)])
    assert engine.wait(fetched(engine, service.ask())).usage.calls == 2
    assert [least <= each <= most for each in clock.slept] == [True]


def test_a_busy_service_is_waited_for_beyond_the_attempts(
    make_engine: Callable[..., Engine], clock: Clock
) -> None:
    limits = Limits(attempts=2, wait=0.5, patience=20.0)
    engine = make_engine(store=None, limits={"p": limits}, sleep=clock.sleep, clock=clock)
    busy = Service([unavailable(429, 1.0)] * 6)
    assert engine.wait(fetched(engine, busy.ask())).usage.calls == 7
    error = error_of(engine, Service([unavailable(503, None)] * 6).ask("failing"))
    assert "after 2 attempts" in str(error)
    clock.slept.clear()
    error_of(engine, Service([unavailable(429, 1.0)] * 60).ask("busy for ever"))
    assert 20 <= sum(clock.slept) <= 52


def test_a_retry_after_beyond_the_cap_is_given_up_at_once(engine: Engine, clock: Clock) -> None:
    service = Service([unavailable(429, 3600.0)])
    error = error_of(engine, service.ask())
    assert "status 429" in str(error)
    assert "asks to wait 3600 s" in str(error)
    assert "max_wait is 30 s" in str(error)
    assert error.code == "http_429"
    assert (service.calls, clock.slept) == (1, [])


def test_503_for_ever(engine: Engine, clock: Clock) -> None:
    service = Service([unavailable()] * 9)
    with pytest.raises(EndpointError) as caught:
        engine.wait(fetched(engine, replace(service.ask(), kind="rag")))
    error = caught.value
    assert str(error).startswith("GET http://service/llm/search-rag: status 503 (after 3 attempts in ")
    assert error.code == "http_503"
    assert service.calls == 3
    assert error.__cause__ is None
    assert error.__suppress_context__
    first, second = clock.slept
    assert 0.5 <= first <= 1.0 <= second <= 1.5  # doubles; up to 0.5 s of jitter


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408, 409])
def test_what_can_heal_is_retried_as_often_as_is_configured(engine: Engine, status: int) -> None:
    healed = Service([unavailable(status), unavailable(status)])
    assert engine.wait(fetched(engine, healed.ask("heals"))).usage.calls == healed.calls == 3
    broken = Service([unavailable(status)] * 9)
    assert error_of(engine, broken.ask("stays")).code == f"http_{status}"
    assert broken.calls == LIMITS.attempts


def test_no_wait_is_longer_than_the_cap(make_engine: Callable[..., Engine], clock: Clock) -> None:
    limits = Limits(attempts=12, wait=1.0, max_wait=5.0)
    engine = make_engine(store=None, limits={"p": limits}, sleep=clock.sleep, clock=clock)
    error_of(engine, Service([unavailable()] * 12).ask())
    assert len(clock.slept) == 11
    assert max(clock.slept) == 5.0


def test_what_cannot_heal_is_not_retried(engine: Engine) -> None:
    service = Service([JudgeError("insufficient_quota: you exceeded your quota", code="quota")] * 5)
    assert str(error_of(engine, service.ask())).startswith("insufficient_quota")
    assert service.calls == 1


def test_a_call_that_hangs_is_cut_off(make_engine: Callable[..., Engine], clock: Clock) -> None:
    limits = Limits(timeout=0.01, attempts=2)
    engine = make_engine(store=None, limits={"p": limits}, sleep=clock.sleep, clock=clock)
    service = Service()
    service.open.clear()
    error = error_of(engine, service.ask())
    assert str(error).startswith(
        "p: no reply within 0.01 s: is it overloaded, or its timeout too short? (after 2 attempts in "
    )
    assert error.code == "timeout"
    assert (service.calls, service.under_way) == (2, 0)


async def gather(engine: Engine, *requests: Asked) -> list[Any]:
    outcomes: list[Any] = await asyncio.gather(
        *(fetched(engine, each) for each in requests), return_exceptions=True
    )
    return outcomes


@pytest.mark.parametrize("store", [False, True])
def test_slots_bound_the_calls_under_way(make_engine: Callable[..., Engine], store: bool) -> None:
    options = {} if store else {"store": None}
    engine = make_engine(
        limits={"p": Limits(max_concurrency=3), "other": Limits(max_concurrency=1)}, **options
    )
    service, other = Service(), Service()
    engine.wait(
        gather(engine, *map(service.ask, range(20)), *(other.ask(n, provider="other") for n in range(5)))
    )
    assert (service.calls, service.peak) == (20, 3)
    assert (other.calls, other.peak) == (5, 1)


def test_raised_limits_are_felt_by_new_calls(engine: Engine) -> None:
    service = Service()
    engine.set_limits("p", Limits(max_concurrency=1))
    engine.wait(gather(engine, *map(service.ask, range(5))))
    assert service.peak == 1
    engine.set_limits("p", Limits(max_concurrency=4))
    engine.wait(gather(engine, *map(service.ask, range(10, 30))))
    assert service.peak == 4


def test_a_waiting_retry_holds_no_slot(make_engine: Callable[..., Engine]) -> None:
    slept = asyncio.Event()
    other_done = asyncio.Event()

    async def sleep(seconds: float) -> None:
        slept.set()
        await other_done.wait()

    engine = make_engine(store=None, limits={"p": Limits(max_concurrency=1)}, sleep=sleep)

    async def scene() -> list[Any]:
        waiting = asyncio.ensure_future(fetched(engine, Service([unavailable()]).ask("a")))
        await slept.wait()
        other = await fetched(engine, Service().ask("b"))  # gets the one slot there is
        other_done.set()
        return [other.value, (await waiting).value]

    assert engine.wait(scene(), timeout=10) == ["b", "a"]


@pytest.mark.parametrize("store", [False, True])
def test_a_cancelled_waiter_loses_no_slot(make_engine: Callable[..., Engine], store: bool) -> None:
    engine = make_engine(limits={"p": Limits(max_concurrency=1)}, **({} if store else {"store": None}))
    service = Service()

    async def scene() -> Any:
        service.open.clear()
        first = asyncio.ensure_future(fetched(engine, service.ask(1)))
        while not service.under_way:
            await asyncio.sleep(0)
        others = [asyncio.ensure_future(fetched(engine, service.ask(n))) for n in range(2, 6)]
        await asyncio.sleep(0)
        for each in others:
            each.cancel()
        service.open.set()
        await first
        return (await fetched(engine, service.ask(6))).value

    assert engine.wait(scene(), timeout=10) == 6


def test_a_slot_given_to_somebody_who_is_just_cancelled_is_passed_on() -> None:
    async def scene() -> None:
        slots = LocalSlots()
        await slots.enter("p", 1, True)
        waiter = asyncio.ensure_future(slots.enter("p", 1, True))
        await asyncio.sleep(0)
        slots.leave("p")
        waiter.cancel()
        async with asyncio.timeout(10):
            await slots.enter("p", 1, True)
        assert waiter.cancelled()

    asyncio.run(scene())


# The circuit breaker


def refused_connection() -> Transient:
    return Transient("http://judge: connection refused", code="connection")


def test_a_dead_provider_is_not_asked_again(engine: Engine, clock: Clock) -> None:
    dead = Service([refused_connection()] * 100)
    for number in range(FAILURES):
        assert "(after 3 attempts" in str(error_of(engine, dead.ask(number)))
    assert dead.calls == 3 * FAILURES
    errors = [error_of(engine, dead.ask(number)) for number in range(10, 20)]
    assert dead.calls == 3 * FAILURES
    assert str(errors[0]) == (
        "http://judge: connection refused; p is not answering: 3 requests in a row failed like this; "
        "not asked again for 30 s"
    )
    assert {each.code for each in errors} == {"unavailable"}
    assert engine.wait(fetched(engine, Service().ask("x", provider="other"))).value == "x"


def test_after_the_pause_one_probe_decides(engine: Engine, clock: Clock) -> None:
    service = Service([refused_connection()] * 10)
    for number in range(FAILURES):
        error_of(engine, service.ask(number))
    clock.now += PAUSE_S
    assert service.calls == 9
    assert "http://judge: connection refused (after 1 attempt; then p is not" in str(
        error_of(engine, service.ask("probe"))
    )
    assert service.calls == 10  # it was tried once, and the pause began anew
    error_of(engine, service.ask("too early"))
    assert service.calls == 10
    clock.now += PAUSE_S
    assert engine.wait(fetched(engine, service.ask("second probe"))).value == "second probe"
    assert engine.wait(fetched(engine, service.ask("and on"))).value == "and on"


def test_while_a_probe_is_under_way_others_are_told(engine: Engine, clock: Clock) -> None:
    service = Service([refused_connection()] * 9)
    for number in range(FAILURES):
        error_of(engine, service.ask(number))
    clock.now += PAUSE_S

    async def scene() -> Any:
        service.open.clear()
        probe = asyncio.ensure_future(fetched(engine, service.ask("probe")))
        while not service.under_way:
            await asyncio.sleep(0)
        [other] = await gather(engine, service.ask("other"))
        service.open.set()
        return other, (await probe).value

    other, probe = engine.wait(scene())
    assert "p is not answering" in str(other)
    assert probe == "probe"


def test_a_reply_or_a_plain_refusal_starts_the_count_anew(engine: Engine) -> None:
    three = [unavailable()] * 3
    refusal = JudgeError("content filter")
    service = Service([*three, *three, None, *three, *three, refusal, *three, *three, None])
    outcomes = [engine.wait(gather(engine, service.ask(number)))[0] for number in range(9)]
    assert service.calls == 21
    assert not any("not answering" in str(each) for each in outcomes)
    assert [isinstance(each, Exception) for each in outcomes] == [
        True,
        True,
        False,
        True,
        True,
        True,
        True,
        True,
        False,
    ]


def test_a_provider_that_hangs_costs_one_timeout(make_engine: Callable[..., Engine], clock: Clock) -> None:
    limits = Limits(timeout=0.01, attempts=4, max_concurrency=16)
    engine = make_engine(store=None, limits={"p": limits}, sleep=clock.sleep)
    service = Service()
    service.open.clear()
    errors = engine.wait(gather(engine, *map(service.ask, range(100))))
    assert all(isinstance(each, JudgeError) for each in errors)
    assert service.calls < 32  # those under way when it was found out, not four for each of a hundred
    assert "no reply within 0.01 s" in str(errors[-1])


def test_a_provider_that_only_ever_said_500_is_given_up_early(make_engine: Callable[..., Engine]) -> None:
    def engine_and_sleeps() -> tuple[Engine, list[float]]:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            await asyncio.sleep(0)

        return make_engine(store=None, limits={"p": Limits(wait=0.5)}, sleep=sleep), slept

    engine, slept = engine_and_sleeps()
    service = Service([unavailable(500)] * 100)
    errors = engine.wait(gather(engine, *map(service.ask, range(10))))
    assert all(isinstance(each, JudgeError) for each in errors)
    assert service.calls <= 20
    assert max(slept) <= 2.0  # nobody got to the third wait
    engine, slept = engine_and_sleeps()
    service = Service([None, *[unavailable(500)] * 29])
    engine.wait(fetched(engine, service.ask("well")))
    assert len(engine.wait(gather(engine, *map(service.ask, range(10))))) == 10
    assert service.calls == 40  # once it has answered, it may recover: nobody gives up early
    assert engine.usage()["judge"]["failed"] == 0


def test_hanging_calls_among_answered_ones_are_retried(make_engine: Callable[..., Engine]) -> None:
    hanging, healthy = Service(), Service()
    retries = 0

    async def sleep(seconds: float) -> None:
        nonlocal retries
        retries += 1
        await hanging.open.wait()

    engine = make_engine(store=None, limits={"p": Limits(timeout=0.05, attempts=2)}, sleep=sleep)

    async def scene() -> list[Any]:
        hanging.open.clear()
        tasks = [asyncio.ensure_future(fetched(engine, hanging.ask(number))) for number in range(5)]
        while hanging.under_way < 5:
            await asyncio.sleep(0)
        await fetched(engine, healthy.ask("answered meanwhile"))
        while retries < 5:
            await asyncio.sleep(0)
        hanging.open.set()
        return [(await task).usage.calls for task in tasks]

    assert engine.wait(scene(), timeout=20) == [2] * 5


@given(st.lists(st.booleans(), max_size=40))
def test_each_request_knows_the_most_that_it_was_one_of(steps: list[bool]) -> None:
    """Against looking at all that are out whenever one goes out."""
    under_way, out, most = UnderWay(), [], dict[int, int]()
    for goes_out in steps:
        if goes_out:
            out.append(under_way.enter("p"))
            most[out[-1]] = len(out)
            most.update({number: max(most[number], len(out)) for number in out})
        elif out:
            number = out.pop(len(out) // 2)
            assert under_way.most_since("p", number) == most[number]
            under_way.leave("p")
    assert [under_way.most_since("p", number) for number in out] == [most[number] for number in out]
