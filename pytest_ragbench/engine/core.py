"""The engine: everything that is asked of a service goes through it, once.

A fetch goes :meth:`Engine.fetch` (single flight in this process) → :meth:`Engine._obtain` (shelf: store
and claims, shared with other processes) → :class:`~pytest_ragbench.engine.sending.CountingSender`
(slot, time limit, retries, breaker, books) → the request's own ``fetch``.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import threading
import time
import warnings
import weakref
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar, overload

from pytest_ragbench.engine.backend import Kept
from pytest_ragbench.engine.board import Budget, Caps
from pytest_ragbench.engine.books import Books
from pytest_ragbench.engine.calls import Adapter, Adapters, Call, Following, Sender
from pytest_ragbench.engine.keys import digest_of, payload_text
from pytest_ragbench.engine.lookahead import Advance, looking_ahead
from pytest_ragbench.engine.loop import LoopThread
from pytest_ragbench.engine.meeting import Failure
from pytest_ragbench.engine.places import Place, backend_of, meeting_of
from pytest_ragbench.engine.prices import Price, Prices
from pytest_ragbench.engine.recording import Recorder, Replay
from pytest_ragbench.engine.requests import Fetched, Obtained, Request
from pytest_ragbench.engine.running import AsyncCallable, Running
from pytest_ragbench.engine.sending import Clock, CountingSender, Limits, Provider, Sleep
from pytest_ragbench.engine.shelf import Shelf
from pytest_ragbench.model.errors import Unscored
from pytest_ragbench.model.scores import Usage

__all__ = ["Engine", "Limits"]

T = TypeVar("T")

_WARM = 300
"""After so many stored replies in a row, the next are expected to be stored, too."""

_ANSWER = 30.0
"""Seconds to wait for the other processes' word about a guess, and for a store that is locked."""


class Engine:
    """One event loop in a background thread; fetches are stored, shared, bounded, retried and counted.

    Nothing is started and no file touched before the first use. After a fork the child has an engine
    of its own: another loop, another connection to the store, empty books.

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
    alone
        This process makes all calls of the run: slots need not be shared (locks on a file cost up to 5 ms
        each while another thread computes, since they give up the interpreter lock).
    meeting
        A directory of this run alone, in which all its processes meet: budget and pace are theirs together.
        None: each has its own. With Redis they meet there.
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
        store: Place | None,
        run_id: str,
        session: str | None = None,
        limits: Mapping[str, Limits] | None = None,
        alone: bool = False,
        meeting: Path | None = None,
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
        self._alone = alone
        self._meeting = None if alone else meeting
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
        self._stored_in_a_row = _WARM
        self._books = Books()
        _engines.add(self)

    def set_limits(self, provider: str, limits: Limits) -> None:
        """Set a provider's limits; those who wait for a slot now already feel them."""
        self._limits[provider] = limits
        if self._running is not None and provider in self._running.providers:
            self._running.providers[provider].limits = limits

    @overload
    async def fetch(self, request: Request[T]) -> Fetched[T]: ...

    @overload
    async def fetch(
        self,
        request: Call,
        read: Callable[[Any], T],
        *,
        following: Following | None = None,
        send: Callable[[Sender], Awaitable[Any]] | None = None,
    ) -> Fetched[T]: ...

    async def fetch(
        self,
        request: Request[T] | Call,
        read: Callable[[Any], T] | None = None,
        *,
        following: Following | None = None,
        send: Callable[[Sender], Awaitable[Any]] | None = None,
    ) -> Fetched[T]:
        """The value of a call: from the store, from a fetch under way, or fetched now.

        May be awaited on any loop. A fetch goes on while at least one waiter is left.

        Parameters
        ----------
        request
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
            Where the request's key or payload is not JSON; the message names where.
        Unscored
            Of the request's ``failure`` class, or whatever ``fetch`` and ``read`` raise. Errors are
            never stored; all who wait in this process get the same one.
        """
        if isinstance(request, Call):
            assert read is not None
            request = self._request_of(request, read, following, send)
        if self.replays(request.kind):
            return self._replayed(request)
        running = self._start()
        if asyncio.get_running_loop() is not running.thread.loop:
            return await self.bring(self.fetch(request))
        if request.scope == "none":
            return await self._fetch_unshared(request, running)
        return await self._fetch_shared(request, running)

    async def _fetch_shared(self, request: Request[T], running: Running) -> Fetched[T]:
        digest = digest_of(request, self._run_id)
        ahead = looking_ahead.get()
        advance = None if ahead else await self._advance(digest, running)
        got = advance.got if advance is not None else None
        flight, launched, paid_here = None, False, False
        if got is None and self._is_warm and digest not in running.flights:
            got = self._at_hand(request, digest, running)
        if got is None:
            flight = running.flights.get(digest)
            launched = flight is None or flight.abandoned
            if flight is None or flight.abandoned:
                flight = running.launch(digest, self._obtain(request, digest, running), ahead)
            paid_here = launched or (flight.ahead and not ahead)
            if not ahead:
                flight.ahead = False  # what it takes is this test's from now on
            got = await flight.join()
        # Of all workers' tests, what it takes is put down to the first that gets it.
        many = running.meeting.many
        first = not many or (not ahead and await running.meeting.board.take(digest))
        if self._recorder is not None and not ahead:
            self._recorder.note(request, got.text)
        value = _own_value(request, got, joined=flight is not None and not launched, ahead=ahead)
        if paid_here and not got.cached and (first or ahead):
            return Fetched(value, got.usage, got.duration)
        if advance is not None and first:
            return Fetched(value, advance.usage, advance.duration)
        if got.paid_in_run and first and many:
            return Fetched(value, self._handed_over(request, got.usage), got.duration)
        if not ahead:
            self._books.note_stored(request, got.usage, lambda: self._price(request))
        return Fetched(value, cached=True)

    def replays(self, kind: str) -> bool:
        """Whether requests of this kind are answered from a recording, so that nobody is asked."""
        return self._replay is not None and kind in self._replay.kinds

    def wait(
        self,
        coroutine: Coroutine[Any, Any, T],
        timeout: float | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> T:
        """Run a coroutine on the engine's loop and wait for its result.

        From any thread but the loop's own, from many at once, and inside another running event loop
        (which is blocked meanwhile: there, better await :meth:`bring`). The coroutine sees the caller's
        context variables. Ctrl-C in the waiting thread cancels the coroutine. ``meanwhile`` is called in the
        waiting thread when the coroutine is on its way; while all replies are stored, not before one is not.

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

    def books(self) -> dict[str, Any]:
        """Sums by kind, in builtin types; see :class:`~pytest_ragbench.engine.books.Page`."""
        return self._books.plain()

    def totals(self) -> dict[str, dict[str, float]]:
        """``calls``, ``stored`` and ``cost`` by kind, so far."""
        return self._books.totals()

    def news(self) -> dict[str, Any]:
        """Sums by kind since the last call."""
        return self._books.news()

    @property
    def out(self) -> int:
        """How many fetches of this process are under way."""
        running = self._running
        return 0 if running is None else len(running.flights)

    @property
    def run_id(self) -> str:
        """The same in all workers of a run."""
        return self._run_id

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop on which fetches run: async clients belong to it. Another one in a forked child."""
        return self._start().thread.loop

    def firsts(self, numbers: Collection[int]) -> set[int]:
        """Those tests that this process is the first of the run to take up, so that it may guess for them.
        Holds while the process lives; none where other processes would not see the replies.
        """
        running = self._start()

        async def ask() -> set[int]:
            return await running.meeting.slots.firsts(numbers) if await running.shelf.shared() else set()

        return running.thread.wait(ask(), _ANSWER) if numbers else set()

    def land(self, seconds: float) -> None:
        """Let the requests that are out come back (and be stored), for so long at most: another process
        may be waiting for them. Nothing new is sent for them; those that wait for a slot are not waited for.
        """
        running = self._running
        if running is not None:
            with suppress(Exception):
                running.thread.wait(running.land(), seconds)

    def adapter(self, name: str) -> Adapter:
        """The adapter of this name, which may know what a service takes."""
        return self._start().adapters.named(name)

    def on_close(self, close: AsyncCallable) -> None:
        """Await ``close()`` on the loop before it stops, the last registered first."""
        self._start().closers.append(close)

    def close(self) -> None:
        """Cancel what is under way, close clients, stop the loop, close the store. May be repeated."""
        with self._lock:
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
                self._running = self._started()
            return self._running

    def _started(self) -> Running:
        thread = LoopThread("ragbench-engine")
        place, run_id, loop, warn = self._place, self._run_id, thread.loop, self._on_warning
        meeting = meeting_of(
            place, run_id, self._session, loop, warn, alone=self._alone, folder=self._meeting
        )
        shelf = Shelf(backend_of(place), run_id, loop, warn)
        return Running(thread, shelf, meeting, Budget(self._caps, meeting.board), Adapters(self))

    def _request_of(
        self,
        call: Call,
        read: Callable[[Any], T],
        following: Following | None,
        send: Callable[[Sender], Awaitable[Any]] | None,
    ) -> Request[T]:
        async def by_adapter(sender: Sender) -> Any:
            return await self._start().adapters.send(call, sender, following)

        return Request(call.kind, call.provider, call.key, send or by_adapter, read, call.scope, call.failure)

    async def _advance(self, digest: str, running: Running) -> Advance | None:
        try:
            return running.advances.take(digest)
        except Exception:
            if running.meeting.many:  # it has been told others, too: a rerun is to ask anew
                await running.meeting.failure(digest, take=True)
            raise

    async def _obtain(self, request: Request[T], digest: str, running: Running) -> Obtained[T]:
        """Store, then claim, then fetch. (A recording to replay belongs before the store.)"""
        shelf, page = running.shelf, self._books.page(request.kind)
        await shelf.ready()
        while True:
            kept = shelf.get(digest)
            if kept is None:
                claimed = await shelf.claim(digest)
                if claimed is True:
                    break
                if claimed is False:
                    self._stored_in_a_row = 0  # another process asks for it only now
                    await shelf.changed(digest)
                    continue
                assert isinstance(claimed, Kept)
                kept = claimed
            if (got := self._read(request, kept)) is not None:
                return got
            await shelf.discard(digest, kept.text)
        if running.meeting.many:
            failure = await running.meeting.failure(digest, take=not running.guessed(digest))
            if failure is not None:
                shelf.release(digest)
                raise request.failure(failure.message, code=failure.code)
        self._stored_in_a_row = 0
        sender = self._sender(request, running)
        running.sending[digest] = sender
        try:
            text = payload_text(await request.fetch(sender), f"reply to a request ({request.kind})")
            value = request.read(json.loads(text))
            run = self._run_id if request.scope == "run" else None
            used = sender.usage
            kept = Kept(text, used.prompt_tokens, used.completion_tokens, sender.duration, self._run_id)
            await shelf.put(digest, request.kind, request.provider, run, kept)
        except BaseException as error:
            if running.meeting.many and running.guessed(digest) and _used_up(error):
                await running.meeting.leave_failure(
                    digest, Failure(str(error), getattr(error, "code", "error"))
                )
            shelf.release(digest)
            page.failed += isinstance(error, Exception)
            raise
        finally:
            running.sending.pop(digest, None)
        return Obtained(text, value, sender.usage, sender.duration)

    @property
    def _is_warm(self) -> bool:
        return self._stored_in_a_row >= _WARM

    def _at_hand(self, request: Request[T], digest: str, running: Running) -> Obtained[T] | None:
        """A stored reply, without the detour of a flight that others could join."""
        kept = running.shelf.get(digest)
        return None if kept is None else self._read(request, kept)

    def _read(self, request: Request[T], kept: Kept) -> Obtained[T] | None:
        """None where the payload can't be read: whatever it is that it lacks, it is as good as absent."""
        try:
            value = request.read(json.loads(kept.text))
        except Exception:
            return None
        self._stored_in_a_row += 1
        usage = Usage(0, kept.prompt_tokens, kept.completion_tokens)
        paid = kept.paid_by == self._run_id
        return Obtained(kept.text, value, usage, kept.seconds, cached=True, paid_in_run=paid)

    def _replayed(self, request: Request[T]) -> Fetched[T]:
        assert self._replay is not None
        page, ahead = self._books.page(request.kind), looking_ahead.get()
        try:
            value = self._replay.value(request)
        except Exception:
            page.failed += not ahead
            raise
        page.stored += not ahead
        return Fetched(value, cached=True)

    async def _fetch_unshared(self, request: Request[T], running: Running) -> Fetched[T]:
        sender = self._sender(request, running)
        try:
            payload = await request.fetch(sender)
            value = request.read(payload)
        except Exception:
            self._books.page(request.kind).failed += 1
            raise
        if self._recorder is not None and not looking_ahead.get():
            self._recorder.note(request, payload_text(payload, f"reply to a request ({request.kind})"))
        return Fetched(value, sender.usage, sender.duration)

    def _sender(self, request: Request[Any], running: Running) -> CountingSender:
        name = request.provider
        if name not in running.providers:
            running.providers[name] = Provider(
                name, self._limits.get(name, Limits()), self._clock, running.meeting.board
            )
        return CountingSender(
            request,
            running.providers[name],
            running.meeting.slots,
            self._books.pages(request),
            running.budget,
            lambda: self._price(request),
            sleep=self._sleep,
            clock=self._clock,
            urgent=not looking_ahead.get(),
        )

    def _handed_over(self, request: Request[Any], usage: Usage) -> Usage:
        """What another worker's guess took, put down to the test that it was made for; that worker's books
        have counted it, and the calls were more than one only where one had to be asked again.
        """
        price = self._price(request) if usage.tokens else None
        cost = None if price is None else price.of(usage.prompt_tokens, usage.completion_tokens)
        return Usage(1, usage.prompt_tokens, usage.completion_tokens, cost)

    def _price(self, request: Request[Any]) -> Price | None:
        return None if request.model is None else self._prices(request.provider, request.model)

    def _forget(self) -> None:
        """In a forked child: all that runs is the parent's."""
        if self._running is not None:
            _parents.append(self._running)
        self._lock = threading.Lock()
        self._running = None
        self._books = Books()


def _own_value(request: Request[T], got: Obtained[T], *, joined: bool, ahead: bool) -> T:
    """Each has a value of its own to change. That of a guess stays whole for the test which comes for it."""
    if joined:
        return request.read(json.loads(got.text))
    return deepcopy(got.value) if ahead else got.value


def _used_up(error: BaseException) -> bool:
    """Whether asking again would take as many attempts, and most likely be as useless."""
    quick = ("unavailable", "cancelled", "budget", "insufficient_quota")
    return isinstance(error, Unscored) and error.code not in quick


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


os.register_at_fork(after_in_child=_in_child)
