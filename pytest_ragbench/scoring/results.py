"""What a helper found out: where the stream of results begins that reports, gates and mutation read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.model.tests import SetupRecord
from pytest_ragbench.model.thresholds import Threshold
from pytest_ragbench.scoring.setup import setup_of

if TYPE_CHECKING:
    from pytest_ragbench.scoring.requests import Prepared


@dataclass(frozen=True, slots=True)
class Result:
    """One metric of a sample or a set: its score, or why there is none.

    Parameters
    ----------
    metric, tier
        As the registry has them; of a grade the name that people know it by (``search_rag_groundedness``).
    sample
        None for the score of a set; ``count`` says how many samples that stands for.
    threshold
        What was asserted; None: nothing.
    score, error
        One of the two is None.
    band
        That of the score; None where the metric has no bands.
    part
        The key in the score's details, for a grade of a metric that has several.
    setup
        What it was to be measured with.
    scored
        How each sample was scored: one, or those whose mean the value is. Mutation scores variants the same way.
    """

    metric: str
    sample: RagSample | None
    tier: str
    threshold: Threshold | None = None
    score: Score | None = None
    error: RagbenchError | None = None
    band: str | None = None
    count: int = 1
    part: str | None = None
    setup: SetupRecord | None = None
    scored: tuple[tuple[Prepared, Score], ...] = ()

    @classmethod
    def of(cls, prepared: Prepared, outcome: Score | RagbenchError) -> Result:
        """That of one sample, asserted or not."""
        metric, threshold = prepared.metric, prepared.limit if prepared.asserted else None
        setup = setup_of(prepared)
        if not isinstance(outcome, Score):
            return cls(metric.name, prepared.given, metric.tier, threshold, error=outcome, setup=setup)
        return cls(
            metric.name, prepared.given, metric.tier, threshold, outcome, band=metric.band(outcome.value),
            setup=setup, scored=((prepared, outcome),),
        )  # fmt: skip

    @property
    def passed(self) -> bool | None:
        """Whether the score meets the threshold; None where there is no score, or nothing was asserted."""
        if self.threshold is None or self.score is None:
            return None
        return self.threshold.met(self.score.value)
