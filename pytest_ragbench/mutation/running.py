"""Variants, scored as the originals were: by the same judge, with the same votes and thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_ragbench.gates.intervals import wilson
from pytest_ragbench.gates.observations import fingerprint
from pytest_ragbench.gates.rules import GRADES
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.model.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.model.thresholds import Scale, Threshold, parse_threshold
from pytest_ragbench.mutation.rules import KINDS, Variant, rankings, variants, without_chunks
from pytest_ragbench.runtime import Passed
from pytest_ragbench.scoring import Context, MetricSetup, Prepared, ScoreRequest, score_all

if TYPE_CHECKING:
    from pytest_ragbench.model.report import RunReport

_FACTS = frozenset({"number", "date", "unit", "name", "negation", "added_claim"})
_WORDS = frozenset({"rephrased", "reordered"})


@dataclass(frozen=True, slots=True)
class Original:
    """A sample that passed, and how."""

    name: str
    """What the score is called; the metric's name, or that of one of its grades."""
    sample: RagSample
    threshold: Threshold
    resting: tuple[int, ...] = ()
    """Chunks (numbers from 1) that its score rests on."""
    metric: str = ""
    part: str | None = None
    """The grade, where the metric has several."""
    prepared: Prepared | None = None
    """How it was scored, and its variants are: judge, embedder, options, votes."""


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
        return cls(**{**data, "key": tuple(data["key"])})


def kinds_for(metric: Metric) -> frozenset[str]:
    """The kinds of variants that say something about a metric; none for one that bad answers can't lower."""
    needs = set(metric.needs)
    if metric.of == "set" or metric.direction == "lower":
        return frozenset()
    if {"context_ids", "relevant_ids"} <= needs:
        return frozenset({"ranking_reversed", "tail_reversed", "without_support", "other_contexts"})
    if "answer" not in needs:
        judged = bool(metric.tasks) and {"contexts", "reference"} <= needs
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


def originals(report: RunReport, name: str, threshold: str | None) -> list[Original]:
    """The samples of a report that passed.

    ``threshold`` wins over those of the report. UsageError where no sample passed, there is no threshold,
    or no variant would say anything of the metric.
    """
    metric, part = _metric_of(name)
    scale = metric.scale if part is None else Scale(name)
    if not kinds_for(metric):
        raise UsageError(f"{name} judges neither answers nor chunks so that a worse one has to score less")
    found: dict[tuple[str, str, tuple[str, ...]], Original] = {}
    for result in report.results:
        for score in result.scores:
            answered = result.sample_of(score)
            if score.metric != name or score.value is None or answered is None:
                continue
            if "answer" in metric.needs and not (answered.answer or "").strip():
                continue
            if (limit := threshold or score.threshold) is None:
                raise UsageError(f"the report has no threshold for {name}: give --threshold '>=0.8'")
            parsed = parse_threshold(limit, scale)
            if parsed.met(score.value):
                resting = [each.chunk for each in score.evidence if each.ok and each.chunk is not None]
                key = (
                    answered.question,
                    answered.answer or "",
                    answered.context_ids or answered.contexts or (),
                )
                found.setdefault(
                    key, Original(name, _sample(answered), parsed, tuple(resting), metric.name, part)
                )
    if not found:
        raise UsageError(f"no answer of the report passed {name}, so there is nothing to make worse")
    return list(found.values())


def _metric_of(name: str) -> tuple[Metric, str | None]:
    """The metric, and the grade where the name is that of one of its grades: search_rag_groundedness."""
    if name in GRADES:
        return find("search_rag"), name.removeprefix("search_rag_")
    return find(name), None


_COLUMNS = (
    "question", "answer", "contexts", "reference", "reference_contexts", "context_ids", "relevant_ids",
    "context_urls", "relevant_urls", "id", "lang", "must_pass", "should_abstain", "session", "cluster", "tags",
)  # fmt: skip


def _sample(answered: Any) -> RagSample:
    return RagSample(**{name: getattr(answered, name) for name in _COLUMNS})


def original_of(passed: Passed) -> Original | None:
    """A score that met its threshold in a test, to be tried; None where no variant says anything of its metric."""
    prepared, part = passed.prepared, passed.part
    metric = prepared.metric
    if not kinds_for(metric):
        return None
    resting = tuple(each.chunk for each in passed.score.evidence if each.ok and each.chunk is not None)
    name = f"{metric.name}_{part}" if part else metric.name
    return Original(name, prepared.given, passed.limit, resting, metric.name, part, prepared)


def equipped(passed: Sequence[Original], context: Context) -> list[Original]:
    """The originals of a report, ready to be tried: with judge, embedder and votes as configured.

    Raises
    ------
    UsageError
        The judge can't do what the metric asks.
    """
    setup = MetricSetup(context, ScoreRequest(metric=passed[0].metric, sample=passed[0].sample))
    return [replace(each, prepared=setup.prepare(each.sample)) for each in passed]


def variants_of(passed: Sequence[Original]) -> list[tuple[Original, Variant]]:
    """All variants of all originals that say something of their metric."""
    samples = list({id(original.sample): original.sample for original in passed}.values())
    made: list[tuple[Original, Variant]] = []
    for original in passed:
        sample, metric = original.sample, find(original.metric)
        wanted = kinds_for(metric)
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
    k = find(original.metric).options.get("k")
    if variant.kind != "ranking_reversed" or k is None:
        return True
    relevant = {name for name, grade in (original.sample.relevance or {}).items() if grade > 0}

    def places(sample: RagSample) -> list[int]:
        return [place for place, name in enumerate((sample.context_ids or ())[:k]) if name in relevant]

    before, after = places(original.sample), places(variant.sample)
    ordered = find(original.metric).name.partition("@")[0] in ("mrr", "map", "ndcg")
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
        if key not in requests and original.prepared is not None:
            limit = original.threshold if original.part is None else None
            requests[key] = original.prepared.for_sample(variant.sample, limit)
    outcomes = dict(zip(requests, await score_all(list(requests.values())), strict=True))
    return [_trial(original, variant, outcomes[_request_of(original, variant)]) for original, variant in made]


def _request_of(original: Original, variant: Variant) -> tuple[str, int, str, bool]:
    return original.metric, id(original.sample), variant.kind, original.part is None


def _trial(original: Original, variant: Variant, outcome: Score | Exception) -> Trial:
    sample, limit = original.sample, original.threshold
    value: float | None = None
    passed: bool | None = None
    match outcome:
        case Score():
            value = (
                outcome.value
                if original.part is None
                else float(outcome.details.get(original.part, outcome.value))
            )
            passed, reason = limit.met(value), outcome.error_message or outcome.reason
        case UndefinedScore():
            reason = f"undefined: {outcome}"
        case Unscored():
            reason = str(outcome).partition("\n")[0]
        case _:
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


def summary(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Of each kind: how many were judged, and the share that was judged rightly, with a 95 % interval."""
    rows = []
    for kind, good in KINDS.items():
        of_kind = [trial for trial in trials if trial.kind == kind]
        judged = [trial for trial in of_kind if trial.passed is not None]
        if not of_kind:
            continue
        right = sum(not trial.survived for trial in judged)
        bounds = wilson(right, len(judged), 0.975) if judged else None
        rows.append(
            {
                "kind": kind,
                "good": good,
                "n": len(judged),
                "n_unscored": len(of_kind) - len(judged),
                "right": right,
                "share": right / len(judged) if judged else None,
                "low": bounds.low if bounds else None,
                "high": bounds.high if bounds else None,
            }
        )
    return rows


def caught(trials: Sequence[Trial], *, good: bool = False) -> float | None:
    """Share of the bad variants that failed (or of the ``good`` ones that were wrongly failed); None without any."""
    failed = [not trial.passed for trial in trials if trial.good is good and trial.passed is not None]
    return sum(failed) / len(failed) if failed else None
