"""The operations by name, and their ``_many`` forms."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cases.given import Given
from tests.cases.outcomes import Outcome, failure

Input = Given
Run = Callable[[Input], Outcome]

_MODULES = (
    "replies",
    "files",
    "endpoint",
    "metrics",
    "retrieval",
    "gates",
    "runs",
    "installed",
    "store",
    "security",
)
_LISTS = ("items", "replies", "values", "cells", "responses", "samples", "cases", "texts", "names", "ids")


@dataclass(frozen=True)
class Operation:
    """``single`` is the key under which one item of a list stands, where items are no mappings."""

    run: Run
    items: str
    single: str | None
    whole: bool


_OPERATIONS: dict[str, Operation] = {}


def op(
    *names: str, items: str = "items", single: str | None = None, whole: bool = False
) -> Callable[[Run], Run]:
    """Register an operation.

    Parameters
    ----------
    names
        Its name, and others that mean the same.
    items, single
        In ``NAME_many``, the key of the list, and the key under which the operation wants one item
        of it. An item that is a mapping, with no ``single``, is laid over the rest of the input.
    whole
        The operation reads a list by itself.
    """

    def register(run: Run) -> Run:
        for name in names:
            _OPERATIONS[name] = Operation(run, items, single, whole)
        return run

    return register


def run(case_input: Mapping[str, Any]) -> Outcome:
    """Do what the input of a case says; an unknown operation, or a key that it does not read, is a crash."""
    load()
    given = case_input if isinstance(case_input, Given) else Given(case_input)
    name = str(given.get("op", ""))
    if name in _OPERATIONS:
        found = _OPERATIONS[name]
        many = not found.whole and isinstance(given.get(found.items), list)
    else:
        base = name.removesuffix("_many")
        found_or_none = _OPERATIONS.get(base) or _metric_operation(base)
        if found_or_none is None:
            return Outcome("crash", message=f"unknown operation {name!r}")
        found, many = found_or_none, name != base
    if not many:
        return _read_wholly(given, _one(found, given))
    key = found.items if isinstance(given.get(found.items), list) else _list_key(given)
    if key is None:
        return Outcome("crash", message=f"{name}: the input has no list of items")
    made = [(_item(found, key, given, item), item) for item in given[key]]
    return _read_wholly(given, Outcome("property", each=[_item_outcome(found, one) for one, _ in made]))


def _item_outcome(found: Operation, given: Given) -> Outcome:
    outcome = _one(found, given)
    return _read_wholly(given, outcome)


def _read_wholly(given: Given, outcome: Outcome) -> Outcome:
    if outcome.kind == "crash":
        return outcome
    unread = given.unread()
    if unread:
        reader = "no operation reads" if outcome.each is not None else "the operation does not read"
        return Outcome(
            "crash", message=f"keys that {reader}: {', '.join(unread)}; it came to {outcome.told()}"
        )
    return outcome


def _metric_operation(name: str) -> Operation | None:
    """A metric's own name is an operation, too."""
    from pytest_ragbench.metrics.registry import all_metrics

    metric = name.removeprefix("assert_").partition("@")[0]
    if metric not in all_metrics():
        return None
    metric_of = _OPERATIONS["metric"]
    return Operation(lambda given: metric_of.run(given.over({"metric": name})), "items", None, False)


def _item(found: Operation, key: str, whole: Given, item: Any) -> Given:
    # Of "items", a mapping holds keys of the input; of "replies", it is the reply, unless it has one.
    laid_over = isinstance(item, Mapping) and (
        found.single is None or found.single in item or (key == "items" and key == found.items)
    )
    rest = whole.without(key)
    if laid_over:
        return rest.over(dict(item))
    return rest.over({found.single or key.removesuffix("s"): item})


def _list_key(given: Input) -> str | None:
    return next((key for key in _LISTS if isinstance(given.get(key), list)), None)


def _one(found: Operation, given: Input) -> Outcome:
    try:
        return found.run(given)
    except Exception as error:  # an operation's own mistake is shown as such
        return failure(error)


def load() -> dict[str, Operation]:
    """All operations."""
    for module in _MODULES:
        importlib.import_module(f"tests.cases.ops.{module}")
    return _OPERATIONS
