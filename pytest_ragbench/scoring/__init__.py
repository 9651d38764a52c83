"""Requests in, scores out: options, checks, votes, panels and second opinions, the same for everybody who asks.

Names are imported on first use: the plugin's runtime needs :class:`Context` alone, and must stay cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ragbench.scoring.context import Context, context_of
    from pytest_ragbench.scoring.pipeline import score, score_all, wait_for_scores
    from pytest_ragbench.scoring.requests import (
        MetricSetup,
        Prepared,
        ScoreRequest,
        ThresholdLike,
        prepare,
    )
    from pytest_ragbench.scoring.sets import Items, PreparedSet, SetRequest, SetScore, prepare_set, score_set

__all__ = [
    "Context",
    "Items",
    "MetricSetup",
    "Prepared",
    "PreparedSet",
    "ScoreRequest",
    "SetRequest",
    "SetScore",
    "ThresholdLike",
    "context_of",
    "prepare",
    "prepare_set",
    "score",
    "score_all",
    "score_set",
    "wait_for_scores",
]

_MODULES = {
    "context": ("Context", "context_of"),
    "pipeline": ("score", "score_all", "wait_for_scores"),
    "requests": ("MetricSetup", "Prepared", "ScoreRequest", "ThresholdLike", "prepare"),
    "sets": ("Items", "PreparedSet", "SetRequest", "SetScore", "prepare_set", "score_set"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
