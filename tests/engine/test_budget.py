"""Budget, pace and prices: of one process, and of several."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.engine import Engine, Limits, Sender, Sent, lookahead
from pytest_ragbench.engine.budget import Caps
from pytest_ragbench.engine.counters import LocalCounters
from pytest_ragbench.engine.lookahead import looking_ahead
from pytest_ragbench.engine.pace import Pace
from pytest_ragbench.engine.prices import Price, prices_of
from pytest_ragbench.model.errors import BudgetError, JudgeError, UsageError
from pytest_ragbench.settings import PriceSettings, ProviderSettings
from tests.engine.helpers import Asked, Clock, Service, at_once, fetched, unavailable

MakeTeam = Callable[..., list[Engine]]


def priced(provider: str, model: str) -> Price | None:
    return Price(1.0, 10.0) if model == "m" else None


def asking(service: Service, key: str, model: str = "m") -> Asked:
    plain = service.ask(key)
    return replace(plain, key={**plain.key, "model": model})


# The budget


def test_what_is_over_the_calls_is_not_asked(make_engine: Callable[..., Engine]) -> None:
    service = Service()
    engine = make_engine(caps=Caps(calls=2))
    for key in "ab":
        engine.wait(fetched(engine, service.ask(key)))
    with pytest.raises(BudgetError, match="max_calls 2; used or under way: 2 calls, 24 tokens") as caught:
        engine.wait(fetched(engine, service.ask("c")))
    assert caught.value.code == "budget"
    assert service.calls == 2
    assert engine.wait(fetched(engine, service.ask("a"))).cached  # what is stored costs nothing


def test_retries_count(make_engine: Callable[..., Engine]) -> None:
    service = Service([unavailable(), unavailable()])
    engine = make_engine(caps=Caps(calls=2), limits={"p": Limits(wait=0.0)})
    with pytest.raises(BudgetError):
        engine.wait(fetched(engine, service.ask()))
    assert service.calls == 2


def test_calls_under_way_count_with_what_they_will_probably_take(make_engine: Callable[..., Engine]) -> None:
    service = Service()
    engine = make_engine(caps=Caps(tokens=60))  # 12 a call; the first is guessed at by its length

    async def all_at_once() -> list[Any]:
        asked = [fetched(engine, service.ask(f"q{number}")) for number in range(20)]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    engine.wait(fetched(engine, service.ask("first")))
    got = engine.wait(all_at_once())
    assert service.calls == 5
    assert sum(isinstance(each, BudgetError) for each in got) == 16
    assert engine.usage()["judge"]["prompt_tokens"] + engine.usage()["judge"]["completion_tokens"] == 60


def test_guesses_that_were_too_high_use_nothing_up(make_engine: Callable[..., Engine]) -> None:
    """Before the first reply a call is guessed at by its length: here 100 tokens and more, for 12."""
    service = Service()
    engine = make_engine(caps=Caps(tokens=250))

    async def all_at_once() -> list[Any]:
        asked = [fetched(engine, service.ask(f"{number} " + "x" * 300)) for number in range(20)]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    got = engine.wait(all_at_once(), timeout=20)
    assert service.calls == 20  # 240 tokens
    assert [each for each in got if isinstance(each, BaseException)] == []


def test_what_was_put_aside_and_never_settled_is_waited_for_once(
    make_engine: Callable[..., Engine], clock: Clock
) -> None:
    """By a process of another host that was killed."""
    service = Service()
    engine = make_engine(caps=Caps(tokens=100), sleep=clock.sleep)
    assert engine.wait(engine._start().coordinator.permits.budget.reserve("x", 90, 0.0))  # type: ignore[attr-defined]
    for number in range(2):
        with pytest.raises(BudgetError, match="max_tokens 100"):
            engine.wait(fetched(engine, service.ask(f"{number} " + "x" * 60)), timeout=20)
    assert service.calls == 0
    assert sum(clock.slept) == pytest.approx(Limits().timeout)


def test_cost(make_engine: Callable[..., Engine]) -> None:
    service = Service()
    engine = make_engine(caps=Caps(cost=0.00005), prices=priced)  # 10 + 2*10 millionths a call
    got = engine.wait(fetched(engine, asking(service, "a")))
    assert got.usage.cost == pytest.approx(0.00003)
    engine.wait(fetched(engine, asking(service, "b")))
    with pytest.raises(BudgetError, match=r"max_cost \$0\.00005"):
        engine.wait(fetched(engine, asking(service, "c")))
    page = engine.usage()["judge p:m"]
    assert (page["calls"], page["cost"]) == (2, pytest.approx(0.00006))


def test_a_cap_on_cost_needs_prices_before_any_call(make_engine: Callable[..., Engine]) -> None:
    service = Service()
    engine = make_engine(caps=Caps(cost=1.0), prices=priced)
    with pytest.raises(UsageError, match=r'\[providers.p.prices\] "other" = \{input'):
        engine.wait(fetched(engine, asking(service, "a", "other")))
    assert service.calls == 0


def test_what_the_store_saved(make_engine: Callable[..., Engine]) -> None:
    service = Service()
    first = make_engine()
    first.wait(fetched(first, asking(service, "a")))
    first.close()
    second = make_engine(prices=priced, run_id="run-2")
    assert second.wait(fetched(second, asking(service, "a"))).usage.tokens == 0
    page = second.usage()["judge"]
    assert (page["stored"], page["saved_tokens"]) == (1, 12)
    assert page["saved_cost"] == pytest.approx(0.00003)


def test_workers_share_the_budget(make_team: MakeTeam) -> None:
    service = Service()
    controller, *workers = make_team(3, caps=Caps(calls=10))

    def ask(engine: Engine, name: str) -> int:
        async def all_at_once() -> list[Any]:
            asked = [fetched(engine, service.ask(f"{name} {number}")) for number in range(8)]
            return list(await asyncio.gather(*asked, return_exceptions=True))

        return sum(isinstance(each, BudgetError) for each in engine.wait(all_at_once()))

    with ThreadPoolExecutor(4) as pool:
        refused = sum(pool.map(ask, [controller, *workers], "abcd"))
    assert (service.calls, refused) == (10, 22)


# The pace


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    return Pace("p", LocalCounters(), clock)


def test_too_fast_halves_and_success_brings_it_back(pace: Pace, clock: Clock) -> None:
    assert pace.limit(16) == 16
    pace.slow_down(clock.now, 16, None)
    assert pace.limit(16) == 8
    pace.slow_down(clock.now - 1, 16, None)  # sent before the cut: it tells nothing new
    assert pace.limit(16) == 8
    for _ in range(10):
        clock.now += 1
        pace.slow_down(clock.now, 16, None)
    assert pace.limit(16) == 1
    good = 0
    while pace.limit(16) < 16:
        pace.speed_up(16)
        good += 1
    assert 16 < good < 150


def test_retry_after_silences_everybody(clock: Clock) -> None:
    counters = LocalCounters()
    one, other = (Pace("p", counters, clock) for _ in range(2))
    one.slow_down(clock.now, 16, 3.0)
    assert at_once(other.turn(None, None, 0, 0.0)) == 3.0
    assert at_once(Pace("q", counters, clock).turn(None, None, 0, 0.0)) == 0.0
    clock.now += 3.0
    assert at_once(other.turn(None, None, 0, 0.0)) == 0.0
    assert other.limit(16) == 8


@settings(deadline=None)
@given(per_minute=st.integers(1, 600), steps=st.lists(st.floats(0, 20), min_size=1, max_size=80))
def test_no_minute_gets_more_requests_than_its_rate(per_minute: int, steps: list[float]) -> None:
    clock = Clock()
    pace = Pace("p", LocalCounters(), clock)
    sent: list[float] = []
    for step in steps:
        clock.now += step
        for _ in range(20):
            if at_once(pace.turn(per_minute, None, 0, 0.0)) > 0:
                break
            sent.append(clock.now)
    for moment in sent:
        within = sum(moment <= other < moment + 59.999 for other in sent)
        assert within <= per_minute


def test_a_rate_is_used_up_to_nine_tenths_at_least(pace: Pace, clock: Clock) -> None:
    sent = 0
    while clock.now < 1000 + 600:
        wait = at_once(pace.turn(100, None, 0, 0.0))
        sent += wait <= 0
        clock.now += max(wait, 0)
    assert 900 <= sent <= 1000


def test_tokens_are_corrected_afterwards(pace: Pace, clock: Clock) -> None:
    assert at_once(pace.turn(None, 1000, 100, 0.0)) == 0.0  # all that is there at once
    assert at_once(pace.turn(None, 1000, 100, 0.0)) == pytest.approx(100 * 60 / 901)
    pace.correct(1000, 100, 40)
    assert at_once(pace.turn(None, 1000, 60, 0.0)) <= 0.0


def test_a_busy_provider_is_left_alone_by_all_calls(make_engine: Callable[..., Engine], clock: Clock) -> None:
    service = Service([unavailable(429, 5.0)])
    engine = make_engine(store=None, limits={"p": Limits(wait=0.0)}, sleep=clock.sleep, clock=clock)
    engine.wait(fetched(engine, service.ask("a")))
    assert clock.slept == [5.0]
    service.troubles = [unavailable(429, 5.0)]

    async def both() -> None:
        first = asyncio.ensure_future(fetched(engine, service.ask("b")))
        while service.calls != 3:
            await asyncio.sleep(0)
        await asyncio.gather(first, fetched(engine, service.ask("c")))

    engine.wait(both())
    assert clock.slept[1] == 5.0
    assert sum(clock.slept) < 15  # the other one did not find out for itself
    assert service.calls == 5


def test_a_used_up_quota_ends_it_for_everybody(make_team: MakeTeam) -> None:
    service = Service([JudgeError("429: quota used up", code="insufficient_quota")])
    first, other, third = make_team(2, store=None)
    for engine in (first, first, other, third):
        with pytest.raises(JudgeError, match="quota") as caught:
            engine.wait(fetched(engine, service.ask()))
        assert caught.value.code == "insufficient_quota"
    assert service.calls == 1


def test_a_rate_holds_up_nobody_who_needs_no_call(make_engine: Callable[..., Engine], clock: Clock) -> None:
    service = Service()
    limits = {"p": Limits(requests_per_minute=1)}
    engine = make_engine(limits=limits, sleep=clock.sleep, clock=clock)
    for key in "aab":
        engine.wait(fetched(engine, service.ask(key)))
    assert service.calls == 2
    assert sum(clock.slept) == pytest.approx(60)


# Prices


def test_prices() -> None:
    own = ProviderSettings(
        base_url="https://api.openai.com/v1", prices={"mine": PriceSettings(input=1, output=2)}
    )
    near = ProviderSettings(base_url="http://localhost:8000/v1")
    price = prices_of({"o": own, "near": near})
    assert price("o", "mine") == Price(1, 2)
    assert price("near", "gpt-4o-mini") is None
    assert price("unknown", "gpt-4o-mini") is None
    assert price("o", "no-such-model-at-all") is None
    listed = price("openai", "gpt-4o-mini")
    assert listed is not None
    assert 0 < listed.input < listed.output
    assert price("o", "gpt-4o-mini") == listed
    assert prices_of({}, "http://localhost/v1")("openai", "gpt-4o-mini") is None
    assert prices_of({}, "http://10.0.0.3:8000/v1")("openai", "gpt-4o-mini") is None


def test_a_call_that_fails_gives_back_what_was_put_aside(make_engine: Callable[..., Engine]) -> None:
    async def fetch(send: Sender) -> Any:
        async def attempt() -> Sent:
            raise JudgeError("no")

        return (await send(attempt)).payload

    engine = make_engine(store=None, caps=Caps(tokens=100))
    for number in range(10):
        with pytest.raises(JudgeError, match="no"):
            engine.wait(fetched(engine, Asked("judge", "p", {"k": number, "text": "x" * 200}, fetch, str)))


def test_what_another_worker_paid_ahead_is_put_down_to_the_test_once(
    make_engine: Callable[..., Engine], make_team: MakeTeam
) -> None:
    service = Service()
    controller, one, other, third = make_team(3, run_id="r", prices=priced)

    async def guess() -> None:
        looking_ahead.set(True)
        await fetched(one, asking(service, "a"))

    one.wait(guess())
    got = other.wait(fetched(other, asking(service, "a")))
    assert (got.cached, got.usage.calls, got.usage.tokens) == (False, 1, 12)
    assert got.usage.cost == pytest.approx(0.00003)
    other.settle()
    assert (controller.usage()["judge"]["stored"], controller.usage()["judge"]["calls"]) == (0, 1)
    for engine in (third, other, one):
        again = engine.wait(fetched(engine, asking(service, "a")))
        assert (again.cached, again.usage.tokens) == (True, 0)
    controller.close()
    later = make_engine(run_id="r2")
    assert later.wait(fetched(later, asking(service, "a"))).cached
    assert service.calls == 1


def test_a_fetch_that_fails_leaves_it_to_the_next(make_team: MakeTeam) -> None:
    service = Service([JudgeError("no")])
    _, engine = make_team(1)
    with pytest.raises(JudgeError):
        engine.wait(fetched(engine, service.ask("a")))
    assert engine.wait(fetched(engine, service.ask("a"))).usage.calls == 1
    assert engine.wait(fetched(engine, service.ask("a"))).cached


def test_a_guess_that_failed_is_not_repeated_by_the_worker_whose_test_it_is(
    make_engine: Callable[..., Engine], make_team: MakeTeam
) -> None:
    service = Service([unavailable()] * 4)
    limits = {"p": Limits(attempts=2, wait=0.0)}
    _, one, other = make_team(2, run_id="r", limits=limits)
    apart = make_engine(run_id="r2", limits=limits)

    async def guess() -> None:
        looking_ahead.set(True)
        await fetched(one, service.ask("a"))

    def fails(engine: Engine) -> None:
        with pytest.raises(JudgeError, match=r"status 503 \(after 2 attempts") as caught:
            engine.wait(fetched(engine, service.ask("a")))
        assert caught.value.code == "http_503"

    with pytest.raises(JudgeError):
        one.wait(guess())
    assert service.calls == 2
    fails(other)  # is handed the error
    assert service.calls == 2
    fails(apart)  # another run asks for itself
    assert service.calls == 4
    assert other.wait(fetched(other, service.ask("a"))).value == "a"  # a rerun asks anew


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failed_guess_of_ones_own_is_told_once(make_team: MakeTeam, workers: int) -> None:
    service = Service([unavailable()])
    engine = make_team(workers, limits={"p": Limits(attempts=1)})[-1]

    async def guess() -> None:
        looking_ahead.set(True)
        await fetched(engine, service.ask("a"))

    for work in (guess(), fetched(engine, service.ask("a"))):
        with pytest.raises(JudgeError):
            engine.wait(work)
    assert engine.wait(fetched(engine, service.ask("a"))).value == "a"
    assert service.calls == 2


def test_no_price_list_is_loaded_for_a_service_at_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)  # importing it would raise
    for url in ("http://127.0.0.1:8000/v1", "http://10.0.0.3/v1", "http://localhost/v1"):
        assert prices_of({}, url)("openai", "gpt-4o-mini") is None


def test_a_reply_that_was_guessed_is_handed_to_its_test(
    make_engine: Callable[..., Engine], store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a look at the store, as long as there are not too many; each has a value of its own to change."""
    monkeypatch.setattr(lookahead, "_AT_HAND", 2)
    service, read = Service(), []
    engine = make_engine()

    def reading(payload: Any) -> Any:
        read.append(payload["echo"])
        return {"echo": [payload["echo"]]}

    async def guess(key: str) -> None:
        looking_ahead.set(True)
        (await fetched(engine, service.ask(key, read=reading))).value["echo"].append("changed by the guess")

    for key in ("a", "b", "c"):
        engine.wait(guess(key))
    assert read == ["a", "b", "c"]
    got = [engine.wait(fetched(engine, service.ask(key, read=reading))) for key in ("a", "b", "c")]
    assert [each.value["echo"] for each in got] == [["a"], ["b"], ["c"]]
    assert read == ["a", "b", "c", "a", "b", "c"]
    assert [each.usage.calls for each in got] == [1, 1, 1]
    assert service.calls == 3
