"""Retrieval metrics: how well a ranked list of ids meets the ids that are known to be relevant.

One query at a time, written like the formulas. Rules of all:

- Ids are compared as text. The order of the list is the ranking; it is never sorted again.
- An id that comes back a second time keeps its rank and earns nothing (``collapse=True`` drops it
  first). Ids without a judgment, and grades of 0 and below, earn nothing and keep their rank.
- Precision divides by k even where fewer ids came back; AP divides by the number of relevant ids.

Sources: trec_eval 9.0 for every formula with linear gain; Järvelin and Kekäläinen 2002 for NDCG,
Burges et al. 2005 for its exponential gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from numbers import Integral
from typing import Any, Literal, TypeAlias

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.samples import ids, relevance

Relevant: TypeAlias = Mapping[Any, float] | Iterable[Any]
"""Relevant ids, or ``{id: grade}``."""
Gain = Literal["linear", "exponential"]
Denominator = Literal["k", "returned"]

LARGEST_GRADE = {"linear": 1e100, "exponential": 1000.0}
"""Above these a sum of gains could leave the range of a float."""


def hit_rate(
    retrieved: Iterable[Any], relevant: Relevant, k: int | None = None, *, collapse: bool = False
) -> float:
    """1 where any of the first ``k`` ids is relevant, else 0 (trec_eval: success).

    Parameters, for all functions here
    ----------------------------------
    retrieved
        Ids, best first.
    relevant
        Relevant ids, or ``{id: grade}``; a grade above 0 means relevant.
    k
        Only the first ``k`` ids count; ``None`` means all.
    collapse
        Drop repeated ids before ranking (several chunks of one document).

    Raises
    ------
    UsageError
        ``k`` isn't a whole number above 0; ``retrieved`` or ``relevant`` isn't a list of ids.
    UndefinedScore
        No id is relevant (code ``no_relevant_ids``).
    """
    return float(any(_read(retrieved, relevant, k, collapse).grades))


def mrr(
    retrieved: Iterable[Any], relevant: Relevant, k: int | None = None, *, collapse: bool = False
) -> float:
    """1 / rank of the first relevant id, 0 where there is none (reciprocal rank; its mean is MRR)."""
    grades = _read(retrieved, relevant, k, collapse).grades
    return next((1 / rank for rank, grade in enumerate(grades, 1) if grade), 0.0)


def recall(
    retrieved: Iterable[Any], relevant: Relevant, k: int | None = None, *, collapse: bool = False
) -> float:
    """Relevant ids among the first ``k`` / all relevant ids."""
    query = _read(retrieved, relevant, k, collapse)
    return query.hits / len(query.ideal)


def precision(
    retrieved: Iterable[Any],
    relevant: Relevant,
    k: int | None = None,
    *,
    denominator: Denominator = "k",
    collapse: bool = False,
) -> float:
    """Relevant ids among the first ``k`` / ``k``.

    ``denominator="returned"`` divides by what came back, where that is less than ``k``. Nothing
    returned gives 0.
    """
    check_option("denominator", denominator, ("k", "returned"))
    query = _read(retrieved, relevant, k, collapse)
    # As trec_eval: who returns fewer than k must not gain by it.
    ranks = k if k is not None and denominator == "k" else len(query.grades)
    return query.hits / ranks if ranks else 0.0


def average_precision(
    retrieved: Iterable[Any], relevant: Relevant, k: int | None = None, *, collapse: bool = False
) -> float:
    """Sum of the precisions at the ranks of relevant ids / all relevant ids; its mean is MAP."""
    query = _read(retrieved, relevant, k, collapse)
    ranks = [rank for rank, grade in enumerate(query.grades, 1) if grade]
    return sum(hits / rank for hits, rank in enumerate(ranks, 1)) / len(query.ideal)


def ndcg(
    retrieved: Iterable[Any],
    relevant: Relevant,
    k: int | None = None,
    *,
    gain: Gain = "linear",
    collapse: bool = False,
) -> float:
    """DCG / ideal DCG, with a discount of log2(rank + 1).

    ``gain="linear"`` takes the grade as gain (trec_eval), ``"exponential"`` 2^grade - 1. The ideal
    ranking has the best min(k, R) grades of all relevant ids, not only of those retrieved.
    """
    query = _read(retrieved, relevant, k, collapse)
    # Of all relevant ids: measured by what it found itself, a poor retriever would look perfect.
    ideal = query.ideal[:k]
    return _dcg(query.grades, gain) / _dcg(ideal, gain)


def r_precision(retrieved: Iterable[Any], relevant: Relevant, *, collapse: bool = False) -> float:
    """Relevant ids among the first R / R, where R ids are relevant."""
    query = _read(retrieved, relevant, None, collapse)
    return sum(grade > 0 for grade in query.grades[: len(query.ideal)]) / len(query.ideal)


def judged(
    retrieved: Iterable[Any], relevant: Relevant, k: int | None = None, *, collapse: bool = False
) -> float:
    """Share of the first ``k`` ids (or of those returned, where fewer) that have a grade, 0 included.

    0 where nothing was returned. It tells how far the other metrics can be trusted, so it is defined
    without relevant ids too.
    """
    ranking = _ranking(retrieved, k, collapse)
    known = relevance(relevant, "relevant ids") or {}
    return sum(item in known for item in ranking) / len(ranking) if ranking else 0.0


@dataclass(frozen=True, slots=True)
class _Query:
    grades: list[float]
    """Grade at each of the first k ranks: 0 for what is not relevant, or came before."""
    ideal: list[float]
    """All grades above 0, best first."""

    @property
    def hits(self) -> int:
        return sum(grade > 0 for grade in self.grades)


def _read(retrieved: Iterable[Any], relevant: Relevant, k: int | None, collapse: bool) -> _Query:
    grade_of = relevance(relevant, "relevant ids")
    if grade_of is None:
        raise UsageError("relevant ids are missing; give a list of ids, or {id: grade}")
    ideal = sorted((grade for grade in grade_of.values() if grade > 0), reverse=True)
    ranking = _ranking(retrieved, k, collapse)
    if not ideal:
        raise UndefinedScore(
            "no relevant ids: name at least one id with a grade above 0", code="no_relevant_ids"
        )
    # A repeated id earns nothing, or a ranking could score above 1 by repeating its best hit.
    seen: set[str] = set()
    grades = []
    for item in ranking:
        # Negative grades (spam, in TREC's judgments) earn nothing and take nothing away.
        grades.append(0.0 if item in seen else max(grade_of.get(item, 0.0), 0.0))
        seen.add(item)
    return _Query(grades, ideal)


def _ranking(retrieved: Iterable[Any], k: int | None, collapse: bool) -> Sequence[str]:
    check_k(k)
    ranking = ids(retrieved, "retrieved ids")
    if ranking is None:
        raise UsageError("retrieved ids are missing; give a list of ids, best first ([] for nothing found)")
    if collapse:
        ranking = tuple(dict.fromkeys(ranking))
    return ranking[:k]


def check_k(k: object) -> None:
    """Raise UsageError unless ``k`` is None or a whole number above 0."""
    if k is None:
        return
    # numpy's integers are Integral; and so is True, which nobody means.
    if isinstance(k, bool) or not isinstance(k, Integral) or int(k) <= 0:
        raise UsageError(f"k must be a whole number above 0, got {k!r}")


def check_option(name: str, value: str, known: Sequence[str]) -> None:
    """Raise UsageError unless ``value`` is among the ``known``."""
    if value not in known:
        raise UsageError(f"{name} must be one of {', '.join(known)}; got {value!r}")


def _gain(grade: float, gain: Gain) -> float:
    check_option("gain", gain, tuple(LARGEST_GRADE))
    if grade > LARGEST_GRADE[gain]:
        raise UsageError(f"grade {grade:g} is too large for {gain} gain (at most {LARGEST_GRADE[gain]:g})")
    return grade if gain == "linear" else 2.0**grade - 1.0


def _dcg(grades: Sequence[float], gain: Gain) -> float:
    return sum(_gain(grade, gain) / log2(rank + 1) for rank, grade in enumerate(grades, 1) if grade)
