"""``--ragbench-tier``: run only the tests of one tier of the benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType

import pytest

_NUMBERS = {"0": "embedding", "1": "retrieval", "2": "generation", "3": "end_to_end"}


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what belongs to other tiers, or to none."""
    wanted = config.getoption("ragbench_tier")
    if not wanted:
        return
    tiers = {_checked(name) for name in wanted}
    chosen = [item for item in items if tiers & tiers_of(item)]
    if len(chosen) < len(items):
        kept = set(map(id, chosen))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = chosen


def check(names: list[str]) -> None:
    """Refuse a tier that there is not."""
    for name in names:
        _checked(name)


def _checked(name: str) -> str:
    from pytest_ragbench.metrics.registry import TIERS

    tier = _NUMBERS.get(name, name.replace("-", "_"))
    if tier not in TIERS:
        known = ", ".join(f"{name} ({number})" for number, name in _NUMBERS.items())
        raise pytest.UsageError(
            f"--ragbench-tier {name}: no such tier; there are {known}, judge, judge_pipeline, dialogue and "
            "real_users"
        )
    return tier


def tiers_of(item: pytest.Item) -> set[str]:
    """From the test's rag_tier mark; else from the helpers and metrics that its function names."""
    marked = {str(tier) for mark in item.iter_markers("rag_tier") for tier in mark.args}
    if marked:
        return {_checked(tier) for tier in marked}
    code = getattr(getattr(item, "function", None), "__code__", None)
    if code is None:
        return set()
    from pytest_ragbench.metrics.registry import all_metrics

    metrics = all_metrics()
    named = {name.removeprefix("assert_").partition("@")[0] for name in _names(code)}
    written = getattr(getattr(item, "function", None), "ragbench_metrics", ())  # in a *.rag.yaml file
    named |= {name.partition("@")[0] for name in written}
    if callspec := getattr(item, "callspec", None):  # parametrised by metric
        named |= {value.partition("@")[0] for value in callspec.params.values() if isinstance(value, str)}
    tiers: set[str] = {metrics[name].tier for name in named & set(metrics)}
    return tiers or {"retrieval"} & named  # assert_retrieval of a metric that only the test knows


def _names(code: CodeType) -> Iterator[str]:
    """Global names, attribute names, keyword names and texts in a function, its inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple):
            yield from (part for part in constant if isinstance(part, str))
        elif isinstance(constant, CodeType):
            yield from _names(constant)
