"""The same judge asked in two ways, on the same labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pytest_ragbench.calibration.agreement import RESAMPLES, Estimate, resampled
from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.statistics.agreement import auc


def valued(labels: Sequence[Label]) -> list[Label]:
    """The labels, with 1 and 0 as values of plain verdicts: so they have an AUC, (TPR + TNR) / 2."""
    return [
        label
        if label.value is not None or label.verdict is None
        else label.model_copy(update={"value": float(label.verdict)})
        for label in labels
    ]


def auc_gain(first: Sequence[Label], second: Sequence[Label]) -> Estimate:
    """AUC of ``second`` minus that of ``first``, the same labels in the same order; those without a value on both
    sides are left out. The 95 % interval is that of a bootstrap over labels, paired.
    """
    pairs = [
        (one.value, two.value, one.human_verdict)
        for one, two in zip(first, second, strict=True)
        if one.value is not None and two.value is not None
    ]
    if len({human for _, _, human in pairs}) < 2:
        return Estimate(None)
    values, truth = np.array([pair[:2] for pair in pairs]), np.array([human for _, _, human in pairs])
    return resampled(values, truth, _gain, RESAMPLES // 4)


def _gain(values: Any, truth: Any) -> float:
    return auc(values[:, 1], truth) - auc(values[:, 0], truth)


def consistency(rounds: Sequence[Sequence[Label]]) -> dict[str, float] | None:
    """Share of the pairs of repeats that say the same, and what chance alone would give; None without repeats."""
    same = total = 0
    for verdicts in zip(*rounds, strict=True):
        said = [label.verdict for label in verdicts if label.verdict is not None]
        # Each repeat with each: three of them are compared three times.
        pairs = [(one, two) for place, one in enumerate(said) for two in said[place + 1 :]]
        total += len(pairs)
        same += sum(one == two for one, two in pairs)
    if not total:
        return None
    # Two independent judges that say yes this often agree by chance so often.
    yes = [bool(label.verdict) for each in rounds for label in each if label.verdict is not None]
    share = sum(yes) / len(yes)
    return {"value": same / total, "chance": share**2 + (1 - share) ** 2}
