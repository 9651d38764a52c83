"""What a fetch brings: once, shared, stored; errors to all, and never kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine import Engine, Fetched, Limits, Sender, Sent, Store
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.model.scores import Usage
from tests.engine.helpers import Asked, Service, fetched, unavailable

MakeEngine = Callable[..., Engine]


async def all_of(engine: Engine, *requests: Asked) -> list[Fetched[Any]]:
    return await asyncio.gather(*(fetched(engine, request) for request in requests))


def test_the_first_waiter_pays_and_the_others_share(engine: Engine) -> None:
    service = Service()
    first, *others = engine.wait(all_of(engine, *(service.ask("вопрос") for _ in range(5))))
    assert service.calls == 1
    assert (first.value, first.usage, first.cached) == ("вопрос", Usage(1, 10, 2), False)
    assert first.duration > 0
    assert [replace(each, took=None) for each in others] == [Fetched("вопрос", Usage(), 0.0, True)] * 4


@pytest.mark.parametrize("stored", [True, False])
def test_a_second_fetch_is_served_without_a_call(make_engine: MakeEngine, stored: bool) -> None:
    service = Service()
    engine = make_engine() if stored else make_engine(store=None)
    engine.wait(fetched(engine, service.ask("質問")))
    again = engine.wait(fetched(engine, service.ask("質問")))
    assert replace(again, took=None) == Fetched("質問", cached=True)
    assert service.calls == 1


def test_a_later_run_is_served_from_the_file(make_engine: MakeEngine) -> None:
    service = Service()
    earlier = make_engine(run_id="run-1")
    earlier.wait(fetched(earlier, service.ask()))
    earlier.close()
    later = make_engine(run_id="run-2")
    assert later.wait(fetched(later, service.ask())).cached
    assert service.calls == 1


def test_run_scope_ends_with_the_run(make_engine: MakeEngine) -> None:
    service = Service()
    worker_1, worker_2, next_run = make_engine(), make_engine(), make_engine(run_id="run-2")
    for each in (worker_1, worker_2, next_run):
        each.wait(fetched(each, service.ask(scope="run")))
    assert service.calls == 2


def test_scope_none_is_neither_kept_nor_shared(engine: Engine, store_path: Path) -> None:
    service = Service()
    got = engine.wait(all_of(engine, service.ask(scope="none"), service.ask(scope="none")))
    assert service.calls == 2
    assert not any(each.cached for each in got)
    assert [each.usage.calls for each in got] == [1, 1]
    assert not store_path.exists() or Store(store_path).stats()["replies"] == 0


def test_an_error_reaches_every_waiter_and_is_not_kept(engine: Engine, store_path: Path) -> None:
    service = Service([JudgeError("refused", code="refused")])

    async def both() -> list[Any]:
        requests = (service.ask(), service.ask())
        fetches = (fetched(engine, each) for each in requests)
        outcomes: list[Any] = await asyncio.gather(*fetches, return_exceptions=True)
        return outcomes

    errors = engine.wait(both())
    assert [str(error) for error in errors] == ["refused", "refused"]
    assert service.calls == 1
    assert Store(store_path).stats()["replies"] == 0
    assert engine.wait(fetched(engine, service.ask())).value == "q"  # the next one asks again
    assert service.calls == 2
    engine.close()
    assert Store(store_path).stats()["replies"] == 1


def test_a_reply_that_cannot_be_read_is_not_kept(engine: Engine, store_path: Path) -> None:
    def refuse(payload: Any) -> Any:
        raise JudgeError("two verdicts for three claims", code="verdict_count_mismatch")

    with pytest.raises(JudgeError, match="two verdicts"):
        engine.wait(fetched(engine, Service().ask(read=refuse)))
    assert Store(store_path).stats()["replies"] == 0


def test_a_stored_reply_that_cannot_be_read_is_replaced(make_engine: MakeEngine, store_path: Path) -> None:
    old = Service()
    engine = make_engine()
    engine.wait(fetched(engine, old.ask()))

    async def fetch(send: Sender) -> Any:
        return (await send(newer)).payload

    async def newer() -> Sent:
        return Sent({"verdict": 1})

    request = Asked(
        "judge", "p", {"input": "q"}, fetch, lambda payload: payload["verdict"]
    )  # KeyError on the old
    got = engine.wait(fetched(engine, request))
    assert (got.value, got.cached) == (1, False)
    assert [json.loads(reply.payload) for reply in Store(store_path).items()] == [{"verdict": 1}]


def test_a_fresh_value_equals_the_stored_one(engine: Engine) -> None:
    async def fetch(send: Sender) -> Any:
        return {"scores": (0.1, 1 / 3), "texts": {"ru": "да", "ja": "\ud83d"}}

    request = Asked("judge", "p", {"k": 1}, fetch, lambda payload: payload)
    fresh = engine.wait(fetched(engine, request))
    stored = engine.wait(fetched(engine, request))
    assert (fresh.cached, stored.cached) == (False, True)
    assert fresh.value == stored.value == {"scores": [0.1, 1 / 3], "texts": {"ru": "да", "ja": "\ud83d"}}


def test_each_waiter_may_change_its_value(engine: Engine) -> None:
    requests = [Service().ask(read=lambda payload: payload) for _ in range(2)]
    first, second = engine.wait(all_of(engine, *requests))
    first.value["echo"] = "changed"
    assert second.value == {"echo": "q"}


def test_a_value_that_one_changes_at_once_is_whole_for_who_waited_beside(engine: Engine) -> None:
    service = Service()

    async def changes() -> Any:
        value = (await fetched(engine, service.ask({"list": [1]}))).value
        value["list"].append(2)  # before the others are told
        return value

    async def together() -> list[Any]:
        return await asyncio.gather(*(changes() for _ in range(3)))

    assert engine.wait(together()) == [{"list": [1, 2]}] * 3
    assert service.calls == 1


def test_a_payload_that_is_not_json_is_a_type_error(engine: Engine) -> None:
    async def fetch(send: Sender) -> Any:
        return {"vector": [1.0, float("nan")]}

    with pytest.raises(TypeError, match=r"reply to a request \(embedding\)\.vector\[1\]: nan"):
        engine.wait(fetched(engine, Asked("embedding", "p", {}, fetch, lambda payload: payload)))


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("a bug in a user's callable"), TimeoutError("their own")]
)
def test_unknown_exceptions_pass_unchanged(engine: Engine, error: Exception) -> None:
    service = Service([error])
    with pytest.raises(type(error), match=str(error)):
        engine.wait(fetched(engine, service.ask()))
    assert service.calls == 1


def test_one_waiter_leaving_does_not_disturb_the_other(engine: Engine) -> None:
    service = Service()

    async def scene() -> Fetched[Any]:
        service.open.clear()
        leaver = asyncio.ensure_future(fetched(engine, service.ask()))
        stayer = asyncio.ensure_future(fetched(engine, service.ask()))
        while not service.under_way:
            await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.wait([leaver])
        assert leaver.cancelled()
        service.open.set()
        return await stayer

    assert engine.wait(scene()).value == "q"
    assert service.calls == 1


def test_when_all_have_left_the_fetch_ends_and_can_begin_anew(engine: Engine) -> None:
    begun, linger = asyncio.Event(), asyncio.Event()
    service = Service()

    async def slow_to_end(send: Sender) -> Any:
        async def attempt() -> Sent:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await linger.wait()
            raise AssertionError

        return (await send(attempt)).payload

    same = service.ask()
    request = replace(same, send=slow_to_end)

    async def scene() -> Fetched[Any]:
        leaver = asyncio.ensure_future(fetched(engine, request))
        await begun.wait()
        leaver.cancel()
        await asyncio.wait([leaver])
        assert leaver.cancelled()
        try:
            return await fetched(engine, service.ask())  # while the cancelled one has not ended
        finally:
            linger.set()

    got = engine.wait(scene(), timeout=10)
    assert (got.value, got.cached) == ("q", False)


def test_books(engine: Engine) -> None:
    service = Service([unavailable(), None, JudgeError("unreadable")])
    engine.set_limits("p", Limits(wait=0.0))
    for _ in range(2):
        engine.wait(fetched(engine, service.ask("a")))  # a retry and a success; then stored
    with pytest.raises(JudgeError):
        engine.wait(fetched(engine, service.ask("b")))
    page = engine.usage()["judge"]
    latencies = page.pop("latencies")
    counted = {"calls": 3, "stored": 1, "failed": 1, "prompt_tokens": 10, "completion_tokens": 2}
    assert page == counted | {"saved_tokens": 12, "cost": 0.0, "saved_cost": 0.0, "unpriced": 0}
    assert [type(each) for each in latencies] == [float]


def test_news_are_what_has_been_added(engine: Engine) -> None:
    service = Service()
    for number in (1, 2):
        engine.wait(fetched(engine, service.ask(number)))
        news = engine.news()["judge"]
        assert (news["calls"], news["prompt_tokens"], news["completion_tokens"], len(news["latencies"])) == (
            1,
            10,
            2,
            1,
        )
        assert engine.news() == {}
    engine.wait(fetched(engine, service.ask(1)))
    assert (engine.news()["judge"]["stored"], engine.usage()["judge"]["calls"]) == (1, 2)
