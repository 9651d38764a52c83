"""Variants, scored as the originals were: by the same judge, with the same votes and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_ragbench.gates.observations import fingerprint
from pytest_ragbench.gates.rules import GRADES
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.model.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.model.tests import SampleRecord
from pytest_ragbench.model.thresholds import Scale, Threshold, parse_threshold
from pytest_ragbench.mutation.rules import Variant, rankings, variants, without_chunks
from pytest_ragbench.scoring import Context, MetricSetup, Prepared, ScoreRequest, score_all
from pytest_ragbench.scoring.results import Result
from pytest_ragbench.text import is_blank

_FACTS = frozenset({"number", "date", "unit", "name", "negation", "added_claim"})
_WORDS = frozenset({"rephrased", "reordered"})


@dataclass(frozen=True, slots=True)
class Original:
    """A sample that passed, and how."""

    name: str
    """What the score is called: the metric's name, or that of one of its grades."""
    prepared: Prepared
    """How it was scored, and its variants are: judge, embedder, options, votes."""
    threshold: Threshold
    resting: tuple[int, ...] = ()
    """Chunks (numbers from 1) that its score rests on."""
    part: str | None = None
    """The grade, where the metric has several."""

    @property
    def sample(self) -> RagSample:
        """What was scored."""
        sample: RagSample = self.prepared.given
        return sample


@dataclass(frozen=True, slots=True)
class Trial:
    """A variant, and what became of it, in plain values. ``passed`` is None where there is no score."""

    metric: str
    kind: str
    good: bool
    key: tuple[str, str]
    """Id and fingerprint of the question."""
    change: str
    question: str
    answer: str | None
    threshold: str
    value: float | None
    passed: bool | None
    reason: str

    @property
    def survived(self) -> bool:
        """Bad, and passed; or good, and failed."""
        return self.passed is not None and self.passed != self.good

    def to_dict(self) -> dict[str, Any]:
        """In builtin types, as they cross from a worker; :meth:`of` reads it."""
        return asdict(self) | {"key": list(self.key)}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Trial:
        """From what :meth:`to_dict` returned."""
        return cls(**{**data, "key": tuple(data["key"])})


def kinds_for(metric: Metric) -> frozenset[str]:
    """The kinds of variants that say something about a metric; none for one that bad answers can't lower."""
    needs = set(metric.needs)
    # Where lower is better a bad answer may well score low.
    if metric.of == "set" or metric.direction == "lower":
        return frozenset()
    if {"context_ids", "relevant_ids"} <= needs:
        return frozenset({"ranking_reversed", "tail_reversed", "without_support", "other_contexts"})
    # Of the retriever alone: no change of the answer says anything of it.
    if "answer" not in needs:
        judged = bool(metric.tasks) and {"contexts", "reference"} <= needs
        # Average precision sees the order of the chunks, a share does not.
        ranked = {"ranking_reversed"} if metric.name.startswith("context_precision") else {"chunks_reversed"}
        return frozenset({"other_contexts", *ranked}) if judged else frozenset()
    if not (metric.tasks or metric.embedder) or not needs & {"question", "contexts", "reference"}:
        return frozenset()
    found = {"other_answer", *_WORDS}
    if needs & {"contexts", "reference"} and metric.tasks:
        found |= _FACTS
    if "reference" in needs and metric.tasks:
        found.add("dropped_claim")
    if "contexts" in needs:
        found |= {"other_contexts", "without_support", "chunks_reversed"}
    return frozenset(found)


def originals_in(result: Result) -> list[Original]:
    """Of a result of a test the samples that met its threshold; none where no variant says anything of the metric."""
    limit, part = result.threshold, result.part
    return [
        Original(result.metric, prepared, limit, _resting(score.evidence), part)
        for prepared, score in result.scored
        if limit is not None and kinds_for(prepared.metric) and limit.met(_value(score, part))
    ]


def originals(report: RunReport, name: str, threshold: str | None, context: Context) -> list[Original]:
    """The samples of a report that passed, to be scored with judge, embedder and votes as configured.

    Parameters
    ----------
    name
        Of a metric, or of a grade: ``search_rag_groundedness``.
    threshold
        In place of those in the report.

    Raises
    ------
    UsageError
        No sample passed, there is no threshold, no variant would say anything of the metric, or the judge can't
        do what it asks.
    """
    part = name.removeprefix("search_rag_") if name in GRADES else None
    metric = find(name if part is None else "search_rag")
    scale = metric.scale if part is None else Scale(name)
    if not kinds_for(metric):
        raise UsageError(f"{name} judges neither answers nor chunks so that a worse one has to score less")
    setup = MetricSetup(context, ScoreRequest(metric=metric, sample=RagSample("")))
    found: dict[tuple[object, ...], Original] = {}
    for result in report.results:
        for score in result.scores:
            answered = result.sample_of(score)
            if score.metric != name or score.value is None or answered is None:
                continue
            if "answer" in metric.needs and is_blank(answered.answer):
                continue
            if (limit := threshold or score.threshold) is None:
                raise UsageError(f"the report has no threshold for {name}: give --threshold '>=0.8'")
            parsed = parse_threshold(limit, scale)
            # A question that several tests ask is tried once.
            key = (answered.question, answered.answer, answered.context_ids or answered.contexts)
            if parsed.met(score.value) and key not in found:
                prepared = setup.prepare(_sample(answered))
                found[key] = Original(name, prepared, parsed, _resting(score.evidence), part)
    if not found:
        raise UsageError(f"no answer of the report passed {name}, so there is nothing to make worse")
    return list(found.values())


_COLUMNS = RagSample.__dataclass_fields__.keys() & SampleRecord.__dataclass_fields__.keys()


def _sample(answered: SampleRecord) -> RagSample:
    return RagSample(**{name: getattr(answered, name) for name in _COLUMNS})


def _resting(evidence: Sequence[Finding]) -> tuple[int, ...]:
    return tuple(each.chunk for each in evidence if each.ok and each.chunk is not None)


def _value(score: Score, part: str | None) -> float:
    return score.value if part is None else float(score.details.get(part, score.value))


def variants_of(passed: Sequence[Original]) -> list[tuple[Original, Variant]]:
    """All variants of all originals that say something of their metric."""
    samples = list({id(original.sample): original.sample for original in passed}.values())
    made: list[tuple[Original, Variant]] = []
    for original in passed:
        sample, metric = original.sample, original.prepared.metric
        wanted = kinds_for(metric)
        # Beginning with the next sample, so that each lends its answer about as often.
        place = next(place for place, each in enumerate(samples) if each is sample)
        own = variants(sample, [*samples[place + 1 :], *samples[:place]])
        resting = original.resting
        if "relevant_ids" in metric.needs:
            relevant = {name for name, grade in (sample.relevance or {}).items() if grade > 0}
            resting = tuple(n for n, name in enumerate(sample.context_ids or (), 1) if name in relevant)
        own += rankings(sample, [number - 1 for number in resting])
        if resting and (less := without_chunks(sample, resting)) is not None:
            own.append(less)
        made += [(original, each) for each in own if each.kind in wanted and _harms(original, each)]
    return made


def _harms(original: Original, variant: Variant) -> bool:
    """Whether a ranking that counts the first k alone is touched by a change of the order at all."""
    metric = original.prepared.metric
    k = metric.options.get("k")
    if variant.kind != "ranking_reversed" or k is None:
        return True
    relevant = {name for name, grade in (original.sample.relevance or {}).items() if grade > 0}

    def places(sample: RagSample) -> list[int]:
        return [place for place, name in enumerate((sample.context_ids or ())[:k]) if name in relevant]

    before, after = places(original.sample), places(variant.sample)
    ordered = metric.name.partition("@")[0] in ("mrr", "map", "ndcg")
    return len(after) < len(before) or (ordered and sum(after) > sum(before))


async def try_out(made: Sequence[tuple[Original, Variant]]) -> list[Trial]:
    """Each variant scored, all at once; one that gets no score is a trial without a verdict.

    Raises
    ------
    UsageError
        Judge or samples can't serve; before any call.
    """
    # Grades of one metric come from one call.
    requests: dict[tuple[str, int, str, bool], Prepared] = {}
    for original, variant in made:
        key = _request_of(original, variant)
        if key not in requests:
            limit = original.threshold if original.part is None else None
            requests[key] = original.prepared.for_sample(variant.sample, limit)
    outcomes = dict(zip(requests, await score_all(list(requests.values())), strict=True))
    return [_trial(original, variant, outcomes[_request_of(original, variant)]) for original, variant in made]


def _request_of(original: Original, variant: Variant) -> tuple[str, int, str, bool]:
    return original.prepared.metric.name, id(original.sample), variant.kind, original.part is None


def _trial(original: Original, variant: Variant, outcome: Score | Exception) -> Trial:
    sample, limit = original.sample, original.threshold
    value: float | None = None
    passed: bool | None = None
    match outcome:
        case Score():
            value = _value(outcome, original.part)
            passed, reason = limit.met(value), outcome.error_message or outcome.reason
        case UndefinedScore():
            reason = f"undefined: {outcome}"
        case Unscored():
            reason = str(outcome).partition("\n")[0]
        case _:
            # A bug in a formula isn't a verdict on the variant.
            raise outcome
    return Trial(
        metric=original.name,
        kind=variant.kind,
        good=variant.good,
        key=(sample.label, fingerprint(sample.question)),
        change=variant.change,
        question=sample.question,
        answer=variant.sample.answer,
        threshold=limit.text,
        value=value,
        passed=passed,
        reason=reason,
    )
