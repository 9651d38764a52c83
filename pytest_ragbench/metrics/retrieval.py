"""Ranking metrics of the retriever: what it found, compared with what is relevant.

By ids of chunks (``context_ids``, ``relevant_ids``), which are compared as strings. And for real users: questions that
people asked, with the URL that the system in use showed them (``relevant_urls``). That only approximates relevance: the
URL may be missing (such questions are left out of a mean, and counted), out of date, or one of several that would do.
``hit_rate@5`` compares chunks, ``url_hit_rate@5`` the documents that they come from; neither replaces the other.

The order of the columns is the ranking, and an id or document that comes back a second time earns nothing
(``collapse=True`` drops it before ranking, for several chunks of one document). The formulas, their sources and edge
cases are in :mod:`pytest_ragbench.metrics.formulas.retrieval`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, Literal, TypeVar

from pytest_ragbench.metrics.formulas import retrieval as formulas
from pytest_ragbench.metrics.formulas.urls import document_of, documents_of
from pytest_ragbench.metrics.registry import NO_BANDS, RETRIEVAL_BANDS, metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.samples import RagSample, Relevance
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.text import is_blank

Ranking = tuple[str, ...]
"""Ids or documents, best first."""
F = TypeVar("F", bound=Callable[..., float])


def ranking_of(sample: RagSample) -> tuple[Ranking, Relevance]:
    """The retrieved ids, best first, and the grades of the relevant ones."""
    return tuple(sample.context_ids or ()), sample.relevance or {}


def _documents_of(sample: RagSample) -> tuple[Ranking, Relevance]:
    # A blank URL is that of no document: it must not match another blank.
    relevant = [document_of(url) for url in sample.relevant_urls or () if not is_blank(url)]
    return documents_of(sample.context_urls or ()), dict.fromkeys(relevant, 1.0)


def _why_low(ranking: Ranking, relevant: Relevance) -> str:
    """The reason of a value below 1: what is missing, else at which ranks the relevant ones are."""
    if missing := not_retrieved(ranking, relevant):
        return missing
    first: dict[str, int] = {}
    for rank, name in enumerate(ranking, 1):
        if relevant.get(name, 0.0) > 0:
            first.setdefault(name, rank)
    ranks = ", ".join(map(str, first.values()))
    return f"relevant: rank{'s' * (len(first) != 1)} {ranks} of {len(ranking)}"


def _ungraded(ranking: Ranking, relevant: Relevance) -> str:
    """The reason of a low share of judged ids: those without a grade."""
    other = [name for name in dict.fromkeys(ranking) if name not in relevant]
    return f"without a grade: {', '.join(other)}" if other else f"{len(ranking)} retrieved"


def _over_ids(
    name: str,
    bands: Mapping[str, float] = RETRIEVAL_BANDS,
    explain: Callable[[Ranking, Relevance], str] = _why_low,
) -> Callable[[F], F]:
    """Register a formula of a ranking and the grades of what is relevant, over ids."""

    def register(formula: F) -> F:
        _metric_of(
            formula,
            ranking_of,
            name,
            formula.__doc__,
            "retrieval",
            ("context_ids", "relevant_ids"),
            bands,
            explain,
        )
        return formula

    return register


def _over_urls(name: str, doc: str | None = None) -> Callable[[F], F]:
    """Register it over the documents of URLs; ``doc`` is what it measures there."""

    def register(formula: F) -> F:
        needs = ("context_urls", "relevant_urls")
        _metric_of(
            formula,
            _documents_of,
            name,
            doc or formula.__doc__,
            "real_users",
            needs,
            RETRIEVAL_BANDS,
            _why_low,
        )
        return formula

    return register


def _metric_of(
    formula: Callable[..., float],
    columns: Callable[[RagSample], tuple[Ranking, Relevance]],
    name: str,
    doc: str | None,
    tier: Literal["retrieval", "real_users"],
    needs: tuple[str, ...],
    bands: Mapping[str, float],
    explain: Callable[[Ranking, Relevance], str],
) -> None:
    # Wrapped, so that the formula's keyword-only arguments are the metric's options.
    @wraps(formula)
    async def compute(sample: RagSample, tools: Tools, **options: Any) -> Score:
        ranking, relevant = columns(sample)
        found = [
            # A repeated id is marked at each of its ranks, though the formulas count its first one only.
            Finding(each, relevant.get(each, 0.0) > 0, f"rank {rank}")
            for rank, each in enumerate(ranking, 1)
        ]
        value = formula(ranking, relevant, **options)
        reason = "" if value >= 1 else explain(ranking, relevant)
        return tools.score(sample, value, reason=reason, evidence=found, evidence_title="ranking")

    compute.__doc__ = doc
    metric(name, tier=tier, needs=needs, bands=bands)(compute)


_SHOWN_IDS = 3
_KINDS = {
    "UUIDs": re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}", re.IGNORECASE),
    "numbers": re.compile(r"\d+"),
    "hashes": re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.IGNORECASE),
    "URLs": re.compile(r"\w[\w+.-]*://\S+"),
    "names": re.compile(r".*", re.DOTALL),
}
"""What an id is: the first that matches the whole of it."""


def not_retrieved(ranking: Sequence[str], relevant: Relevance) -> str:
    """The reason of a low score: which relevant ids are missing from the ranking; blank where none is.

    Where all retrieved ids are of one kind and all relevant ones of another, the file and the retriever name
    different things, which is said with the ids that were retrieved.
    """
    if not ranking:
        return "no contexts retrieved"
    wanted = [name for name, grade in relevant.items() if grade > 0]
    missed = [name for name in wanted if name not in ranking]
    if not missed:
        return ""
    reason = f"not retrieved: {', '.join(missed)}"
    retrieved, expected = set(map(_kind, ranking)), set(map(_kind, wanted))
    if len(retrieved) == len(expected) == 1 and retrieved != expected:
        more = ", ..." if len(ranking) > _SHOWN_IDS else ""
        reason += (
            f"; retrieved: {', '.join(ranking[:_SHOWN_IDS])}{more}: these are {retrieved.pop()} and the relevant ids "
            f"are {expected.pop()}, so that none can match"
        )
    return reason


def _kind(name: str) -> str:
    return next(kind for kind, pattern in _KINDS.items() if pattern.fullmatch(name))


@_over_urls(
    "url_hit_rate",
    "Whether one of the first k chunks comes from a URL that was shown to the user: 1, else 0.",
)
@_over_ids("hit_rate")
def hit_rate(ranking: Ranking, relevant: Relevance, *, k: int, collapse: bool = False) -> float:
    """Whether any of the first k ids is relevant: 1, else 0."""
    return formulas.hit_rate(ranking, relevant, k, collapse=collapse)


@_over_urls(
    "url_mrr",
    """How early the first chunk from a URL shown to the user comes: 1 / its rank, 0 where there is none.

    ``collapse=True`` ranks documents: further chunks of one URL take no rank.
    """,
)
@_over_ids("mrr")
def mrr(ranking: Ranking, relevant: Relevance, *, k: int | None = None, collapse: bool = False) -> float:
    """How early the first relevant id comes: 1 / its rank, 0 where there is none. The mean over questions is MRR."""
    return formulas.mrr(ranking, relevant, k, collapse=collapse)


@_over_urls("url_recall", "Share of the URLs shown to the user that the first k chunks come from.")
@_over_ids("recall")
def recall(ranking: Ranking, relevant: Relevance, *, k: int, collapse: bool = False) -> float:
    """Share of all relevant ids that are among the first k."""
    return formulas.recall(ranking, relevant, k, collapse=collapse)


@_over_urls(
    "url_precision",
    """Share of the first k chunks that come from a URL shown to the user.

    A second chunk of one URL earns nothing. ``denominator="returned"`` divides by the number of chunks
    returned where that is smaller than k.
    """,
)
@_over_ids("precision")
def precision(
    ranking: Ranking,
    relevant: Relevance,
    *,
    k: int,
    denominator: Literal["k", "returned"] = "k",
    collapse: bool = False,
) -> float:
    """Share of the first k ids that are relevant.

    Divided by k, or with ``denominator="returned"`` by the number of ids returned where that is smaller.
    """
    return formulas.precision(ranking, relevant, k, denominator=denominator, collapse=collapse)


@_over_ids("map")
def average_precision(
    ranking: Ranking, relevant: Relevance, *, k: int | None = None, collapse: bool = False
) -> float:
    """Whether relevant ids come first: average precision; the mean over questions is MAP.

    ``sum of the precisions at the ranks of relevant ids / all relevant ids``, range 0..1.
    """
    return formulas.average_precision(ranking, relevant, k, collapse=collapse)


@_over_ids("ndcg")
def ndcg(
    ranking: Ranking,
    relevant: Relevance,
    *,
    k: int | None = None,
    gain: Literal["linear", "exponential"] = "linear",
    collapse: bool = False,
) -> float:
    """How close the first k ids come to the best possible ranking by grades: DCG / ideal DCG.

    ``gain`` is the grade (``"linear"``), or 2^grade - 1 (``"exponential"``); range 0..1.
    """
    return formulas.ndcg(ranking, relevant, k, gain=gain, collapse=collapse)


@_over_urls("url_ndcg")
def url_ndcg(ranking: Ranking, relevant: Relevance, *, k: int | None = None, collapse: bool = False) -> float:
    """How close the first k chunks come to a ranking with the shown URLs first: DCG / ideal DCG.

    Never above 1, however often one URL repeats.
    """
    # Without `gain`: a URL was shown or not, and both gains are the same of grades 0 and 1.
    return formulas.ndcg(ranking, relevant, k, collapse=collapse)


@_over_ids("r_precision")
def r_precision(ranking: Ranking, relevant: Relevance, *, collapse: bool = False) -> float:
    """Share of the first R ids that are relevant, where R is the number of relevant ids."""
    return formulas.r_precision(ranking, relevant, collapse=collapse)


# No bands: a share of judged ids is neither good nor bad, it says how complete the judgments are.
@_over_ids("judged", bands=NO_BANDS, explain=_ungraded)
def judged(ranking: Ranking, relevant: Relevance, *, k: int, collapse: bool = False) -> float:
    """Share of the first k ids that have a grade at all: how far the other metrics can be trusted."""
    return formulas.judged(ranking, relevant, k, collapse=collapse)
