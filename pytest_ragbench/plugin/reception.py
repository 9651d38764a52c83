"""Where xdist's workers reach their controller, before it has an engine: most runs never need one."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine


class Reception:
    """Listens on the loopback. The first worker that comes has the engine made, which takes over from there.

    ``engine`` is called in a thread of its own.
    """

    def __init__(self, engine: Callable[[], Engine]) -> None:
        self._engine = engine
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.key = secrets.token_bytes(32)
        threading.Thread(target=self._wait, name="ragbench-reception", daemon=True).start()

    def close(self) -> None:
        """Wait no longer. (An engine that has taken over is closed by itself.)"""
        self._engine = _none
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
            pass  # wakes the thread that waits for a worker, on every platform
        self._listening.close()

    def _wait(self) -> None:
        while self._engine is not _none:
            try:
                worker, _ = self._listening.accept()
            except OSError:  # closed
                return
            try:
                self._engine().serve(self._listening, [worker], self.key)
            except Exception:  # a worker has the same settings, and says what is wrong with them itself
                worker.close()
            else:
                return


def _none() -> Engine:
    raise RuntimeError("the run is over")
