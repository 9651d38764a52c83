from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ragbench.plugin.progress import Live, Progress, status, summed
from tests.plugin.conftest import Project
from tests.servers.rag_server import default_answer, rag_server


def test_the_status_in_words() -> None:
    books: dict[str, dict[str, Any]] = {
        "rag": {"calls": 30, "stored": 5},
        "judge": {"calls": 4, "cost": 0.01},
        "judge gpt": {"calls": 4},
    }
    assert status(12, 100, summed(books, 8), 10.0) == (
        "12/100 tests, 34 calls sent, 8 under way, 5 stored, $0.01, about 1:13 left"
    )
    assert status(0, 3, Live(), 1.0) == "0/3 tests"


class Terminal:
    """Keeps what is written, and shows what one line of a terminal would."""

    def __init__(self, width: int = 60) -> None:
        self._file = io.StringIO()
        self.fullwidth = width
        self.width_of_current_line = 0

    def write(self, text: str) -> None:
        self._file.write(text)
        self.width_of_current_line += len(text)

    def line(self) -> str:
        cells: list[str] = []
        at = saved = 0
        for part in re.findall(r"\x1b7|\x1b8|\x1b\[K|.", self._file.getvalue(), flags=re.S):
            if part == "\x1b7":
                saved = at
            elif part == "\x1b8":
                at = saved
            elif part == "\x1b[K":
                del cells[at:]
            else:
                cells[at : at + 1] = [part]
                at += 1
        return "".join(cells)


def made(terminal: Terminal, books: dict[str, Any]) -> Progress:
    engine = SimpleNamespace(totals=lambda: books, out=2) if books else None
    state = SimpleNamespace(live_engine=engine)
    results = SimpleNamespace(state=state, expected={"a", "b"}, reported={"a"}, usage={})
    progress = Progress(SimpleNamespace(_tw=terminal), results, terminal._file)  # type: ignore[arg-type]
    progress._started = progress._news = 100.0
    return progress


def hook(progress: Progress, write: Any) -> None:
    running: Generator[None, None, None] = progress.pytest_runtest_logreport()
    next(running)
    write()
    with pytest.raises(StopIteration):
        next(running)


def test_it_is_drawn_beside_the_dots_and_wiped_before_the_next() -> None:
    terminal = Terminal(80)
    progress = made(terminal, {"rag": {"calls": 7}})
    terminal.write("test_a.py ..")
    progress.tick(100.5)
    assert terminal.line() == "test_a.py .."  # pytest has just spoken
    progress.tick(110.0)
    assert terminal.line() == "test_a.py ..  1/2 tests, 7 calls sent, 2 under way, about 0:10 left"
    hook(progress, lambda: terminal.write("F"))
    assert terminal.line() == "test_a.py ..F"


def test_it_never_reaches_the_end_of_the_line() -> None:
    for used in range(60):
        terminal = Terminal()
        terminal.write("." * used)
        made(terminal, {"rag": {"calls": 7}}).tick(200.0)
        assert len(terminal.line()) < 60


def test_a_run_that_asks_nobody_shows_nothing() -> None:
    terminal = Terminal()
    made(terminal, {}).tick(200.0)
    assert terminal.line() == ""


def test_numbers_are_those_of_all_kinds() -> None:
    sums = {"calls": 3, "stored": 1, "cost": 0.25}
    assert summed({"rag": sums, "rag p:m": sums, "judge": sums}, 2) == Live(6, 2, 0.5, 2)


TESTS = """\
import pytest

@pytest.mark.rag_questions([{"id": "a", "question": "Why?"}])
def test_answer(rag_sample):
    assert rag_sample.answer
"""


def test_on_a_terminal_and_in_a_pipe(project: Project) -> None:
    project.write(test_a_py=TESTS)
    asked = threading.Event()

    def slow(question: str) -> dict[str, Any]:
        if not asked.wait(60):  # until the status has been seen
            raise TimeoutError
        return default_answer(question)

    with rag_server(slow) as server:
        for more in ([], ["-n", "1"]):
            asked.clear()
            text = on_a_terminal(project.path, [*command(server.url), *more], asked)
            assert "\x1b7  0/1 tests, " in text
            assert "1 under way" in text
            assert text[text.rindex("\x1b8") :].startswith("\x1b8\x1b[K")
        piped = subprocess.run(
            command(server.url), cwd=project.path, capture_output=True, check=False, timeout=120
        )
    assert piped.returncode == 0
    assert b"\x1b" not in piped.stdout


NOT_NEEDED = [
    part for name in ("langsmith_plugin", "anyio", "hypothesispytest") for part in ("-p", f"no:{name}")
]


def command(url: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        *NOT_NEEDED,
        "--rag-url",
        url,
        "test_a.py",
    ]


def on_a_terminal(directory: Path, told: list[str], asked: threading.Event) -> str:
    """All that a run writes on a terminal; sets ``asked`` when the status is there."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        told,
        cwd=directory,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
            if b"under way" in seen:
                asked.set()
    except OSError:  # how a terminal that nobody holds any more ends
        pass
    os.close(ours)
    running.wait(120)
    return seen.decode()
