"""Reads expressions: what they stand for, and which helpers they call."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any

from pytest_ragbench.plan import values
from pytest_ragbench.plan.helpers import ask_of, asks_metrics, is_helper
from pytest_ragbench.plan.model import UNKNOWN, Ask, Symbol
from pytest_ragbench.plan.values import Definition, Frame, LocalFunction, Method

# Of pytest and unittest: what comes after them in a test may not run.
_LEAVING = frozenset({"skip", "xfail", "exit", "fail", "importorskip", "skipTest"})
# They stop at the first element that decides, so later ones may not be evaluated.
_LAZY = frozenset({"all", "any", "next"})

DefinitionOf = Callable[[FunctionType], Definition | None]


def called_name(node: ast.expr) -> str:
    """The last part of the name that is called; empty where it isn't a call."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else str(getattr(node.func, "id", ""))


class Expressions:
    """One reading of one test function, as far as expressions go.

    Each kind of node that means something has a method ``_on_<kind>``; of the others the parts are read.
    """

    def __init__(self, definition_of: DefinitionOf) -> None:
        self._definition_of = definition_of
        self.asks: list[Ask] = []
        self.checks: list[Ask] = []
        self.complete = True
        self.left = False
        """Whether the test may be over by now."""
        self.doubts = 0
        """How many conditions stand around what is being read."""
        self.guards = 0
        """How many ``pytest.raises`` and the like do."""
        self.frames: list[Frame] = []

    def run(self, node: Definition, frame: Frame, code: object) -> Any:
        """Read a function's body; its value, where that is known."""
        raise NotImplementedError

    @contextmanager
    def doubt(self) -> Iterator[None]:
        """What is read meanwhile may not happen."""
        self.doubts += 1
        try:
            yield
        finally:
            self.doubts -= 1

    def value(self, node: ast.expr, frame: Frame) -> Any:
        """What an expression stands for; helpers that it calls are noted."""
        # Not ast.NodeVisitor: its methods take no frame.
        read = getattr(self, f"_on_{type(node).__name__.lower()}", self.parts)
        return read(node, frame)

    def parts(self, node: ast.AST, frame: Frame) -> Any:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
            else:
                self.parts(child, frame)
        return UNKNOWN

    def bind(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Give the names of a target their values."""
        match target:
            case ast.Name(id=name):
                frame.names[name] = value
            # How much it takes depends on how long the value is.
            case ast.Starred(value=inner):
                self.bind(inner, UNKNOWN, frame)
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                whole = isinstance(value, (list, tuple)) and len(value) == len(elts)
                clear = whole and not any(isinstance(each, ast.Starred) for each in elts)
                for place, each in enumerate(elts):
                    self.bind(each, value[place] if clear else UNKNOWN, frame)
            case ast.Subscript(value=ast.Name(id=name)) if values.is_container(frame.lookup(name)):
                frame.names[name] = UNKNOWN  # it has been changed in place

    # Nodes

    def _on_constant(self, node: ast.Constant, frame: Frame) -> Any:
        return node.value

    def _on_name(self, node: ast.Name, frame: Frame) -> Any:
        return frame.lookup(node.id)

    def _on_attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        return values.attribute(self.value(node.value, frame), node.attr)

    def _on_await(self, node: ast.Await, frame: Frame) -> Any:
        return self.value(node.value, frame)

    def _on_lambda(self, node: ast.Lambda, frame: Frame) -> Any:
        return LocalFunction(node, frame)

    def _on_namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Any:
        found = self.value(node.value, frame)
        self.bind(node.target, found, frame)
        return found

    def _on_boolop(self, node: ast.BoolOp, frame: Frame) -> Any:
        self.value(node.values[0], frame)
        with self.doubt():
            for each in node.values[1:]:
                self.value(each, frame)
        return UNKNOWN

    def _on_ifexp(self, node: ast.IfExp, frame: Frame) -> Any:
        found = self.value(node.test, frame)
        if values.is_plain(found):
            return self.value(node.body if found else node.orelse, frame)
        with self.doubt():
            self.value(node.body, frame)
            self.value(node.orelse, frame)
        return UNKNOWN

    def _on_list(self, node: ast.List | ast.Tuple, frame: Frame) -> Any:
        return self._elements(node.elts, frame)

    _on_tuple = _on_list

    def _elements(self, nodes: Sequence[ast.expr], frame: Frame) -> Any:
        found: list[Any] = []
        clear = True
        for node in nodes:
            if not isinstance(node, ast.Starred):
                found.append(self.value(node, frame))
                continue
            inner = self.value(node.value, frame)
            clear = clear and isinstance(inner, (list, tuple))
            found += inner if isinstance(inner, (list, tuple)) else ()
        return found if clear else UNKNOWN

    def _on_dict(self, node: ast.Dict, frame: Frame) -> Any:
        found: dict[Any, Any] = {}
        clear = True
        for key, value in zip(node.keys, node.values, strict=True):
            name = None if key is None else self.value(key, frame)
            inner = self.value(value, frame)
            if key is None and isinstance(inner, dict):
                found |= inner
            elif key is not None and values.is_plain(name):
                found[name] = inner
            else:
                clear = False
        return found if clear else UNKNOWN

    def _on_joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Any:
        parts = [self.value(each, frame) for each in node.values]
        return "".join(parts) if all(isinstance(part, str) for part in parts) else UNKNOWN

    def _on_formattedvalue(self, node: ast.FormattedValue, frame: Frame) -> Any:
        found = self.value(node.value, frame)
        bare = node.conversion == -1 and node.format_spec is None
        return str(found) if bare and values.is_plain(found) else UNKNOWN

    def _on_unaryop(self, node: ast.UnaryOp, frame: Frame) -> Any:
        return values.unary(node.op, self.value(node.operand, frame))

    def _on_binop(self, node: ast.BinOp, frame: Frame) -> Any:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        # Sums of strings and lists make up names and tables of metrics; other arithmetic doesn't matter here.
        return values.joined(left, right) if isinstance(node.op, ast.Add) else UNKNOWN

    def _on_compare(self, node: ast.Compare, frame: Frame) -> Any:
        left, *others = (self.value(each, frame) for each in (node.left, *node.comparators))
        # In a chain (a < b < c) the later parts are evaluated only if the earlier ones hold.
        return values.compared(node.ops[0], left, others[0]) if len(others) == 1 else UNKNOWN

    def _on_subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        return values.item(self.value(node.value, frame), self.value(node.slice, frame))

    def _on_listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Any:
        return self._comprehension(node.generators, [node.elt], frame)

    _on_setcomp = _on_generatorexp = _on_listcomp

    def _on_dictcomp(self, node: ast.DictComp, frame: Frame) -> Any:
        self._comprehension(node.generators, [node.key, node.value], frame)
        return UNKNOWN

    def _comprehension(
        self, loops: Sequence[ast.comprehension], parts: Sequence[ast.expr], frame: Frame
    ) -> Any:
        # A comprehension has a scope of its own.
        inner = Frame({}, frame, frame.module)
        rounds = values.rounds_of(self.value(loops[0].iter, frame))
        if rounds is None or len(loops) > 1 or loops[0].ifs or loops[0].is_async:
            with self.doubt():
                for loop in loops:
                    self.bind(loop.target, UNKNOWN, inner)
                    for each in (loop.iter, *loop.ifs, *parts):
                        self.value(each, inner)
            return UNKNOWN
        found = []
        for value in rounds:
            self.bind(loops[0].target, value, inner)
            found.append([self.value(part, inner) for part in parts][-1])
        # One round stood for all samples, so the list would have the wrong length.
        return UNKNOWN if Symbol.EACH in rounds else found

    # Calls

    def _on_call(self, node: ast.Call, frame: Frame) -> Any:
        called = self.value(node.func, frame)
        match node.func:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if attr not in values.VIEWS:
                if values.is_container(frame.lookup(name)):
                    frame.names[name] = UNKNOWN  # ``limits.pop(...)``
        if called_name(node) in _LAZY and any(isinstance(each, ast.GeneratorExp) for each in node.args):
            with self.doubt():
                args, kwargs = self._arguments(node, frame)
        else:
            args, kwargs = self._arguments(node, frame)
        # A function of the project may have one of those names, too.
        followed = isinstance(called, FunctionType) and values.is_users(called)
        if called_name(node) in _LEAVING and not followed:
            self.left = True
            return UNKNOWN
        return self._apply(called, args, kwargs)

    def _arguments(self, node: ast.Call, frame: Frame) -> tuple[list[Any] | None, dict[str, Any]]:
        """Positional and keyword arguments; None where it is not known which there are."""
        args = self._elements(node.args, frame)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is not None:
                kwargs[keyword.arg] = value
            elif isinstance(value, dict):
                kwargs |= {str(key): part for key, part in value.items()}
            else:
                args = UNKNOWN
        return (args if isinstance(args, list) else None), kwargs

    def _apply(self, called: Any, args: list[Any] | None, kwargs: dict[str, Any]) -> Any:
        """Read what a call does."""
        match called:
            case functools.partial():
                whole = None if args is None else [*called.args, *args]
                return self._apply(called.func, whole, {**called.keywords, **kwargs})
            case FunctionType() if is_helper(called):
                return self._note(called, args, kwargs)
            case FunctionType() if values.is_users(called):
                return self._follow(called, args, kwargs)
            case FunctionType() if called.__module__ == "asyncio.threads" and args:  # to_thread
                return self._apply(args[0], args[1:], kwargs)
            case Method(instance=instance, function=function):
                return self._follow(function, None if args is None else [instance, *args], kwargs)
            case LocalFunction(node=node, frame=frame):
                defaults = [self.value(each, frame) for each in node.args.defaults]
                names = values.local_parameters(node, defaults, args, kwargs)
                return self.run(node, Frame(names, frame, frame.module), id(node))
        if (called is list or called is tuple) and args == [Symbol.SAMPLES]:
            return Symbol.SAMPLES
        if values.is_builder(called):
            return values.built(called, args, kwargs)
        given = [*(args or ()), *kwargs.values()]
        # A sample that goes where it can't be followed may meet any helper there.
        gone = any(isinstance(value, Symbol) and value is not UNKNOWN for value in given)
        if gone and (called is UNKNOWN or isinstance(called, type)):
            self.complete = False
        return UNKNOWN

    def _note(self, helper: FunctionType, args: list[Any] | None, kwargs: Mapping[str, Any]) -> Any:
        ask = ask_of(helper, args or (), kwargs)
        if not asks_metrics(helper) and ask.check is None:
            return UNKNOWN
        returned = any(frame.may_have_returned for frame in self.frames)
        certain = not (self.doubts or self.left or returned)
        if ask.check is not None:
            self.checks.append(replace(ask, certain=certain, may_fail=bool(self.guards)))
            return UNKNOWN
        known = ask.known and args is not None
        self.complete = self.complete and bool(ask.metrics)
        self.asks.append(replace(ask, certain=certain, known=known, may_fail=bool(self.guards)))
        return UNKNOWN

    def _follow(self, function: FunctionType, args: list[Any] | None, kwargs: dict[str, Any]) -> Any:
        """Read the body of a function of the project."""
        inner = inspect.unwrap(function)
        definition = self._definition_of(inner) if isinstance(inner, FunctionType) else None
        # The body of a generator runs when it is iterated, if at all.
        if definition is None or inspect.isgeneratorfunction(inner):
            self.complete = False
            return UNKNOWN
        frame = Frame(values.parameters_of(inner, args, kwargs), values.closure_of(inner), inner.__globals__)
        if inner is function:
            return self.run(definition, frame, inner.__code__)
        with self.doubt():  # nobody knows how often its wrapper calls it
            self.run(definition, frame, inner.__code__)
        return UNKNOWN
