"""``ragbench view``: runs, reports and comparisons as local pages."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from pathlib import Path
from threading import Thread

import click

from pytest_ragbench.cli.shared import configured_history, json_option, note, print_json, settings_of
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.view.labels import LabelsFile
from pytest_ragbench.view.pages import Pages
from pytest_ragbench.view.runs import Runs
from pytest_ragbench.view.server import serve


@click.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option(
    "--port", type=click.IntRange(1, 65535), metavar="N", help="Of 127.0.0.1; by default a free one."
)
@click.option(
    "--open/--no-browser",
    "opens",
    default=None,
    help="Open the page in the browser, or print its address only. Default: open it where a desktop is there.",
)
@click.option(
    "--labels",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where labels are kept. Default: labels.jsonl beside the first file that is shown.",
)
@json_option
def command(
    files: tuple[Path, ...], port: int | None, opens: bool | None, labels: Path | None, as_json: bool
) -> None:
    """Show runs in the browser: the last ones of a history, each one's questions, two or more side by side.

    What you say there of the judge's verdicts is kept as labels, for `ragbench calibrate`.

    Each FILE is a history or a JSON report (--ragbench-json); without one the file of the setting `history` is shown.
    The page is for this machine only, and its address holds a key. Ctrl-C ends it.

    \b
      ragbench view
      ragbench view run.json other.json
      ragbench view runs/history.sqlite --port 8000 --no-browser
    """
    shown = files or (_history(),)
    labels = labels or shown[0].parent / "labels.jsonl"
    pages = Pages(Runs(shown), LabelsFile(labels), lang=settings_of({}).lang)

    def ready(address: str) -> None:
        if as_json:
            print_json({"url": address, "labels": str(labels)})
        else:
            click.echo(address)
            note(f"labels: {labels}; Ctrl-C ends it")
        sys.stdout.flush()
        if opens if opens is not None else _on_a_desktop():
            # In a thread: a browser of the terminal would keep the server from answering it.
            Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        asyncio.run(serve(pages, port=port or 0, ready=ready))
    except KeyboardInterrupt:
        note("ended")


def _history() -> Path:
    path, _ = configured_history()
    if not path.exists():
        raise UsageError(f"history {path}: there is no such file yet; run the tests once, and they make it")
    return path


def _on_a_desktop() -> bool:
    """Whether a browser would open a window: one of the terminal would take it over."""
    graphic = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return graphic and sys.stdout.isatty()
