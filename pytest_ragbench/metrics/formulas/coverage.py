"""Means that say how many samples they speak for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from pytest_ragbench.model.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.model.thresholds import Threshold


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The mean of a metric over samples, and how many samples it speaks for."""

    mean: float
    """Over the scored samples."""
    min: float
    n_scored: int
    n_unscored: int
    n_total: int
    failing: tuple[str, ...] = ()
    """Ids of the samples that miss the threshold, worst first; empty where no threshold was given."""
    unscored: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Id -> reason code of the samples without a score."""

    @property
    def coverage(self) -> float:
        """Share of the samples that have a score."""
        return self.n_scored / self.n_total

    def __str__(self) -> str:
        return f"mean {self.mean:.4g} over {self.n_scored} of {self.n_total}, min {self.min:.4g}"


def aggregate(scores: Mapping[str, float | Unscored], threshold: Threshold | None = None) -> Aggregate:
    """Mean of ``{id: value, or the Unscored that took its place}``.

    A sample without a score is counted, never averaged in as some number.

    Raises
    ------
    UndefinedScore
        Not one sample has a score (code ``nothing_scored``).
    UsageError
        A value is not a finite number.
    """
    values: dict[str, float] = {}
    unscored: dict[str, str] = {}
    for name, score in scores.items():
        if isinstance(score, Unscored):
            unscored[name] = score.code
        elif not abs(float(score)) < float("inf"):
            raise UsageError(f"score of {name} must be a finite number, got {score!r}")
        else:
            values[name] = float(score)
    return mean_of(tuple(values), np.array(list(values.values()), dtype=np.float64), unscored, threshold)


def mean_of(
    names: Sequence[str],
    values: NDArray[np.float64],
    unscored: Mapping[str, str],
    threshold: Threshold | None,
) -> Aggregate:
    """As :func:`aggregate`, from an array of values for ``names``."""
    total = len(names) + len(unscored)
    if not names:
        reasons = ", ".join(sorted(set(unscored.values()))) or "no samples"
        raise UndefinedScore(f"no mean: 0 of {total} samples have a score ({reasons})", code="nothing_scored")
    failing: tuple[str, ...] = ()
    if threshold is not None:
        failing = tuple(
            names[i] for i in np.argsort(values, kind="stable") if not threshold.met(float(values[i]))
        )
    mean, lowest = float(values.mean()), float(values.min())
    return Aggregate(
        mean, lowest, len(names), len(unscored), total, failing, MappingProxyType(dict(unscored))
    )
