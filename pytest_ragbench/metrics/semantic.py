"""Metrics that compare meanings by embeddings."""

from __future__ import annotations

from pytest_ragbench.metrics import formulas
from pytest_ragbench.metrics.registry import metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score


@metric("semantic_similarity", tier="end_to_end", needs=("answer", "reference"), embedder=True, low=-1.0)
async def semantic_similarity(sample: RagSample, tools: Tools, *, cutoff: float | None = None) -> Score:
    """How close answer and reference are in meaning: the cosine of their embeddings, range -1..1.

    It can't see a wrong fact: "30 days" and "45 days" lie close together. Its level depends on the
    embedding model, so a threshold does not carry over to another model.

    Parameters
    ----------
    cutoff
        Where given, the value is 1 for a cosine of at least this, else 0; ``details["cosine"]`` has the cosine.
    """
    matrix = await tools.embed([sample.answer or "", sample.reference or ""])
    value = formulas.cosine(matrix[0], matrix[1])
    cosine = value
    if cutoff is not None:
        # The tolerance keeps float noise from deciding at the cutoff.
        value = float(cosine >= cutoff - 1e-9)
    return tools.score(
        sample, value, reason=f"compared with the reference: {sample.reference}", cosine=cosine
    )
