"""Several processes: each call once, claims of the dead taken over, slots shared, forks."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from pytest_ragbench.engine import Engine, Limits, Request, Sender, Sent, Store
from pytest_ragbench.engine.owners import Owner, is_gone
from pytest_ragbench.engine.shared_slots import SharedSlots
from pytest_ragbench.engine.store import LEASE, claim_op
from tests.engine.helpers import Service, lines, logging_request, note

MakeEngine = Callable[..., Engine]
spawn = multiprocessing.get_context("spawn")
pytestmark = pytest.mark.timeout(100)


def run_all(engine: Engine, requests: list[Request[Any]]) -> list[Any]:
    async def gather() -> list[Any]:
        return [each.value for each in await asyncio.gather(*map(engine.fetch, requests))]

    return engine.wait(gather())


def finish(processes: list[Any]) -> None:
    for each in processes:
        each.join(60)
    assert [each.exitcode for each in processes] == [0] * len(processes)


# Single flight


def _worker(store: Path, log: Path, gate: Any, run_id: str) -> None:
    engine = Engine(store=store, run_id=run_id, on_warning=lambda message: note(log, f"!{message}"))
    gate.wait()
    keys = [f"вопрос {number}" for number in range(40)]
    assert run_all(engine, [logging_request(log, key) for key in keys]) == keys
    page = engine.books()["rag"]
    note(log, f"={page['calls'] + page['stored']}")
    engine.close()


@pytest.mark.parametrize("run_ids", [["r"] * 4, ["run 1", "run 2"]])
def test_workers_and_runs_make_each_call_once(store_path: Path, tmp_path: Path, run_ids: list[str]) -> None:
    log, gate = tmp_path / "log", spawn.Barrier(len(run_ids))
    workers = [spawn.Process(target=_worker, args=(store_path, log, gate, run_id)) for run_id in run_ids]
    for each in workers:
        each.start()
    finish(workers)
    calls = Counter(lines(log, "+"))
    assert len(calls) == 40
    assert set(calls.values()) == {1}
    assert lines(log, "!") == []
    assert lines(log, "=") == ["=40"] * len(run_ids)


def _claimant(store: Path, log: Path, fails: Any) -> None:
    """Begins the call, and then hangs until it is killed, or told to fail."""
    engine = Engine(store=store, run_id="r", limits={"p": Limits(timeout=1000)})

    async def fetch(send: Sender) -> Any:
        async def attempt() -> Sent:
            note(log, "+claimant")
            while not fails.is_set():
                await asyncio.sleep(0.01)
            raise ZeroDivisionError

        return (await send(attempt)).payload

    same = Service().ask("q")
    request = Request(same.kind, same.provider, same.key, fetch, same.read)
    with pytest.raises(ZeroDivisionError):
        engine.wait(engine.fetch(request))
    engine.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("end", ["killed before", "killed while others wait", "fails"])
def test_others_take_over(make_engine: MakeEngine, store_path: Path, tmp_path: Path, end: str) -> None:
    log, fails = tmp_path / "log", spawn.Event()
    claimant = spawn.Process(target=_claimant, args=(store_path, log, fails))
    claimant.start()
    engine, service = make_engine(), Service()

    async def scene() -> Any:
        await until(lambda: bool(lines(log, "+")))
        if end == "killed before":
            os.kill(claimant.pid or 0, signal.SIGKILL)
        waiting = asyncio.ensure_future(engine.fetch(service.ask("q")))
        if end != "killed before":
            running = engine._running
            await until(lambda: running is not None and bool(running.shelf._waiting))
            assert service.calls == 0
        if end == "killed while others wait":  # not yet reaped: a zombie, which kill(pid, 0) calls alive
            os.kill(claimant.pid or 0, signal.SIGKILL)
        elif end == "fails":
            fails.set()
        return (await waiting).value

    assert engine.wait(scene(), timeout=LEASE - 10) == "q"  # not by the end of the lease
    assert service.calls == 1
    claimant.join(10)


def test_a_live_claim_holds_and_one_that_ran_out_does_not(store_path: Path) -> None:
    store, one, two = Store(store_path), Owner.here(), Owner.here()
    assert store.write([claim_op("d", one, now=100.0)]) == [True]
    assert store.write([claim_op("d", one, now=101.0)]) == [True]
    assert store.write([claim_op("d", two, now=102.0)]) == [False]
    assert store.ready(["d", "unclaimed"], now=102.0) == {"unclaimed"}
    assert store.ready(["d"], now=102.0 + LEASE) == {"d"}
    assert store.write([claim_op("d", two, now=102.0 + LEASE)]) == [True]


def test_who_is_gone() -> None:
    here = Owner.here()
    child = spawn.Process(target=os.getpid)
    child.start()
    child.join()
    assert not is_gone(here.host, here.pid, here.started)
    assert is_gone(here.host, child.pid or 0, "1")
    assert is_gone(here.host, here.pid, "an earlier process of that number")
    assert not is_gone("another machine", child.pid or 0, "1")


# Slots


def _caller(store: Path, log: Path, gate: Any, name: str, count: int) -> None:
    engine = Engine(store=store, run_id="r", limits={"p": Limits(max_concurrency=3)})
    gate.wait()
    run_all(engine, [logging_request(log, f"{name} {number}") for number in range(count)])
    engine.close()


def test_slots_are_those_of_all_processes(store_path: Path, tmp_path: Path) -> None:
    log, gate = tmp_path / "log", spawn.Barrier(3)
    callers = [spawn.Process(target=_caller, args=(store_path, log, gate, f"p{n}", 30)) for n in range(3)]
    for each in callers:
        each.start()
    finish(callers)
    under_way, peak, order = 0, 0, []
    for line in log.read_text().splitlines():
        under_way += 1 if line[0] == "+" else -1
        peak = max(peak, under_way)
        order.append(line[1:3])
    assert peak == 3
    assert len(lines(log, "-")) == 90
    # Nobody starves: when the first is done, the others are well on their way.
    last = {name: len(order) - order[::-1].index(name) for name in ("p0", "p1", "p2")}
    assert min(last.values()) > len(order) / 2


def _hog(store: Path, log: Path) -> None:
    engine = Engine(store=store, run_id="run-1", limits={"p": Limits(max_concurrency=2)})
    run_all(engine, [logging_request(log, f"{number}", seconds=1000) for number in range(2)])


def test_a_killed_process_gives_its_slots_back(
    make_engine: MakeEngine, store_path: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    hog = spawn.Process(target=_hog, args=(store_path, log))
    hog.start()
    engine, service = make_engine(limits={"p": Limits(max_concurrency=2)}), Service()

    async def scene() -> Any:
        await until(lambda: len(lines(log, "+")) == 2)
        waiting = asyncio.ensure_future(engine.fetch(service.ask()))
        running = engine._running
        assert running is not None
        pools = cast(SharedSlots, running.meeting.slots)._pools
        await until(lambda: "p" in pools and bool(pools["p"]._line))
        assert service.calls == 0
        os.kill(hog.pid or 0, signal.SIGKILL)
        return (await waiting).value

    assert engine.wait(scene(), timeout=20) == "q"
    hog.join(10)


# Forks


def forked(work: Callable[[], None]) -> int:
    """Run it in a forked child; returns the exit code."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_an_engine_of_its_own(engine: Engine, store_path: Path) -> None:
    service = Service()
    assert engine.wait(engine.fetch(service.ask("before"))).value == "before"
    loop = engine.loop

    def child() -> None:
        assert engine.books() == {}
        assert engine.wait(engine.fetch(service.ask("before")), timeout=20).cached
        assert engine.wait(engine.fetch(service.ask("child")), timeout=20).value == "child"
        assert engine.loop is not loop
        engine.close()

    assert forked(child) == 0
    assert engine.wait(engine.fetch(service.ask("child"))).cached
    assert engine.wait(engine.fetch(service.ask("after"))).value == "after"
    assert engine.loop is loop
    assert Store(store_path).stats()["replies"] == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_while_the_store_is_busy(engine: Engine) -> None:
    service, over = Service(), threading.Event()

    def busy() -> int:
        number = 0
        while not over.is_set():
            engine.wait(engine.fetch(service.ask(number)))
            number += 1
        return number

    def child(number: int) -> None:
        engine.wait(engine.fetch(service.ask(f"child {number}")), timeout=20)
        engine.close()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        codes = [forked(partial(child, number)) for number in range(10)]
    finally:
        over.set()
        thread.join()
    assert codes == [0] * 10
    assert all(engine.wait(engine.fetch(service.ask(f"child {n}"))).cached for n in range(10))
