from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine import Engine


@pytest.fixture
def make_engine(tmp_path: Path) -> Iterator[Callable[..., Engine]]:
    """Engines on one store, closed after the test."""
    engines: list[Engine] = []

    def make(**options: Any) -> Engine:
        engines.append(Engine(**{"store": tmp_path / "store.sqlite", "run_id": "run", **options}))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(make_engine: Callable[..., Engine]) -> Engine:
    return make_engine()
