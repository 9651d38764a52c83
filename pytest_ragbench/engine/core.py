"""The engine: everything that is asked of a service goes through it, once.

A fetch goes :meth:`Engine.fetch` (single flight in this process) → :meth:`Engine._obtain` (a claim at the
coordinator, shared with other processes) → :class:`~pytest_ragbench.engine.sending.CountingSender` (permits,
time limit, retries) → the call's adapter.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import socket
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pytest_ragbench.engine.budget import Caps
from pytest_ragbench.engine.calls import Adapter, Adapters, Call, Fetched, Following
from pytest_ragbench.engine.client import RemoteCoordinator
from pytest_ragbench.engine.coordinator import Coordinator, Event
from pytest_ragbench.engine.fetching import Fetcher, Read, Send
from pytest_ragbench.engine.limits import Limits
from pytest_ragbench.engine.local import LocalCoordinator
from pytest_ragbench.engine.lookahead import Receipt, looking_ahead, receipts
from pytest_ragbench.engine.loop import LoopThread, Meanwhile
from pytest_ragbench.engine.permits import Clock, Permits, Sleep
from pytest_ragbench.engine.prices import Prices
from pytest_ragbench.engine.recording import Recorder, Replay
from pytest_ragbench.engine.running import AsyncCallable, Running
from pytest_ragbench.engine.server import Server
from pytest_ragbench.engine.store import Store
from pytest_ragbench.engine.usage import UsageSums
from pytest_ragbench.engine.wire import Address

__all__ = ["Engine", "Limits"]

T = TypeVar("T")

_ANSWER_S = 30.0
"""To wait for the coordinator's word about a guess, and for a store that is locked."""


class Engine:
    """One event loop in a background thread; fetches are stored, shared, bounded, retried and counted.

    Nothing is started and no file touched before the first use. After a fork the child has an engine
    of its own: another loop, another connection to the store (or the controller), no usage.

    Parameters
    ----------
    store
        SQLite file, made where it is missing, or the URL of a Redis server, by which several hosts act as
        one. None: replies are kept in memory.
    run_id
        The same for all workers of a run; requests of scope ``"run"`` are shared among those only.
    session
        The same for all processes that have the same tests, of a run that is made by several commands.
        Default: as ``run_id``.
    limits
        By provider; a provider that is not named gets ``Limits()``.
    controller
        Where the controller of this run listens (see :meth:`serve`): what the run's processes share is asked
        for there, and ``store``, ``caps`` and ``recorder`` are the controller's.
    caps
        What the run may use at most.
    prices
        What a provider's models cost.
    recorder
        Notes the replies that tests ask for (not those that are only guessed at).
    replay
        Replies of its kinds come from there, and from nowhere else.
    on_warning
        Is told, once, why the store can't be used. Called from a background thread.
    sleep, clock
        For tests: how retries wait, and seconds that never go back.
    """

    def __init__(
        self,
        *,
        store: Path | str | None,
        run_id: str,
        session: str | None = None,
        limits: Mapping[str, Limits] | None = None,
        controller: Address | None = None,
        caps: Caps | None = None,
        prices: Prices = lambda provider, model: None,
        recorder: Recorder | None = None,
        replay: Replay | None = None,
        on_warning: Callable[[str], None] = warnings.warn,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self._place = store
        self._run_id = run_id
        self._session = session or run_id
        self._limits = dict(limits or {})
        self._controller = controller
        self._caps = caps or Caps()
        self._prices = prices
        self._recorder = recorder
        self._replay = replay
        self._on_warning = on_warning
        self._sleep = sleep
        self._clock = clock
        self._lock = threading.Lock()
        self._running: Running | None = None
        self._closed = False
        self._fetcher: Fetcher | None = None
        self._usage = UsageSums()
        _engines.add(self)

    def set_limits(self, provider: str, limits: Limits) -> None:
        """Set a provider's limits; those who wait for a slot now already feel them."""
        self._limits[provider] = limits
        permits = self._permits
        if self._running is not None and permits is not None:
            self._running.thread.loop.call_soon_threadsafe(permits.limit, provider, limits)

    async def fetch(
        self, call: Call, read: Read[T], *, following: Following | None = None, send: Send | None = None
    ) -> Fetched[T]:
        """The value of a call: from the store, from a fetch under way, or fetched now.

        May be awaited on any loop. A fetch goes on while at least one waiter is left.

        Parameters
        ----------
        call
            What is asked.
        read
            Payload -> value. Raises :class:`~pytest_ragbench.model.errors.Unscored` where the payload is no
            answer; then nothing is kept. A stored payload that can't be read counts as not stored.
        following
            Where one call may take several turns: the payloads so far -> the body of the next turn, or None.
            What is kept, and read, is then the list of payloads.
        send
            Sends the call in the place of its adapter: for functions of the user's, which only the asking
            process has.

        Raises
        ------
        TypeError
            Where the call's key or payload is not JSON; the message names where.
        Unscored
            Of the call's ``failure`` class, or whatever its adapter and ``read`` raise. Errors are
            never stored; all who wait in this process get the same one.
        """
        if self.replays(call.kind):
            return self._replayed(call, read)
        running = self._start()
        # Clients, locks and flights belong to the engine's loop; another loop only waits.
        if asyncio.get_running_loop() is not running.thread.loop:
            return await self.bring(self.fetch(call, read, following=following, send=send))
        assert self._fetcher is not None
        if send is None:
            send = partial(running.adapters.send, call, following=following)
        return await self._fetcher.fetch(call, read, send)

    def take_over(self, taken: Sequence[Receipt], coming: Sequence[Receipt] = ()) -> bool:
        """A test takes what a guess made of fetches, in the place of fetching: these count as its own now.

        From any thread but the loop's own. Where other processes might take the same, they are asked, once for
        ``taken`` and for what the test will probably take over next (``coming``). False where other tests have come
        for some of it: then the test is to fetch.
        """
        fetcher = self._fetcher
        if fetcher is None:
            return False
        # What comes next is asked along: one round trip for a test, not one for each of its scores.
        if open_ := fetcher.unsettled(taken):
            self.wait(fetcher.settle([*open_, *fetcher.unsettled(coming)]))
        return fetcher.take_over(taken)

    def replays(self, kind: str) -> bool:
        """Whether requests of this kind are answered from a recording, so that nobody is asked."""
        return self._replay is not None and kind in self._replay.kinds

    def wait(
        self,
        coroutine: Coroutine[Any, Any, T],
        timeout: float | None = None,
        meanwhile: Meanwhile | None = None,
    ) -> T:
        """Run a coroutine on the engine's loop and wait for its result.

        From any thread but the loop's own, from many at once, and inside another running event loop
        (which is blocked meanwhile: there, better await :meth:`bring`). The coroutine sees the caller's
        context variables. Ctrl-C in the waiting thread cancels the coroutine. ``meanwhile(False)`` is called in the
        waiting thread when the coroutine is on its way (while all replies are stored, not before one is not), and
        ``meanwhile(True)`` where it takes longer than a moment.

        Raises
        ------
        TimeoutError
            After ``timeout`` seconds; the coroutine is then cancelled.
        Unscored
            With code ``"cancelled"``, where the engine was closed meanwhile.
        RuntimeError
            On the engine's own loop, or when the engine is closed.
        """
        thread = self._start(coroutine).thread
        return thread.wait(coroutine, timeout, meanwhile, lambda: self._is_warm)

    async def bring(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Like :meth:`wait`, for callers on another event loop, which goes on meanwhile."""
        thread = self._start(coroutine).thread
        if thread.is_here():
            return await coroutine
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, thread.loop))

    def warn(self, text: str) -> None:
        """Tell whoever runs this something that it can do without."""
        self._on_warning(text)

    def usage(self) -> dict[str, Any]:
        """Sums by kind, in builtin types; see :class:`~pytest_ragbench.engine.usage.KindUsage`.

        Of all processes that use this engine's coordinator; empty in those that ask a controller's.
        """
        return self._usage.plain()

    def totals(self) -> dict[str, dict[str, float]]:
        """``calls``, ``stored`` and ``cost`` by kind, so far."""
        return self._usage.totals()

    def news(self) -> dict[str, Any]:
        """Sums by kind since the last call."""
        return self._usage.news()

    @property
    def out(self) -> int:
        """How many requests are under way, of all processes that use this engine's coordinator."""
        permits = self._permits
        return 0 if permits is None else permits.under_way

    @property
    def run_id(self) -> str:
        """The same in all workers of a run."""
        return self._run_id

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop on which fetches run: async clients belong to it. Another one in a forked child."""
        return self._start().thread.loop

    def claim_tests(self, numbers: Collection[int]) -> set[int]:
        """Those tests that this process is the first of the run to take up, so that it may guess for them.
        Holds while the process lives.
        """
        coordinator = self._start().coordinator
        return self.wait(coordinator.claim_tests(numbers), _ANSWER_S) if numbers else set()

    def drain(self, seconds: float) -> None:
        """Let the requests that are out come back (and be stored), for so long at most: another process
        may be waiting for them. Nothing new is sent for them; those that wait for a slot are not waited for.
        """
        running = self._running
        if running is not None:
            with suppress(Exception):
                running.thread.wait(running.drain(), seconds)

    def settle(self) -> None:
        """Wait until all is counted that tests have taken over, and the run's controller has taken what it was told."""
        running = self._running
        if running is None:
            return
        told = running.coordinator
        with suppress(Exception):
            self.wait(told.settle() if isinstance(told, RemoteCoordinator) else asyncio.sleep(0), _ANSWER_S)

    async def host(self, name: str, *arguments: Any) -> Any:
        """Do something once for the run, in the process that owns it.

        See :meth:`~pytest_ragbench.engine.coordinator.Coordinator.host`.
        """
        return await self.bring(self._start().coordinator.host(name, list(arguments)))

    def serve(self, listening: socket.socket, connections: Collection[socket.socket], key: bytes) -> None:
        """Coordinate for other processes, too, whoever knows the key: those that have been accepted already, and
        all that come.
        """
        running = self._start()

        async def start() -> None:
            # From here on another process may take what a guess of this one paid.
            running.coordinator.shared = True
            running.server = Server(running.coordinator, key)
            await running.server.start(listening)
            for connection in connections:
                await running.server.adopt(connection)

        self.wait(start())

    def adapter(self, name: str) -> Adapter:
        """The adapter of this name, which may know what a service takes."""
        return self._start().adapters.named(name)

    def on_close(self, close: AsyncCallable) -> None:
        """Await ``close()`` on the loop before it stops, the last registered first."""
        self._start().closers.append(close)

    def close(self) -> None:
        """Cancel what is under way, close clients, stop the loop, close the store. May be repeated."""
        with self._lock:
            # First, so that a thread which comes meanwhile is refused instead of starting a second loop.
            self._closed = True
            running, self._running = self._running, None
        if running is not None:
            running.close()

    # Inside

    def _start(self, coroutine: Coroutine[Any, Any, Any] | None = None) -> Running:
        """The running parts, started on first use."""
        with self._lock:
            if self._closed:
                if coroutine is not None:
                    coroutine.close()
                raise RuntimeError("the engine is closed")
            if self._running is None:
                thread = LoopThread("ragbench-engine")
                self._running = Running(thread, self._coordinator(thread.loop), Adapters(self))
                self._fetcher = Fetcher(
                    self._running,
                    self._run_id,
                    self._limits,
                    self._prices,
                    self._recorder,
                    self._sleep,
                    self._clock,
                )
            return self._running

    def _coordinator(self, loop: asyncio.AbstractEventLoop) -> Coordinator:
        # A worker has no store, budget or slots of its own: two owners would count twice.
        if self._controller is not None:
            return RemoteCoordinator(self._controller, loop)
        shares: dict[str, Any] = {
            "caps": self._caps,
            "prices": self._prices,
            "usage": self._usage,
            "recorder": self._recorder,
            "warn": self._on_warning,
            "sleep": self._sleep,
            "clock": self._clock,
        }
        if isinstance(self._place, str):
            from pytest_ragbench.engine.on_redis.coordinator import RedisCoordinator

            return RedisCoordinator(self._place, self._run_id, self._session, loop, **shares)
        # The loop never waits for a lock: a write that meets one is tried again a moment later.
        store = None if self._place is None else Store(self._place, busy=0.0)
        return LocalCoordinator(store, self._run_id, loop, **shares)

    @property
    def _permits(self) -> Permits | None:
        running = self._running
        return None if running is None else getattr(running.coordinator, "permits", None)

    @property
    def _is_warm(self) -> bool:
        return self._fetcher is None or self._fetcher.is_warm

    def _replayed(self, call: Call, read: Read[T]) -> Fetched[T]:
        assert self._replay is not None
        event, ahead = Event("stored", call.kind), looking_ahead.get()
        try:
            value = self._replay.value(call, read)
        except Exception:
            event = Event("failed", call.kind)
            raise
        finally:
            if not ahead:  # from any thread
                running = self._start()
                running.thread.loop.call_soon_threadsafe(running.coordinator.note, event)
        if (kept := receipts.get()) is not None:
            kept.append(Receipt(None, note=partial(self._start().coordinator.note, event)))
        return Fetched(value, cached=True)

    def _forget(self) -> None:
        """In a forked child: all that runs is the parent's."""
        if self._running is not None:
            # The child has the parent's sockets and file handles: to close them would end the parent's connections.
            _parents.append(self._running)
        self._lock = threading.Lock()
        self._running = None
        self._usage = UsageSums()


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_parents: list[Running] = []
"""Of the parent process: kept, because their finalizers would touch what is the parent's."""


@atexit.register
def _close_all() -> None:
    for engine in list(_engines):
        with suppress(Exception):
            engine.close()


def _in_child() -> None:
    for engine in list(_engines):
        engine._forget()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_in_child)
