"""``--ragbench-tier``: run only the tests of one tier of the benchmark."""

from __future__ import annotations

import pytest

from pytest_ragbench.metrics.registry import TIERS, all_metrics
from pytest_ragbench.plugin.upcoming import plan_of

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
    """Refuse unknown tiers."""
    for name in names:
        _checked(name)


def _checked(name: str) -> str:
    tier = _NUMBERS.get(name, name.replace("-", "_"))
    if tier not in TIERS:
        known = ", ".join(f"{name} ({number})" for number, name in _NUMBERS.items())
        raise pytest.UsageError(
            f"--ragbench-tier {name}: no such tier; there are {known}, judge, judge_pipeline, dialogue and "
            "real_users"
        )
    return tier


def tiers_of(item: pytest.Item) -> set[str]:
    """From the test's rag_tier mark; else those of the metrics that it may ask for."""
    marked = {str(tier) for mark in item.iter_markers("rag_tier") for tier in mark.args}
    if marked:
        return {_checked(tier) for tier in marked}
    plan, metrics = plan_of(item), all_metrics()
    named = {name.partition("@")[0] for name in plan.metric_names()}
    tiers: set[str] = {metrics[name].tier for name in named & set(metrics)}
    unnamed = any(ask.helper == "assert_retrieval" and not ask.metrics for ask in plan.asks)
    return tiers | ({"retrieval"} if unnamed else set())
