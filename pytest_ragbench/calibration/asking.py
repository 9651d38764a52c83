"""The judge asked again, about what people have labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.metrics.formulas.verdicts import share
from pytest_ragbench.metrics.registry import Metric
from pytest_ragbench.metrics.steps import verdicts_of, verify
from pytest_ragbench.metrics.tools import Tools, Verdicts
from pytest_ragbench.model.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import Context, Prepared, ScoreRequest, prepare, score_all
from pytest_ragbench.settings import Settings

DEFAULT_THRESHOLD = ">=0.5"
"""For the whole score of a label that names no threshold."""


def check_labels(
    labels: Sequence[Label], judge: Judge, verdicts: Verdicts | None = None, settings: Settings | None = None
) -> None:
    """Refuse labels that can't be asked again, before any call.

    Parameters
    ----------
    verdicts
        How they are to be asked; None: as configured.
    settings
        Of the run; None: the defaults.

    Raises
    ------
    UsageError
        Naming the label: no texts, an unknown metric, a task that the judge can't do.
    """
    # Of the judge, before it is said of each label.
    if judge.tasks is not None and "verify_claims" not in judge.tasks:
        raise UsageError(f"the judge {judge.name!r} verifies no claims")
    if verdicts == "probability" and not getattr(judge, "probabilities", False):
        raise UsageError(
            f"the judge {judge.name!r} does not tell how probable its words are; ask a provider's model or a gguf "
            "file, or ask for JSON verdicts"
        )
    context = label_context(judge, settings)
    for label in labels:
        if label.claim is not None and label.contexts is None:
            raise UsageError(f"label {label.name}: there are no contexts to verify the claim against")
        try:
            prepare_label(context, label, asking_options(verdicts))
        except UsageError as error:
            raise UsageError(f"label {label.name}: {error}") from None


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
    verdicts: Verdicts | None = None,
    yes_from: float = 0.5,
    fresh: bool = False,
    settings: Settings | None = None,
) -> list[Label]:
    """The labels with what ``judge`` says now: as a run would score them, with its votes and panel.

    A verdict is None where the judge failed. By probability a claim has a value, too: P(yes).

    Parameters
    ----------
    repeat
        Above 0: by calls of their own, past what is stored.
    verdicts, yes_from
        How verdicts are asked for; None: as configured.
    fresh
        Asked in this run, whatever earlier ones stored.
    settings
        Of the run; None: the defaults (one vote).
    """
    context = label_context(judge, settings)
    options = asking_options(verdicts, yes_from)
    prepared = [prepare_label(context, label, options, repeat=repeat, fresh=fresh) for label in labels]
    outcomes = await score_all(prepared)
    return [
        _with_verdict(label, each, outcome, judge)
        for label, each, outcome in zip(labels, prepared, outcomes, strict=True)
    ]


def prepare_label(
    context: Context, label: Label, options: Mapping[str, Any], *, repeat: int = 0, fresh: bool = False
) -> Prepared:
    """The label as a request that has passed all checks.

    Raises
    ------
    UsageError
        It can't be asked again.
    """
    request = ScoreRequest(
        metric=label.metric if label.claim is None else claims_metric(label.metric, [label.claim]),
        sample=sample_of(label),
        options=options,
        threshold=DEFAULT_THRESHOLD if label.claim is not None else label.threshold or DEFAULT_THRESHOLD,
        repeat=repeat,
        fresh=fresh,
    )
    return prepare(context, request)


def label_context(judge: Judge, settings: Settings | None) -> Context:
    """Where scoring finds the judge; there is no embedder, and no engine but the judge's."""
    # A label carries all that was judged: only a metric that embeds would need more.
    chosen = settings or Settings()

    def absent() -> Any:
        raise UsageError("a metric that needs an embedder can't be calibrated here")

    return Context(settings=lambda: chosen, engine=absent, judge=lambda: judge, embedder=absent)


def asking_options(verdicts: Verdicts | None, yes_from: float = 0.5) -> dict[str, Any]:
    """The options of a request for verdicts in this way; None: as configured."""
    if verdicts is None:
        return {}
    return {"verdicts": verdicts} | ({"yes_from": yes_from} if verdicts == "probability" else {})


def claims_metric(name: str, claims: Sequence[str]) -> Metric:
    """The share of these claims that the chunks support, as a metric of the name under which it is configured."""
    return Metric(
        name=name, compute=_verify_claims, tier="generation", needs=("contexts",), tasks=("verify_claims",),
        without_contexts=None, options={"claims": tuple(claims)},
    )  # fmt: skip


async def _verify_claims(sample: RagSample, tools: Tools, *, claims: tuple[str, ...] = ()) -> Score:
    findings = await verify(tools, claims, sample.contexts or (), sample.question)
    # Of verdicts also where P(yes) is known: people say yes or no, and are compared with that.
    value = share(verdicts_of(findings))
    return tools.score(sample, value, reason=findings[0].reason, evidence=findings)


def _with_verdict(label: Label, prepared: Prepared, outcome: Score | Exception, judge: Judge) -> Label:
    changes: dict[str, Any] = {"judge": judge.name, "verdict": None, "value": None, "reason": ""}
    match outcome:
        case Score():
            assert prepared.limit is not None
            changes["verdict"] = prepared.limit.met(outcome.value)
            changes["reason"] = outcome.error_message or outcome.reason
            if label.claim is None:
                changes["value"] = outcome.value
            elif outcome.evidence:
                changes["value"] = outcome.evidence[0].value
        # Nothing to judge, so nothing to say of the judge.
        case UndefinedScore():
            pass
        case Unscored():
            changes["reason"] = str(outcome).partition("\n")[0]
        case _:
            raise outcome
    return label.model_copy(update=changes)
