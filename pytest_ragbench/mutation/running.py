"""Variants, scored as the originals were: by the same judge, with the same votes and thresholds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_ragbench.gates.intervals import wilson
from pytest_ragbench.gates.observations import fingerprint
from pytest_ragbench.gates.rules import GRADES
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.metrics.scoring import check, check_judge, needs_judge
from pytest_ragbench.model.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.thresholds import Scale, Threshold, parse_threshold
from pytest_ragbench.mutation.rules import KINDS, Variant, rankings, variants, without_chunks

if TYPE_CHECKING:
    from pytest_ragbench.embeddings import Embedder
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.model.scores import Score
    from pytest_ragbench.report.reading import Report

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
    options: Mapping[str, Any] = field(default_factory=dict)
    judge: Judge | None = None
    embedder: Embedder | None = None
    votes: int = 1


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
    def of(cls, told: Mapping[str, Any]) -> Trial:
        return cls(**{**told, "key": tuple(told["key"])})


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


def originals(report: Report, name: str, threshold: str | None) -> list[Original]:
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
            told = result.sample_of(score)
            if score.metric != name or score.value is None or told is None:
                continue
            if "answer" in metric.needs and not (told.answer or "").strip():
                continue
            if (limit := threshold or score.threshold) is None:
                raise UsageError(f"the report has no threshold for {name}: give --threshold '>=0.8'")
            parsed = parse_threshold(limit, scale)
            if parsed.met(score.value):
                resting = [each.chunk for each in score.evidence if each.ok and each.chunk is not None]
                key = (told.question, told.answer or "", told.context_ids or told.contexts or ())
                found.setdefault(
                    key, Original(name, _sample(told), parsed, tuple(resting), metric.name, part)
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


def _sample(told: Any) -> RagSample:
    return RagSample(**{name: getattr(told, name) for name in _COLUMNS})


def original_of(
    metric: Metric,
    sample: RagSample,
    threshold: Threshold,
    score: Score,
    *,
    part: str | None = None,
    **how: Any,
) -> Original | None:
    """A score that was just given to a test, kept to be tried; None where no variant says anything of it."""
    if not kinds_for(metric):
        return None
    resting = tuple(each.chunk for each in score.evidence if each.ok and each.chunk is not None)
    name = f"{metric.name}_{part}" if part else metric.name
    return Original(name, sample, threshold, resting, metric.name, part, **how)


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


def check_trials(made: Sequence[tuple[Original, Variant]]) -> None:
    """UsageError, before any call, where judge or samples can't serve."""
    for original, variant in made:
        metric = check(original.metric, variant.sample, original.options)
        if original.judge is not None and needs_judge(metric, variant.sample):
            check_judge(metric, original.judge)


async def try_out(made: Sequence[tuple[Original, Variant]]) -> list[Trial]:
    """Each variant scored, all at once; one that gets no score is a trial without a verdict."""
    from pytest_ragbench.metrics.voting import decide

    check_trials(made)

    asked: dict[tuple[str, int, str, bool], asyncio.Future[Score]] = {}

    def scored(original: Original, variant: Variant) -> asyncio.Future[Score]:
        """Grades of one metric come from one call."""
        key = (original.metric, id(original.sample), variant.kind, original.part is None)
        if key not in asked:
            metric = check(original.metric, variant.sample, original.options)
            asked[key] = asyncio.ensure_future(
                decide(
                    metric,
                    variant.sample,
                    judge=original.judge,
                    embedder=original.embedder,
                    options=original.options,
                    limit=original.threshold if original.part is None else None,
                    votes=original.votes,
                )
            )
        return asked[key]

    async def one(original: Original, variant: Variant) -> Trial:
        limit = original.threshold
        try:
            score = await scored(original, variant)
        except UndefinedScore as error:
            return _trial(original, variant, None, None, f"undefined: {error}")
        except Unscored as error:
            return _trial(original, variant, None, None, str(error).partition("\n")[0])
        value = score.value if original.part is None else score.details.get(original.part, score.value)
        return _trial(original, variant, value, limit.met(value), score.error_message or score.reason)

    return list(await asyncio.gather(*(one(original, variant) for original, variant in made)))


def _trial(
    original: Original, variant: Variant, value: float | None, passed: bool | None, reason: str
) -> Trial:
    sample = original.sample
    return Trial(
        metric=original.name,
        kind=variant.kind,
        good=variant.good,
        key=(sample.label, fingerprint(sample.question)),
        change=variant.change,
        question=sample.question,
        answer=variant.sample.answer,
        threshold=original.threshold.text,
        value=None if value is None else float(value),
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
