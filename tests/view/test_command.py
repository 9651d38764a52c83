"""``ragbench view`` as a process."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pytest_ragbench.cli.commands import view
from pytest_ragbench.report.history import History
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.view.conftest import Site


def started(folder: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pytest_ragbench.cli", "view", "--no-browser", *args]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def test_it_serves_the_configured_history_until_ctrl_c(history: History) -> None:
    """Two at once; a browser's open connection does not keep one from ending."""
    folder = history.path.parent
    (folder / "ragbench.toml").write_text('history = "history.sqlite"\n', encoding="utf-8")
    both = [started(folder), started(folder, "--json")]
    try:
        assert both[0].stdout is not None
        assert both[1].stdout is not None
        one = Site(both[0].stdout.readline().strip())
        other = Site(json.loads("".join(both[1].stdout.readline() for _ in range(4)))["url"])
        assert one.top != other.top
        for site in (one, other):
            assert site.host.startswith("127.0.0.1:")
            assert site.ask()[0] == 200
        assert one.ask(other.top)[0] == 403
        host, port = one.host.split(":")
        with socket.create_connection((host, int(port))):
            for process in both:
                process.send_signal(signal.SIGINT)
            told = [process.communicate(timeout=60) for process in both]
        assert [process.returncode for process in both] == [0, 0]
        assert told[0][1].splitlines() == ["labels: labels.jsonl; Ctrl-C ends it", "ended"]
        assert told[1][1].splitlines() == ["ended"]
    finally:
        for process in both:
            process.kill()


def test_what_can_not_be_served_is_said_at_once(cli: Cli, history: History) -> None:  # noqa: F811
    ran = cli("view", "--no-browser")
    assert (ran.code, "set `history` in ragbench.toml" in ran.err) == (4, True)
    cli.write("ragbench.toml", 'history = "none.sqlite"\n')
    ran = cli("view", "--no-browser")
    assert (ran.code, "none.sqlite: there is no such file yet; run the tests once" in ran.err) == (4, True)
    ran = cli("view", "--no-browser", "none.json")
    assert (ran.code, "none.json: can't be read: No such file" in ran.err) == (4, True)
    labels = history.path.parent / "labels.jsonl"
    labels.write_text('{"metric": "mrr"}\n', encoding="utf-8")
    ran = cli("view", "--no-browser", str(history.path))
    assert (ran.code, "labels.jsonl:1: question_id: Field required" in ran.err) == (4, True)
    labels.write_text("", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = cli("view", "--no-browser", "--port", port, str(history.path))
    assert (ran.code, ran.out) == (4, "")
    assert (
        ran.err
        == f"ragbench: --port {port}: address already in use; choose another, or leave it out for a free one\n"
    )


@pytest.mark.parametrize(("asked", "opened"), [("--open", True), ("--no-browser", False), (None, False)])
def test_the_browser_is_opened_where_it_is_wanted(
    cli: Cli,  # noqa: F811
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    asked: str | None,
    opened: bool,
) -> None:
    """By default not from here, where the output is no terminal."""
    addresses: list[str] = []
    is_opened = threading.Event()

    def open_browser(address: str) -> None:
        addresses.append(address)
        is_opened.set()

    async def serve(pages: object, *, port: int, ready: object) -> None:
        assert callable(ready)
        ready("http://127.0.0.1:1/key/")
        if opened:
            await asyncio.to_thread(is_opened.wait, 30)
        raise KeyboardInterrupt

    monkeypatch.setattr(view, "serve", serve)
    monkeypatch.setattr("webbrowser.open", open_browser)
    ran = cli("view", str(history.path), *([asked] if asked else []))
    assert (ran.code, ran.out) == (0, "http://127.0.0.1:1/key/\n")
    assert addresses == ["http://127.0.0.1:1/key/"] * opened
