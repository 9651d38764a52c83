from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine import Engine
from pytest_ragbench.engine.wire import Address, new_key


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "store.sqlite"


@pytest.fixture
def warned() -> list[str]:
    return []


@pytest.fixture
def make_engine(store_path: Path, warned: list[str]) -> Iterator[Callable[..., Engine]]:
    """Engines that are closed after the test. By default on the same store and run."""
    engines = []

    def make(**options: Any) -> Engine:
        defaults: dict[str, Any] = {"store": store_path, "run_id": "run-1", "on_warning": warned.append}
        engines.append(Engine(**(defaults | options)))
        return engines[-1]

    yield make
    for each in engines:
        each.close()


@pytest.fixture
def engine(make_engine: Callable[..., Engine]) -> Engine:
    return make_engine()


@pytest.fixture
def make_team(make_engine: Callable[..., Engine]) -> Callable[..., list[Engine]]:
    """A controller's engine, and those of its workers, which ask it over a connection. The controller's first."""

    def make(workers: int, **options: Any) -> list[Engine]:
        controller, key = make_engine(**options), new_key()
        listening = socket.create_server(("127.0.0.1", 0))
        controller.serve(listening, [], key)
        address = Address(listening.getsockname()[1], key)
        shared = {name: value for name, value in options.items() if name not in ("store", "caps", "recorder")}
        return [controller, *(make_engine(store=None, controller=address, **shared) for _ in range(workers))]

    return make
