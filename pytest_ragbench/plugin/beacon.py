"""What the workers of a run are doing at this moment, for the controller's progress.

A worker's books come with its reports, and so after the calls of whole tests. Where the controller draws on a
terminal, each worker therefore leaves its numbers in a file of its own, twice a second.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pytest_ragbench.plugin.state import RunState

_PERIOD = 0.5
_STALE = 5.0
"""Seconds after which a worker that leaves nothing new has no calls under way: it is dead."""
_NUMBERS = struct.Struct("=3dq")


@dataclass(frozen=True)
class Live:
    """Sums so far, and fetches under way."""

    calls: float = 0.0
    stored: float = 0.0
    cost: float = 0.0
    out: int = 0

    def __add__(self, other: Live) -> Live:
        return Live(
            self.calls + other.calls,
            self.stored + other.stored,
            self.cost + other.cost,
            self.out + other.out,
        )


def summed(books: Mapping[str, Mapping[str, Any]], out: int = 0) -> Live:
    """Of all kinds; the pages of single models, whose names have a space, count what their kinds count."""
    kinds = [page for name, page in books.items() if " " not in name]
    calls, stored, cost = (sum(page.get(name) or 0 for page in kinds) for name in ("calls", "stored", "cost"))
    return Live(float(calls), float(stored), float(cost), out)


class Beacon:
    """A worker's: writes while tests run."""

    def __init__(self, state: RunState, name: str) -> None:
        self._state = state
        self._path = state.live_folder / name
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def pytest_runtest_logstart(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ragbench-beacon", daemon=True)
            self._thread.start()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2 * _PERIOD)
            self.write()

    def write(self) -> None:
        """Leave the numbers of now; in one write, so that none is read half."""
        engine = self._state.live_engine
        if engine is None:
            return
        live = summed(engine.totals(), 0 if self._stop.is_set() else engine.out)
        with suppress(OSError):  # a full disk is no reason to fail tests
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("wb", buffering=0) as file:
                file.write(_NUMBERS.pack(live.calls, live.stored, live.cost, live.out))

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            self.write()


def read_live(folder: Path) -> Live | None:
    """What all workers have left; None where there is none (yet), as where they run on another host."""
    found: list[Live] = []
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            with suppress(OSError, struct.error):
                calls, stored, cost, out = _NUMBERS.unpack(path.read_bytes())
                alive = time.time() - path.stat().st_mtime < _STALE
                found.append(Live(calls, stored, cost, out if alive else 0))
    return sum(found, Live()) if found else None
