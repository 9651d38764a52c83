"""Ranking metrics of the retriever: the ids that it found, compared with the ids that are relevant.

The formulas, their sources and edge cases are in :mod:`pytest_ragbench.metrics.formulas.retrieval`. Ids are
compared as strings, the order of ``context_ids`` is the ranking, and a repeated id earns nothing
(``collapse=True`` drops it before ranking, for several chunks of one document).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pytest_ragbench.metrics.formulas import retrieval as formulas
from pytest_ragbench.metrics.registry import NO_BANDS, RETRIEVAL_BANDS, metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.samples import RagSample, Relevance
from pytest_ragbench.model.scores import Finding, Score

_NEEDS = ("context_ids", "relevant_ids")


def ranking_of(sample: RagSample) -> tuple[tuple[str, ...], Relevance]:
    """The retrieved ids, best first, and the grades of the relevant ones."""
    return tuple(sample.context_ids or ()), sample.relevance or {}


def _scored(sample: RagSample, tools: Tools, value: float) -> Score:
    return ranked(sample, tools, value, *ranking_of(sample))


def ranked(
    sample: RagSample, tools: Tools, value: float, ranking: tuple[str, ...], relevant: Relevance
) -> Score:
    """A score with the ranking as evidence."""
    found = [
        # A repeated id is marked at each of its ranks, though the formulas count its first one only.
        Finding(name, relevant.get(name, 0.0) > 0, f"rank {rank}")
        for rank, name in enumerate(ranking, 1)
    ]
    reason = not_retrieved(ranking, relevant)
    return tools.score(sample, value, reason=reason, evidence=found, evidence_title="ranking")


def not_retrieved(ranking: Sequence[str], relevant: Relevance) -> str:
    """The reason of a low score: which relevant ids are missing from the ranking; blank where none is."""
    if not ranking:
        return "no contexts retrieved"
    missed = [name for name, grade in relevant.items() if grade > 0 and name not in ranking]
    return f"not retrieved: {', '.join(missed)}" if missed else ""


@metric("hit_rate", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def hit_rate(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """Whether any of the first k ids is relevant: 1, else 0."""
    return _scored(sample, tools, formulas.hit_rate(*ranking_of(sample), k, collapse=collapse))


@metric("mrr", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def mrr(sample: RagSample, tools: Tools, *, k: int | None = None, collapse: bool = False) -> Score:
    """How early the first relevant id comes: 1 / its rank, 0 where there is none. The mean over questions is MRR."""
    return _scored(sample, tools, formulas.mrr(*ranking_of(sample), k, collapse=collapse))


@metric("recall", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def recall(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """Share of all relevant ids that are among the first k."""
    return _scored(sample, tools, formulas.recall(*ranking_of(sample), k, collapse=collapse))


@metric("precision", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def precision(
    sample: RagSample,
    tools: Tools,
    *,
    k: int,
    denominator: Literal["k", "returned"] = "k",
    collapse: bool = False,
) -> Score:
    """Share of the first k ids that are relevant.

    Divided by k, or with ``denominator="returned"`` by the number of ids returned where that is smaller.
    """
    value = formulas.precision(*ranking_of(sample), k, denominator=denominator, collapse=collapse)
    return _scored(sample, tools, value)


@metric("map", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def average_precision(
    sample: RagSample, tools: Tools, *, k: int | None = None, collapse: bool = False
) -> Score:
    """Whether relevant ids come first: average precision; the mean over questions is MAP.

    ``sum of the precisions at the ranks of relevant ids / all relevant ids``, range 0..1.
    """
    return _scored(sample, tools, formulas.average_precision(*ranking_of(sample), k, collapse=collapse))


@metric("ndcg", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def ndcg(
    sample: RagSample,
    tools: Tools,
    *,
    k: int | None = None,
    gain: Literal["linear", "exponential"] = "linear",
    collapse: bool = False,
) -> Score:
    """How close the first k ids come to the best possible ranking by grades: DCG / ideal DCG.

    ``gain`` is the grade (``"linear"``), or 2^grade - 1 (``"exponential"``); range 0..1.
    """
    return _scored(sample, tools, formulas.ndcg(*ranking_of(sample), k, gain=gain, collapse=collapse))


@metric("r_precision", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def r_precision(sample: RagSample, tools: Tools, *, collapse: bool = False) -> Score:
    """Share of the first R ids that are relevant, where R is the number of relevant ids."""
    return _scored(sample, tools, formulas.r_precision(*ranking_of(sample), collapse=collapse))


@metric("judged", tier="retrieval", needs=_NEEDS, bands=NO_BANDS)
# No bands: a share of judged ids is neither good nor bad, it says how complete the judgments are.
async def judged(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """Share of the first k ids that have a grade at all: how far the other metrics can be trusted."""
    return _scored(sample, tools, formulas.judged(*ranking_of(sample), k, collapse=collapse))
