"""Runs what metrics need: event loop, call slots, single flight, store, retries, accounting.

The names are imported on use: asyncio and sqlite3 cost nothing until a test needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.engine.calls import Call as Call
    from pytest_ragbench.engine.calls import Fetched as Fetched
    from pytest_ragbench.engine.calls import Sender as Sender
    from pytest_ragbench.engine.calls import Sent as Sent
    from pytest_ragbench.engine.calls import Transient as Transient
    from pytest_ragbench.engine.core import Engine as Engine
    from pytest_ragbench.engine.limits import Limits as Limits
    from pytest_ragbench.engine.store import Store as Store

__getattr__ = lazily(
    __name__,
    calls="Call Fetched Sender Sent Transient",
    core="Engine",
    limits="Limits",
    store="Store",
)
