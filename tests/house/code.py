"""The package read as a graph: which module imports which, where, and by which names."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest_ragbench

PACKAGE = "pytest_ragbench"
ROOT = Path(pytest_ragbench.__file__).parent


@dataclass(frozen=True, slots=True)
class Import:
    module: str
    """What is imported: a module of ours by its full name, any other by its first part."""
    names: tuple[str, ...]
    line: int
    inner: bool
    """Inside a function."""
    typing: bool = False
    """Below ``if TYPE_CHECKING``: never loaded."""


@dataclass(frozen=True)
class Module:
    path: str
    """Below the package, with slashes: ``engine/core.py``."""
    tree: ast.Module
    lines: int
    imports: tuple[Import, ...]

    @property
    def name(self) -> str:
        parts = Path(self.path).with_suffix("").parts
        return ".".join((PACKAGE, *(parts[:-1] if parts[-1] == "__init__" else parts)))

    @property
    def room(self) -> str:
        return room_of(self.name)


def room_of(module: str) -> str:
    """``pytest_ragbench.engine.core`` is in ``engine``; a module of the package itself is a room of its own."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@functools.cache
def modules() -> tuple[Module, ...]:
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source)
        path = file.relative_to(ROOT).as_posix()
        found.append(Module(path, tree, len(source.splitlines()), tuple(_imports(tree, inner=False))))
    return tuple(found)


def _imports(node: ast.AST, inner: bool, typing: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(_target(alias.name), (), child.lineno, inner, typing)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports name their module in full"
            names: dict[str, list[str]] = {}
            for alias in child.names:
                # "from package import module" and "from module import name" look alike.
                deeper = f"{child.module}.{alias.name}"
                target = deeper if _exists(deeper) else _lazy(str(child.module)).get(alias.name, child.module)
                names.setdefault(str(target), []).append(alias.name)
            for target, taken in names.items():
                yield Import(_target(target), tuple(taken), child.lineno, inner, typing)
        else:
            within = inner or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            unloaded = typing or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
            yield from _imports(child, within, unloaded)


def _target(name: str) -> str:
    first, _, _ = name.partition(".")
    return name if first == PACKAGE else first


@functools.cache
def _lazy(package: str) -> dict[str, str]:
    """The names that a package imports when they are first asked for, which its ``TYPE_CHECKING`` block lists."""
    file = ROOT.joinpath(*package.split(".")[1:], "__init__.py")
    if package.partition(".")[0] != PACKAGE or not file.is_file():
        return {}
    found: dict[str, str] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for child in node.body:
                if isinstance(child, ast.ImportFrom):
                    found |= {alias.asname or alias.name: str(child.module) for alias in child.names}
    return found


@functools.cache
def _exists(name: str) -> bool:
    parts = name.split(".")
    place = ROOT.joinpath(*parts[1:])
    return parts[0] == PACKAGE and (place.with_suffix(".py").is_file() or (place / "__init__.py").is_file())


@functools.cache
def loaded_with(name: str) -> frozenset[str]:
    """Everything that importing the module ``name`` imports, by its top-level imports alone."""
    by_name = {module.name: module for module in modules()}
    seen: set[str] = set()
    todo = [name]
    while todo:
        if (one := todo.pop()) in seen:
            continue
        seen.add(one)
        todo += [".".join(one.split(".")[:-1])] if "." in one else []
        if one in by_name:
            todo += [item.module for item in by_name[one].imports if not (item.inner or item.typing)]
    return frozenset(seen)


def is_stdlib(module: str) -> bool:
    return module in sys.stdlib_module_names
