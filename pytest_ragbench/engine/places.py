"""From what the configuration says of the store to what is behind it: a file, a Redis server, or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from pytest_ragbench.engine.backend import Backend
from pytest_ragbench.engine.meeting import Meeting, here
from pytest_ragbench.model.redis_url import Address

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
    from pytest_ragbench.engine.on_redis.store import RedisStore

    return RedisStore(Address.parse(place))


def meeting_of(
    place: Place | None,
    run_id: str,
    session: str,
    loop: asyncio.AbstractEventLoop,
    warn: Callable[[str], None],
    *,
    alone: bool,
    folder: Path | None,
) -> Meeting:
    """Where the run's processes meet. For the parameters see :class:`~pytest_ragbench.engine.core.Engine`."""
    if isinstance(place, str):
        from pytest_ragbench.engine.on_redis.meeting import RedisMeeting

        return RedisMeeting(Address.parse(place), run_id, session, loop, warn)
    return here(place, run_id, alone=alone, folder=folder)
