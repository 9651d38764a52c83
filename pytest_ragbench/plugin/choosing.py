"""What a run leaves out by its paths, and a configuration that was found only when tests were collected."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pytest_ragbench.clean import counted
from pytest_ragbench.config_files import Folders, agree, asks_metrics, disagreement
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.collected import collected_of
from pytest_ragbench.plugin.collecting import asks_systems
from pytest_ragbench.plugin.gating import check_gates, has_gates
from pytest_ragbench.plugin.state import RunState


def check_configuration(config: pytest.Config, state: RunState, items: Sequence[pytest.Item]) -> None:
    """Refuse to run tests that another file configures than was found from the arguments (with ``--pyargs``, say, or
    from a collector of a plugin's), under a gate for a metric that nothing has registered by now, or with an option
    of ``[metrics]`` that its metric has not.

    Raises
    ------
    pytest.UsageError
        There are such tests. (In a worker, which can't end the run, they say it.)
    """
    asks = collected_of(config).asks
    why = _configured_elsewhere(state, items, asks) or _asks_no_system(state, items)
    if not why and has_gates(config, state) and any(map(asks, items)):
        why = check_gates(config, state)
    if not why and state.is_loaded and state.settings.metrics and any(map(asks, items)):
        why = _check_metrics(state)
    if why and state.is_controller:
        raise pytest.UsageError(why)
    state.refused = why


def _check_metrics(state: RunState) -> str:
    """What is wrong in ``[metrics]`` now that each ``conftest.py`` of the tests has been imported."""
    from pytest_ragbench.scoring.configured import unregistered

    try:
        for line in unregistered(state.settings):
            state.warn(line)
    except RagbenchError as error:
        return str(error)
    return ""


def _asks_no_system(state: RunState, items: Sequence[pytest.Item]) -> str:
    """Where several systems were to be asked, and each test brings a retriever of its own."""
    asking = [item for item in items if "retriever" in getattr(item, "fixturenames", ())]
    if not asking or not state.is_loaded or not state.systems:
        return ""
    others = [item for item in asking if not asks_systems(item)]
    if not others:
        return ""
    said = f"{counted(len(others), 'test')} such as {others[0].nodeid}"
    systems = ", ".join(state.systems)
    if len(others) < len(asking):
        state.warn(f"{said} ask a retriever of their own, and none of {systems}")
        return ""
    return (
        f"none of {systems} would be asked: {said} have a retriever of their own (a fixture or a parameter)"
    )


def _configured_elsewhere(
    state: RunState, items: Sequence[pytest.Item], asks: Callable[[pytest.Item], bool]
) -> str:
    used = state.config_directory
    homes: dict[Path, Path | None] = {}
    folders = Folders()
    for item in items:
        folder = item.path.parent
        if folder not in homes:
            homes[folder] = folders.nearest(folder)
        home = homes[folder]
        if home is None or (used is not None and (os.path.samefile(home, used) or agree(home, used))):
            continue
        if not asks(item):
            continue
        why = (
            disagreement(used, home)
            if used is not None
            else f"{home} configures {item.nodeid}, but can't be seen from where pytest was told to look for tests"
        )
        return f"{why}; give pytest the folder of the tests"
    return ""


def files_not_chosen(
    config: pytest.Config, state: RunState, known: Collection[str], unread: Collection[str] = ()
) -> Iterator[str]:
    """Test files that look as if they asked for metrics and are not part of this run, as node ids have them.

    Parameters
    ----------
    known
        Node ids of tests that were collected.
    unread
        Files that pytest could not collect tests from, or that skip themselves.
    """
    root, tree = config.rootpath, state.tree()
    given = [Path(os.path.realpath(path)) for path in state.given_paths()]
    run = {name.partition("::")[0] for name in known}
    last_failed = bool(config.getoption("lf", False))
    ignored = [Path(os.path.abspath(path)) for path in config.getoption("ignore", None) or ()]
    patterns = config.getoption("ignore_glob", None) or ()
    for name in sorted(unread):
        if (file := root / name).is_file() and asks_metrics(file):
            yield name
    for top in _whole(config, state):
        real = Path(os.path.realpath(top))
        covered = any(path == real or path in real.parents for path in given)
        if covered and not (last_failed or ignored or patterns):
            continue
        for file in tree.test_files(top):
            name = os.path.relpath(file, root).replace(os.sep, "/")
            if name in run or name in unread:
                continue
            place = Path(os.path.realpath(file))
            chosen = any(path == place or path in place.parents for path in given)
            out = any(path == file or path in file.parents for path in ignored)
            out = out or any(fnmatch(str(file), str(pattern)) for pattern in patterns)
            if (not chosen or out or last_failed) and asks_metrics(file):
                yield name


def _whole(config: pytest.Config, state: RunState) -> list[Path]:
    """Where all tests are: as ``testpaths`` says, or below the configuration, or in the whole project."""
    root, home = config.rootpath, state.config_directory
    named = [found for pattern in config.getini("testpaths") for found in sorted(root.glob(pattern))]
    if named:
        return named
    return [home if home is not None and home.is_relative_to(root) else root]
