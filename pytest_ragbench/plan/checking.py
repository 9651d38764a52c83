"""What is wrong with the calls that a test is certain to make, found before anything is asked for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_ragbench.metrics.checks import check_options, formula_options
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.model.thresholds import parse_threshold
from pytest_ragbench.plan.model import UNKNOWN, Ask, Plan, is_known
from pytest_ragbench.scoring.configured import configured_options
from pytest_ragbench.scoring.requests import threshold_of

if TYPE_CHECKING:
    from pytest_ragbench.settings import Settings


def check_plan(settings: Settings, plan: Plan, own_thresholds: Iterable[Mapping[str, Any]]) -> None:
    """Hold metrics, options, thresholds and expectations of a test against what there is.

    Parameters
    ----------
    own_thresholds
        Those of the test's questions, which may stand in for one that a call does not give.

    Raises
    ------
    UsageError
        As the helper itself would, once the answer were there.
    """
    for call in plan.checks:
        if call.check is not None and call.certain and not call.may_fail:
            call.check({name: value for name, value in call.options.items() if is_known(value)})
    own = [set(thresholds) for thresholds in own_thresholds]
    for ask in plan.asks:
        if ask.may_fail:
            continue
        if not ask.certain:
            return  # the test may have ended before
        for name, limit in ask.metrics.items():
            _check(settings, ask, name, limit, given=bool(own) and all(name in each for each in own))


def _check(settings: Settings, ask: Ask, name: str, limit: Any, *, given: bool) -> None:
    metric = find(name)
    if ask.of in ("sample", "each") and is_known(dict(ask.options)):
        options = configured_options(settings, name, ask.options)
        check_options(metric, formula_options(metric, options))
    _check_grades(metric, ask)
    if limit is UNKNOWN or given:
        return
    graded = any(grade is not None for grade in ask.grades.values())
    needs_one = ask.gated and not graded
    threshold_of(settings, metric, limit, f"assert_{metric.name}(sample, '>=0.8')" if needs_one else None)


def _check_grades(metric: Metric, ask: Ask) -> None:
    for part, wanted in ask.grades.items():
        if wanted is not None and wanted is not UNKNOWN:
            scale = metric.scale if part == "threshold" else replace(metric.scale, metric=part)
            parse_threshold(wanted, scale)
