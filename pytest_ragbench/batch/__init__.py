"""Scoring answers that already exist: files of any size, and batches on a cluster.

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.batch.mapping import score_batch as score_batch
    from pytest_ragbench.batch.run import Job as Job
    from pytest_ragbench.batch.run import score_file as score_file
    from pytest_ragbench.batch.scorer import Scorer as Scorer
    from pytest_ragbench.batch.totals import Totals as Totals

__getattr__ = lazily(
    __name__,
    mapping="score_batch",
    run="Job score_file",
    scorer="Scorer",
    totals="Totals",
)
