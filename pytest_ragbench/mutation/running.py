"""Variants, scored by the judge that scored the originals."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_ragbench.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.gates.intervals import wilson
from pytest_ragbench.metrics.registry import find
from pytest_ragbench.metrics.scoring import check, check_judge, compute
from pytest_ragbench.mutation.rules import KINDS, Variant, variants, without_chunks
from pytest_ragbench.samples import RagSample
from pytest_ragbench.thresholds import Threshold, parse_threshold

if TYPE_CHECKING:
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.report.reading import Report

_CHUNK_KINDS = ("chunks_reversed", "other_contexts", "without_support")


@dataclass(frozen=True, slots=True)
class Trial:
    """A variant, and what became of it. ``passed`` is None where there is no score."""

    variant: Variant
    threshold: Threshold
    value: float | None
    passed: bool | None
    reason: str

    @property
    def survived(self) -> bool:
        """Bad, and passed; or good, and failed."""
        return self.passed is not None and self.passed != self.variant.good


def originals(
    report: Report, name: str, threshold: str | None
) -> list[tuple[RagSample, Threshold, list[int]]]:
    """The samples that passed, with their threshold and the chunks that their answers rest on.

    ``threshold`` wins over those of the report. UsageError where no sample passed, or there is no threshold.
    """
    metric = find(name)
    if metric.of == "set" or "answer" not in metric.needs or not metric.tasks:
        raise UsageError(f"{name} judges no answer, so changing answers says nothing about it")
    found: dict[tuple[str, str], tuple[RagSample, Threshold, list[int]]] = {}
    for result in report.results:
        for score in result.scores:
            told = result.sample_of(score)
            limit = threshold or score.threshold
            if score.metric != name or score.value is None or told is None or not (told.answer or "").strip():
                continue
            if limit is None:
                raise UsageError(f"the report has no threshold for {name}: give --threshold '>=0.8'")
            parsed = parse_threshold(limit, metric.scale)
            if parsed.met(score.value):
                sample = RagSample(
                    told.question,
                    told.answer,
                    told.contexts,
                    reference=told.reference,
                    id=told.id,
                    lang=told.lang,
                )
                resting = [
                    finding.chunk for finding in score.evidence if finding.ok and finding.chunk is not None
                ]
                found.setdefault((told.question, told.answer or ""), (sample, parsed, resting))
    if not found:
        raise UsageError(f"no answer of the report passed {name}, so there is nothing to make worse")
    return list(found.values())


def variants_of(
    passed: Sequence[tuple[RagSample, Threshold, list[int]]], name: str
) -> list[tuple[Variant, Threshold]]:
    """All variants of all originals; none of the chunks for a metric that does not look at them."""
    samples = [sample for sample, _, _ in passed]
    made: list[tuple[Variant, Threshold]] = []
    for place, (sample, limit, resting) in enumerate(passed):
        others = [*samples[place + 1 :], *samples[:place]]
        own = variants(sample, others)
        if resting and (less := without_chunks(sample, resting)) is not None:
            own.append(less)
        looks = "contexts" in find(name).needs
        made += [(each, limit) for each in own if looks or each.kind not in _CHUNK_KINDS]
    return made


async def try_out(
    made: Sequence[tuple[Variant, Threshold]],
    name: str,
    judge: Judge,
    options: Mapping[str, Any] | None = None,
) -> list[Trial]:
    """Each variant scored; UsageError, before any call, where the judge or the samples can't serve."""
    options = options or {}
    metrics = [check(name, variant.sample, options) for variant, _ in made]
    for metric in metrics[:1]:
        check_judge(metric, judge)

    async def one(place: int) -> Trial:
        variant, limit = made[place]
        try:
            score = await compute(metrics[place], variant.sample, judge=judge, embedder=None, options=options)
        except UndefinedScore as error:
            return Trial(variant, limit, None, None, f"undefined: {error}")
        except Unscored as error:
            return Trial(variant, limit, None, None, str(error).partition("\n")[0])
        return Trial(variant, limit, score.value, limit.met(score.value), score.error_message or score.reason)

    return list(await asyncio.gather(*(one(place) for place in range(len(made)))))


def summary(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Of each kind: how many were judged, and the share that was judged rightly, with a 95 % interval."""
    rows = []
    for kind, good in KINDS.items():
        of_kind = [trial for trial in trials if trial.variant.kind == kind]
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
