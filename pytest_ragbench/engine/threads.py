"""Functions of the user's, and other blocking code, beside the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T], name: str = "ragbench-call") -> T:
    """Call ``function`` in a daemon thread of its own, with this context's variables.

    Not :func:`asyncio.to_thread`: its pool has as few as five threads, and waits for a hanging
    call at the interpreter's exit.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if not done.done():  # the caller may have given up
            # A pair, because StopIteration can't be set as a future's exception.
            done.set_result((result, error))

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except BaseException as caught:  # handed to the caller, whatever it is
            error = caught
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(deliver, result, error)

    # A daemon: a function that hangs must not keep the process from ending.
    threading.Thread(target=run, name=name, daemon=True).start()
    result, error = await done
    if isinstance(error, StopIteration):
        raise RuntimeError("StopIteration raised by the callable") from error
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


async def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a sync function in a thread, an async one here; a sync one may return an awaitable."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
    ):
        return await function(*arguments, **options)
    # A blocking function on the engine's loop would stop all other calls.
    result = await in_thread(lambda: function(*arguments, **options))
    return await result if inspect.isawaitable(result) else result
