"""Figures over a run, from its report: one row a metric with its interval and its distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragbench.metrics.registry import TIERS
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.thresholds import Scale
from pytest_ragbench.report.summary import Row, Summary, of_system
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
    name: str
    """The metric, and whose it is in a run of several systems."""
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
    summary = Summary()
    values: dict[str, list[float]] = {}
    sets: set[str] = set()
    for result in report.results:
        summary.add(result)
        for score in result.scores:
            name = of_system(score.metric, result.system)
            if score.value is None:
                continue
            # Of a set only the mean is at hand, so it has no place in a histogram.
            if result.sample_of(score) is None and "n_scored" in score.details:
                sets.add(name)
            else:
                values.setdefault(name, []).append(score.value)
    return [
        _figure(row, values.get(row.name, []), has_sets=row.name in sets)
        for row in summary.ordered_rows(TIERS)
    ]


def _figure(row: Row, values: list[float], *, has_sets: bool) -> Figure:
    scale, metric = row.scale(), row.known()
    low, high = (scale.low, scale.high) if scale else (0.0, 1.0)
    # An axis needs two ends: of an endless range those that the scores reach.
    if not math.isfinite(low):
        low = min(0.0, row.least or 0.0)
    if not math.isfinite(high):
        high = max(low + 1.0, row.most or 0.0)
    return Figure(
        metric=row.metric,
        name=row.name,
        tier=row.tier,
        mean=row.mean,
        # An interval over the other scores alone would not be that of the mean shown.
        interval=None if has_sets else mean_interval(values, scale),
        scored=row.scored,
        total=row.total,
        missed=row.missed,
        asserted=row.gated,
        band=metric.band(row.mean) if metric and row.mean is not None else None,
        values=tuple(values),
        low=low,
        high=high,
        direction=scale.direction if scale else "higher",
    )


def mean_interval(values: Sequence[float], scale: Scale | None) -> Interval | None:
    """The two-sided 95 % interval of the mean; None without values, and where the range of a score has no
    end or isn't known.
    """
    if not values or scale is None or not math.isfinite(scale.high - scale.low):
        return None
    bounds = mean_bounds(values, confidence=TWO_SIDED, low=scale.low, high=scale.high)
    return Interval(bounds.low, bounds.high)
