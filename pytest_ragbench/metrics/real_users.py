"""Real users: questions that people asked, and the document each was shown.

The retriever is compared with the URL that the system in use showed at the time (``relevant_urls``). This only
approximates relevance: the URL may be missing (such questions are left out of a mean, and counted), out of
date, or one of several that would do. ``hit_rate@5`` compares ids of chunks, ``url_hit_rate@5`` the URLs of the
documents that they come from; neither replaces the other.

The formulas are those of :mod:`pytest_ragbench.metrics.formulas.retrieval`, over documents instead of ids.
"""

from __future__ import annotations

from typing import Literal

from pytest_ragbench.metrics.formulas import retrieval as formulas
from pytest_ragbench.metrics.formulas.urls import document_of, documents_of
from pytest_ragbench.metrics.registry import RETRIEVAL_BANDS, metric
from pytest_ragbench.metrics.retrieval import ranked
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.samples import RagSample, Relevance
from pytest_ragbench.model.scores import Score

_NEEDS = ("context_urls", "relevant_urls")


def _columns(sample: RagSample) -> tuple[tuple[str, ...], Relevance]:
    # A blank URL stands for no document: it must not match another blank.
    relevant = [document_of(url) for url in sample.relevant_urls or () if url.strip()]
    return documents_of(sample.context_urls or ()), dict.fromkeys(relevant, 1.0)


@metric("url_hit_rate", tier="real_users", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def url_hit_rate(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """Whether one of the first k chunks comes from a URL that was shown to the user: 1, else 0."""
    columns = _columns(sample)
    return ranked(sample, tools, formulas.hit_rate(*columns, k, collapse=collapse), *columns)


@metric("url_mrr", tier="real_users", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def url_mrr(sample: RagSample, tools: Tools, *, k: int | None = None, collapse: bool = False) -> Score:
    """How early the first chunk from a URL shown to the user comes: 1 / its rank, 0 where there is none.

    ``collapse=True`` ranks documents: further chunks of one URL take no rank.
    """
    columns = _columns(sample)
    return ranked(sample, tools, formulas.mrr(*columns, k, collapse=collapse), *columns)


@metric("url_recall", tier="real_users", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def url_recall(sample: RagSample, tools: Tools, *, k: int, collapse: bool = False) -> Score:
    """Share of the URLs shown to the user that the first k chunks come from."""
    columns = _columns(sample)
    return ranked(sample, tools, formulas.recall(*columns, k, collapse=collapse), *columns)


@metric("url_precision", tier="real_users", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def url_precision(
    sample: RagSample,
    tools: Tools,
    *,
    k: int,
    denominator: Literal["k", "returned"] = "k",
    collapse: bool = False,
) -> Score:
    """Share of the first k chunks that come from a URL shown to the user.

    A second chunk of one URL earns nothing. ``denominator="returned"`` divides by the number of chunks
    returned where that is smaller than k.
    """
    columns = _columns(sample)
    value = formulas.precision(*columns, k, denominator=denominator, collapse=collapse)
    return ranked(sample, tools, value, *columns)


@metric("url_ndcg", tier="real_users", needs=_NEEDS, bands=RETRIEVAL_BANDS)
async def url_ndcg(sample: RagSample, tools: Tools, *, k: int | None = None, collapse: bool = False) -> Score:
    """How close the first k chunks come to a ranking with the shown URLs first: DCG / ideal DCG.

    Never above 1, however often one URL repeats.
    """
    columns = _columns(sample)
    return ranked(sample, tools, formulas.ndcg(*columns, k, collapse=collapse), *columns)
