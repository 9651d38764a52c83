from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_ragbench.engine.core import Engine, Limits
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.rag import http_retriever
from pytest_ragbench.settings import RagSettings
from tests.rag.server import Service, serving


@pytest.fixture
def waits() -> list[float]:
    """How long the engine would have slept between attempts."""
    return []


@pytest.fixture
def engine(waits: list[float]) -> Iterator[Engine]:
    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    made = Engine(store=None, run_id="test", limits={"rag": Limits(attempts=3, timeout=10)}, sleep=sleep)
    yield made
    made.close()


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as running:
        yield running


Ask = Callable[..., RagSample]


@pytest.fixture
def ask(engine: Engine, service: Service) -> Ask:
    """``ask("question", path=..., ...)``: one question to the service, settings as keywords."""

    def call(text: str = "How long?", environ: dict[str, str] | None = None, **settings: Any) -> RagSample:
        made = http_retriever(RagSettings(**{"url": service.url, **settings}), engine, environ or {})
        return engine.wait(made.ask(Question(id="q", question=text)), timeout=15)

    return call
