from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine import Engine


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
