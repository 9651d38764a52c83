"""Sums over rows that are not kept: mean, spread, bands, and what has no score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_ragbench.metrics.registry import Metric


@dataclass
class MetricTotals:
    """One metric over all rows so far (mean and variance by Welford's recurrence)."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    """Sum of squared distances from the mean."""
    low: float = math.inf
    high: float = -math.inf
    bands: Counter[str] = field(default_factory=Counter)
    unscored: Counter[str] = field(default_factory=Counter)
    """Code of the error -> how many rows."""
    undefined: int = 0
    """How many of those are undefined rather than failed, such as an answer that claims nothing."""

    def add(self, value: float, band: str | None) -> None:
        """Count one score, and its band where the metric has some."""
        self.n += 1
        # Welford: rows aren't kept, and a sum of squares would lose digits over millions of them.
        step = value - self.mean
        self.mean += step / self.n
        self.squares += step * (value - self.mean)
        self.low, self.high = min(self.low, value), max(self.high, value)
        if band is not None:
            self.bands[band] += 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None where no row has a score. ``deviation`` is that of a sample (n - 1)."""
        some = self.n > 0
        return {
            "mean": self.mean if some else None,
            "deviation": math.sqrt(self.squares / (self.n - 1)) if self.n > 1 else None,
            "min": self.low if some else None,
            "max": self.high if some else None,
            "n_scored": self.n,
            "n_unscored": sum(self.unscored.values()),
            "n_undefined": self.undefined,
            "bands": dict(self.bands),
            "unscored": dict(self.unscored),
        }


class Totals:
    """Of all metrics; :meth:`add` takes the rows as they are written."""

    def __init__(self, metrics: Mapping[str, Metric]) -> None:
        self._metrics = metrics
        self.rows = 0
        self.bad_rows = 0
        self.by_metric = {name: MetricTotals() for name in metrics}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row of the output: ``scores``, ``errors`` by metric; ``error`` where it can't be read."""
        self.rows += 1
        if row.get("error"):
            self.bad_rows += 1
            return
        for name, value in row["scores"].items():
            if value is not None:
                self.by_metric[name].add(value, self._metrics[name].band(value))
        for name, error in row.get("errors", {}).items():
            self.by_metric[name].unscored[error["code"]] += 1
            # Told apart in the exit code: an answer that claims nothing isn't an outage.
            self.by_metric[name].undefined += error["type"] == "UndefinedScore"

    @property
    def unscored(self) -> int:
        """Scores that are missing, and rows that can't be read."""
        return self.bad_rows + sum(sum(each.unscored.values()) for each in self.by_metric.values())

    @property
    def failed(self) -> int:
        """:attr:`unscored`, without scores that are undefined by nature."""
        return self.unscored - sum(each.undefined for each in self.by_metric.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        by_metric = {name: each.to_dict() for name, each in self.by_metric.items()}
        return {"rows": self.rows, "bad_rows": self.bad_rows, "metrics": by_metric}
