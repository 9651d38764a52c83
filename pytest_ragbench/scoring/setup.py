"""What a score was to be measured with, as configured: two runs can be compared where it is the same."""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

from pytest_ragbench.judge.base import identity_of
from pytest_ragbench.model.scores import plain
from pytest_ragbench.model.tests import SetupRecord

if TYPE_CHECKING:
    from pytest_ragbench.scoring.requests import Prepared
    from pytest_ragbench.scoring.sets import PreparedSet

_LONGEST_OPTION = 80
"""Characters of an option's value that are kept; of a longer one (examples, labels of a set) a fingerprint."""


def setup_of(prepared: Prepared) -> SetupRecord:
    """The setup of a request, whether it got a score or not."""
    metric, embedder = prepared.metric, prepared.embedder
    options = {**metric.options, **prepared.options}
    return SetupRecord(
        direction=metric.direction,
        low=_end(metric.low),
        high=_end(metric.high),
        tasks=tuple(part for task in metric.tasks for part in task.split("|")),
        judge=identity_of(prepared.judge) if prepared.judge is not None and metric.tasks else None,
        embedder=embedder.name if embedder is not None and metric.embedder else None,
        options={
            name: _in_words(value) for name, value in sorted(options.items()) if not _is_default(name, value)
        },
    )


def setup_of_set(prepared: PreparedSet) -> SetupRecord | None:
    """That of the first sample that has a judge or embedder: a blank answer needs neither."""
    setups = [setup_of(part) for part in prepared.parts]
    return next((setup for setup in setups if setup.judge or setup.embedder), next(iter(setups), None))


def _end(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _is_default(name: str, value: Any) -> bool:
    return value is None or (name, value) == ("verdicts", "json")


def _in_words(value: Any) -> str:
    if callable(value):  # its address differs from run to run
        return str(getattr(value, "__qualname__", type(value).__name__))
    text = json.dumps(plain(value), ensure_ascii=False, sort_keys=True)
    if len(text) <= _LONGEST_OPTION:
        return text
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()[:16]}"
