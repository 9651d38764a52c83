"""Scoring answers that already exist: files of any size, and batches on a cluster.

Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ragbench.batch.mapping import score_batch
    from pytest_ragbench.batch.run import Job, score_file
    from pytest_ragbench.batch.scorer import Scorer
    from pytest_ragbench.batch.totals import Totals

__all__ = ["Job", "Scorer", "Totals", "score_batch", "score_file"]

_HOME = {"Job": "run", "Scorer": "scorer", "Totals": "totals", "score_batch": "mapping", "score_file": "run"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
