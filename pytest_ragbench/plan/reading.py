"""Reads a test function: which helpers it calls, on what, and whether that is certain.

The function's statements are gone through once, with symbols in the place of what only the running test knows.
Followed are the user's own functions, wherever they stand in the project; installed packages are not. A call is
certain only where it happens whatever the replies are: not below an ``if`` on such a value, not after a ``return``
or ``pytest.skip()`` that may happen.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

from pytest_ragbench.plan.expressions import Expressions, called_name
from pytest_ragbench.plan.model import UNKNOWN, Plan, Symbol
from pytest_ragbench.plan.values import (
    Definition,
    Frame,
    Instance,
    LocalFunction,
    attribute,
    closure_of,
    is_plain,
    rounds_of,
)

MAX_DEPTH = 6
"""How deep calls of the user's own functions are followed."""

# After a helper inside one of these the test goes on, whatever the helper found.
_CATCHING = frozenset({"raises", "suppress"})


class PlanReader:
    """Plans by function: each is read once for each set of its parameters."""

    def __init__(self) -> None:
        self._definitions: dict[CodeType, Definition | None] = {}
        self._plans: dict[Any, tuple[Plan, Any]] = {}

    def plan_of(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], owner: type | None = None
    ) -> Plan:
        """The plan of a test function.

        Parameters
        ----------
        function
            As pytest calls it; wrappers made with ``functools.wraps`` are seen through.
        arguments
            What is known of its arguments: a :class:`Symbol` for the test's sample or samples, values for
            parameters. The others have values that only the running test knows.
        owner
            The class of a method.
        """
        function = inspect.unwrap(getattr(function, "__func__", function))
        if not isinstance(function, FunctionType):
            return Plan(complete=False)
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = {name: arguments[name] for name in names if name in arguments}
        key = (code, owner, tuple((name, id(value)) for name, value in given.items()))
        if key not in self._plans:
            try:
                plan = self._read(function, {**dict.fromkeys(names, UNKNOWN), **given}, owner)
            except Exception:  # what a test does with values of its own is for that test to complain of
                plan = Plan(complete=False)
            self._plans[key] = (plan, given)  # holds the values, so that their ids stay their own
        return self._plans[key][0]

    def _read(self, function: FunctionType, names: dict[str, Any], owner: type | None) -> Plan:
        definition = self._definition(function)
        if definition is None:
            return Plan(complete=False)
        code = function.__code__
        if owner is not None and code.co_argcount:
            # By its place: nothing says that it is called self.
            names[code.co_varnames[0]] = Instance(owner)
        reading = _Statements(self._definition)
        reading.run(definition, Frame(names, closure_of(function), function.__globals__), code)
        return Plan(tuple(reading.asks), reading.complete, tuple(reading.checks))

    def _definition(self, function: FunctionType) -> Definition | None:
        """The source of a function as a syntax tree; None where there is none."""
        code = function.__code__
        if code not in self._definitions:
            self._definitions[code] = _parsed(function)
        return self._definitions[code]


def _parsed(function: FunctionType) -> Definition | None:
    try:
        # A method is indented in its file.
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    statement = tree.body[-1] if tree.body else None
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return statement
    lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
    # Of several lambdas in one statement the code doesn't say which it is.
    return lambdas[0] if len(lambdas) == 1 else None


class _Statements(Expressions):
    """One reading of one test function."""

    def __init__(self, definition_of: Callable[[FunctionType], Definition | None]) -> None:
        super().__init__(definition_of)
        self._codes: list[object] = []

    def run(self, node: Definition, frame: Frame, code: object) -> Any:
        """Read a function's body; its value, where that is known."""
        # A function that calls itself would be read for ever.
        if len(self.frames) >= MAX_DEPTH or code in self._codes:
            self.complete = False
            return UNKNOWN
        self.frames.append(frame)
        self._codes.append(code)
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, frame)
            self._block(node.body, frame)
            return frame.value
        finally:
            self._codes.pop()
            self.frames.pop()

    def _block(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        for statement in body:
            read = getattr(self, f"_on_{type(statement).__name__.lower()}", self.parts)
            read(statement, frame)

    def _maybe(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """What may happen, or not: the names that are set there stand for anything afterwards."""
        if body:
            with self.doubt():
                self._block(body, frame)
            frame.forget(_assigned(body))

    def _guarded(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        """Where errors are caught: what comes after the first call of a helper may not be reached."""
        before, doubts = len(self.asks), self.doubts
        self.guards += 1
        for statement in body:
            self._block([statement], frame)
            self.doubts = doubts + (len(self.asks) > before)
        self.guards -= 1
        self.doubts = doubts
        frame.forget(_assigned(body[1:]))

    # Nodes

    def _on_functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> None:
        # A decorator may put anything in its place.
        frame.names[node.name] = UNKNOWN if node.decorator_list else LocalFunction(node, frame)

    _on_asyncfunctiondef = _on_functiondef

    def _on_classdef(self, node: ast.ClassDef, frame: Frame) -> None:
        frame.names[node.name] = UNKNOWN

    def _on_assign(self, node: ast.Assign, frame: Frame) -> None:
        found = self.value(node.value, frame)
        for target in node.targets:
            self.bind(target, found, frame)

    def _on_annassign(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value, frame), frame)

    def _on_augassign(self, node: ast.AugAssign, frame: Frame) -> None:
        self.value(node.value, frame)
        self.bind(node.target, UNKNOWN, frame)

    def _on_delete(self, node: ast.Delete, frame: Frame) -> None:
        for target in node.targets:
            self.bind(target, UNKNOWN, frame)

    def _on_global(self, node: ast.Global | ast.Nonlocal, frame: Frame) -> None:
        frame.forget(set(node.names))

    _on_nonlocal = _on_global

    def _on_import(self, node: ast.Import, frame: Frame) -> None:
        """Names of modules that are there already: reading a test imports no module of the project."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            home = sys.modules.get(alias.name if alias.asname else top, UNKNOWN)
            frame.names[alias.asname or top] = home

    def _on_importfrom(self, node: ast.ImportFrom, frame: Frame) -> None:
        home = UNKNOWN if node.level else sys.modules.get(node.module or "", UNKNOWN)
        for alias in node.names:
            frame.names[alias.asname or alias.name] = attribute(home, alias.name)

    def _on_return(self, node: ast.Return, frame: Frame) -> None:
        found = None if node.value is None else self.value(node.value, frame)
        # After a return that may happen, this one may not.
        frame.value = UNKNOWN if self.doubts or frame.may_have_returned else found
        frame.may_have_returned = True

    def _on_raise(self, node: ast.Raise, frame: Frame) -> None:
        self.parts(node, frame)
        self.left = True

    def _on_if(self, node: ast.If, frame: Frame) -> None:
        found = self.value(node.test, frame)
        if is_plain(found):
            self._block(node.body if found else node.orelse, frame)
        else:
            self._maybe(node.body, frame)
            self._maybe(node.orelse, frame)

    def _on_for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> None:
        rounds = rounds_of(self.value(node.iter, frame))
        # With break or continue even a known list is not gone through for certain.
        if rounds is None or any(
            isinstance(part, (ast.Break, ast.Continue)) for part in _own_parts(node.body)
        ):
            self.bind(node.target, rounds[0] if rounds and len(rounds) == 1 else UNKNOWN, frame)
            frame.forget(_assigned(node.body))
            self._maybe(node.body, frame)
            rounds = []
        before = len(self.asks)
        for value in rounds:
            self.bind(node.target, value, frame)
            self._block(node.body, frame)
        if Symbol.EACH in rounds and (self.left or frame.may_have_returned):  # in the first round, perhaps
            self.asks[before:] = [replace(ask, certain=False) for ask in self.asks[before:]]
        self._maybe(node.orelse, frame)

    _on_asyncfor = _on_for

    def _on_while(self, node: ast.While, frame: Frame) -> None:
        self.value(node.test, frame)
        frame.forget(_assigned(node.body))
        self._maybe(node.body, frame)
        self._maybe(node.orelse, frame)

    def _on_with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> None:
        for item in node.items:
            self.value(item.context_expr, frame)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, UNKNOWN, frame)
        if any(called_name(item.context_expr) in _CATCHING for item in node.items):
            self._guarded(node.body, frame)
        else:
            self._block(node.body, frame)

    _on_asyncwith = _on_with

    def _on_try(self, node: ast.Try, frame: Frame) -> None:
        self._guarded(node.body, frame)
        for handler in node.handlers:
            self._maybe(handler.body, frame)
        self._maybe(node.orelse, frame)
        # Whatever happened before, this happens.
        self._block(node.finalbody, frame)

    _on_trystar = _on_try

    def _on_match(self, node: ast.Match, frame: Frame) -> None:
        self.value(node.subject, frame)
        for case in node.cases:
            self._maybe(case.body, frame)

    def _on_yield(self, node: ast.expr, frame: Frame) -> Any:
        self.parts(node, frame)
        self.left = True
        return UNKNOWN

    _on_yieldfrom = _on_yield


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Names that statements may set."""
    nodes = (node for statement in body for node in ast.walk(statement))
    return {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}


def _own_parts(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a loop, without those of loops and functions in it."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, ast.stmt):
                yield from _own_parts([part])
            elif isinstance(part, (ast.ExceptHandler, ast.match_case)):
                yield from _own_parts(part.body)


__all__ = ["MAX_DEPTH", "PlanReader"]
