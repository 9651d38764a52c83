"""The gates that a run was asked to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.state import RunState

if TYPE_CHECKING:
    from pytest_ragbench.gates.baseline import Baseline
    from pytest_ragbench.gates.deciding import RunGates


def gates_of(config: pytest.Config, state: RunState) -> RunGates | None:
    """The gates of the configuration and the command line; None where there are neither gates nor a baseline,
    or no test is run.

    Raises
    ------
    pytest.UsageError
        An unreadable rule, metric or baseline: before anything is asked.
    """
    typed: list[str] = config.getoption("ragbench_gate") or []
    unwanted = ("collectonly", "ragbench_no_gates", "ragbench_dry_run")
    if any(config.getoption(name) for name in unwanted):
        return None
    if not typed and not state.is_configured:
        return None
    try:
        settings = state.settings
        if not (typed or settings.gates or settings.gating.baseline):
            return None
        from pytest_ragbench.gates.deciding import RunGates
        from pytest_ragbench.gates.rules import parse_rule, parse_rules

        rules = {rule.name: rule for rule in parse_rules(settings.gates)}
        named = {}
        for text in typed:
            rule = parse_rule(text)
            named[rule.name, rule.kind, rule.statistic] = rule
        replaced = {name for name, *_ in named}
        chosen = [rule for name, rule in rules.items() if name not in replaced]
        return RunGates([*chosen, *named.values()], settings.gating, _baseline(state))
    except RagbenchError as error:
        raise pytest.UsageError(str(error)) from None


def _baseline(state: RunState) -> Baseline | None:
    given, history = state.settings.gating.baseline, state.settings.history
    if not given:
        return None
    from pytest_ragbench.report.earlier import read_baseline

    return read_baseline(
        given,
        base=state.base_of("ragbench_baseline", given),
        history=state.located("ragbench_history", history) if history else None,
    )
