"""The gates that a run was asked to hold."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from pytest_ragbench.model.errors import RagbenchError, UsageError
from pytest_ragbench.plugin.state import RunState

if TYPE_CHECKING:
    from pytest_ragbench.gates.baseline import Baseline
    from pytest_ragbench.gates.deciding import RunGates
    from pytest_ragbench.gates.rules import Rule, ScaleOf
    from pytest_ragbench.model.thresholds import Scale


def gates_of(config: pytest.Config, state: RunState) -> RunGates | None:
    """The gates of the configuration and the command line; None where there are neither gates nor a baseline,
    or no test is run. ``--ragbench-no-gates`` leaves out the configured ones, and never what is typed beside it.

    Raises
    ------
    pytest.UsageError
        An unreadable rule, metric or baseline: before anything is asked.
    """
    if not state.runs_tests:
        return None
    try:
        settings = state.settings if has_gates(config, state) else None
        if settings is None or not (_typed(config) or settings.gates or settings.gating.baseline):
            return None
        from pytest_ragbench.gates.deciding import RunGates
        from pytest_ragbench.gates.rules import registered_scale

        def scale_of(metric: str) -> Scale:
            try:
                return registered_scale(metric)
            except UsageError:
                if not state.tree().names(metric, state.given_paths() or [config.rootpath]):
                    raise
                raise _RegisteredLater from None

        rules: list[Rule] | None
        try:
            rules = _rules(config, state, scale_of)
        except _RegisteredLater:
            rules = None
        return RunGates(rules, settings.gating, _baseline(state), later=partial(_rules, config, state))
    except RagbenchError as error:
        raise pytest.UsageError(str(error)) from None


def has_gates(config: pytest.Config, state: RunState) -> bool:
    """Whether any are typed or may be configured; it reads no settings."""
    return bool(_typed(config)) or (state.is_configured and not _only_typed(config))


def check_gates(config: pytest.Config, state: RunState) -> str:
    """What is wrong with a gate now that each ``conftest.py`` of the tests has been imported; empty if nothing is."""
    from pytest_ragbench.gates.rules import registered_scale

    try:
        _rules(config, state, registered_scale)
    except RagbenchError as error:
        return str(error)
    return ""


def gates_latency(config: pytest.Config, state: RunState) -> bool:
    """Whether a gate is about how long answers take."""
    from pytest_ragbench.gates.rules import TIMES

    configured = () if _only_typed(config) or not state.is_configured else state.settings.gates
    return any(rule.strip().startswith(TIMES) for rule in (*configured, *_typed(config)))


class _RegisteredLater(Exception):
    """A gate is about a metric that a ``conftest.py`` below the start of the run seems to register."""


def _rules(config: pytest.Config, state: RunState, scale_of: ScaleOf) -> list[Rule]:
    from pytest_ragbench.gates.rules import rules_of

    return rules_of(state.settings.gates, _typed(config), only_typed=_only_typed(config), scale_of=scale_of)


def _typed(config: pytest.Config) -> list[str]:
    return config.getoption("ragbench_gate") or []


def _only_typed(config: pytest.Config) -> bool:
    return bool(config.getoption("ragbench_no_gates"))


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
