"""Figures over a run, from its report: one row a metric with its interval and its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragbench.metrics.registry import TIERS, Metric, find
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.statistics.bounds import TWO_SIDED, mean_bounds

BUCKETS = 10


@dataclass(frozen=True)
class Interval:
    """Two-sided 95 % interval of a mean."""

    low: float
    high: float


@dataclass(frozen=True)
class Figure:
    """One metric over the run. ``low`` and ``high`` are the ends of the axis that it is shown on."""

    metric: str
    tier: str
    mean: float | None
    interval: Interval | None
    scored: int
    total: int
    missed: int
    asserted: int
    band: str | None
    values: tuple[float, ...]
    low: float
    high: float
    direction: str

    @property
    def counts(self) -> list[int]:
        """How many values fall into each of :data:`BUCKETS` equal parts of the axis."""
        counts = [0] * BUCKETS
        for value in self.values:
            share = (value - self.low) / (self.high - self.low)
            counts[min(BUCKETS - 1, max(0, math.floor(share * BUCKETS + 1e-9)))] += 1
        return counts

    @property
    def edges(self) -> list[float]:
        width = (self.high - self.low) / BUCKETS
        return [round(self.low + width * place, 6) for place in range(BUCKETS + 1)]

    def share(self, value: float) -> float:
        """Where a value stands on the axis, 0..1."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def figures(report: RunReport) -> list[Figure]:
    """All metrics of a run, by tier."""
    values: dict[str, list[float]] = {}
    sets: dict[str, list[tuple[float, int]]] = {}
    tiers: dict[str, str] = {}
    counts: dict[str, list[int]] = {}
    for result in report.results:
        for score in result.scores:
            tiers.setdefault(score.metric, score.tier)
            total, missed, asserted = counts.setdefault(score.metric, [0, 0, 0])
            whole = result.sample_of(score) is None
            size = int(score.details.get("n_total", 1)) if whole and score.value is not None else 1
            counts[score.metric] = [
                total + size,
                missed + (score.passed is False),
                asserted + (score.passed is not None),
            ]
            if score.value is None:
                continue
            if whole and "n_scored" in score.details:
                sets.setdefault(score.metric, []).append((score.value, int(score.details["n_scored"])))
            else:
                values.setdefault(score.metric, []).append(score.value)
    rank = {tier: place for place, tier in enumerate(TIERS)}
    ordered = sorted(tiers, key=lambda name: (rank.get(tiers[name], len(rank)), name))  # type: ignore[call-overload]
    return [
        _figure(name, tiers[name], values.get(name, []), sets.get(name, []), counts[name]) for name in ordered
    ]


def _figure(
    name: str, tier: str, values: list[float], sets: list[tuple[float, int]], counts: list[int]
) -> Figure:
    scored = len(values) + sum(size for _, size in sets)
    mean = (math.fsum(values) + math.fsum(value * size for value, size in sets)) / scored if scored else None
    metric = known(name)
    low, high = (metric.low, metric.high) if metric else (0.0, 1.0)
    seen = [*values, *(value for value, _ in sets)]
    if not math.isfinite(low):
        low = min([0.0, *seen])
    if not math.isfinite(high):
        high = max([low + 1.0, *seen])
    return Figure(
        metric=name,
        tier=tier,
        mean=mean,
        interval=None if sets else mean_interval(values, metric),
        scored=scored,
        total=counts[0],
        missed=counts[1],
        asserted=counts[2],
        band=metric.band(mean) if metric and mean is not None else None,
        values=tuple(values),
        low=low,
        high=high,
        direction=metric.direction if metric else "higher",
    )


def mean_interval(values: Sequence[float], metric: Metric | None) -> Interval | None:
    """The two-sided 95 % interval of the mean; None without values, and where the metric's range has no end or is
    not known here.
    """
    if not values or metric is None or not math.isfinite(metric.high - metric.low):
        return None
    bounds = mean_bounds(values, confidence=TWO_SIDED, low=metric.low, high=metric.high)
    return Interval(bounds.low, bounds.high)


def known(name: str) -> Metric | None:
    """The metric of that name, also where it is one grade of several; None for one that is not registered here."""
    for candidate in (name, name.removesuffix("_answer_correctness").removesuffix("_groundedness")):
        try:
            return find(candidate)
        except RagbenchError:
            continue
    return None
