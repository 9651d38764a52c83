from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.history import History
from pytest_ragbench.view.labels import LabelsFile
from pytest_ragbench.view.pages import Pages
from pytest_ragbench.view.runs import Runs
from pytest_ragbench.view.server import serve
from tests.report_html.pages import a_report, a_result, a_score


def run_id(number: int) -> str:
    return f"{number:032x}"


def a_run(number: int, *values: float, branch: str = "main", **more: Any) -> RunReport:
    """A run of a day, with a question for each value, and with two claims to be marked."""
    evidence = [
        {"text": "Bring the receipt.", "ok": True, "chunk": 1},
        {"text": "It is 13.", "ok": False, "reason": "the number 13 is in no chunk"},
    ]
    results = [
        a_result(
            f"q{place}", value, contexts=["Bring the receipt."], scores=[a_score(value, evidence=evidence)]
        )
        for place, value in enumerate(values)
    ]
    summary = {
        "outcomes": {"passed": len(values)},
        "metrics": [{"metric": "faithfulness", "tier": "generation", "mean": sum(values) / len(values)}],
    }
    told = {
        "id": run_id(number),
        "started": 1_780_000_000.0 + 86_400 * number,
        "git": {"commit": f"{number:08x}" * 5, "branch": branch},
    }
    return a_report(results, run=told, summary=summary, **more)


class Site:
    """A server, and whoever asks it."""

    def __init__(self, address: str) -> None:
        self.address = address
        parts = urlsplit(address)
        self.host, self.top = parts.netloc, parts.path

    def ask(
        self, path: str = "", *, method: str = "GET", body: str | None = None, **headers: str
    ) -> tuple[int, str]:
        """A path as it is, from the key on; one that begins with a slash, from the top. Headers with ``_``."""
        connection = HTTPConnection(self.host, timeout=30)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(
                method, path if path.startswith("/") else self.top + path, body, {"Host": self.host, **given}
            )
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()


@contextmanager
def serving(*files: Path) -> Iterator[Site]:
    """The server in a thread, on a free port; labels are kept beside the first file."""
    pages = Pages(Runs(files), LabelsFile(files[0].parent / "labels.jsonl"))
    loop = asyncio.new_event_loop()
    started: list[str] = []
    is_ready = threading.Event()

    def ready(address: str) -> None:
        started.append(address)
        is_ready.set()

    async def until_cancelled() -> None:
        with suppress(asyncio.CancelledError):
            await serve(pages, port=0, ready=ready)

    task = loop.create_task(until_cancelled())
    thread = threading.Thread(target=loop.run_until_complete, args=(task,))
    thread.start()
    try:
        assert is_ready.wait(30)
        yield Site(started[0])
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Four runs, the first of which was added before reports were kept."""
    made = History(tmp_path / "runs" / "history.sqlite")
    made.add(a_run(1, 0.5, 0.9))
    gates = [
        {"gate": "faithfulness >= 0.85", "metric": "faithfulness", "verdict": "FAIL"},
        {"gate": "pass_rate >= 0.9", "metric": "pass_rate", "verdict": "PASS"},
    ]
    reports = tmp_path / "runs" / "reports"
    made.add(a_run(2, 0.5, 0.9, gates=gates), reports=reports)
    made.add(a_run(3, 0.25, 0.9, branch="разбивка"), reports=reports)
    made.add(a_run(4, 0.9, 1.0, exit_code=0), reports=reports)
    return made


@pytest.fixture
def site(history: History) -> Iterator[Site]:
    with serving(history.path) as site:
        yield site
