"""What a helper found out."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score


@dataclass(frozen=True)
class Result:
    """A score, or why there is none.

    ``sample`` is None for the score of a set; ``count`` says how many samples it stands for.
    """

    metric: str
    sample: RagSample | None
    tier: str
    threshold: str | None = None
    passed: bool | None = None
    score: Score | None = None
    error: RagbenchError | None = None
    band: str | None = None
    count: int = 1
