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
    or no test is run. ``--ragbench-no-gates`` leaves out the configured ones, and never what is typed beside it.

    Raises
    ------
    pytest.UsageError
        An unreadable rule, metric or baseline: before anything is asked.
    """
    typed: list[str] = config.getoption("ragbench_gate") or []
    only_typed = bool(config.getoption("ragbench_no_gates"))
    if config.getoption("collectonly") or config.getoption("ragbench_dry_run"):
        return None
    if not typed and (only_typed or not state.is_configured):
        return None
    try:
        settings = state.settings
        if not (typed or settings.gates or settings.gating.baseline):
            return None
        from pytest_ragbench.gates.deciding import RunGates
        from pytest_ragbench.gates.rules import rules_of

        rules = rules_of(settings.gates, typed, only_typed=only_typed)
        return RunGates(rules, settings.gating, _baseline(state))
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
