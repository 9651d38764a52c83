"""One event loop in a background thread, and synchronous callers in front of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from pytest_ragbench.errors import Unscored

T = TypeVar("T")


class LoopThread:
    """An event loop that runs in a daemon thread from its making until :meth:`stop`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def is_here(self) -> bool:
        """Whether the calling thread is the loop's own."""
        return threading.current_thread() is self._thread

    def wait(self, coroutine: Coroutine[Any, Any, T], timeout: float | None) -> T:
        """The coroutine's result; see :meth:`pytest_ragbench.engine.core.Engine.wait`."""
        if self.is_here():
            coroutine.close()
            raise RuntimeError(
                "called from the engine's own loop, which would wait for itself: await it there"
            )
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result(timeout)
        except concurrent.futures.CancelledError:
            raise Unscored("the run ended before this was done", code="cancelled") from None
        except TimeoutError:
            if future.done():
                raise  # the coroutine's own
            future.cancel()
            raise TimeoutError(f"not done within {timeout:g} s") from None
        except BaseException:  # Ctrl-C, or a failure of the waiting thread
            future.cancel()
            raise

    def stop(self) -> None:
        """End the thread. (One that somebody's code blocks is left: it dies with the process.)"""
        with suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(timeout=2)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            self.loop.close()
