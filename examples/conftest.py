"""The service under test: given with --rag-url, else the example service, started on a free port."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from rag_service.server import start_shared


@pytest.fixture(scope="session")
def retriever(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the service; all workers of a run share one, so each question is asked once."""
    if url := request.config.getoption("rag_url"):
        yield url
        return
    folder = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        folder = folder.parent  # the workers' common folder
    hallucinate = os.environ.get("RAG_SERVICE_HALLUCINATE", "") not in ("", "0")
    with start_shared(Path(folder), hallucinate=hallucinate) as service:
        yield service.url
