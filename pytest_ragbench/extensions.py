"""What other packages bring by entry point, or a configuration names; what this package brings itself comes through
the same door.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError


def points(group: str, built_in: Mapping[str, str]) -> list[EntryPoint]:
    """The entry points of a group: the built-in ones (name -> ``module:object``), then the others by name."""
    # Built-in ones are not in pyproject.toml, so that a checkout without installed metadata has them, too.
    own = [EntryPoint(name, target, group) for name, target in built_in.items()]
    # Sorted, so that which of two packages wins doesn't depend on the order of installation.
    return [*own, *sorted(installed_points(group), key=lambda point: point.name)]


def installed_points(group: str) -> list[EntryPoint]:
    """The entry points of a group that other packages bring."""
    return list(_all_points(tuple(sys.path)).select(group=group))


@cache
def _all_points(path: tuple[str, ...]) -> Any:  # of another type since Python 3.12
    """Of what is installed along ``path``. Once for all groups: reading the metadata of all packages of an environment
    takes as long as importing one of our larger modules.
    """
    return entry_points()


def loaded(point: EntryPoint, what: str) -> Any:
    """The object of an entry point.

    Raises
    ------
    UsageError
        It can't be imported; the message begins with ``what`` and names the module.
    """
    try:
        return point.load()
    except Exception as error:  # another package's code may raise anything
        message = f"{what} ({point.value}) can't be loaded: {type(error).__name__}: {error}"
        raise UsageError(message) from error


def imported(spec: str, folder: Path | None = None) -> Any:
    """The object that ``"MODULE:OBJECT"`` names. The working directory is on the path, and after all else ``folder``:
    where the file stands that says so.

    Raises
    ------
    UsageError
        The module can't be imported, or has no such object.
    """
    module_name, _, path = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if folder is not None and str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # a module that is not ours may raise anything
        raise UsageError(f"{spec!r}: can't import {module_name}: {type(error).__name__}: {error}") from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise UsageError(f"{spec!r}: {module_name} has no {path!r}") from None
    return found


def required(module: str, extra: str, what: str) -> Any:
    """The module of an optional dependency.

    Raises
    ------
    UsageError
        It is not installed; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UsageError(f"{what} needs {module}: pip install 'pytest-ragbench[{extra}]'") from None


def did_you_mean(name: str, known: Iterable[str], others: str = "known") -> str:
    """The end of a message about a name that there isn't: the nearest one, or all that are known."""
    from difflib import get_close_matches

    names = list(known)
    close = get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"{others}: {', '.join(names) or 'none'}"
