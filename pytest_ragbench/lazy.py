"""Names of a package that are imported on first use: loading the plugin must cost nothing."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazily(package: str, **modules: str) -> Callable[[str], Any]:
    """A package's ``__getattr__``.

    Parameters
    ----------
    package
        Its ``__name__``.
    modules
        Names by the module that has them: ``base="Retriever ask_all"``.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return attribute
