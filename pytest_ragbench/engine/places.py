"""From what the configuration says of the store to what is behind it: a file, a Redis server, or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from pytest_ragbench.engine.backend import Backend
from pytest_ragbench.engine.meeting import Meeting, here

Place = Path | str
"""A file, or the URL of a Redis server."""

_READ = 0.25
"""Seconds that a read may wait for a lock (there hardly is one in WAL mode): it holds up the loop."""


def backend_of(place: Place | None) -> Backend | None:
    """Replies and claims for an engine. Nothing is opened yet."""
    if place is None:
        return None
    if isinstance(place, Path):
        from pytest_ragbench.engine.store import Store

        return Store(place, reader_busy=_READ)
    raise NotImplementedError


def meeting_of(
    place: Place | None,
    run_id: str,
    loop: asyncio.AbstractEventLoop,
    warn: Callable[[str], None],
    *,
    alone: bool,
    folder: Path | None,
) -> Meeting:
    """Where the run's processes meet. ``alone``, ``folder``: see :class:`~pytest_ragbench.engine.core.Engine`."""
    store = place if isinstance(place, Path) else None
    return here(store, run_id, alone=alone, folder=folder)
