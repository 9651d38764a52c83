"""What tests took over is counted before the run looks at what it took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pytest_ragbench.engine import Engine


def test_settling_waits_for_what_is_still_to_be_counted(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine()
    counted: list[str] = []
    begun = threading.Event()

    async def busy() -> None:
        begun.set()
        time.sleep(0.2)  # the loop is held up by something else

    thread = threading.Thread(target=lambda: engine.wait(busy()))
    thread.start()
    begun.wait()
    engine._start().thread.loop.call_soon_threadsafe(counted.append, "the last test's calls")
    engine.settle()
    assert counted == ["the last test's calls"]
    thread.join()
