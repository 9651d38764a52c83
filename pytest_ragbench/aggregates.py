"""Metrics over a whole question set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from pytest_ragbench import runtime
from pytest_ragbench.assertions import ThresholdLike
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.metrics.scoring import check, compute
from pytest_ragbench.model.errors import (
    BudgetError,
    EndpointError,
    QualityFailure,
    RagbenchError,
    UndefinedScore,
    Unscored,
    UsageError,
)
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.model.thresholds import parse_threshold
from pytest_ragbench.report.clean import one_line
from pytest_ragbench.runtime import Result


class RagSamples(Sequence[RagSample]):
    """The samples of a question file, in its order.

    A question whose request failed keeps its place: taking it (by index or in a loop) raises its
    EndpointError, so that no check silently covers fewer questions than the file has.
    ``answered`` and ``failed`` tell the two apart.
    """

    def __init__(
        self, questions: Sequence[Question], found: Sequence[RagSample | EndpointError | BudgetError]
    ) -> None:
        self.questions = tuple(questions)
        self._found = tuple(found)

    @property
    def answered(self) -> list[RagSample]:
        return [found for found in self._found if isinstance(found, RagSample)]

    @property
    def failed(self) -> dict[str, EndpointError | BudgetError]:
        """Question id -> what happened."""
        return {
            question.id: found
            for question, found in zip(self.questions, self._found, strict=True)
            if not isinstance(found, RagSample)
        }

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> RagSample: ...
    @overload
    def __getitem__(self, index: slice) -> RagSamples: ...
    def __getitem__(self, index: int | slice) -> RagSample | RagSamples:
        if isinstance(index, slice):
            return RagSamples(self.questions[index], self._found[index])
        return self._taken(self._found[index])

    def __iter__(self) -> Iterator[RagSample]:
        return (self._taken(found) for found in self._found)

    @staticmethod
    def _taken(found: RagSample | EndpointError | BudgetError) -> RagSample:
        if not isinstance(found, RagSample):
            raise found.with_traceback(None)
        return found

    def __repr__(self) -> str:
        return f"<RagSamples: {len(self.answered)} answered, {len(self.failed)} failed>"


def assert_retrieval(
    samples: RagSamples | Sequence[RagSample] | RagSample,
    metric: str,
    threshold: ThresholdLike,
    *,
    coverage: float = 1.0,
    **options: Any,
) -> Score:
    """Assert the mean of a retrieval metric over a question set (or over one sample).

    ``"url_mrr"``, ``"url_hit_rate@5"`` ... compare the URLs of documents instead of the ids of chunks.

    Parameters
    ----------
    samples
        The fixture ``rag_samples``, a list of samples, or one sample.
    metric
        ``"ndcg@10"``, ``"recall@5"``, ``"mrr"``, ``"map"``, ``"hit_rate@3"`` ...
    coverage
        Share of the questions (0..1) that must have a score. A failed request has none; with the
        default of 1 any failed request is an error, never a better or worse mean. Questions without
        relevant ids (or URLs: nothing to find) are left out and counted.

    Raises
    ------
    QualityFailure
        The mean misses the threshold; the worst questions are named.
    EndpointError
        Fewer questions than ``coverage`` have a score.
    UsageError
        No question has relevant ids (or URLs), a reply had no chunk ids, or the threshold is unreadable.
    """
    __tracebackhide__ = True
    here = runtime.current()
    wanted_field = next(
        (name for name in ("relevant_ids", "relevant_urls") if name in find(metric).needs), None
    )
    if wanted_field is None:
        raise UsageError(f"{metric} is no retrieval metric; write assert_over(samples, {metric!r}, ...)")
    if isinstance(samples, RagSample):
        samples = [samples]
    if not samples:
        raise UsageError(f"{metric}: there are no samples to score")
    if not 0 < coverage <= 1:
        raise UsageError(f"{metric}: coverage must lie in 0..1, above 0, got {coverage!r}")
    failed: Mapping[str, Exception] = samples.failed if isinstance(samples, RagSamples) else {}
    answered = samples.answered if isinstance(samples, RagSamples) else list(samples)
    relevant = [sample for sample in answered if _has(sample, wanted_field)]
    if answered and not relevant:
        raise UsageError(f"{metric}: no question has {wanted_field}; add such a column to the question file")
    chosen = [check(metric, sample, options) for sample in relevant]
    known = chosen[0] if chosen else check(metric, _placeholder(), options)
    limit = parse_threshold(threshold, known.scale)
    scores, unscored = _scores(here, known, relevant, options)
    wanted = len(relevant) + len(failed)
    if len(scores) < wanted * coverage:
        _short(here, known, limit.text, failed, unscored, len(scores), wanted)
    mean = sum(score.value for score in scores.values()) / len(scores)
    left_out = len(answered) - len(relevant)
    total = _total(known, mean, scores, wanted, {f"n_without_{wanted_field}": left_out}, relevant)
    passed = limit.met(mean)
    here.record(
        Result(
            known.name, None, known.tier, limit.text, passed, total, band=known.band(mean), count=len(scores)
        )
    )
    if not passed:
        raise QualityFailure(
            _text(total, limit.shown(mean), limit.text, scores, relevant, len(samples), wanted_field), [total]
        )
    return total


def _has(sample: RagSample, name: str) -> bool:
    """Whether there is something to find."""
    if name == "relevant_ids":
        return any(grade > 0 for grade in (sample.relevance or {}).values())
    return any(url.strip() for url in sample.relevant_urls or ())


def _placeholder() -> RagSample:
    return RagSample("(no answer)", context_ids=[], relevant_ids=["?"], context_urls=[], relevant_urls=["?"])


def _scores(
    here: runtime.Runtime, metric: Metric, samples: Sequence[RagSample], options: Mapping[str, Any]
) -> tuple[dict[int, Score], list[Unscored]]:
    """Position -> score; metrics of this tier ask nobody, so they are computed here and now."""
    __tracebackhide__ = True
    scores: dict[int, Score] = {}
    unscored: list[Unscored] = []

    async def all_of_them() -> None:
        for position, sample in enumerate(samples):
            try:
                scores[position] = await compute(metric, sample, judge=None, embedder=None, options=options)
            except UndefinedScore as error:
                unscored.append(error)

    here.engine().wait(all_of_them())
    return scores, unscored


def _short(
    here: runtime.Runtime,
    metric: Metric,
    threshold: str,
    failed: Mapping[str, Exception],
    unscored: Sequence[Unscored],
    n: int,
    wanted: int,
) -> None:
    """Raise that too few questions have a score."""
    __tracebackhide__ = True
    first = next(iter(failed.values()), None) or (unscored[0] if unscored else None)
    names = ", ".join(list(failed)[:5]) + (" ..." if len(failed) > 5 else "")
    message = (
        f"{metric.name}: {n} of {wanted} questions have a score, {wanted - n} do not"
        + (f" ({names})" if names else "")
        + (f"; first: {one_line(str(first), 300)}" if first else "")
    )
    error: RagbenchError = (
        EndpointError(message, code="coverage") if failed else UndefinedScore(message, code="coverage")
    )
    here.record(Result(metric.name, None, metric.tier, threshold, error=error, count=n))
    raise error


def _total(
    metric: Metric,
    mean: float,
    scores: Mapping[int, Score],
    wanted: int,
    left_out: Mapping[str, int],
    samples: Sequence[RagSample],
) -> Score:
    worst = sorted(scores, key=lambda position: scores[position].value, reverse=metric.direction == "lower")
    return Score(
        metric=metric.name,
        value=mean,
        reason=f"mean of {len(scores)} questions",
        evidence=tuple(
            Finding(samples[position].label, None, scores[position].reason, value=scores[position].value)
            for position in worst[:10]
        ),
        evidence_title="worst",
        details={
            "n_scored": len(scores),
            "n_unscored": wanted - len(scores),
            "n_total": wanted,
            **left_out,
            "min": min(score.value for score in scores.values()),
            "max": max(score.value for score in scores.values()),
            "values": {samples[position].label: score.value for position, score in scores.items()},
        },
    )


def _text(
    total: Score,
    shown: str,
    threshold: str,
    scores: Mapping[int, Score],
    samples: Sequence[RagSample],
    n: int,
    wanted_field: str,
) -> str:
    lines = [f"{total.metric} {shown}, wanted {threshold}: mean of {len(scores)} questions, {n} in the set"]
    if left_out := total.details[f"n_without_{wanted_field}"]:
        lines.append(f"  left out   {left_out} questions without {wanted_field.replace('_', ' ')}")
    for index, finding in enumerate(total.evidence):
        where = next((sample for sample in samples if sample.label == finding.text), None)
        place = f"   {where.location}" if where is not None and where.location else ""
        reason = f"   {one_line(finding.reason, 160)}" if finding.reason else ""
        label = "worst" if index == 0 else ""
        lines.append(f"  {label:<10} {finding.value:.2f} {one_line(finding.text, 60)}{reason}{place}")
    return "\n".join(lines)
