"""Several processes: each call once, what the dead held taken over, slots shared, forks."""

from __future__ import annotations

import asyncio
import faulthandler
import multiprocessing
import os
import posix
import socket
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine import Engine, Limits, Sender, Sent, Store
from pytest_ragbench.engine.wire import Address, new_key
from pytest_ragbench.model.errors import JudgeError
from tests.engine.helpers import Asked, Service, fetched, lines, logging_request, note

MakeEngine = Callable[..., Engine]
spawn = multiprocessing.get_context("spawn")
pytestmark = pytest.mark.timeout(100)


def run_all(engine: Engine, requests: list[Asked]) -> list[Any]:
    async def gather() -> list[Any]:
        return [each.value for each in await asyncio.gather(*map(partial(fetched, engine), requests))]

    return engine.wait(gather())


def finish(processes: list[Any]) -> None:
    for each in processes:
        each.join(60)
    assert [each.exitcode for each in processes] == [0] * len(processes)


# Workers


@pytest.fixture
def serve(make_engine: MakeEngine) -> Callable[..., tuple[Engine, Address]]:
    def make(**options: Any) -> tuple[Engine, Address]:
        controller, key = make_engine(**options), new_key()
        listening = socket.create_server(("127.0.0.1", 0))
        controller.serve(listening, [], key)
        return controller, Address(listening.getsockname()[1], key)

    return make


def _worker(address: Address, log: Path, gate: Any, name: str) -> None:
    engine = Engine(store=None, run_id="run-1", controller=address, limits={"p": Limits(max_concurrency=3)})
    gate.wait()
    keys = [f"вопрос {number}" for number in range(40)]
    assert run_all(engine, [logging_request(log, key) for key in keys]) == keys
    run_all(engine, [logging_request(log, f"{name} {number}") for number in range(10)])
    engine.close()


def test_workers_make_each_call_once_in_slots_that_they_share(
    serve: Callable[..., tuple[Engine, Address]], store_path: Path, tmp_path: Path, warned: list[str]
) -> None:
    log, gate = tmp_path / "log", spawn.Barrier(3)
    controller, address = serve()
    workers = [spawn.Process(target=_worker, args=(address, log, gate, f"w{n}")) for n in range(3)]
    for each in workers:
        each.start()
    finish(workers)
    calls = Counter(lines(log, "+"))
    assert len(calls) == 70
    assert set(calls.values()) == {1}
    under_way = peak = 0
    for line in log.read_text().splitlines():
        under_way += 1 if line[0] == "+" else -1
        peak = max(peak, under_way)
    assert peak == 3
    sums = controller.usage()["rag"]
    assert (sums["calls"], sums["stored"]) == (70, 80)
    assert controller.out == 0
    assert warned == []
    assert Store(store_path).stats()["replies"] == 70


def _claimant(address: Address, log: Path, fails: Any) -> None:
    """Begins a call, and then hangs until it is killed, or told to fail."""
    engine = Engine(
        store=None, run_id="run-1", controller=address, limits={"p": Limits(timeout=1000, max_concurrency=1)}
    )

    async def fetch(send: Sender) -> Any:
        async def attempt() -> Sent:
            note(log, "+claimant")
            while not fails.is_set():
                await asyncio.sleep(0.01)
            raise ZeroDivisionError

        return (await send(attempt)).payload

    same = Service().ask("q")
    request = replace(same, send=fetch)
    with pytest.raises(ZeroDivisionError):
        engine.wait(fetched(engine, request))
    engine.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("end", ["killed", "fails"])
def test_others_take_over_at_once(
    serve: Callable[..., tuple[Engine, Address]], make_engine: MakeEngine, tmp_path: Path, end: str
) -> None:
    """The claim on a call, and the one call slot that there is."""
    log, fails = tmp_path / "log", spawn.Event()
    controller, address = serve(limits={"p": Limits(max_concurrency=1)})
    claimant = spawn.Process(target=_claimant, args=(address, log, fails))
    claimant.start()
    engine, service = (
        make_engine(store=None, controller=address, limits={"p": Limits(max_concurrency=1)}),
        Service(),
    )

    async def scene() -> Any:
        await until(lambda: bool(lines(log, "+")))
        waiting = asyncio.ensure_future(fetched(engine, service.ask("q")))
        other = asyncio.ensure_future(fetched(controller, service.ask("other")))
        await asyncio.sleep(0.2)
        assert service.calls == 0
        if end == "killed":
            claimant.kill()
        else:
            fails.set()
        return (await waiting).value, (await other).value

    assert engine.wait(scene(), timeout=20) == ("q", "other")
    assert service.calls == 2
    claimant.join(10)


def test_what_a_killed_worker_looked_ahead_to_is_free(
    serve: Callable[..., tuple[Engine, Address]], make_engine: MakeEngine
) -> None:
    _, address = serve()
    one, other = (make_engine(store=None, controller=address) for _ in range(2))
    assert one.claim_tests([1, 2]) == {1, 2}
    assert other.claim_tests([2, 3]) == {3}
    assert one.claim_tests([1, 3]) == {1}
    one.close()
    other.settle()
    assert other.claim_tests([1, 2]) == {1, 2}


def _controller(store: Path, port: Any, asked: Any) -> None:
    engine, key = Engine(store=store, run_id="run-1"), bytes(32)
    listening = socket.create_server(("127.0.0.1", 0))
    engine.serve(listening, [], key)
    port.put(listening.getsockname()[1])
    asked.wait(60)


def test_what_was_answered_is_on_file_when_the_controller_is_killed(
    make_engine: MakeEngine, store_path: Path
) -> None:
    port, asked = spawn.Queue(), spawn.Event()
    process = spawn.Process(target=_controller, args=(store_path, port, asked))
    process.start()
    worker = make_engine(store=None, controller=Address(port.get(timeout=60), bytes(32)))
    service = Service()
    assert run_all(worker, [service.ask(number) for number in range(20)]) == list(range(20))
    worker.settle()
    process.kill()
    process.join(10)
    assert Store(store_path).stats()["replies"] == 20
    with pytest.raises(JudgeError, match="controller") as caught:
        worker.wait(fetched(worker, service.ask("more")), timeout=20)
    assert caught.value.code == "cancelled"


def test_who_does_not_know_the_key_is_not_served(
    serve: Callable[..., tuple[Engine, Address]], make_engine: MakeEngine
) -> None:
    _, address = serve()
    stranger = make_engine(store=None, controller=Address(address.port, bytes(32)))
    with pytest.raises(JudgeError, match="key"):
        stranger.wait(fetched(stranger, Service().ask()), timeout=20)
    friend = make_engine(store=None, controller=address)
    assert friend.wait(fetched(friend, Service().ask()), timeout=20).value == "q"


def test_two_runs_share_what_is_stored(make_engine: MakeEngine) -> None:
    service = Service()
    one, other = make_engine(run_id="run 1"), make_engine(run_id="run 2")
    for engine in (one, other):
        assert run_all(engine, [service.ask(number) for number in range(5)]) == list(range(5))
    assert service.calls == 5


# Forks


def forked(work: Callable[[], None]) -> int:
    """Run it in a forked child; returns the exit code."""
    pid = os.fork()
    if pid == 0:
        # A child that hangs says where, instead of leaving the parent to wait for it.
        faulthandler.dump_traceback_later(60, exit=True, file=2)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            posix._exit(1)
        posix._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_an_engine_of_its_own(engine: Engine, store_path: Path) -> None:
    service = Service()
    assert engine.wait(fetched(engine, service.ask("before"))).value == "before"
    loop = engine.loop

    def child() -> None:
        assert engine.usage() == {}
        assert engine.wait(fetched(engine, service.ask("before")), timeout=20).cached
        assert engine.wait(fetched(engine, service.ask("child")), timeout=20).value == "child"
        assert engine.loop is not loop
        engine.close()

    assert forked(child) == 0
    assert engine.wait(fetched(engine, service.ask("child"))).cached
    assert engine.wait(fetched(engine, service.ask("after"))).value == "after"
    assert engine.loop is loop
    assert Store(store_path).stats()["replies"] == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_a_worker_forks_asks_the_controller_too(
    serve: Callable[..., tuple[Engine, Address]], make_engine: MakeEngine
) -> None:
    service, (_, address) = Service(), serve()
    worker = make_engine(store=None, controller=address)
    worker.wait(fetched(worker, service.ask("before")))

    def child() -> None:
        assert worker.wait(fetched(worker, service.ask("before")), timeout=20).cached
        assert worker.wait(fetched(worker, service.ask("child")), timeout=20).value == "child"
        worker.close()

    assert forked(child) == 0
    assert worker.wait(fetched(worker, service.ask("child")), timeout=20).cached


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_while_the_store_is_busy(engine: Engine) -> None:
    service, over = Service(), threading.Event()

    def busy() -> int:
        number = 0
        while not over.wait(0.002):  # a pause, or on a busy machine a child may wait for the file for seconds
            engine.wait(fetched(engine, service.ask(number)))
            number += 1
        return number

    def child(number: int) -> None:
        engine.wait(fetched(engine, service.ask(f"child {number}")), timeout=20)
        engine.close()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        codes = [forked(partial(child, number)) for number in range(10)]
    finally:
        over.set()
        thread.join()
    assert codes == [0] * 10
    assert all(engine.wait(fetched(engine, service.ask(f"child {n}"))).cached for n in range(10))
