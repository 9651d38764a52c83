"""A score that is ready, against a threshold: as a metric of the user's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from pytest_ragbench import RagSample, Score, assert_metric
from pytest_ragbench.metrics.registry import Metric, metric
from pytest_ragbench.metrics.tools import Tools
from tests.cases import product
from tests.cases.outcomes import Outcome, observe

_NUMBERS = itertools.count(1)


def own_metric(like: str, give: Callable[[RagSample], Any], **scale: Any) -> str:
    """Register a metric that gives what ``give`` returns; its name begins with ``like``."""

    async def formula(sample: RagSample, tools: Tools) -> Score:
        """A ready score."""
        return tools.score(sample, give(sample))

    return registered(like, formula, **scale)


def registered(like: str, formula: Callable[..., Any], **declared: Any) -> str:
    """Register a metric of the user's own; its name begins with ``like``."""
    name = f"{like}_{next(_NUMBERS)}"
    metric(name, tier="judge", needs=(), **declared)(formula)
    return name


def gated(like: str, value: Any, threshold: Any, **scale: Any) -> Outcome:
    """``assert_metric`` on a ready score."""

    def ask() -> float:
        name = own_metric(like, lambda _: value, **scale)
        with product.using():
            return assert_metric(name, RagSample("q", "a", ["c"]), threshold).value

    return observe(ask, kind="pass")


def scale_like(known: Metric) -> dict[str, Any]:
    """Range and direction of a metric of the package."""
    return {"low": known.low, "high": known.high, "direction": known.direction, "bands": known.bands}
