"""Metrics of the retrieved chunks: are they useful, and do they hold what the right answer needs?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_ragbench.judge.tasks import ExtractEntities, ExtractSentences, FindEntities, JudgeChunks
from pytest_ragbench.metrics.formulas import overlap, retrieval, verdicts
from pytest_ragbench.metrics.registry import RETRIEVAL_BANDS, metric, named
from pytest_ragbench.metrics.retrieval import not_retrieved, ranking_of
from pytest_ragbench.metrics.steps import (
    check_number,
    contexts_of,
    first_fault,
    head,
    no_reference_claims,
    share_of,
    split,
    unsure_of,
    verdicts_of,
    verify,
)
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UndefinedScore
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.text import is_blank, sentences

Target = Literal["reference", "response", "auto"]

# --- precision ---------------------------------------------------------------------------------


def _target(sample: RagSample, target: str) -> str:
    """The field that chunks are compared with; "auto" is the reference where there is one."""
    # People wrote the reference: where there is one, it decides.
    if target == "auto":
        return "answer" if is_blank(sample.reference) else "reference"
    return "answer" if target == "response" else "reference"


def _adapt_target(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"needs": ("question", "contexts", _target(sample, options.get("target", "reference")))}


async def _useful(sample: RagSample, tools: Tools, target: str) -> list[Finding]:
    """Whether each chunk is useful, in rank order. One judge call for all; blank chunks are not sent."""
    chunks = contexts_of(sample)
    # A blank chunk is useless by definition, and a judge asked about it may say anything.
    places = [place for place, chunk in enumerate(chunks) if not is_blank(chunk)]
    text = getattr(sample, _target(sample, target)) or ""
    reply = await tools.ask(JudgeChunks(sample.question, text, tuple(chunks[place] for place in places)))
    found = dict(zip(places, reply.in_order(), strict=True))
    # By probability, evidence has a P(yes) for every chunk, so that the mean counts all of them.
    blank = 0.0 if tools.verdicts == "probability" else None
    return [
        Finding(head(chunk), said.verdict, said.reason, place + 1, said.probability)
        if (said := found.get(place)) is not None
        else Finding("(blank)", False, "a blank chunk", place + 1, blank)
        for place, chunk in enumerate(chunks)
    ]


@metric(
    "context_precision",
    tier="retrieval",
    needs=("question", "contexts", "reference"),
    tasks=("judge_chunks",),
    adapt=_adapt_target,
)
async def context_precision(sample: RagSample, tools: Tools, *, target: Target = "reference") -> Score:
    """Whether useful chunks come first: average precision of the ranking, judged chunk by chunk.

    ``sum_i v_i · (v_1 + ... + v_i) / i / sum_i v_i`` with v_i = 1 for a useful chunk, 0 where no chunk is
    useful; range 0..1. One judge call for all chunks. It says nothing about what was missed: see
    :func:`context_recall`. Source: RAGAS' context precision.

    Parameters
    ----------
    target
        What a useful chunk helps to arrive at: the ``"reference"``, the ``"response"`` (the answer; this is
        ``context_utilization``), or ``"auto"``: the reference where there is one, else the answer.
    """
    findings = await _useful(sample, tools, target)
    value = verdicts.average_precision(verdicts_of(findings))
    return _of_chunks(sample, tools, value, findings, by_rank=True)


named(
    # RAGAS' name for the same ranking where nobody has written a reference.
    "context_utilization",
    "context_precision",
    {
        "needs": ("question", "contexts", "answer"),
        "about": "Whether chunks that the answer makes use of come first: context_precision by the answer.",
    },
    target="response",
)


@metric(
    "context_relevance_ratio",
    tier="retrieval",
    needs=("question", "contexts", "reference"),
    tasks=("judge_chunks",),
    adapt=_adapt_target,
)
async def context_relevance_ratio(sample: RagSample, tools: Tools, *, target: Target = "reference") -> Score:
    """Share of the chunks that are useful; their order does not count.

    ``useful chunks / chunks``, range 0..1: what older publications call context precision. One judge call,
    the same as that of :func:`context_precision`.
    """
    findings = await _useful(sample, tools, target)
    return _of_chunks(sample, tools, share_of(findings, graded=tools.graded, what="contexts"), findings)


def _of_chunks(
    sample: RagSample, tools: Tools, value: float, findings: Sequence[Finding], *, by_rank: bool = False
) -> Score:
    """``by_rank``: useless chunks behind the last useful one cost nothing."""
    useful = verdicts_of(findings)
    counted = (
        max((rank for rank, good in enumerate(useful, 1) if good), default=0) if by_rank else len(useful)
    )
    ranks = [str(rank) for rank, good in enumerate(useful[:counted], 1) if not good]
    reason = ""
    if not any(useful):
        reason = f"no chunk of {len(useful)} is useful"
    elif ranks:
        reason = f"not useful: chunk{'s' * (len(ranks) > 1)} {', '.join(ranks)} of {len(useful)}"
        reason += ", before a useful one" * by_rank
    return tools.score(
        sample, value, reason=reason, evidence=findings, evidence_title="usefulness",
        n_contexts=len(useful), n_useful=sum(useful),
    )  # fmt: skip


def _check_similarity(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    check_number("string similarity", "cutoff", options.get("cutoff", 0.5), 0, 1)
    return {}


def _likeness(texts: Sequence[str], others: Sequence[str], cutoff: float) -> list[Finding]:
    """Of each text, how similar the most similar of the others is, in 0..1, and whether that is enough."""
    others = [other for other in others if not is_blank(other)]
    nearest = [
        max((overlap.string_similarity(text, other) for other in others), default=0.0) for text in texts
    ]
    return [
        # The tolerance keeps float noise from deciding at the cutoff.
        Finding(head(text), best >= cutoff - 1e-12, value=best)
        for text, best in zip(texts, nearest, strict=True)
    ]


@metric(
    "non_llm_context_precision",
    tier="retrieval",
    needs=("contexts", "reference_contexts"),
    adapt=_check_similarity,
)
async def non_llm_context_precision(sample: RagSample, tools: Tools, *, cutoff: float = 0.5) -> Score:
    """Whether chunks that resemble a reference chunk come first (average precision, no judge).

    Two chunks resemble each other where ``1 - Levenshtein distance / longer length >= cutoff``; range 0..1.
    Source: RAGAS' NonLLMContextPrecisionWithReference.
    """
    found = _likeness(contexts_of(sample), sample.reference_contexts or (), cutoff)
    findings = [replace(finding, chunk=rank) for rank, finding in enumerate(found, 1)]
    value = verdicts.average_precision(verdicts_of(findings))
    return _of_chunks(sample, tools, value, findings, by_rank=True)


@metric(
    "id_based_context_precision",
    tier="retrieval",
    needs=("context_ids", "relevant_ids"),
    bands=RETRIEVAL_BANDS,
)
async def id_based_context_precision(sample: RagSample, tools: Tools) -> Score:
    """Share of the retrieved ids that are relevant; their order does not count.

    ``distinct retrieved ids that are relevant / distinct retrieved ids``, 0 where none was retrieved. ``map``
    is the metric that rewards a good order. Source: RAGAS' IDBasedContextPrecision.
    """
    found, relevant = ranking_of(sample)
    # Chunks of one document share its id: cut finely, it must not weigh more.
    other = [name for name in dict.fromkeys(found) if not relevant.get(name)]
    reason = f"not relevant: {', '.join(other)}" if other else ""
    return _of_ids(sample, tools, retrieval.precision(found, relevant, collapse=True), reason)


@metric(
    "id_based_context_recall", tier="retrieval", needs=("context_ids", "relevant_ids"), bands=RETRIEVAL_BANDS
)
async def id_based_context_recall(sample: RagSample, tools: Tools) -> Score:
    """Share of the relevant ids that were retrieved. Source: RAGAS' IDBasedContextRecall."""
    found, relevant = ranking_of(sample)
    return _of_ids(sample, tools, retrieval.recall(found, relevant))


def _of_ids(sample: RagSample, tools: Tools, value: float, otherwise: str = "") -> Score:
    """``otherwise``: the reason of a value below 1 where all relevant ids were retrieved."""
    found, relevant = ranking_of(sample)
    reason = "" if value >= 1 else not_retrieved(found, relevant) or otherwise
    findings = [Finding(name, relevant.get(name, 0.0) > 0) for name in dict.fromkeys(found)]
    return tools.score(sample, value, reason=reason, evidence=findings, evidence_title="ids")


# --- recall ------------------------------------------------------------------------------------


def _adapt_recall(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"tasks": ("verify_claims",)} if options.get("units") == "sentences" else {}


@metric(
    "context_recall",
    tier="retrieval",
    needs=("question", "contexts", "reference"),
    tasks=("split_claims", "verify_claims"),
    adapt=_adapt_recall,
)
async def context_recall(
    sample: RagSample, tools: Tools, *, units: Literal["claims", "sentences"] = "claims"
) -> Score:
    """Share of the reference's claims that the retrieved chunks support.

    ``supported claims / claims of the reference``, range 0..1. Two judge calls, the first of which (the
    split of the reference) is stored once for all metrics and runs, so that the denominator stays the same.
    Source: RAGAS' context recall.

    Parameters
    ----------
    units
        ``"claims"``, or ``"sentences"``: the reference is split by rule, which saves one call.
    """
    if units == "sentences":
        # A sentence may hold several facts, and fails by one of them: coarser, for one call less.
        claims = tuple(sentences(sample.reference or ""))
    else:
        claims = await split(tools, sample.reference or "", sample.question)
    if not claims:
        raise no_reference_claims("context_recall")
    findings = await verify(tools, claims, contexts_of(sample), sample.question)
    value = share_of(findings, graded=tools.graded)
    return tools.score(
        sample, value, reason=first_fault(findings, "in no chunk"), evidence=findings,
        evidence_title="reference", n_claims=len(claims), **(unsure_of(findings) if tools.graded else {}),
    )  # fmt: skip


@metric(
    "non_llm_context_recall",
    tier="retrieval",
    needs=("contexts", "reference_contexts"),
    adapt=_check_similarity,
)
async def non_llm_context_recall(sample: RagSample, tools: Tools, *, cutoff: float = 0.5) -> Score:
    """Share of the reference chunks that a retrieved chunk resembles (no judge).

    Resemblance as in :func:`non_llm_context_precision`; range 0..1. Source: RAGAS' NonLLMContextRecall.
    """
    wanted = [text for text in sample.reference_contexts or () if not is_blank(text)]
    findings = _likeness(wanted, contexts_of(sample), cutoff)
    # Of what people named, however many chunks came back.
    value = verdicts.share(verdicts_of(findings), "reference contexts")
    reason = first_fault(findings, "no chunk resembles")
    return tools.score(sample, value, reason=reason, evidence=findings, evidence_title="reference")


def _adapt_entities(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"tasks": ("extract_entities", "find_entities")} if options.get("matching") == "judge" else {}


@metric(
    "context_entity_recall",
    tier="retrieval",
    needs=("contexts", "reference"),
    tasks=("extract_entities",),
    adapt=_adapt_entities,
)
async def context_entity_recall(
    sample: RagSample, tools: Tools, *, matching: Literal["exact", "judge"] = "exact"
) -> Score:
    """Share of the reference's distinct entities that the retrieved chunks name.

    ``|E_ref ∩ E_ctx| / |E_ref|``, range 0..1. Two judge calls; the one about the reference is stored.
    Source: RAGAS' context entities recall.

    Parameters
    ----------
    matching
        ``"exact"``: entities of both sides are extracted in dictionary form and compared up to case,
        width, spaces and punctuation at the ends. ``"judge"``: the judge looks for each entity of the
        reference in the chunks, which inflected languages need ("в Париже" names "Париж").
    """
    chunks = contexts_of(sample)
    if matching == "judge":
        wanted = _distinct((await tools.ask(ExtractEntities((sample.reference or "",)))).entities)
        _need_entities(wanted)
        reply = await tools.ask(FindEntities(tuple(wanted.values()), chunks))
        findings = [
            Finding(entity, verdict.verdict, verdict.reason)
            for entity, verdict in zip(wanted.values(), reply.in_order(), strict=True)
        ]
        value = verdicts.share(verdicts_of(findings), "entities")
    else:
        # Both sides are extracted in the same way, or spelling decides which entities match.
        there = tuple(chunk for chunk in chunks if not is_blank(chunk))
        ours, theirs = await asyncio.gather(
            tools.ask(ExtractEntities((sample.reference or "",))), tools.ask(ExtractEntities(there))
        )
        wanted, named_there = _distinct(ours.entities), _distinct(theirs.entities)
        _need_entities(wanted)
        findings = [Finding(entity, key in named_there) for key, entity in wanted.items()]
        value = verdicts.entity_recall(wanted.values(), named_there.values())
    return tools.score(
        sample, value, reason=first_fault(findings, "in no chunk"), evidence=findings,
        evidence_title="entities", n_entities=len(wanted),
    )  # fmt: skip


def _distinct(entities: Sequence[str]) -> dict[str, str]:
    """Normalised form -> the entity as it was first written."""
    found: dict[str, str] = {}
    for entity in entities:
        if key := verdicts.normalize_text(entity):
            found.setdefault(key, entity.strip())
    return found


def _need_entities(wanted: Mapping[str, str]) -> None:
    if not wanted:
        raise UndefinedScore(
            "context_entity_recall is undefined: the judge found no entities in the reference",
            code="no_entities",
        )


# --- sentences ---------------------------------------------------------------------------------


@metric(
    "context_sentence_relevancy",
    tier="retrieval",
    needs=("question", "contexts"),
    tasks=("extract_sentences",),
)
async def context_sentence_relevancy(sample: RagSample, tools: Tools) -> Score:
    """Share of the chunks' sentences that are needed to answer the question.

    ``needed sentences / sentences``, range 0..1; a long chunk with one good sentence scores low. One judge
    call copies the sentences; only copies that are sentences of a chunk count, each once. Source: RAGAS'
    context relevancy before 0.1.12 (July 2024).
    """
    chunks = contexts_of(sample)
    # The denominator is counted here: a judge that copies freely must not change it.
    everything = [sentence for chunk in chunks for sentence in sentences(chunk)]
    if not everything:
        return tools.score(sample, 0.0, reason="the chunks have no sentences")
    reply = await tools.ask(ExtractSentences(sample.question, chunks))
    whole = {verdicts.normalize_text(sentence) for sentence in everything}
    copies: list[str] = []
    for text in reply.sentences:  # a judge may copy several sentences as one
        copies += [text] if verdicts.normalize_text(text) in whole else sentences(text)
    result = verdicts.extracted_ratio(copies, everything)
    findings = [Finding(text, True) for text in result.found]
    # A judge that rewrites what it should copy must not earn a sentence by it.
    findings += [Finding(text, None, "in no chunk: not counted") for text in result.invented]
    reason = f"{len(result.found)} of {result.n_sentences} sentences are needed"
    return tools.score(
        sample, result.value, reason=reason, evidence=findings, evidence_title="sentences",
        n_found=len(result.found), n_invented=len(result.invented), n_sentences=result.n_sentences,
    )  # fmt: skip
