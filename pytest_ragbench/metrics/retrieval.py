"""Ranking metrics of the retriever: ids found against ids that are relevant.

The formulas and their edge cases are in :mod:`pytest_ragbench.metrics.formulas.retrieval`; ids are
compared as text, the order of ``context_ids`` is the ranking, a repeated id earns nothing.
"""

from __future__ import annotations

from typing import Literal

from pytest_ragbench.metrics.formulas import retrieval as formulas
from pytest_ragbench.metrics.registry import NO_BANDS, RETRIEVAL_BANDS, metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.samples import RagSample, Relevance
from pytest_ragbench.model.scores import Finding, Score

_NEEDS = ("context_ids", "relevant_ids")


def _columns(sample: RagSample) -> tuple[tuple[str, ...], Relevance]:
    return tuple(sample.context_ids or ()), sample.relevance or {}


def _scored(sample: RagSample, tools: Tools, value: float) -> Score:
    return ranked(sample, tools, value, *_columns(sample))


def ranked(
    sample: RagSample, tools: Tools, value: float, ranking: tuple[str, ...], relevant: Relevance
) -> Score:
    """The score, its ranking as evidence."""
    found = [
        Finding(name, relevant.get(name, 0.0) > 0, f"rank {rank}") for rank, name in enumerate(ranking, 1)
    ]
    missed = [name for name, grade in relevant.items() if grade > 0 and name not in ranking]
    reason = (
        "no contexts retrieved" if not ranking else f"not retrieved: {', '.join(missed)}" if missed else ""
    )
    return tools.score(sample, value, reason=reason, evidence=found, evidence_title="ranking")


@metric("hit_rate", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def hit_rate(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """1 where any of the first k ids is relevant, else 0."""
    return _scored(sample, tools, formulas.hit_rate(*_columns(sample), k, collapse=collapse))


@metric("mrr", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def mrr(sample: RagSample, tools: Tools, *, k: int | None = None, collapse: bool = False) -> Score:
    """1 / rank of the first relevant id, 0 where there is none; the mean over questions is MRR."""
    return _scored(sample, tools, formulas.mrr(*_columns(sample), k, collapse=collapse))


@metric("recall", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def recall(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """Relevant ids among the first k / all relevant ids."""
    return _scored(sample, tools, formulas.recall(*_columns(sample), k, collapse=collapse))


@metric("precision", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def precision(
    sample: RagSample,
    tools: Tools,
    *,
    k: int,
    denominator: Literal["k", "returned"] = "k",
    collapse: bool = False,
) -> Score:
    """Relevant ids among the first k / k (or / ids returned, with denominator="returned")."""
    value = formulas.precision(*_columns(sample), k, denominator=denominator, collapse=collapse)
    return _scored(sample, tools, value)


@metric("map", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def average_precision(
    sample: RagSample, tools: Tools, *, k: int | None = None, collapse: bool = False
) -> Score:
    """Sum of the precisions at the ranks of relevant ids / all relevant ids; the mean over questions is MAP."""
    return _scored(sample, tools, formulas.average_precision(*_columns(sample), k, collapse=collapse))


@metric("ndcg", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def ndcg(
    sample: RagSample,
    tools: Tools,
    *,
    k: int | None = None,
    gain: Literal["linear", "exponential"] = "linear",
    collapse: bool = False,
) -> Score:
    """DCG / best possible DCG of the first k; gain is the grade, or 2^grade - 1 ("exponential")."""
    return _scored(sample, tools, formulas.ndcg(*_columns(sample), k, gain=gain, collapse=collapse))


@metric("r_precision", tier="retrieval", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def r_precision(sample: RagSample, tools: Tools, *, collapse: bool = False) -> Score:
    """Relevant ids among the first R / R, where R ids are relevant."""
    return _scored(sample, tools, formulas.r_precision(*_columns(sample), collapse=collapse))


@metric("judged", tier="retrieval", needs=_NEEDS, bands=NO_BANDS)
async def judged(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """Share of the first k ids that have a grade at all: how far the other metrics can be trusted."""
    return _scored(sample, tools, formulas.judged(*_columns(sample), k, collapse=collapse))
