"""Values as a reading knows them: plain ones, and symbols for what only the running test knows."""

from __future__ import annotations

import ast
import functools
import inspect
import os
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from pytest_ragbench.assertions.factory import PREFIX
from pytest_ragbench.assertions.samples import assert_metric
from pytest_ragbench.plan.model import UNKNOWN, Symbol, is_known

_OURS = "pytest_ragbench"
MAX_ROUNDS = 200
"""A loop over more values is read as one round that may happen."""

VIEWS = frozenset({"items", "keys", "values", "get", "copy"})
"""Methods of a dict that change nothing."""
_SEQUENCES: tuple[type, ...] = (
    list, tuple, dict, set, frozenset, range, type({}.items()), type({}.keys()), type({}.values()),
)  # fmt: skip
_PLAIN = (str, int, float, bool, type(None))
_BUILDERS = (list, tuple, dict, enumerate, zip, range, reversed, sorted)
_PACKAGES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib", "stdlib")})
_PACKAGE_FOLDERS = frozenset({"site-packages", "dist-packages"})

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class Frame:
    """The names of one call, and what has become of it."""

    names: dict[str, Any]
    outer: Frame | None = None
    module: Mapping[str, Any] = field(default_factory=dict)
    may_have_returned: bool = False
    value: Any = None
    """What it returns."""

    def lookup(self, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if self.outer is not None:
            return self.outer.lookup(name)
        if name in self.module:
            return self.module[name]
        # In the main module it is a module, elsewhere a dict.
        builtins = self.module.get("__builtins__", {})
        found = builtins if isinstance(builtins, dict) else vars(builtins)
        return found.get(name, UNKNOWN)

    def forget(self, names: set[str]) -> None:
        """Nobody knows any more what these stand for."""
        self.names |= dict.fromkeys(names, UNKNOWN)


@dataclass(frozen=True)
class LocalFunction:
    """A function that is defined while another one runs, with the names that it sees."""

    node: Definition
    frame: Frame


@dataclass(frozen=True)
class Instance:
    """The ``self`` of a test class."""

    owner: type


@dataclass(frozen=True)
class Method:
    instance: Instance
    function: FunctionType


def is_users(function: FunctionType) -> bool:
    """Whether it belongs to the project under test, not to us or an installed package."""
    ours = f"{function.__module__}.".startswith("pytest_ragbench.")
    return not ours and not is_installed(function.__code__.co_filename)


def is_installed(filename: str) -> bool:
    """Whether a file is Python's own or an installed package's."""
    # By name as well: environments can be put on top of each other.
    return filename.startswith(_PACKAGES) or not _PACKAGE_FOLDERS.isdisjoint(Path(filename).parts)


def is_plain(value: Any) -> bool:
    # Exact types: a subclass may compare and convert as it likes.
    return type(value) in _PLAIN


def is_container(value: Any) -> bool:
    return type(value) in (list, dict, set)


def is_builder(called: Any) -> bool:
    """Whether it makes a value of values and does nothing else."""
    owner = getattr(called, "__self__", None)
    view = type(owner) is dict and getattr(called, "__name__", "") in VIEWS
    return view or any(called is each for each in _BUILDERS)


def built(called: Any, args: Sequence[Any] | None, kwargs: Mapping[str, Any]) -> Any:
    """What a builder makes of plain values."""
    if args is None or isinstance(getattr(called, "__self__", None), Symbol):
        return UNKNOWN
    # Iterating over anything else may run code of the project before its test does.
    if any(type(arg) not in (*_SEQUENCES, *_PLAIN) for arg in (*args, *kwargs.values())):
        return UNKNOWN
    try:
        found = called(*args, **kwargs)
        return list(found) if isinstance(found, Iterator) else found
    except Exception:  # the test itself will raise it
        return UNKNOWN


def rounds_of(value: Any) -> list[Any] | None:
    """The values that a loop goes over; None where they are not known."""
    if value is Symbol.SAMPLES:
        return [Symbol.EACH]
    if type(value) not in _SEQUENCES or len(value) > MAX_ROUNDS:
        return None
    return list(value)


def attribute(base: Any, name: str) -> Any:
    """Attributes of modules and test classes; of anything else they may be properties."""
    if isinstance(base, ModuleType):
        try:
            return getattr(base, name)
        except Exception:  # a module may have a __getattr__ of its own
            # A misspelt helper of ours is the helper of a metric that there is not, which says so.
            misspelt = base.__name__ == _OURS and name.startswith(PREFIX)
            return functools.partial(assert_metric, name.removeprefix(PREFIX)) if misspelt else UNKNOWN
    if isinstance(base, Instance):
        # Not getattr, which would run properties.
        found = inspect.getattr_static(base.owner, name, UNKNOWN)
        if isinstance(found, staticmethod):
            return found.__func__
        return Method(base, found) if isinstance(found, FunctionType) else UNKNOWN
    return getattr(base, name) if type(base) is dict and name in VIEWS else UNKNOWN


def item(base: Any, place: Any) -> Any:
    if type(base) not in (dict, list, tuple) or not is_plain(place):
        return UNKNOWN
    try:
        return base[place]
    except (KeyError, IndexError, TypeError):
        return UNKNOWN


def joined(left: Any, right: Any) -> Any:
    """``left + right``."""
    # Other types may define + as they like.
    alike = type(left) is type(right) and type(left) in (str, list, tuple)
    return left + right if alike else UNKNOWN


def unary(op: ast.unaryop, value: Any) -> Any:
    if isinstance(op, ast.USub) and type(value) in (int, float):
        return -value
    return not value if isinstance(op, ast.Not) and is_plain(value) else UNKNOWN


def compared(op: ast.cmpop, left: Any, right: Any) -> Any:
    if not is_plain(left) or not (is_known(right) and type(right) in (*_PLAIN, *_SEQUENCES)):
        return UNKNOWN
    match op:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.Is() if right is None:
            return left is None
        case ast.IsNot() if right is None:
            return left is not None
        case ast.In() if type(right) in _SEQUENCES:
            return left in right
        case ast.NotIn() if type(right) in _SEQUENCES:
            return left not in right
    return UNKNOWN


def closure_of(function: FunctionType) -> Frame | None:
    """The names that a function sees of the one it was made in."""
    names: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not set yet
            names[name] = UNKNOWN
    return Frame(names, None, function.__globals__) if names else None


def parameters_of(function: FunctionType, args: list[Any] | None, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a call by name; all unknown where it is not known what they are."""
    signature = inspect.signature(function)
    unknown: dict[str, Any] = dict.fromkeys(signature.parameters, UNKNOWN)
    if args is None:
        return unknown
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return unknown
    bound.apply_defaults()
    return dict(bound.arguments)


def local_parameters(
    node: Definition, defaults: Sequence[Any], args: list[Any] | None, kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The same for a function of which only the source is known."""
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args)]
    rest = [arg.arg for arg in (node.args.vararg, node.args.kwarg) if arg is not None]
    given = dict.fromkeys([*names, *(arg.arg for arg in node.args.kwonlyargs), *rest], UNKNOWN)
    if args is None:
        return given
    found: dict[str, Any] = {**given, **dict(zip(reversed(names), reversed(defaults), strict=False))}
    found |= dict(zip(names, args, strict=False))
    return found | {name: value for name, value in kwargs.items() if name in found}
