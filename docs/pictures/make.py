"""Makes the README's pictures from the examples: ``python docs/pictures/make.py``; needs rich and Chromium.

A run of the examples whose service falsifies its answers is shown twice: as pytest prints it, and as its HTML report.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
COLUMNS = 118


def main() -> None:
    """Write ``failure.png`` and ``report.png`` beside this file."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        said = run(report)
        page = Path(folder) / "terminal.html"
        page.write_text(as_page(failure_in(said)), encoding="utf-8")
        photograph(page, HERE / "failure.png", "1030,500")
        photograph(report, HERE / "report.png", "1180,880")


def run(report: Path) -> str:
    """What pytest prints of the example tests of generation, in color."""
    common = [sys.executable, "-m", "pytest", "test_generation.py", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, "RAG_SERVICE_HALLUCINATE": "1", "COLUMNS": str(COLUMNS)}

    def pytest(*args: str) -> str:
        done = subprocess.run(
            [*common, *args], cwd=EXAMPLES, env=environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    pytest(f"--ragbench-html={report}")
    return pytest("--color=yes", "-k", "en-exit-8 and test_answer")


def failure_in(said: str) -> str:
    """The first failing test."""
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in said.splitlines()]
    first = next(at for at, line in enumerate(plain) if line.startswith("___"))
    last = next(at for at, line in enumerate(plain) if at > first and line.startswith("==="))
    return "\n".join(said.splitlines()[first:last])


def as_page(text: str) -> str:
    """The text, with its colors, as an HTML page."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text))
    page = console.export_html(theme=MONOKAI, inline_styles=True)
    return page.replace("<body", "<body style='margin:18px;background:#0c0c0c;font-size:14px'", 1)


def photograph(page: Path, target: Path, size: str) -> None:
    """A PNG of what Chromium shows of a page."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("Chromium is needed, as `chromium` in the path")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-background-networking",
    ]
    subprocess.run(
        [chromium, *options, f"--window-size={size}", f"--screenshot={target}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip


if __name__ == "__main__":
    main()
