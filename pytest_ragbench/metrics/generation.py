"""Judged metrics of the generated answer: is it supported, is it on the topic, is it an answer at all?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pytest_ragbench.judge.tasks import (
    CheckAbstention,
    GradeFaithfulness,
    GradeRelevance,
    VerifyClaims,
    WriteQuestions,
    WrittenQuestion,
)
from pytest_ragbench.metrics import formulas
from pytest_ragbench.metrics.formulas import verdicts
from pytest_ragbench.metrics.registry import metric
from pytest_ragbench.metrics.steps import first_fault, share_of, split_in_parts, unsure_of, verify
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import JudgeError, UndefinedScore, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.text import is_blank

Verifier = Literal["judge", "local"] | Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Who checks claims: the judge, the embedded local judge, or a function of claims and chunks that returns the
probability of each claim that the chunks support it, in 0..1."""


def _adapt_faithfulness(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    return {} if options.get("verifier", "judge") == "judge" else {"tasks": ("split_claims",)}


@metric(
    "faithfulness",
    tier="generation",
    needs=("question", "answer", "contexts"),
    tasks=("split_claims", "verify_claims"),
    without_contexts=None,
    adapt=_adapt_faithfulness,
)
async def faithfulness(
    sample: RagSample,
    tools: Tools,
    *,
    on_no_claims: float | None = None,
    verifier: Verifier = "judge",
) -> Score:
    """Share of the answer's claims that the retrieved chunks support.

    ``supported claims / claims``, range 0..1; of graded verdicts (the local judge's, or ``verdicts =
    "probability"``) the mean of their probabilities. Two judge calls: one splits the answer into claims, one
    gives a verdict on each against all chunks together. Source: Es et al. 2023 (RAGAS).

    Parameters
    ----------
    on_no_claims
        The value for an answer that claims nothing, such as a refusal. By default such a sample has no
        faithfulness: UndefinedScore with code "no_claims".
    verifier
        ``"judge"``; ``"local"``: the embedded local judge gives the verdicts, which saves one judge call;
        or your own NLI model, a function of claims and chunks that returns a probability for each claim:
        above 0.5 it is supported.
    """
    claims, others = await split_in_parts(tools, sample.answer or "", sample.question)
    if not claims:
        if on_no_claims is None:
            raise UndefinedScore(
                "faithfulness is undefined: no statements (claims) in the answer. Check a refusal with "
                "assert_abstains, or give on_no_claims=value",
                code="no_claims",
            )
        return tools.score(sample, on_no_claims, reason="no claims in the answer", evidence=others)
    contexts = tuple(sample.contexts or ())
    # Claims without any chunk are unsupported; no judge is needed to see that.
    if all(map(is_blank, contexts)):
        findings = [Finding(claim, False, "no chunk was retrieved") for claim in claims]
        return tools.score(sample, 0.0, reason="no contexts retrieved", evidence=[*findings, *others])
    findings = await _verified(tools, claims, contexts, sample.question, verifier)
    graded = tools.graded_by_default if verifier == "judge" else verifier == "local"
    value = share_of(findings, graded=graded)
    return tools.score(
        sample, value, reason=first_fault(findings), evidence=[*findings, *others],
        n_claims=len(claims), verifier=verifier if isinstance(verifier, str) else "own",
        **(unsure_of(findings) if graded else {}),
    )  # fmt: skip


async def _verified(
    tools: Tools, claims: tuple[str, ...], contexts: tuple[str, ...], question: str, verifier: Verifier
) -> list[Finding]:
    if verifier == "judge":
        return await verify(tools, claims, contexts, question)
    if verifier == "local":
        from pytest_ragbench.judge.local_judge import local_judge

        answered = await local_judge().ask(VerifyClaims(claims, contexts, question))
        return [
            Finding(claim, verdict.verdict, verdict.reason, verdict.chunk, verdict.probability)
            for claim, verdict in zip(claims, answered.reply.in_order(), strict=True)
        ]
    assert callable(verifier)
    # In a thread: a model of the user's may take seconds and must not hold up other calls.
    chances = [float(chance) for chance in await asyncio.to_thread(verifier, claims, contexts)]
    if len(chances) != len(claims) or not all(0 <= chance <= 1 for chance in chances):
        raise JudgeError(
            f"the verifier must return one probability in 0..1 for each of {len(claims)} claims, got {chances!r:.200}",
            code="verdict_count_mismatch",
        )
    return [Finding(claim, chance > 0.5, value=chance) for claim, chance in zip(claims, chances, strict=True)]


@metric(
    "faithfulness_holistic",
    tier="generation",
    needs=("question", "answer", "contexts"),
    tasks=("grade_faithfulness",),
)
async def faithfulness_holistic(sample: RagSample, tools: Tools) -> Score:
    """How much of the answer the chunks support, as one grade in 0..1.

    One judge call. Coarser than :func:`faithfulness`. A grade of this package, without a published formula.
    """
    reply = await tools.ask(
        GradeFaithfulness(sample.question, sample.answer or "", tuple(sample.contexts or ()))
    )
    return tools.score(sample, reply.grade, reason=reply.reason)


@metric(
    "answer_relevancy_holistic", tier="generation", needs=("question", "answer"), tasks=("grade_relevance",)
)
async def answer_relevancy_holistic(sample: RagSample, tools: Tools) -> Score:
    """How well the answer addresses the question, true or not, as one grade in 0..1.

    One judge call. A grade of this package, without a published formula.
    """
    reply = await tools.ask(GradeRelevance(sample.question, sample.answer or ""))
    return tools.score(sample, reply.grade, reason=reply.reason)


@metric(
    "answer_relevancy",
    tier="generation",
    needs=("question", "answer"),
    tasks=("write_questions|grade_relevance",),
    embedder=True,
    low=-1.0,
)
async def answer_relevancy(
    sample: RagSample,
    tools: Tools,
    *,
    strictness: int = 3,
    noncommittal: Literal["all", "any", "majority"] = "all",
) -> Score:
    """How close the question is to questions that the answer would answer (mean cosine).

    ``mean(cos(e(q_i), e(question)))``, 0 where the answer is evasive; range -1..1. One judge call writes
    ``strictness`` distinct questions, each flagged as noncommittal or not. The metric sees whether the
    answer is on the topic, not whether it is true; its level depends on the embedding model.
    Source: Es et al. 2023 (RAGAS).

    A judge that can't write questions (the local one) grades the relevance itself, in 0..1;
    ``details["method"]`` says which was done.

    Parameters
    ----------
    strictness
        How many questions are written, 1 or more.
    noncommittal
        How many of them must be flagged for the answer to be evasive: ``"all"``, ``"any"``, or the
        ``"majority"``.
    """
    if strictness < 1:
        raise UsageError(f"answer_relevancy: strictness must be 1 or more, got {strictness}")
    if not tools.can("write_questions"):
        grade = await tools.ask(GradeRelevance(sample.question, sample.answer or ""))
        return tools.score(sample, grade.grade, reason=grade.reason, method="graded")
    reply = await tools.ask(WriteQuestions(sample.answer or "", strictness))
    kept: dict[str, WrittenQuestion] = {}
    for item in reply.questions:
        if not is_blank(item.question):
            # A question that is written twice counts once, or it would weigh more in the mean.
            kept.setdefault(item.question.strip(), item)
    if not kept:
        raise JudgeError("the judge wrote no question for this answer", code="no_questions")
    asked = list(kept)[:strictness]
    matrix = await tools.embed([sample.question, *asked])
    cosines = [formulas.cosine(matrix[0], row) for row in matrix[1:]]
    # In the order of the questions that are compared, not of the reply.
    flags = [kept[text].noncommittal for text in asked]
    value = verdicts.relevancy(cosines, flags, rule=noncommittal)
    findings = [
        Finding(text, None, "noncommittal" if flag else "", value=cosine)
        for text, flag, cosine in zip(asked, flags, cosines, strict=True)
    ]
    reason = (
        "the answer evades the question"
        if value == 0 and any(flags)
        else f"it would rather answer: {asked[min(range(len(asked)), key=cosines.__getitem__)]}"
    )
    return tools.score(
        sample,
        value,
        reason=reason,
        evidence=findings,
        evidence_title="questions",
        method="questions",
        n_questions=len(asked),
    )


@metric("abstention", tier="generation", needs=("question", "answer"), tasks=("check_abstention",), bands={})
async def abstention(sample: RagSample, tools: Tools) -> Score:
    """Whether the answer says that it has no answer: 1, or 0 where it gives one, right or wrong.

    One judge call. Which of the two is good depends on the question: see ``assert_abstains``. A mean over
    questions of both kinds is therefore neither good nor bad, and the metric has no bands.
    """
    reply = await tools.ask(CheckAbstention(sample.question, sample.answer or ""))
    return tools.score(sample, float(reply.abstains), reason=reply.reason)
