"""The judge asked again, about what people have labelled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.judge.tasks import VerifyClaims
from pytest_ragbench.metrics.scoring import check, check_judge, compute, needs_embedder
from pytest_ragbench.metrics.tools import Tools, Verdicts
from pytest_ragbench.model.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.thresholds import parse_threshold

DEFAULT = ">=0.5"
"""For the whole score of a label that names no threshold."""


def check_labels(labels: Sequence[Label], judge: Judge, verdicts: Verdicts = "json") -> None:
    """Refuse labels that can't be asked again, before any call. ``verdicts``: how.

    Raises
    ------
    UsageError
        Naming the label: no texts, an unknown metric, a task that the judge can't do.
    """
    if judge.tasks is not None and "verify_claims" not in judge.tasks:
        raise UsageError(f"the judge {judge.name!r} verifies no claims")
    if verdicts == "probability" and not getattr(judge, "probabilities", False):
        raise UsageError(
            f"the judge {judge.name!r} does not tell how probable its words are; ask a provider's model or a gguf "
            "file, or ask for JSON verdicts"
        )
    for label in labels:
        if label.claim is not None:
            if label.contexts is None:
                raise UsageError(f"label {label.name}: there are no contexts to verify the claim against")
            continue
        metric = check(label.metric, sample_of(label), _options(verdicts))
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


async def ask_again(
    labels: Sequence[Label],
    judge: Judge,
    *,
    repeat: int = 0,
    verdicts: Verdicts = "json",
    yes_from: float = 0.5,
    fresh: bool = False,
) -> list[Label]:
    """The labels with what ``judge`` says now. ``repeat`` above 0: by calls of their own, past what is stored.
    ``fresh``: asked in this run, whatever earlier ones stored.

    A verdict is None where the judge failed. By probability a claim has a value, too: P(yes).
    """
    return list(
        await asyncio.gather(*(_one(label, judge, repeat, verdicts, yes_from, fresh) for label in labels))
    )


def _options(verdicts: Verdicts, yes_from: float = 0.5) -> dict[str, Any]:
    return {} if verdicts == "json" else {"verdicts": verdicts, "yes_from": yes_from}


async def _one(
    label: Label, judge: Judge, repeat: int, verdicts: Verdicts, yes_from: float, fresh: bool
) -> Label:
    changes: dict[str, Any] = {"judge": judge.name, "verdict": None, "value": None, "reason": ""}
    try:
        if label.claim is not None:
            task = VerifyClaims((label.claim,), label.contexts or (), label.question or "")
            tools = Tools(label.metric, judge, None, repeat=repeat, fresh=fresh, lang=label.lang)
            tools.verdicts, tools.yes_from = verdicts, yes_from
            [verdict] = (await tools.ask(task)).in_order()
            changes |= {"verdict": verdict.verdict, "value": verdict.probability, "reason": verdict.reason}
        else:
            sample = sample_of(label)
            options = _options(verdicts, yes_from)
            metric = check(label.metric, sample, options)
            tools = Tools(metric.name, judge, None, repeat=repeat, fresh=fresh)
            score = await compute(metric, sample, judge=judge, embedder=None, options=options, tools=tools)
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
