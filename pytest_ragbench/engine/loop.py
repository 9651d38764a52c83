"""One event loop in a background thread, and synchronous callers in front of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import threading
import time
import types
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from typing import Any, TypeVar

from pytest_ragbench.model.errors import Unscored

T = TypeVar("T")

_SLICE_S = 0.2
"""The main thread sees a signal that came while it waits this late at most."""
_POLL_S = 0.01
"""Between looks at whether something is done."""
_SOON_S = 0.25
"""For so long a reply that should be stored is believed to come any moment."""
_LONG_S = 0.05
"""Where this process has computed for less than half of such a time, whoever waits waits for a service."""

Meanwhile = Callable[[bool], None]
"""Called in a thread that waits: with False when its wait has begun, and with True where it takes long."""


class LoopThread:
    """An event loop that runs in a daemon thread from its making until :meth:`stop`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def is_here(self) -> bool:
        """Whether the calling thread is the loop's own."""
        return threading.current_thread() is self._thread

    def wait(
        self,
        coroutine: Coroutine[Any, Any, T],
        timeout: float | None,
        meanwhile: Meanwhile | None = None,
        soon: Callable[[], bool] = lambda: False,
    ) -> T:
        """The coroutine's result. While ``soon`` says that it will be there any moment, ``meanwhile`` is not
        called yet. See :meth:`pytest_ragbench.engine.core.Engine.wait`.
        """
        if self.is_here():
            coroutine.close()
            raise RuntimeError(
                "called from the engine's own loop, which would wait for itself: await it there"
            )
        done: concurrent.futures.Future[T] = concurrent.futures.Future()
        tasks: list[asyncio.Task[T]] = []

        def start() -> None:
            tasks.append(self.loop.create_task(coroutine))
            tasks[0].add_done_callback(lambda task: _copy(task, done))

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()
            else:
                coroutine.close()

        try:  # Ctrl-C may come at any point from here on
            self.loop.call_soon_threadsafe(start)
            if meanwhile is not None and not _done_soon(done, soon):
                meanwhile(False)
                if _takes_long(done):
                    meanwhile(True)
            return _result(done, timeout)
        except concurrent.futures.CancelledError:
            raise Unscored("the run ended before this was done", code="cancelled") from None
        except BaseException as error:
            if done.done():
                raise  # the coroutine's own
            try:
                self.loop.call_soon_threadsafe(cancel)
            except RuntimeError:  # the loop is closed
                cancel()
            if isinstance(error, TimeoutError):
                raise TimeoutError(f"not done within {timeout:g} s") from None
            raise

    def stop(self) -> None:
        """End the thread. (One that somebody's code blocks is left: it dies with the process.)"""
        with suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=2)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while True:
            try:
                self.loop.run_forever()
                break
            except (KeyboardInterrupt, SystemExit):  # a task's own, which asyncio hands to its waiter
                continue  # and raises here too: the others' calls must go on
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


def _result(done: concurrent.futures.Future[T], timeout: float | None) -> T:
    """Waits in slices: a signal that another thread got, or that came just before the lock was waited
    for, is seen by the main thread only when it wakes.
    """
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        try:
            return done.result(max(0.0, min(_SLICE_S, deadline - time.monotonic())))
        except TimeoutError:
            if done.done():
                return done.result()  # finished just now, or with a TimeoutError of its own
            if time.monotonic() >= deadline:
                raise


def _done_soon(done: concurrent.futures.Future[Any], soon: Callable[[], bool]) -> bool:
    """Whether it is done before ``soon`` says otherwise."""
    latest = time.monotonic() + _SOON_S
    while soon() and time.monotonic() < latest:
        if _done_within(done, _POLL_S):
            return True
    return False


def _takes_long(done: concurrent.futures.Future[Any]) -> bool:
    """Wait until it is done, or until others are waited for than this process itself."""
    computed = time.process_time()
    while not _done_within(done, _LONG_S):
        before, computed = computed, time.process_time()
        if computed - before < _LONG_S / 2:
            return True
    return False


def _done_within(done: concurrent.futures.Future[Any], seconds: float) -> bool:
    with suppress(TimeoutError, concurrent.futures.CancelledError):
        done.exception(seconds)
    return done.done()


def _copy(task: asyncio.Task[T], done: concurrent.futures.Future[T]) -> None:
    if task.cancelled():
        done.cancel()
    elif (error := task.exception()) is not None:
        done.set_exception(error)
    else:
        done.set_result(task.result())


def begin(coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run it up to its first wait, here and now; the rest is a task. None: nothing is left.

    What rarely waits is spared a task and a turn of the loop (Python 3.12 has eager tasks for this). Up to the first
    wait there is no current task, so no ``asyncio.timeout``.
    """
    try:
        waited_for = coroutine.send(None)
    except StopIteration:
        return None
    rest = _rest(coroutine, waited_for)
    rest.send(None)  # into its body: a task that is cancelled before its first step never enters it
    return asyncio.get_running_loop().create_task(rest)


async def _rest(coroutine: Coroutine[Any, Any, None], waited_for: Any) -> None:
    await _continued(coroutine, waited_for)


@types.coroutine
def _continued(coroutine: Coroutine[Any, Any, None], waited_for: Any) -> Generator[Any, Any, None]:
    try:
        try:
            yield
        except asyncio.CancelledError as error:
            # As a task does it: what is waited for is cancelled, and that ends the wait.
            if waited_for is None or not waited_for.cancel():
                waited_for = coroutine.throw(error)
        while True:
            try:
                found = yield waited_for
            except BaseException as error:  # what the wait ended in, or the task is cancelled
                waited_for = coroutine.throw(error)
            else:
                waited_for = coroutine.send(found)
    except StopIteration:
        return
