"""Retrieval metrics of many queries at once.

Same numbers as ``retrieval``, query by query, for a run held in Python objects (:func:`evaluate`)
or for a matrix of grades (:func:`evaluate_grades`). Only the ranks of judged ids are ever turned into
arrays, a few thousand queries at a time, so memory does not grow with queries x results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, count, islice
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pytest_ragbench.metrics.formulas.coverage import Aggregate, mean_of
from pytest_ragbench.metrics.formulas.retrieval import (
    LARGEST_GRADE,
    Denominator,
    Gain,
    Relevant,
    check_k,
    check_option,
)
from pytest_ragbench.model.errors import Unscored, UsageError
from pytest_ragbench.model.samples import ids, relevance
from pytest_ragbench.model.thresholds import Threshold

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Ranking: TypeAlias = "Sequence[Any] | NDArray[Any] | Mapping[Any, float] | Unscored | None"
"""Ids, best first; or ``{id: score}``; or why there is none."""

QUERIES_AT_ONCE = 8192

_ALIASES = {
    "hit": "hit_rate",
    "hits": "hit_rate",
    "success": "hit_rate",
    "rr": "mrr",
    "recip_rank": "mrr",
    "r": "recall",
    "p": "precision",
    "ap": "map",
    "average_precision": "map",
    "rprec": "r_precision",
    "rprecision": "r_precision",
}
MEASURES = ("hit_rate", "mrr", "recall", "precision", "map", "ndcg", "r_precision", "judged")
_NEEDS_K = ("precision",)
_MEASURE = re.compile(r"([a-z_]+)(?:@([^@]*))?")


@dataclass(frozen=True, slots=True)
class Measure:
    """A retrieval metric with its cut-off: ``Measure.parse("ndcg@10")``; ``str()`` gives the name back."""

    name: str
    k: int | None = None

    def __post_init__(self) -> None:
        if self.name not in MEASURES:
            raise UsageError(f"unknown retrieval metric {self.name!r}; known: {', '.join(MEASURES)}")
        check_k(self.k)
        if self.k is None and self.name in _NEEDS_K:
            raise UsageError(f"{self.name} needs a cut-off: write '{self.name}@5'")
        if self.k is not None and self.name == "r_precision":
            raise UsageError("r_precision takes no cut-off: its k is the number of relevant ids")

    @classmethod
    def parse(cls, text: str | Measure) -> Measure:
        """Read ``"mrr"``, ``"recall@5"``, ``"MAP@100"`` ...; raises UsageError."""
        if isinstance(text, Measure):
            return text
        match = _MEASURE.fullmatch(text.strip().lower().replace("-", "_")) if isinstance(text, str) else None
        if not match:
            raise UsageError(f"unreadable retrieval metric {text!r}; write 'mrr' or 'ndcg@10'")
        cut = match[2]
        if cut is not None and not (cut.isascii() and cut.isdigit()):
            raise UsageError(f"{text!r}: k must be a whole number above 0, got {cut!r}")
        return cls(_ALIASES.get(match[1], match[1]), None if cut is None else int(cut))

    def __str__(self) -> str:
        return self.name if self.k is None else f"{self.name}@{self.k}"


# --- a run in Python objects -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Values of several retrieval metrics for each query, and their means.

    ``evaluation["ndcg@10"]`` is the :class:`Aggregate` of one metric.
    """

    query_ids: tuple[str, ...]
    """The scored queries, in the order of the judgments."""
    values: Mapping[str, Floats]
    """Metric -> one value for each of ``query_ids``."""
    unscored: Mapping[str, str]
    """Query id -> reason code of the queries that are in no mean."""
    ignored: tuple[str, ...]
    """Queries of the run that the judgments don't know at all."""

    def aggregate(self, measure: str | Measure, threshold: Threshold | None = None) -> Aggregate:
        """Mean and coverage of one metric; with a threshold also the ids that miss it."""
        return mean_of(self.query_ids, self._column(measure), self.unscored, threshold)

    def __getitem__(self, measure: str | Measure) -> Aggregate:
        return self.aggregate(measure)

    def per_query(self, measure: str | Measure) -> dict[str, float]:
        """``{query id: value}`` of one metric."""
        return dict(zip(self.query_ids, self._column(measure).tolist(), strict=True))

    def _column(self, measure: str | Measure) -> Floats:
        name = str(Measure.parse(measure))
        if name not in self.values:
            raise UsageError(f"{name} was not computed; computed: {', '.join(self.values)}")
        return self.values[name]


def evaluate(
    qrels: Mapping[Any, Relevant],
    run: Mapping[Any, Ranking],
    measures: Iterable[str | Measure],
    *,
    gain: Gain = "linear",
    denominator: Denominator = "k",
    collapse: bool = False,
    no_relevant: Literal["exclude", "zero"] = "exclude",
) -> Evaluation:
    """Compute retrieval metrics for all queries of ``qrels``.

    Parameters
    ----------
    qrels
        ``{query id: {document id: grade}}``, or a list of relevant ids for each query.
    run
        ``{query id: [document ids, best first]}``. ``{document id: score}`` is accepted and ranked by
        score, ties in the order given. A query that is missing found nothing and scores 0. ``None``
        or an ``Unscored`` says that the request failed: counted, in no mean.
    measures
        Names such as ``"mrr"``, ``"ndcg@10"``; see :data:`MEASURES`.
    gain, denominator, collapse
        As in ``retrieval``.
    no_relevant
        What a query without relevant ids does: ``"exclude"`` counts it as unscored, ``"zero"``
        averages in a 0, as trec_eval does.

    Raises
    ------
    UsageError
        An unknown metric or option, ids that are no list, no query id that both sides share.
    """
    wanted = [Measure.parse(measure) for measure in measures]
    if not wanted:
        raise UsageError(f"no retrieval metric named; known: {', '.join(MEASURES)}")
    check_option("no_relevant", no_relevant, ("exclude", "zero"))
    _check_gain(gain, denominator)
    depth = _depth(wanted)
    qrels = _text_keys(qrels, "qrels")
    run = _text_keys(run, "run")
    ignored = tuple(query for query in run if query not in qrels)
    if run and len(ignored) == len(run):
        raise UsageError(
            f"the run and the judgments share no query id: the run has {ignored[0]!r} ..., "
            f"the judgments {next(iter(qrels), None)!r} ..."
        )
    unscored: dict[str, str] = {}
    scored: list[str] = []
    columns: list[list[Floats]] = [[] for _ in wanted]
    pending = iter(qrels.items())
    while chunk := list(islice(pending, QUERIES_AT_ONCE)):
        names, sparse = _read_chunk(
            chunk, run, depth, unscored, collapse=collapse, zeros=no_relevant == "zero"
        )
        scored.extend(names)
        for column, measure in zip(columns, wanted, strict=True):
            column.append(_compute(measure, sparse, gain, denominator))
    values = {
        str(m): np.concatenate([np.zeros(0), *column]) for m, column in zip(wanted, columns, strict=True)
    }
    return Evaluation(tuple(scored), values, unscored, ignored)


def _text_keys(mapping: Mapping[Any, Any], name: str) -> Mapping[str, Any]:
    if not isinstance(mapping, Mapping):
        raise UsageError(f"{name} must map query ids to documents, got {type(mapping).__name__}")
    if all(type(key) is str for key in mapping):
        return mapping
    return {str(key): value for key, value in mapping.items()}


def _depth(measures: Sequence[Measure]) -> int | None:
    """How many ranks are looked at; None where a metric has no cut-off."""
    cuts = [measure.k for measure in measures]
    return None if None in cuts else max(k for k in cuts if k is not None)


@dataclass(frozen=True, slots=True)
class _Sparse:
    """Some queries, reduced to what counts: judged ids by rank, and the ideal ranking."""

    n: int
    query: Ints
    """Of each hit, ascending."""
    rank: Ints
    """Of each hit, from 0; ascending within a query."""
    grade: Floats
    """Of each hit, above 0."""
    judged_query: Ints
    judged_rank: Ints
    returned: Ints
    """Ids looked at, for each query."""
    ideal_query: Ints
    ideal_grade: Floats
    """All grades above 0, in any order."""


def _read_chunk(
    chunk: Sequence[tuple[str, Relevant]],
    run: Mapping[str, Ranking],
    depth: int | None,
    unscored: dict[str, str],
    *,
    collapse: bool,
    zeros: bool,
) -> tuple[list[str], _Sparse]:
    names: list[str] = []
    ranks: list[int] = []
    grades: list[float] = []
    found: list[int] = []
    returned: list[int] = []
    ideal: list[Mapping[str, float]] = []
    for name, relevant in chunk:
        ranking = run.get(name, ())
        if ranking is None or isinstance(ranking, Unscored):
            unscored[name] = "request_failed" if ranking is None else ranking.code
            continue
        grade_of = _grades(relevant, name)
        if not zeros and not any(grade > 0 for grade in grade_of.values()):
            unscored[name] = "no_relevant_ids"
            continue
        items = _items(ranking, name, depth, collapse)
        positions = list(compress(count(), map(grade_of.__contains__, items)))
        if len(positions) > 1:
            hits = [items[position] for position in positions]
            values = [grade_of[item] for item in hits]
            if len(set(hits)) < len(hits):
                # A repeat stays judged but earns nothing.
                seen: set[str] = set()
                values = [
                    0.0 if item in seen or seen.add(item) else value  # type: ignore[func-returns-value]
                    for item, value in zip(hits, values, strict=True)
                ]
            grades += values
        elif positions:
            grades.append(grade_of[items[positions[0]]])
        ranks += positions
        found.append(len(positions))
        names.append(name)
        returned.append(len(items))
        ideal.append(grade_of)
    n = len(names)
    numbers = np.arange(n)
    query = np.repeat(numbers, found)
    rank = np.array(ranks, dtype=np.int64)
    grade = np.array(grades, dtype=np.float64)
    ideal_query = np.repeat(numbers, [len(grade_of) for grade_of in ideal])
    ideal_grade = np.fromiter(chain.from_iterable(g.values() for g in ideal), np.float64, len(ideal_query))
    hit, good = grade > 0, ideal_grade > 0
    return names, _Sparse(
        n,
        query[hit],
        rank[hit],
        grade[hit],
        query,
        rank,
        np.array(returned, dtype=np.int64),
        ideal_query[good],
        ideal_grade[good],
    )


def _grades(relevant: Relevant, name: str) -> Mapping[str, float]:
    """``{id: grade}`` with text ids and finite grades; the checked copy only where it is needed."""
    if type(relevant) is dict and _all_text(relevant) and _all_finite(relevant.values()):
        return relevant
    try:
        return relevance(relevant, "relevant ids") or {}
    except UsageError as error:
        raise UsageError(f"query {name!r}: {error}") from None


def _items(ranking: Ranking, name: str, depth: int | None, collapse: bool) -> Sequence[str]:
    if isinstance(ranking, Mapping):
        if not _all_finite(ranking.values()):
            raise UsageError(f"query {name!r}: a retrieval score is not a finite number")
        scores = list(ranking.values())
        if scores == sorted(scores, reverse=True):  # as most runs are, and cheaper to see than to sort by key
            ranking = list(ranking)
        else:
            ranking = sorted(ranking, key=ranking.__getitem__, reverse=True)  # stable: ties stay as given
    if collapse or type(ranking) not in (list, tuple):
        items: Sequence[Any] = _as_ids(ranking, name)
        items = (list(dict.fromkeys(items)) if collapse else items)[:depth]
    else:
        items = ranking[:depth]  # type: ignore[index,assignment]
    return items if _all_text(items) else _as_ids(items, name)


def _as_ids(ranking: Any, name: str) -> Sequence[str]:
    try:
        return ids(ranking, "retrieved ids") or ()
    except UsageError as error:
        raise UsageError(f"query {name!r}: {error}") from None


def _all_text(items: Iterable[Any]) -> bool:
    # join() looks at every type at C speed, several times faster than any loop over isinstance().
    try:
        "".join(items)
    except TypeError:
        return False
    return True


def _all_finite(numbers: Iterable[Any]) -> bool:
    try:
        total = sum(numbers)
    except TypeError:
        return False
    return bool(abs(total) < float("inf"))


# --- the formulas, over hits of many queries ---------------------------------------------------


def _compute(measure: Measure, s: _Sparse, gain: Gain, denominator: Denominator) -> Floats:
    k = measure.k
    kept = np.ones(len(s.rank), dtype=bool) if k is None else s.rank < k
    query, rank = s.query[kept], s.rank[kept]
    hits = _sums(query, None, s.n)
    relevant = _sums(s.ideal_query, None, s.n)
    match measure.name:
        case "hit_rate":
            return np.minimum(hits, 1.0)
        case "mrr":
            first = np.ones(len(query), dtype=bool)
            first[1:] = query[1:] != query[:-1]
            return _sums(query[first], 1.0 / (rank[first] + 1), s.n)
        case "recall":
            return _ratio(hits, relevant)
        case "precision":
            ranks = s.returned if k is None else np.minimum(s.returned, k)
            return _ratio(hits, ranks if denominator == "returned" else np.full(s.n, k or 1))
        case "map":
            nth = np.arange(1, len(query) + 1) - (np.cumsum(hits) - hits).astype(np.int64)[query]
            return _ratio(_sums(query, nth / (rank + 1), s.n), relevant)
        case "r_precision":
            inside = s.rank < relevant[s.query]
            return _ratio(_sums(s.query[inside], None, s.n), relevant)
        case "judged":
            seen = s.judged_rank < (k or np.inf)
            ranks = s.returned if k is None else np.minimum(s.returned, k)
            return _ratio(_sums(s.judged_query[seen], None, s.n), ranks)
        case _:
            dcg = _dcg(query, rank, s.grade[kept], s.n, gain)
            return _ratio(dcg, _ideal_dcg(s, k, gain))


def _ideal_dcg(s: _Sparse, k: int | None, gain: Gain) -> Floats:
    order = np.lexsort((-s.ideal_grade, s.ideal_query))
    query, grade = s.ideal_query[order], s.ideal_grade[order]
    counts = _sums(query, None, s.n).astype(np.int64)
    rank = np.arange(len(query)) - (np.cumsum(counts) - counts)[query]
    kept = rank < (len(query) if k is None else k)
    return _dcg(query[kept], rank[kept], grade[kept], s.n, gain)


def _dcg(query: Ints, rank: Ints, grade: Floats, n: int, gain: Gain) -> Floats:
    if len(grade) and grade.max() > LARGEST_GRADE[gain]:
        raise UsageError(
            f"grade {grade.max():g} is too large for {gain} gain (at most {LARGEST_GRADE[gain]:g})"
        )
    gains = grade if gain == "linear" else np.exp2(grade) - 1.0
    return _sums(query, gains / np.log2(rank + 2.0), n)


def _sums(query: Ints, weights: Floats | None, n: int) -> Floats:
    return np.bincount(query, weights, minlength=n).astype(np.float64)


def _ratio(above: Floats, below: NDArray[Any]) -> Floats:
    ratio: Floats = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return ratio


def _check_gain(gain: str, denominator: str) -> None:
    check_option("gain", gain, tuple(LARGEST_GRADE))
    check_option("denominator", denominator, ("k", "returned"))


# --- a run in arrays ---------------------------------------------------------------------------


def evaluate_grades(
    grades: ArrayLike,
    relevant: ArrayLike | None = None,
    measures: Iterable[str | Measure] = ("ndcg@10",),
    *,
    gain: Gain = "linear",
    denominator: Denominator = "k",
    returned: ArrayLike | None = None,
) -> dict[str, Floats]:
    """Retrieval metrics of many queries from the grades at their ranks, without ids.

    Parameters
    ----------
    grades
        (queries, ranks): grade of the id at each rank; NaN where it has no judgment. An id that comes
        back twice must have a grade at its first rank only.
    relevant
        (queries, any width): all grades of the query's judged ids, in any order, padded with 0. None
        where the run holds every relevant id.
    measures, gain, denominator
        As in :func:`evaluate`.
    returned
        (queries,): how many ids came back, where that is less than the width of ``grades``.

    Returns
    -------
    dict
        Metric -> (queries,) values. A query without relevant ids has 0 in each: leave it out before.

    Raises
    ------
    UsageError
        Shapes that don't fit, infinite grades, unknown metrics or options, a query with more relevant
        ids among its results than in ``relevant``.
    """
    wanted = [Measure.parse(measure) for measure in measures]
    _check_gain(gain, denominator)
    at_rank = _matrix(grades, "grades")
    n, width = at_rank.shape
    every = at_rank if relevant is None else _matrix(relevant, "relevant")
    if len(every) != n:
        raise UsageError(f"grades has {n} queries, relevant {len(every)}")
    lengths = np.full(n, width) if returned is None else np.asarray(returned, dtype=np.int64)
    if lengths.shape != (n,) or (n and not 0 <= lengths.min() <= lengths.max() <= width):
        raise UsageError(f"returned must hold {n} counts of at most {width}")
    depth = _depth(wanted)
    need_judged = any(measure.name == "judged" for measure in wanted)
    columns: list[list[Floats]] = [[] for _ in wanted]
    for start in range(0, n, QUERIES_AT_ONCE):
        stop = min(start + QUERIES_AT_ONCE, n)
        sparse = _sparse(at_rank[start:stop, :depth], every[start:stop], lengths[start:stop], need_judged)
        for column, measure in zip(columns, wanted, strict=True):
            column.append(_compute(measure, sparse, gain, denominator))
    return {str(m): np.concatenate([np.zeros(0), *column]) for m, column in zip(wanted, columns, strict=True)}


def _matrix(values: ArrayLike, name: str) -> NDArray[Any]:
    matrix = np.asarray(values)
    if matrix.ndim != 2 or matrix.dtype.kind not in "bifu":
        raise UsageError(f"{name} must be a matrix of numbers, queries x ids; got shape {matrix.shape}")
    return matrix


def _sparse(at_rank: NDArray[Any], every: NDArray[Any], returned: Ints, need_judged: bool) -> _Sparse:
    n, width = at_rank.shape
    query, rank, grade = _positive(at_rank, "grades")
    inside = rank < returned[query]
    query, rank, grade = query[inside], rank[inside], grade[inside]
    ideal_query, _, ideal_grade = _positive(every, "relevant")
    if (_sums(query, None, n) > _sums(ideal_query, None, n)).any():
        raise UsageError(
            "a query has more relevant ids among its results than in all; give all in 'relevant'"
        )
    judged_query, judged_rank = query, rank
    if need_judged:
        known = ~np.isnan(at_rank.astype(np.float64)) & (np.arange(width) < returned[:, None])
        judged_query, judged_rank = np.nonzero(known)
    seen = np.minimum(returned, width)
    return _Sparse(n, query, rank, grade, judged_query, judged_rank, seen, ideal_query, ideal_grade)


def _positive(matrix: NDArray[Any], name: str) -> tuple[Ints, Ints, Floats]:
    # One flat search is several times faster than np.nonzero on two dimensions.
    flat = np.flatnonzero(matrix > 0)
    values = matrix.reshape(-1)[flat].astype(np.float64)
    if not np.isfinite(values).all():
        raise UsageError(f"{name} holds an infinite grade")
    return flat // max(matrix.shape[1], 1), flat % max(matrix.shape[1], 1), values
