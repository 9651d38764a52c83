"""Scoring without a run: a context of given parts."""

from __future__ import annotations

import asyncio
from typing import Any

from pytest_ragbench.metrics.registry import Metric
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import Context, ScoreRequest, prepare
from pytest_ragbench.scoring import score as score_prepared
from pytest_ragbench.settings import Settings


def context(judge: Any = None, embedder: Any = None, settings: Settings | None = None) -> Context:
    """With just these; whatever else is asked for is an error."""
    chosen = settings or Settings()

    def absent() -> Any:
        raise UsageError("not given to this test")

    return Context(
        settings=lambda: chosen,
        engine=absent,
        judge=absent if judge is None else lambda: judge,
        embedder=absent if embedder is None else lambda: embedder,
    )


async def ascore_one(
    name: str | Metric,
    sample: RagSample,
    *,
    judge: Any = None,
    embedder: Any = None,
    settings: Settings | None = None,
    **more: Any,
) -> Score:
    """``more``: what else a request has."""
    request = ScoreRequest(metric=name, sample=sample, **more)
    return await score_prepared(prepare(context(judge, embedder, settings), request))


def score_one(name: str | Metric, sample: RagSample, **more: Any) -> Score:
    return asyncio.run(ascore_one(name, sample, **more))
