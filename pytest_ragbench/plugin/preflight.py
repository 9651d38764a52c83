"""The preflight of a run, on the controller, before the first test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ragbench.errors import RagbenchError, UsageError
from pytest_ragbench.plugin.state import RunState

if TYPE_CHECKING:
    from pytest_ragbench.gates.preflight import Preflight


def run_preflight(config: pytest.Config, state: RunState, unscored: int) -> Preflight | None:
    """What came of it; None where none is asked for. A failed one ends the run here.

    Raises
    ------
    pytest.UsageError
        A judge or anchors that can't be used.
    pytest.exit.Exception
        The judge failed a check (exit code 1), or could not be asked (``unscored``).
    """
    asked = config.getoption("ragbench_preflight")
    if config.getoption("collectonly") or not (asked or state.is_configured):
        return None
    try:
        settings = state.settings.preflight
        if not (asked or settings.enabled):
            return None
        from pytest_ragbench.calibration.labels import read_labels
        from pytest_ragbench.gates.preflight import fly, unpinned

        anchors = (
            read_labels(config.rootpath / Path(settings.anchors).expanduser()) if settings.anchors else []
        )
        judge = state.coerce("judge", None)
        found: Preflight = state.engine.wait(fly(judge, anchors))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    except RagbenchError as error:
        pytest.exit(f"preflight: the judge could not be asked: {error}", returncode=unscored)
    if warning := unpinned(found.judge):
        state.warn(warning)
    if found.failed:
        from pytest_ragbench.report.clean import one_line

        lines = [
            f"  {one_line(check.name, 160)}   the judge said {one_line(check.said, 200)}"
            for check in found.failed
        ]
        pytest.exit(
            f"preflight: the judge {found.judge} failed {len(found.failed)} of {len(found.checks)} checks, so no "
            "test was run:\n" + "\n".join(lines),
            returncode=1,
        )
    return found
