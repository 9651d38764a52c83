"""A status beside pytest's own dots while a test waits long: calls sent, under way and stored, money, time left.

It is drawn to the right of what pytest has written on the line, and wiped before pytest writes again, so
that neither has to know of the other. On a terminal only: nothing of it is in a file or a pipe.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import pytest

from pytest_ragbench.money import dollars
from pytest_ragbench.report.layout import cut

if TYPE_CHECKING:
    from pytest_ragbench.plugin.stream import RunResults

_QUIET = 1.0
"""Seconds without news from pytest before anything is drawn: a fast run shows nothing."""
_PERIOD = 0.5
_LEAST = 24
"""Cells; where less is free, nothing is drawn."""


@dataclass(frozen=True)
class Live:
    """Sums so far, and requests under way."""

    calls: float = 0.0
    stored: float = 0.0
    cost: float = 0.0
    out: int = 0


def summed(usage: Mapping[str, Mapping[str, Any]], out: int = 0) -> Live:
    """Of all kinds; the sums of single models, whose names have a space, count what their kinds count."""
    kinds = [sums for name, sums in usage.items() if " " not in name]
    calls, stored, cost = (sum(sums.get(name) or 0 for sums in kinds) for name in ("calls", "stored", "cost"))
    return Live(float(calls), float(stored), float(cost), out)


def status(done: int, total: int, live: Live, elapsed: float) -> str:
    """``12/100 tests, 34 calls sent, 8 under way, 20 stored, $0.01, about 1:10 left``.

    Parameters
    ----------
    elapsed
        Seconds since the first test.
    """
    parts = [f"{done}/{total} tests"]
    parts += [f"{live.calls:.0f} calls sent"] if live.calls else []
    parts += [f"{live.out} under way"] if live.out else []
    parts += [f"{live.stored:.0f} stored"] if live.stored else []
    parts += [dollars(live.cost)] if live.cost else []
    if done and total > done:
        minutes, seconds = divmod(int(elapsed / done * (total - done)), 60)
        parts.append(f"about {minutes}:{seconds:02} left")
    return ", ".join(parts)


def progress_for(config: pytest.Config, results: RunResults) -> Progress | None:
    """The progress of this run; None where it would be in the way: no terminal, ``-s``, ``-qq``, log lines."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.getoption("capture") == "no" or reporter.verbosity < -1:
        return None
    if os.environ.get("TERM", "dumb") == "dumb" or config.getini("log_cli") or not reporter.isatty:
        return None
    # While a test runs, pytest's capture has the descriptor point to a file: ours is a copy from before.
    original = reporter._tw._file
    copy = os.fdopen(os.dup(original.fileno()), "w", encoding=original.encoding or "utf-8", errors="replace")
    return Progress(reporter, results, copy)


class Progress:
    """Draws from a thread of its own, while no hook of pytest's runs."""

    def __init__(self, reporter: pytest.TerminalReporter, results: RunResults, terminal: TextIO) -> None:
        self._terminal = terminal
        self._reporter = reporter
        self._results = results
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._drawn = False
        self._started = self._news = time.monotonic()
        self._collected = 0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected = len(session.items)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, None, None]:
        if self._thread is None:
            self._started = time.monotonic()
            self._thread = threading.Thread(target=self._run, name="ragbench-progress", daemon=True)
            self._thread.start()
        with self._held():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self) -> Generator[None, None, None]:
        with self._held():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self) -> Generator[None, None, None]:
        with self._held():
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._stop.set()
        with self._held():
            pass
        if self._thread is not None:
            self._thread.join(2 * _PERIOD)
        with suppress(OSError):
            self._terminal.close()

    def tick(self, now: float) -> None:
        """Draw, where pytest has said nothing for a while."""
        with self._lock:
            if now - self._news < _QUIET or self._stop.is_set():
                return
            live = self._live()
            if live is None:
                return  # nobody is asked anything in this run
            terminal = self._reporter._tw
            room = terminal.fullwidth - terminal.width_of_current_line - 4
            if room < _LEAST:
                return
            # Remember the place, draw, wipe the rest of the line, go back.
            self._write(f"\x1b7  {cut(self._status(live, now), room)}\x1b[K\x1b8")
            self._drawn = True

    def _status(self, live: Live, now: float) -> str:
        total = max(self._collected, len(self._results.expected))
        return status(len(self._results.reported), total, live, now - self._started)

    def _live(self) -> Live | None:
        """What this process and its workers have asked; of workers on other hosts, what they have reported.
        None: nothing.
        """
        results = self._results
        engine = results.state.live_engine
        if engine is not None:
            return summed(engine.totals(), engine.out)
        return summed(results.usage) if results.usage else None

    @contextmanager
    def _held(self) -> Generator[None]:
        """Nothing is drawn inside, and nothing is left of what was."""
        with self._lock:
            if self._drawn:
                self._write("\x1b[K")
                self._drawn = False
            try:
                yield
            finally:
                self._news = time.monotonic()

    def _write(self, text: str) -> None:
        try:
            self._terminal.write(text)
            self._terminal.flush()
        except (OSError, ValueError):  # the terminal is gone
            self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            self.tick(time.monotonic())
