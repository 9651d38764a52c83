"""The store, claims, slots, budget and pace in a Redis server; the server in trouble."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("redis")


from pytest_ragbench.building import store_place
from pytest_ragbench.engine import Engine, Limits
from pytest_ragbench.engine.budget import Caps
from pytest_ragbench.engine.coordinator import Reply
from pytest_ragbench.engine.inventory import DAY
from pytest_ragbench.engine.on_redis.link import Link, RowChange
from pytest_ragbench.engine.on_redis.store import LEASE_S, RedisInventory, ReplyScripts
from pytest_ragbench.model.errors import BudgetError, UsageError
from pytest_ragbench.model.redis_url import Address, shown
from pytest_ragbench.settings import Settings
from tests.engine.helpers import Service, fetched, lines, logging_request, note, unavailable
from tests.servers.redis_server import BINARY, MISSING, RedisServer, redis_server

pytestmark = [pytest.mark.skipif(BINARY is None, reason=MISSING), pytest.mark.timeout(100)]
spawn = multiprocessing.get_context("spawn")
MakeEngine = Callable[..., Engine]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def url(server: RedisServer, request: pytest.FixtureRequest) -> str:
    return f"{server.url}?prefix={abs(hash(request.node.name))}"


@pytest.fixture
def store(url: str) -> Iterator[RedisInventory]:
    opened = RedisInventory(Address.parse(url))
    yield opened
    opened.close()


def run_all(engine: Engine, requests: list[Any]) -> list[Any]:
    async def gather() -> list[Any]:
        return [each.value for each in await asyncio.gather(*map(partial(fetched, engine), requests))]

    return engine.wait(gather(), 60)


# The address


def test_addresses() -> None:
    given = Address.parse("rediss://me:g%40heim@redis.example:6380/2?prefix=team-a&socket_timeout=9")
    assert given.shown == "rediss://me:***@redis.example:6380/2?prefix=team-a"
    assert given.url == "rediss://me:g%40heim@redis.example:6380/2?socket_timeout=9"
    assert (given.prefix, given.password) == ("team-a", "g@heim")
    assert "g@heim" not in repr(given)
    assert "heim" not in repr(given)
    assert shown("cache/store.sqlite") == "cache/store.sqlite"
    assert "heim" not in repr(Settings(store="redis://:geheim@h/0"))


@pytest.mark.parametrize(
    "wrong", ["redis://", "redis://h:port", "redis://h/db", "redis://:geheim@h?prefix=a b", "http://h/0"]
)
def test_addresses_that_are_none(wrong: str) -> None:
    with pytest.raises(ValueError, match="store\n") as caught:
        Settings(store=wrong)
    assert "must" in str(caught.value) or "only" in str(caught.value)


def test_without_the_client_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_ragbench.model.redis_url.find_spec", lambda name: None)
    with pytest.raises(
        UsageError, match=r"redis://:\*\*\*@h/0' needs: pip install 'pytest-ragbench\[redis\]'"
    ):
        store_place(Settings(store="redis://:geheim@h/0"), None)


# Replies


def put(
    store: RedisInventory, name: str, *, age: float = 0.0, run: str | None = None, kind: str = "judge"
) -> None:
    moment = time.time() - age * DAY
    reply = Reply(name, kind, "openai", run, moment, moment, f'{{"ответ": "{name}"}}', 10, 2, 0.5, "r")
    assert store._link.write([ReplyScripts(store._keys, "token").put(reply)]) == [1]


def test_what_is_put_is_found(store: RedisInventory) -> None:
    put(store, "a")
    [reply] = store.items()
    kept = store.find("a")
    assert kept == reply.kept == (reply.payload, 10, 2, 0.5, "r", False)
    assert store._link.write([ReplyScripts(store._keys, "other").claim("a")]) == [kept]
    assert store.find("b") is None
    assert store.mean_tokens("judge", "openai") == (10, 2)
    assert store.mean_tokens("rag", "openai") is None


def test_a_damaged_reply_counts_as_absent(store: RedisInventory) -> None:
    put(store, "a")
    key = f"{store._keys.prefix}:reply:a"
    store._link.ask(lambda client: client.hset(key, "payload", '{"ответ": "b"}'))
    assert store.find("a") is None
    assert store._link.write([ReplyScripts(store._keys, "token").claim("a")]) == [True]


def test_every_key_runs_out(make_engine: MakeEngine, url: str, store: RedisInventory) -> None:
    engine = make_engine(store=url, caps=Caps(calls=9), limits={"p": Limits(requests_per_minute=60)})
    engine.wait(fetched(engine, Service().ask("a")))
    assert engine.claim_tests([1, 2]) == {1, 2}
    prefix = store._keys.prefix
    lasting = store._link.ask(
        lambda client: [key for key in client.scan_iter(f"{prefix}:*") if client.pttl(key) < 0]
    )
    assert lasting == [f"{prefix}:changes".encode()]


def test_prune_and_delete(store: RedisInventory) -> None:
    for name, age, run in (("old", 40.0, None), ("run", 2.0, "r"), ("new", 0.0, None)):
        put(store, name, age=age, run=run)
    assert store.prune() == 1
    assert store.stats()["replies"] == 2
    assert store.prune(unused=30 * DAY) == 1
    assert [reply.digest for reply in store.items()] == ["new"]
    assert store.prune(max_bytes=1) == 1
    put(store, "again")
    assert store.delete() == 1
    assert store.stats() == {"replies": 0, "bytes": 0, "by_kind": {}, "by_provider": {}}


# Several processes


def _worker(url: str, log: Path, gate: Any, number: int) -> None:
    engine = Engine(
        store=url,
        run_id="r",
        limits={"p": Limits(max_concurrency=3)},
        caps=Caps(calls=50),
        on_warning=lambda message: note(log, f"!{message}"),
    )
    gate.wait()
    keys = [f"вопрос {number}" for number in range(40)]
    assert run_all(engine, [logging_request(log, key) for key in keys]) == keys
    note(log, f"={len(engine.claim_tests(range(100)))}")
    more = [logging_request(log, f"own {number} {key}") for key in range(10)]

    async def rest() -> list[Any]:
        return list(await asyncio.gather(*map(partial(fetched, engine), more), return_exceptions=True))

    over = engine.wait(rest(), 60)
    note(log, f"?{sum(isinstance(each, BudgetError) for each in over)}")
    engine.close()


def test_processes_with_nothing_in_common_but_the_server(url: str, tmp_path: Path) -> None:
    """Each call once, no more slots than there are, no more calls than the budget has, look-ahead shared."""
    log, gate = tmp_path / "log", spawn.Barrier(2)
    workers = [spawn.Process(target=_worker, args=(url, log, gate, number)) for number in range(2)]
    for each in workers:
        each.start()
    for each in workers:
        each.join(60)
    assert [each.exitcode for each in workers] == [0, 0]
    calls = Counter(lines(log, "+"))
    assert set(calls.values()) == {1}
    assert len(calls) == 50
    assert sum(int(line[1:]) for line in lines(log, "?")) == 10  # 60 wanted, 50 allowed
    assert sum(int(line[1:]) for line in lines(log, "=")) >= 100
    assert lines(log, "!") == []
    under_way = peak = 0
    for line in log.read_text().splitlines():
        under_way += {"+": 1, "-": -1}.get(line[0], 0)
        peak = max(peak, under_way)
    assert peak == 3


def _hog(url: str, log: Path) -> None:
    engine = Engine(store=url, run_id="run-1", limits={"p": Limits(max_concurrency=2, timeout=1000)})
    run_all(engine, [logging_request(log, f"{number}", seconds=1000) for number in range(2)])


def test_what_a_killed_process_held_is_free_when_its_lease_ends(
    make_engine: MakeEngine, url: str, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    hog = spawn.Process(target=_hog, args=(url, log))
    hog.start()
    while len(lines(log, "+")) < 2:
        time.sleep(0.01)
    address = Address.parse(url)
    engine = make_engine(store=url, limits={"p": Limits(max_concurrency=2)})

    def lapse(server: Any) -> list[int]:
        """How long the leases of the processes were to last, which end now; a living one takes its own again."""
        alive = list(server.scan_iter(f"{address.prefix}:alive:*"))
        left = [server.pttl(key) for key in alive]
        for key in alive:
            server.delete(key)
        return left

    async def scene() -> Any:
        waiting = asyncio.ensure_future(fetched(engine, logging_request(log, "0")))
        await asyncio.sleep(0.1)
        hog.kill()
        await asyncio.to_thread(hog.join)
        left = await asyncio.to_thread(Link(address).ask, lapse)
        assert all(0 < each <= LEASE_S * 1000 for each in left)
        return (await waiting).value

    assert engine.wait(scene(), timeout=90) == "0"
    assert lines(log, "+").count("+0") == 2


def _count(url: str, times: int) -> None:
    link = Link(Address.parse(url))

    def one_more(row: list[float]) -> float:
        row[3] += 1
        return row[3]

    for _ in range(times):
        link.write([RowChange("counted", one_more, 60.0)] * 3)


def test_no_change_of_a_row_is_lost(url: str) -> None:
    counters = [spawn.Process(target=_count, args=(url, 100)) for _ in range(2)]
    for each in counters:
        each.start()
    _count(url, 100)
    for each in counters:
        each.join(60)
    result, row = Link(Address.parse(url)).write([RowChange("counted", lambda row: row[3], 60.0)])[0]
    assert result == row[3] == 900


def test_too_fast_is_heard_by_all(make_engine: MakeEngine, url: str) -> None:
    service = Service([unavailable(429, 0.3)])
    one, other = (make_engine(store=url, limits={"p": Limits(wait=0.0, max_concurrency=8)}) for _ in range(2))
    one.wait(fetched(one, service.ask("a")))
    began = time.monotonic()
    service.troubles = [unavailable(429, 0.3)]

    async def meet() -> None:
        first = asyncio.ensure_future(fetched(one, service.ask("b")))
        while service.troubles:
            await asyncio.sleep(0)
        await first

    one.wait(meet())
    other.wait(fetched(other, service.ask("c")))
    assert time.monotonic() - began >= 0.3
    running = other._running
    assert running is not None
    assert 1 <= running.coordinator.permits.provider("p").pace.limit(8) < 8  # type: ignore[attr-defined]


# The server in trouble


@pytest.mark.parametrize("how", ["not there", "dies", "hangs", "wrong password", "full"])
def test_trouble_is_a_warning_and_the_run_goes_on(
    make_engine: MakeEngine, tmp_path: Path, how: str, warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_ragbench.engine.on_redis.link.TIMEOUT_S", 0.3)
    monkeypatch.setattr("pytest_ragbench.engine.on_redis.link.PATIENCE_S", 0.3)
    options = {"wrong password": ["--requirepass", "right"], "full": ["--maxmemory", "1mb"]}.get(how, [])
    service = Service()
    with redis_server(tmp_path, options) as server:
        if how == "not there":
            server.kill()
        url = server.url.replace("//", "//:geheim@" if how == "wrong password" else "//")
        engine = make_engine(store=url, limits={"p": Limits(max_concurrency=2)}, caps=Caps(calls=6))
        run_all(engine, [service.ask(f"before {number}") for number in range(2)])
        if how == "dies":
            server.kill()
        elif how == "hangs":
            server.stop()
        asked = [service.ask(f"q{number}") for number in range(4)]
        assert run_all(engine, asked) == ["q0", "q1", "q2", "q3"]
        assert run_all(engine, asked) == ["q0", "q1", "q2", "q3"]
        assert service.calls == 6
        assert service.peak <= 2
        with pytest.raises(BudgetError):  # the budget holds on, in this process
            engine.wait(fetched(engine, service.ask("one more")))
        began = time.monotonic()
        engine.close()
        assert time.monotonic() - began < 10
    [text] = warned
    assert "the store can't be used" in text
    assert "no longer shared" in text
    assert "geheim" not in text
    assert f"127.0.0.1:{server.port}/0" in text


def test_a_server_that_comes_back_is_used_on(
    make_engine: MakeEngine, tmp_path: Path, warned: list[str]
) -> None:
    service = Service()
    with redis_server(tmp_path) as server:
        one, other = (make_engine(store=server.url, caps=Caps(calls=4)) for _ in range(2))
        run_all(one, [service.ask("a"), service.ask("b")])
        server.kill()
        threading.Timer(0.7, server.start_again).start()
        assert run_all(one, [service.ask("c")]) == ["c"]
        assert run_all(other, [service.ask("c")]) == ["c"]
        assert service.calls == 3
        run_all(other, [service.ask("d")])
        with pytest.raises(BudgetError):  # what was spent before is not forgotten
            other.wait(fetched(other, service.ask("e")))
        for engine in (one, other):
            engine.close()  # while the server is there: they would wait for it
    assert not warned
