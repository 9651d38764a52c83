"""Runs that assert latency: their questions are asked one at a time.

An answer that shares the service with seven others takes as long as they let it, which is the latency of the test
run and not of the service. ``rag.latency_concurrency`` allows for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType

import pytest

from pytest_ragbench.plugin.collected import has_questions

_WORDS = ("latency", "first_token")
_DEPTH = 2
"""Functions of the tests' own that a test calls are looked into, and those that they call."""


def asserts_latency(items: Iterable[pytest.Item]) -> bool:
    """Whether one of the tests looks at how long an answer took."""
    known: dict[CodeType, bool] = {}
    return any(has_questions(item) and _is_timed(getattr(item, "function", None), known) for item in items)


def _is_timed(function: object, known: dict[CodeType, bool]) -> bool:
    if not isinstance(function, FunctionType):
        return False
    timed = getattr(function, "ragbench_timed", None)
    if timed is not None:  # of a YAML file
        return bool(timed)
    code = function.__code__
    if code not in known:
        known[code] = _mentions(function, _DEPTH)
    return known[code]


def _mentions(function: FunctionType, depth: int) -> bool:
    names = [name for name in _names(function.__code__) if "judge_latency" not in name]
    if any(word in name for name in names for word in _WORDS):
        return True
    called = (function.__globals__.get(name) for name in function.__code__.co_names) if depth else ()
    return any(
        isinstance(each, FunctionType)
        and each.__module__ == function.__module__
        and _mentions(each, depth - 1)
        for each in called
    )


def _names(code: CodeType) -> Iterator[str]:
    """Attributes and globals that it reads, and the keywords and keys that it passes on."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
        elif isinstance(constant, tuple):
            yield from (part for part in constant if isinstance(part, str))
        elif isinstance(constant, str) and constant.isidentifier():
            yield constant
