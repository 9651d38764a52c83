"""The judge asked again, about what people have labelled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.judge.base import Judge, again
from pytest_ragbench.judge.tasks import VerifyClaims
from pytest_ragbench.metrics.scoring import check, check_judge, compute, needs_embedder
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.samples import RagSample
from pytest_ragbench.thresholds import parse_threshold

DEFAULT = ">=0.5"
"""For the whole score of a label that names no threshold."""


def check_labels(labels: Sequence[Label], judge: Judge) -> None:
    """Refuse labels that can't be asked again, before any call.

    Raises
    ------
    UsageError
        Naming the label: no texts, an unknown metric, a task that the judge can't do.
    """
    if judge.tasks is not None and "verify_claims" not in judge.tasks:
        raise UsageError(f"the judge {judge.name!r} verifies no claims")
    for label in labels:
        if label.claim is not None:
            if label.contexts is None:
                raise UsageError(f"label {label.name}: there are no contexts to verify the claim against")
            continue
        metric = check(label.metric, sample_of(label), {})
        check_judge(metric, judge)
        if needs_embedder(metric, sample_of(label)):
            raise UsageError(
                f"label {label.name}: {label.metric} needs an embedder; it can't be calibrated here"
            )


def sample_of(label: Label) -> RagSample:
    """What was judged."""
    return RagSample(
        label.question or "",
        label.answer,
        label.contexts,
        reference=label.reference,
        id=label.question_id,
        lang=label.lang,
    )


async def ask_again(labels: Sequence[Label], judge: Judge, *, repeat: int = 0) -> list[Label]:
    """The labels with what ``judge`` says now. ``repeat`` above 0: by calls of their own, past what is stored.

    A verdict is None where the judge failed.
    """
    return list(await asyncio.gather(*(_one(label, judge, repeat) for label in labels)))


async def _one(label: Label, judge: Judge, repeat: int) -> Label:
    changes: dict[str, Any] = {"judge": judge.name, "verdict": None, "value": None, "reason": ""}
    try:
        if label.claim is not None:
            task = VerifyClaims((label.claim,), label.contexts or (), label.question or "")
            reply = (await judge.ask(again(task, 1000 * repeat) if repeat else task)).reply
            [verdict] = reply.in_order()
            changes |= {"verdict": verdict.verdict, "reason": verdict.reason}
        else:
            sample = sample_of(label)
            metric = check(label.metric, sample, {})
            tools = Tools(metric.name, judge, None, repeat=repeat)
            score = await compute(metric, sample, judge=judge, embedder=None, options={}, tools=tools)
            limit = parse_threshold(label.threshold or DEFAULT, metric.scale)
            changes |= {
                "verdict": limit.met(score.value),
                "value": score.value,
                "reason": score.error_message or score.reason,
            }
    except UndefinedScore:
        pass
    except Unscored as error:
        changes["reason"] = str(error).partition("\n")[0]
    return label.model_copy(update=changes)
