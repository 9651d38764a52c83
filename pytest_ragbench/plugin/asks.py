"""What a test function is certain to ask for, read from its source.

Only what will happen whatever the replies are is taken: helpers that are called in the function's own
statements (not inside ``if``, loops, other functions), with ``rag_sample`` as it is, before anything
that may leave the function. Where an argument can't be known, the call is left out: the test makes its
calls itself then, only later.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest


@dataclass(frozen=True)
class Ask:
    """One helper call.

    ``limits`` holds the threshold by metric: None where none is given, :data:`UNKNOWN` where it can't be
    known early. Without ``gated``, no threshold is wanted. ``grades`` are thresholds of parts of the score.
    """

    limits: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    gated: bool = True
    grades: tuple[Any, ...] = ()


UNKNOWN = object()

_LEAVING = {"skip", "xfail", "exit", "fail", "importorskip"}
_SAMPLE = "rag_sample"


_signature = lru_cache(inspect.signature)


class _NotKnown(Exception):
    """An argument whose value only the running test knows."""


def asks_of(item: pytest.Item) -> list[Ask]:
    """The helper calls that the test is certain to make, in their order."""
    function = inspect.unwrap(getattr(item, "function", None) or (lambda: None))
    callspec = getattr(item, "callspec", None)
    params = dict(callspec.params) if callspec is not None else {}
    if (told := getattr(function, "ragbench_asks", None)) is not None:  # a test without Python
        return list(told(params))
    asks = []
    for call in _calls_of(function):
        try:
            ask = _ask(call, function, params)
        except _NotKnown:
            continue
        if ask is not None:
            asks.append(ask)
    return asks


# Which calls

_calls: dict[Any, list[ast.Call]] = {}


def _calls_of(function: Callable[..., Any]) -> list[ast.Call]:
    """Calls that are certain to be made; read once a function."""
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    if code not in _calls:
        _calls[code] = list(_certain_calls(function))
    return _calls[code]


def _certain_calls(function: Callable[..., Any]) -> Iterator[ast.Call]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return
    definition = tree.body[-1] if tree.body else None
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and node.id == _SAMPLE and not isinstance(node.ctx, ast.Load):
            return  # another sample under that name
    yield from _in_statements(definition.body)


def _in_statements(body: list[ast.stmt]) -> Iterator[ast.Call]:
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            for item in statement.items:
                yield from _in_expression(item.context_expr)
            yield from _in_statements(statement.body)
        elif isinstance(statement, (ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)):
            if statement.value is not None:
                yield from _in_expression(statement.value)
        elif isinstance(statement, ast.Assert):
            yield from _in_expression(statement.test)
        if _may_leave(statement):
            return


def _in_expression(node: ast.AST) -> Iterator[ast.Call]:
    if isinstance(node, (ast.Lambda, ast.IfExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    children: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.BoolOp):
        children = [node.values[0]]
    for child in children:
        yield from _in_expression(child)
    if isinstance(node, ast.Call):
        yield node


def _may_leave(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    for node in ast.walk(statement):
        if isinstance(node, (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)):
            return True
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _LEAVING:
                return True
    return False


# What a call asks for


def _ask(call: ast.Call, function: Callable[..., Any], params: Mapping[str, Any]) -> Ask | None:
    """The call as an Ask; None where it is not one of the helpers."""
    helper = _helper(call.func, function)
    if helper is None:
        return None
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(kw.arg is None for kw in call.keywords):
        raise _NotKnown

    def value(node: ast.expr) -> Any:
        return _value(node, function, params)

    def limit(node: ast.expr | None) -> Any:
        if node is None:
            return None
        try:
            return value(node)
        except _NotKnown:
            return UNKNOWN

    given = _arguments(call, helper, value)
    options = {name: value(node) for name, node in given.get("options", {}).items()}
    match _plain_name(helper):
        case "assert_metric":
            return Ask({_name(value(given["name"])): limit(given.get("threshold"))}, options)
        case "score" | "ascore":
            return Ask({_name(value(given["name"])): None}, options, gated=False)
        case "assert_quality":
            wanted = dict(given.get("thresholds", {}))
            if (table := given.get("wanted")) is not None:
                wanted |= _entries(table, value)
            return Ask({name: limit(node) for name, node in wanted.items()})
        case "assert_search_rag":
            grades = [given.get(part) for part in ("threshold", "answer_correctness", "groundedness")]
            return Ask({"search_rag": None}, gated=False, grades=tuple(limit(node) for node in grades))
        case "assert_abstains":
            return Ask({"abstention": None}, gated=False)
        case _:
            return Ask({_plain_name(helper).removeprefix("assert_"): limit(given.get("threshold"))}, options)


def _arguments(
    call: ast.Call, helper: Callable[..., Any], value: Callable[[ast.expr], Any]
) -> dict[str, Any]:
    """The call's arguments by name, unread. Only the test's own sample, judge and embedder are known."""
    keywords: dict[str, Any] = {str(kw.arg): kw.value for kw in call.keywords}
    for chosen in ("judge", "embedder"):
        if chosen in keywords and value(keywords.pop(chosen)) is not None:
            raise _NotKnown
    try:
        given = _signature(helper).bind_partial(*call.args, **keywords).arguments
    except TypeError:
        raise _NotKnown from None
    sample = given.get("sample")
    if not (isinstance(sample, ast.Name) and sample.id == _SAMPLE) or (
        "name" in _signature(helper).parameters and "name" not in given
    ):
        raise _NotKnown
    return given


def _helper(node: ast.expr, function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The helper of ours for one sample that the called name stands for."""
    try:
        found = _value(node, function, {})
    except _NotKnown:
        return None
    name = _plain_name(found)
    if getattr(found, "__module__", "") != "pytest_ragbench.assertions.samples" or not inspect.isfunction(
        found
    ):
        return None
    one = name.startswith("assert_") or name in ("score", "ascore")
    return found if one and "sample" in _signature(found).parameters else None


def _plain_name(helper: Any) -> str:
    """Of an async helper, that of the plain one."""
    name = str(getattr(helper, "__name__", ""))
    return name[1:] if name.startswith("aassert_") else name


def _value(node: ast.expr, function: Callable[..., Any], params: Mapping[str, Any]) -> Any:
    """A constant, a parameter of the test, or a name of its module."""
    if isinstance(node, ast.Name):
        if node.id in params:
            return params[node.id]
        code = function.__code__
        if node.id in code.co_varnames or node.id in code.co_freevars or node.id in code.co_cellvars:
            raise _NotKnown
        try:
            return function.__globals__[node.id]
        except KeyError:
            raise _NotKnown from None
    if isinstance(node, ast.Attribute):
        base = _value(node.value, function, params)
        if not inspect.ismodule(base):  # an attribute of anything else may be a property
            raise _NotKnown
        try:
            return getattr(base, node.attr)
        except AttributeError:
            raise _NotKnown from None
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise _NotKnown from None


def _entries(table: ast.expr, value: Callable[[ast.expr], Any]) -> dict[str, ast.expr]:
    if not isinstance(table, ast.Dict) or any(key is None for key in table.keys):
        raise _NotKnown
    return {_name(value(key)): node for key, node in zip(table.keys, table.values, strict=True) if key}


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise _NotKnown
    return value
