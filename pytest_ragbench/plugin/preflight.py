"""Preflight: the judge has to pass a few checks before it judges anything.

The configured judge is checked on the controller before the first test, a judge that a fixture returns before the
first test that asks it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.clean import one_line
from pytest_ragbench.model.errors import RagbenchError, UsageError

if TYPE_CHECKING:
    from pytest_ragbench.calibration.labels import Label
    from pytest_ragbench.calibration.preflight import Preflight
    from pytest_ragbench.plugin.state import RunState


def run_preflight(config: pytest.Config, state: RunState, unscored: int) -> Preflight | None:
    """The result, or None where no preflight is wanted. A failed one ends the run.

    Raises
    ------
    pytest.UsageError
        A judge or anchors that can't be used.
    pytest.exit.Exception
        The judge failed a check (exit code 1), or could not be asked (``unscored``).
    """
    try:
        # A dry run only counts these calls.
        if not state.runs_tests or not is_wanted(config, state) or _no_judge_is_chosen(state):
            return None
        found = _run(config, state, state.coerce("judge", None))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    except RagbenchError as error:
        pytest.exit(f"preflight: the judge could not be asked: {error}", returncode=unscored)
    if found.failed:
        pytest.exit(f"preflight: {_failures(found)}, so no test was run:{_lines(found)}", returncode=1)
    return found


def failed_preflight(config: pytest.Config, state: RunState, judge: Any) -> str:
    """Why a judge that a fixture returned must not be used; empty where it may be, or no preflight is wanted.

    Raises
    ------
    JudgeError
        It could not be asked.
    """
    __tracebackhide__ = True
    if is_wanted(config, state) and (found := _run(config, state, judge)).failed:
        return f"preflight: {_failures(found)}, so it judges nothing:{_lines(found)}"
    return ""


def is_wanted(config: pytest.Config, state: RunState) -> bool:
    """Whether this run asks for a preflight."""
    asked = config.getoption("ragbench_preflight")
    return bool(asked or (state.is_configured and state.settings.preflight.enabled))


def _no_judge_is_chosen(state: RunState) -> bool:
    """In CI no judge is chosen silently: tests may bring their own, and those that do not will fail with a message."""
    from pytest_ragbench.judge.choose import is_chosen

    return not is_chosen(state.settings, os.environ)


def expected_calls(config: pytest.Config, state: RunState) -> int:
    """How many calls this run's preflight takes of one judge that passes it."""
    from pytest_ragbench.calibration.preflight import calls_of

    if not is_wanted(config, state):
        return 0
    return calls_of(None, bool(_by_probability(state))) + len(_anchors(config, state))


def _run(config: pytest.Config, state: RunState, judge: Any) -> Preflight:
    from pytest_ragbench.calibration.preflight import preflight_of, unpinned

    anchors = _anchors(config, state)
    found: Preflight = state.engine.wait(preflight_of(judge, anchors, _by_probability(state)))
    if warning := unpinned(found.judge):
        state.warn(warning)
    return found


def _anchors(config: pytest.Config, state: RunState) -> list[Label]:
    from pytest_ragbench.calibration.labels import read_labels

    named = state.settings.preflight.anchors
    return read_labels(config.rootpath / Path(named).expanduser()) if named else []


def _by_probability(state: RunState) -> dict[str, float]:
    """Metrics whose verdicts are asked for in a word, with the P(yes) that counts as yes."""
    metrics = state.settings.metrics.items()
    return {name: chosen.yes_from for name, chosen in metrics if chosen.verdicts == "probability"}


def _failures(found: Preflight) -> str:
    return f"the judge {found.judge} failed {len(found.failed)} of {len(found.checks)} checks"


def _lines(found: Preflight) -> str:
    return "".join(
        f"\n  {one_line(check.name, 160)}   the judge said {one_line(check.said, 200)}"
        for check in found.failed
    )
