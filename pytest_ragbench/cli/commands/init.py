"""``ragbench init``: a first project that runs at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_ragbench.cli.shared import emit, json_option
from pytest_ragbench.cli.starting import files_for
from pytest_ragbench.languages import DEFAULT, known_languages
from pytest_ragbench.settings import load_settings


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option(
    "--rag-url", metavar="URL", help="Your service. Without one, a small stand-in is written into the test."
)
@click.option(
    "--judge", default="local", metavar="SPEC", help="'local' (default), 'openai:MODEL' or 'PROVIDER:MODEL'."
)
@click.option("--lang", type=click.Choice(known_languages()), default=DEFAULT, help="Of the questions.")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@json_option
def command(directory: Path, rag_url: str | None, judge: str, lang: str, force: bool, as_json: bool) -> None:
    """Write a configuration, a question file and a test that run at once.

    Files that exist are left as they are.

    \b
      ragbench init tests/rag && pytest tests/rag
      ragbench init tests/rag --rag-url http://localhost:8080 --judge openai:gpt-4o-mini
    """
    load_settings(directory, environ={}, options={"rag.url": rag_url, "judge": judge}) if rag_url else None
    written, left = [], []
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files_for(lang, rag_url, judge).items():
        file = directory / name
        if file.exists() and not force:
            left.append(str(file))
            continue
        file.write_text(text, encoding="utf-8")
        written.append(str(file))
    told: dict[str, Any] = {"written": written, "left": left, "next": f"pytest {directory}"}
    emit(told, lambda: _text(told), as_json=as_json)


def _text(told: dict[str, Any]) -> str:
    lines = [f"written  {name}" for name in told["written"]]
    lines += [f"left     {name} (exists; --force replaces it)" for name in told["left"]]
    return "\n".join([*lines, f"next     {told['next']}"])
