"""Objects that a configuration names."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from pytest_ragbench.model.errors import UsageError


def imported(spec: str) -> Any:
    """The object that ``"MODULE:OBJECT"`` names; the working directory is on the path.

    Raises
    ------
    UsageError
        The module can't be imported, or has no such object.
    """
    module_name, _, path = spec.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
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
