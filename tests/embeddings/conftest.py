from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_ragbench.engine.core import Engine, Limits


@pytest.fixture
def waits() -> list[float]:
    """How long the engine would have slept between attempts."""
    return []


@pytest.fixture
def engine(waits: list[float]) -> Iterator[Engine]:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    made = Engine(store=None, run_id="test", limits={"openai": Limits(attempts=3, timeout=10)}, sleep=sleep)
    yield made
    made.close()
