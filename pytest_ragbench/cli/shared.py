"""What commands have in common: exit codes, ``--json``, the options of the configuration, the engine."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.options import OPTIONS

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


class Exit(IntEnum):
    """Exit codes: those of pytest with this plugin, where both have one."""

    OK = 0
    QUALITY = 1
    """A score, a gate or a comparison is worse than what was asked."""
    INTERRUPTED = 2
    INTERNAL = 3
    USAGE = 4
    """Wrong options, a file that can't be read, a wrong configuration."""
    UNSCORED = 8
    """Judge, service or embedder failed: something has no score."""


json_option: Callable[[F], F] = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for other programs."
)
"""Adds the flag ``--json``, passed as ``as_json``."""

_SETTINGS = {option.parameter: option for option in OPTIONS if option.command_flag}


def configured(*names: str) -> Callable[[F], F]:
    """Adds those of the options ``rag_url``, ``judge``, ``embedder``, ``store``; read by :func:`settings_of`."""

    def add(command: F) -> F:
        # Decorators apply from the inside out, and help shows options in that order.
        for option in (_SETTINGS[name] for name in reversed(names)):
            flag = option.command_flag or option.flag
            command = click.option(flag, metavar=option.metavar, help=option.help)(command)
        return command

    return add


def settings_of(given: Mapping[str, Any]) -> Settings:
    """The configuration that pytest would find in the working directory, with the options given.

    ``given`` holds parameters of the command; those that :func:`configured` adds are taken.

    Raises
    ------
    UsageError
        Naming the key and where it comes from.
    """
    # Not for `ragbench --help`, which imports this module.
    from pytest_ragbench.config_files import find_directory
    from pytest_ragbench.settings import load_settings

    directory = find_directory([Path.cwd()], tops=[Path.cwd()]) or Path.cwd()
    taken = {option.setting: option for option in _SETTINGS.values() if option.setting}
    return load_settings(
        directory,
        root=directory,
        options={key: given.get(option.parameter) for key, option in taken.items()},
        flags={key: option.command_flag or option.flag for key, option in taken.items()},
    )


def history_of(settings: Settings) -> Path | None:
    """The file of the setting ``history``; None where none is set."""
    return _top(settings.history) / Path(settings.history).expanduser() if settings.history else None


def configured_history() -> tuple[Path, Path | None]:
    """The file of the setting ``history``, and the folder of whole reports where one is set.

    Raises
    ------
    UsageError
        No history is set.
    """
    settings = settings_of({})
    history, reports = history_of(settings), settings.history_reports
    if not settings.history or history is None:
        raise UsageError("which history? name its file, or set `history` in ragbench.toml")
    return history, _top(settings.history) / Path(reports).expanduser() if reports else None


def _top(file: str) -> Path:
    """What paths of the configuration are relative to: pytest's rootdir. A command doesn't know it, and takes the
    nearest folder that has the ``file``, from the working directory up.
    """
    folders = (Path(), *Path.cwd().parents)
    return next((folder for folder in folders if (folder / Path(file).expanduser()).exists()), Path())


def pytest_cache() -> Path | None:
    """Where tests run in this directory keep their store; None if none has been run."""
    # Where pytest keeps it unless cache_dir says otherwise; then the setting `store` names the file.
    cache = Path(".pytest_cache/d/ragbench")
    return cache if cache.is_dir() else None


@contextmanager
def engine_of(settings: Settings) -> Iterator[Engine]:
    """An engine for one command; its store is that of the tests run here, so no reply is paid for twice."""
    from pytest_ragbench import building

    engine = building.engine(
        settings,
        run_id=building.new_run_id(),
        cache=pytest_cache(),
        on_warning=lambda text: note(f"warning: {text}"),
    )
    try:
        yield engine
    finally:
        engine.close()


def check_replaces(output: Path, *, force: bool) -> None:
    """Raise UsageError where ``output`` exists and the command was not told to replace it."""
    if output.exists() and not force:
        raise UsageError(f"{output} exists already; --force replaces it")


def emit(data: Any, text: str | Callable[[], str], *, as_json: bool) -> None:
    """Print ``data`` as JSON, or ``text`` (or what it returns) for people."""
    if as_json:
        print_json(data)
    else:
        click.echo(text() if callable(text) else text)


def print_json(data: Any) -> None:
    """One JSON document on stdout. Never NaN: a value that isn't finite is an error of ours."""
    click.echo(json.dumps(data, ensure_ascii=False, indent=2, allow_nan=False, default=str))


def note(text: str) -> None:
    """A line for people, on stderr: stdout belongs to the result."""
    click.echo(text, err=True)


def failure(kind: str, message: str, code: Exit, *, as_json: bool, before: str = "") -> Exit:
    """Say what went wrong, on stderr, and as JSON on stdout where that was asked; returns ``code``."""
    if os.environ.get("RAGBENCH_TRACEBACK", "") not in ("", "0") and sys.exc_info()[0] is not None:
        traceback.print_exc()
    note(f"{before}ragbench: {message}")
    if as_json:
        print_json({"error": {"kind": kind, "message": message}})
    return code


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text under a header, as wide as their widest cell in a terminal."""
    # Not at the top: `ragbench --help` imports this module and draws no table.
    from pytest_ragbench.report.layout import cells, pad

    lines = [header, *rows]
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(pad, line, widths)).rstrip() for line in lines)
