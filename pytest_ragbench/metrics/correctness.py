"""Metrics that compare the answer with a reference, claim by claim, and find what led it astray."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_ragbench.judge.tasks import CompareClaims, Fineness
from pytest_ragbench.metrics import formulas
from pytest_ragbench.metrics.formulas import verdicts
from pytest_ragbench.metrics.registry import metric, named
from pytest_ragbench.metrics.steps import (
    contexts_of,
    first_fault,
    no_reference_claims,
    split,
    verdicts_of,
    verify,
)
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.text import is_blank


def _check_beta(name: str, options: Mapping[str, Any]) -> None:
    # 0 would be precision alone, which factual_correctness has a mode for.
    beta = options.get("beta", 1.0)
    if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not 0 < beta < float("inf"):
        raise UsageError(f"{name}: beta must be a finite number above 0, got {beta!r}")


# --- answer correctness ------------------------------------------------------------------------

Weights = tuple[float, float]


def _adapt_correctness(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    _check_beta("answer_correctness", options)
    weights = options.get("weights", (0.75, 0.25))
    try:
        factual, similarity = (float(weight) for weight in weights)
        valid = min(factual, similarity) >= 0 and 0 < factual + similarity < float("inf")
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise UsageError(
            "answer_correctness: weights must be two numbers, not negative and not both 0, "
            f"of the claims and of the similarity; got {weights!r}"
        )
    # Without weight for the claims only the embedder is asked.
    if factual == 0:
        return {"tasks": (), "embedder": True}
    return {"embedder": similarity > 0}


@metric(
    "answer_correctness",
    tier="end_to_end",
    needs=("question", "answer", "reference"),
    tasks=("split_claims", "compare_claims"),
    embedder=True,
    low=-1.0,
    adapt=_adapt_correctness,
)
async def answer_correctness(
    sample: RagSample,
    tools: Tools,
    *,
    mode: Literal["classify", "bidirectional"] = "classify",
    weights: Weights = (0.75, 0.25),
    beta: float = 1.0,
) -> Score:
    """How far answer and reference make the same claims, weighted with the similarity of the two.

    ``(w_f·F + w_s·cos) / (w_f + w_s)``. Three judge calls: the claims of the answer, those of the
    reference (stored), and a verdict on each: a claim of the answer that the reference makes, too, is a
    TP, any other an FP; a claim of the reference that the answer lacks is an FN. Range 0..1, except for a
    negative cosine. Source: RAGAS' answer correctness.

    Parameters
    ----------
    mode
        ``"classify"``: ``F = (1+b²)TP / ((1+b²)TP + b²FN + FP)``, as RAGAS. ``"bidirectional"``: F of
        precision (over the answer's claims) and recall (over the reference's), each counted on its side.
    weights
        Of F and of the similarity; with a similarity weight of 0 nothing is embedded.
    beta
        Above 1 recall weighs more, below 1 precision.
    """
    answer, reference = sample.answer or "", sample.reference or ""
    # As declared in _adapt_correctness: no claims are needed.
    if float(weights[0]) == 0:
        cosine = await _similarity(tools, answer, reference)
        return tools.score(sample, cosine, reason="similarity only", similarity=cosine)
    claims, wanted = await asyncio.gather(
        split(tools, answer, sample.question), split(tools, reference, sample.question)
    )
    if not wanted:
        raise no_reference_claims("answer_correctness")
    if not claims:
        # An answer that claims nothing misses every claim of the reference: F = 0, without a call.
        missed = [Finding(claim, False, "not in the answer") for claim in wanted]
        return tools.score(
            sample, 0.0, reason="no claims in the answer", evidence=missed, tp=0, fp=0, fn=len(wanted), f=0.0
        )
    reply = await tools.ask(CompareClaims(claims, wanted, sample.question))
    found = [item.verdict for item in reply.in_order()]
    ours, theirs = found[: len(claims)], found[len(claims) :]
    # TP are claims of the answer, as in RAGAS: the reference may say one of them in two claims.
    tp, fp, fn = sum(ours), len(ours) - sum(ours), len(theirs) - sum(theirs)
    if mode == "classify":
        factual = verdicts.f_beta(tp, fp, fn, beta)
    else:
        factual = verdicts.factual_correctness(ours, theirs, "f1", beta).value
    cosine_or_none = await _similarity(tools, answer, reference) if float(weights[1]) > 0 else None
    value = verdicts.weighted_mean(factual, cosine_or_none, (float(weights[0]), float(weights[1])))
    # One list for both sides, so that a reader sees what was added and what is missing.
    titles = [*(f"answer: {claim}" for claim in claims), *(f"reference: {claim}" for claim in wanted)]
    findings = [
        Finding(title, item.verdict, item.reason, None, item.probability)
        for title, item in zip(titles, reply.in_order(), strict=True)
    ]
    parts: dict[str, Any] = {} if cosine_or_none is None else {"similarity": cosine_or_none}
    return tools.score(
        sample, value, reason=_compared(findings, ours, theirs, cosine_or_none), evidence=findings,
        tp=tp, fp=fp, fn=fn, f=factual, mode=mode, **parts,
    )  # fmt: skip


def _compared(
    findings: Sequence[Finding], ours: Sequence[bool], theirs: Sequence[bool], cosine: float | None
) -> str:
    """The first fault, then what was compared: a low value may be due to a reference that says less, or more."""
    fault = first_fault(findings, "on one side only")
    parts = [fault] if fault else []
    parts.append(
        f"{sum(ours)} of {len(ours)} claim{'s' * (len(ours) != 1)} of the answer in the reference, "
        f"{sum(theirs)} of {len(theirs)} of the reference in the answer"
    )
    parts += [] if cosine is None else [f"similarity {cosine:.2f}"]
    return "; ".join(parts)


async def _similarity(tools: Tools, answer: str, reference: str) -> float:
    matrix = await tools.embed([answer, reference])
    return formulas.cosine(matrix[0], matrix[1])


# --- factual correctness -----------------------------------------------------------------------


def _adapt_factual(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    _check_beta("factual_correctness", options)
    return {}


@metric(
    "factual_correctness",
    tier="end_to_end",
    needs=("answer", "reference"),
    tasks=("split_claims", "verify_claims"),
    adapt=_adapt_factual,
)
async def factual_correctness(
    sample: RagSample,
    tools: Tools,
    *,
    mode: Literal["f1", "precision", "recall"] = "f1",
    beta: float = 1.0,
    atomicity: Fineness = "high",
    claim_coverage: Fineness = "high",
) -> Score:
    """How far answer and reference support each other's claims: F of precision and recall.

    ``P = supported claims of the answer / its claims``, ``R = covered claims of the reference / its
    claims``, F_beta of the two; range 0..1. Four judge calls (the split of the reference is stored),
    two for ``mode="precision"`` or ``"recall"``. Source: RAGAS' factual correctness, with recall counted
    over the reference's own claims.

    Parameters
    ----------
    atomicity
        ``"low"``: coarser claims, the facts of one sentence in one claim. The local judge ignores it.
    claim_coverage
        ``"low"``: only the claims that matter for the question.
    """
    answer, reference, question = sample.answer or "", sample.reference or "", sample.question

    async def precision() -> list[Finding]:
        claims = await split(tools, answer, question, atomicity, claim_coverage)
        return await verify(tools, claims, (reference,), question, "reference")

    async def recall() -> list[Finding]:
        claims = await split(tools, reference, question, atomicity, claim_coverage)
        if not claims:
            raise no_reference_claims("factual_correctness")
        return await verify(tools, claims, (answer,), question, "answer")

    ours: list[Finding] = []
    theirs: list[Finding] = []
    # Both directions at once: their calls don't depend on each other.
    if mode == "f1":
        ours, theirs = await asyncio.gather(precision(), recall())
    elif mode == "precision":
        ours = await precision()
    else:
        theirs = await recall()
    result = verdicts.factual_correctness(verdicts_of(ours), verdicts_of(theirs), mode, beta)
    findings = [replace(item, text=f"answer: {item.text}", chunk=None) for item in ours]
    # Whatever a judge says of an answer that claims nothing, it makes none of the reference's claims.
    claims_nothing = mode == "f1" and not ours
    findings += [
        replace(
            item,
            text=f"reference: {item.text}",
            chunk=None,
            reason="not in the answer" if claims_nothing else item.reason,
        )
        for item in theirs
    ]
    parts: dict[str, Any] = {"precision": result.precision, "recall": result.recall}
    return tools.score(
        sample, result.value,
        reason="no claims in the answer" if mode != "recall" and not ours else first_fault(findings),
        evidence=findings, **{name: part for name, part in parts.items() if part is not None},
    )  # fmt: skip


# --- noise sensitivity -------------------------------------------------------------------------

NoiseMode = Literal["relevant", "irrelevant", "hallucination"]


@metric(
    "noise_sensitivity",
    tier="generation",
    needs=("question", "answer", "reference", "contexts"),
    tasks=("split_claims", "verify_claims"),
    direction="lower",
    without_contexts=None,
)
async def noise_sensitivity(sample: RagSample, tools: Tools, *, mode: NoiseMode = "relevant") -> Score:
    """Share of the answer's claims that are wrong and come from relevant chunks. Lower is better.

    A claim is wrong where the reference does not support it; a chunk is relevant where it supports a
    claim of the reference. ``details`` holds all three parts: ``relevant`` (wrong, and a relevant chunk
    says so), ``irrelevant`` (wrong, and only other chunks say so) and ``hallucination`` (wrong, and no
    chunk says so); they add up to the share of wrong claims. Range 0..1. Source: RAGAS' noise sensitivity.

    ``n + 3`` judge calls for n chunks: two splits (that of the reference is stored), one for the answer's
    claims against the reference, and one for each chunk with the claims of both sides; 3 where no claim is
    wrong.

    Parameters
    ----------
    mode
        Which part is the value.
    """
    claims, wanted = await asyncio.gather(
        split(tools, sample.answer or "", sample.question),
        split(tools, sample.reference or "", sample.question),
    )
    if not wanted:
        raise UsageError(
            # Not undefined but a usage error: people wrote the reference, and can mend it.
            f"{tools.metric} for sample {sample.label}: the reference has no claims that could be checked; "
            "write down what the right answer says"
        )
    if not claims:
        raise UndefinedScore(f"{tools.metric} is undefined: no claims in the answer", code="no_claims")
    # First against the reference: chunks matter only for claims that are wrong.
    right = await verify(tools, claims, (sample.reference or "",), sample.question, "reference")
    ok = verdicts_of(right)
    wrong = [place for place, good in enumerate(ok) if not good]
    chunks = [chunk for chunk in contexts_of(sample) if not is_blank(chunk)] if wrong else []
    asked = (*wanted, *(claims[place] for place in wrong))
    columns = [
        verdicts_of(column)
        for column in await asyncio.gather(
            *(verify(tools, asked, (chunk,), sample.question) for chunk in chunks)
        )
    ]
    by_reference = [[column[row] for column in columns] for row in range(len(wanted))]
    # Chunks are asked about wrong claims only: what right ones rest on does not change the value.
    by_answer = [[False] * len(columns) for _ in claims]
    for row, place in enumerate(wrong, len(wanted)):
        by_answer[place] = [column[row] for column in columns]
    parts = verdicts.noise_sensitivity(by_reference, by_answer, ok)
    # As in the formula; here to say of each claim where it comes from.
    relevant = [any(column[: len(wanted)]) for column in columns]
    sources: list[NoiseMode | None] = [
        None if item.ok else _source(by_answer[place], relevant) for place, item in enumerate(right)
    ]
    findings = [
        replace(item, chunk=None, reason=item.reason if source is None else _SAID_BY[source])
        for item, source in zip(right, sources, strict=True)
    ]
    # Of the claims that count here: others may be wrong as well, and say nothing of this value.
    counted = [item for item, source in zip(findings, sources, strict=True) if source == mode]
    return tools.score(
        sample, getattr(parts, mode), reason=first_fault(counted), evidence=findings,
        mode=mode, n_claims=len(claims), **parts._asdict(),
    )  # fmt: skip


_SAID_BY: Mapping[NoiseMode, str] = {
    "relevant": "not in the reference; a relevant chunk says it",
    "irrelevant": "not in the reference; only an irrelevant chunk says it",
    "hallucination": "neither in the reference nor in any chunk",
}


def _source(said: list[bool], relevant: list[bool]) -> NoiseMode:
    """Where a claim comes from that the reference does not make."""
    if any(there and good for there, good in zip(said, relevant, strict=True)):
        return "relevant"
    return "irrelevant" if any(said) else "hallucination"


named(
    "noise_sensitivity_irrelevant",
    "noise_sensitivity",
    {
        "about": "Share of the answer's claims that are wrong and come from irrelevant chunks only. Lower is better."
    },
    mode="irrelevant",
)
named(
    "hallucination",
    "noise_sensitivity",
    {
        "about": "Share of the answer's claims invented: neither in the reference nor in any chunk. Lower is better."
    },
    mode="hallucination",
)
