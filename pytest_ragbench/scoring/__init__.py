"""Requests in, scores out: options, checks, votes, panels and second opinions, the same for everybody who asks.

Names are imported on first use: the plugin's runtime needs :class:`Context` alone, and must stay cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.scoring.context import Context as Context
    from pytest_ragbench.scoring.context import context_of as context_of
    from pytest_ragbench.scoring.pipeline import score as score
    from pytest_ragbench.scoring.pipeline import score_all as score_all
    from pytest_ragbench.scoring.pipeline import wait_for_scores as wait_for_scores
    from pytest_ragbench.scoring.requests import MetricSetup as MetricSetup
    from pytest_ragbench.scoring.requests import Prepared as Prepared
    from pytest_ragbench.scoring.requests import ScoreRequest as ScoreRequest
    from pytest_ragbench.scoring.requests import ThresholdLike as ThresholdLike
    from pytest_ragbench.scoring.requests import Wanted as Wanted
    from pytest_ragbench.scoring.requests import prepare as prepare
    from pytest_ragbench.scoring.sets import Items as Items
    from pytest_ragbench.scoring.sets import PreparedSet as PreparedSet
    from pytest_ragbench.scoring.sets import SetRequest as SetRequest
    from pytest_ragbench.scoring.sets import SetScore as SetScore
    from pytest_ragbench.scoring.sets import prepare_set as prepare_set
    from pytest_ragbench.scoring.sets import score_set as score_set

__getattr__ = lazily(
    __name__,
    context="Context context_of",
    pipeline="score score_all wait_for_scores",
    requests="MetricSetup Prepared ScoreRequest ThresholdLike Wanted prepare",
    sets="Items PreparedSet SetRequest SetScore prepare_set score_set",
)
