"""The arithmetic of judged metrics: from a judge's verdicts and ratings to a value.

A verdict is a bool (or 0/1), one for each item that was *sent* to the judge, which the caller ensures.
Anything else is refused here again, because a 2 or a -1 in a mean would make a wrong score that looks right.

Sources: the definitions of RAGAS, corrected where docs/metrics.md says so (F of its own recall, no epsilon
in denominators, no rounding).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from pytest_ragbench.model.errors import UndefinedScore, UsageError

NoncommittalRule = Literal["all", "any", "majority"]
FactualMode = Literal["precision", "recall", "f1"]


def share(verdicts: Iterable[Any], what: str = "claims") -> float:
    """Positive verdicts / all verdicts: faithfulness, context recall, context relevance ratio.

    Raises
    ------
    UndefinedScore
        No verdicts (code ``no_claims``, from ``what``).
    UsageError
        A verdict that is neither True/1 nor False/0.
    """
    checked = _bools(verdicts)
    if not checked:
        raise UndefinedScore(
            f"no {what}: there is nothing to take a share of", code=f"no_{what.replace(' ', '_')}"
        )
    return sum(checked) / len(checked)


def average_precision(useful: Iterable[Any]) -> float:
    """Context precision: mean precision at the useful ranks, 0 where no context is useful (or there is none).

    The denominator is the number of useful contexts *retrieved*, so the value says nothing about what
    was missed.
    """
    ranks = [rank for rank, good in enumerate(_bools(useful), 1) if good]
    return sum(nth / rank for nth, rank in enumerate(ranks, 1)) / len(ranks) if ranks else 0.0


def relevancy(cosines: Sequence[float], noncommittal: Iterable[Any], rule: NoncommittalRule = "all") -> float:
    """Answer relevancy: mean cosine of the generated questions to the real one, in [-1, 1].

    Parameters
    ----------
    cosines
        One for each generated question.
    noncommittal
        One flag for each: the question was generated from an evasive answer.
    rule
        The value is 0 where ``"all"`` questions are flagged (RAGAS since 0.3.6), ``"any"`` (before),
        or the ``"majority"`` (more than half).

    Raises
    ------
    UndefinedScore
        No questions (code ``no_questions``).
    UsageError
        Another number of flags, a cosine outside [-1, 1], an unknown rule.
    """
    flags = _bools(noncommittal)
    if len(flags) != len(cosines):
        raise UsageError(f"{len(cosines)} cosines but {len(flags)} noncommittal flags; give one for each")
    if not flags:
        raise UndefinedScore("no generated question to compare with the real one", code="no_questions")
    for cosine in cosines:
        if not -1 - 1e-9 <= cosine <= 1 + 1e-9:
            raise UsageError(f"a cosine must lie in [-1, 1], got {cosine!r}")
    match rule:
        case "all":
            evasive = all(flags)
        case "any":
            evasive = any(flags)
        case "majority":
            evasive = 2 * sum(flags) > len(flags)
        case _:
            raise UsageError(f"noncommittal rule must be all, any or majority; got {rule!r}")
    return 0.0 if evasive else float(sum(cosines)) / len(flags)


class NoiseSensitivity(NamedTuple):
    """Shares of the answer's claims that are wrong, by where they come from; lower is better.

    The three add up to the share of wrong claims.
    """

    relevant: float
    """Wrong, and supported by a context that the reference rests on."""
    irrelevant: float
    """Wrong, and supported by other contexts only."""
    hallucination: float
    """Wrong, and supported by no context."""


def noise_sensitivity(
    reference_support: Iterable[Iterable[Any]],
    answer_support: Iterable[Iterable[Any]],
    correct: Iterable[Any],
) -> NoiseSensitivity:
    """Shares of the answer's claims that are wrong, by the contexts that they come from (RAGAS).

    Parameters
    ----------
    reference_support
        (reference claims, contexts): the context supports the claim of the reference. A context that
        supports one is relevant.
    answer_support
        (answer claims, contexts): the context supports the claim of the answer.
    correct
        (answer claims,): the reference supports the claim.

    Raises
    ------
    UsageError
        No reference claims, shapes that don't fit, entries other than 0/1.
    UndefinedScore
        No answer claims (code ``no_claims``).
    """
    ok = _bools(correct)
    if not ok:
        raise UndefinedScore("no claims in the answer", code="no_claims")
    by_reference = [_bools(row) for row in reference_support]
    by_answer = [_bools(row) for row in answer_support]
    if not by_reference:
        raise UsageError("no claims in the reference: it says nothing that can be checked")
    if len(by_answer) != len(ok):
        raise UsageError(f"answer_support has {len(by_answer)} claims, correct has {len(ok)}")
    n_contexts = len(by_reference[0])
    for name, table in (("reference_support", by_reference), ("answer_support", by_answer)):
        for row in table:
            if len(row) != n_contexts:
                raise UsageError(f"{name} has a row of {len(row)} contexts, others have {n_contexts}")
    # A context is relevant where it supports any claim of the reference.
    relevant = [any(column) for column in zip(*by_reference, strict=True)]
    parts = {"relevant": 0, "irrelevant": 0, "hallucination": 0}
    for row in (row for row, right in zip(by_answer, ok, strict=True) if not right):
        if any(says and good for says, good in zip(row, relevant, strict=True)):
            parts["relevant"] += 1
        else:
            parts["irrelevant" if any(row) else "hallucination"] += 1
    return NoiseSensitivity(**{name: count / len(ok) for name, count in parts.items()})


def f_beta(tp: float, fp: float, fn: float, beta: float = 1.0) -> float:
    """(1 + b²)·TP / ((1 + b²)·TP + b²·FN + FP), 0 where TP = 0; beta above 1 weighs recall higher."""
    _check_beta(beta)
    if min(tp, fp, fn) < 0:
        raise UsageError(f"counts must not be negative: TP {tp}, FP {fp}, FN {fn}")
    # Also where nothing was counted: 0/0 is 0 here.
    if tp == 0:
        return 0.0
    weighted = (1 + beta**2) * tp
    return weighted / (weighted + beta**2 * fn + fp)


def weighted_mean(factual: float, cosine: float | None, weights: tuple[float, float]) -> float:
    """Answer correctness: (w_f·F + w_s·cos) / (w_f + w_s), of F over claims and the similarity of the texts.

    Parameters
    ----------
    factual
        F of the claims in 0..1, as :func:`f_beta` counts it.
    cosine
        Similarity of answer and reference in -1..1; None where its weight is 0.
    weights
        Of the two, finite, not negative and not both 0.

    Raises
    ------
    UsageError
        Impossible weights, or no cosine where it has a weight.
    """
    factual_weight, similarity_weight = weights
    if not (0 <= factual_weight < math.inf and 0 <= similarity_weight < math.inf and sum(weights) > 0):
        raise UsageError(f"weights must be finite, not negative and not all zero; got {weights}")
    if similarity_weight == 0:
        return factual
    if cosine is None:
        raise UsageError(f"the similarity has weight {similarity_weight:g}, so its cosine is needed")
    return (factual_weight * factual + similarity_weight * cosine) / (factual_weight + similarity_weight)


class FactualCorrectness(NamedTuple):
    """``value`` is the part that the mode asked for."""

    value: float
    precision: float | None
    """None where the mode is ``recall``: no answer claim was judged."""
    recall: float | None
    """None where the mode is ``precision``."""


def factual_correctness(
    answer_verdicts: Iterable[Any],
    reference_verdicts: Iterable[Any] = (),
    mode: FactualMode = "f1",
    beta: float = 1.0,
) -> FactualCorrectness:
    """Precision of the answer's claims, recall of the reference's, or F_beta of the two.

    Parameters
    ----------
    answer_verdicts
        One for each answer claim: the reference supports it. Not looked at for ``mode="recall"``.
    reference_verdicts
        One for each reference claim: the answer supports it. Not looked at for ``mode="precision"``.
    mode, beta
        What to return; beta is that of F_beta.

    Raises
    ------
    UndefinedScore
        No reference claims where recall is needed (code ``no_reference_claims``). An answer without
        claims scores 0.
    """
    _check_beta(beta)
    precision = recall = None
    if mode not in ("precision", "recall", "f1"):
        raise UsageError(f"mode must be precision, recall or f1; got {mode!r}")
    if mode != "recall":
        supported = _bools(answer_verdicts)
        # An answer without claims makes none that is right.
        precision = sum(supported) / len(supported) if supported else 0.0
    if mode != "precision":
        covered = _bools(reference_verdicts)
        if not covered:
            raise UndefinedScore("the reference has no claims to compare with", code="no_reference_claims")
        recall = sum(covered) / len(covered)
    if precision is not None and recall is not None:
        weighted = beta**2 * precision + recall
        # P = R = 0: 0/0 is 0 here, as in f_beta.
        value = (1 + beta**2) * precision * recall / weighted if weighted else 0.0
        return FactualCorrectness(value, precision, recall)
    return FactualCorrectness(precision if precision is not None else recall or 0.0, precision, recall)


class TwoRatings(NamedTuple):
    """Mean of two ratings of the same answer, and how far they are apart."""

    value: float
    gap: float
    disagree: bool
    """The gap is more than half the scale."""


def two_ratings(first: float, second: float) -> TwoRatings:
    """Swap average of two normalised ratings."""
    gap = abs(first - second)
    return TwoRatings((first + second) / 2, gap, gap > 0.5 + 1e-9)


class Vote(NamedTuple):
    """Majority of an odd number of yes/no votes."""

    value: float
    yes: int
    no: int


def majority(votes: Iterable[Any]) -> Vote:
    """1 where more than half the votes are yes; an even number of votes is refused, it could tie."""
    checked = _bools(votes)
    if len(checked) % 2 == 0:
        raise UsageError(f"a majority needs an odd number of votes, got {len(checked)}")
    yes = sum(checked)
    return Vote(float(2 * yes > len(checked)), yes, len(checked) - yes)


# --- entities and sentences --------------------------------------------------------------------


def normalize_text(text: str) -> str:
    """NFKC, casefold, runs of white space collapsed, punctuation stripped from both ends."""
    # Again after casefolding, which may leave a form that NFKC changes.
    folded = " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())
    start, stop = 0, len(folded)
    while start < stop and not _counts(folded[start]):
        start += 1
    while start < stop and not _counts(folded[stop - 1]):
        stop -= 1
    return folded[start:stop]


def _counts(character: str) -> bool:
    return unicodedata.category(character)[0] not in "PZC"


def entity_recall(reference_entities: Iterable[str], context_entities: Iterable[str]) -> float:
    """Share of the reference's distinct entities that the contexts name, after :func:`normalize_text`.

    Raises
    ------
    UndefinedScore
        No entity in the reference (code ``no_entities``).
    """
    wanted = {normalize_text(entity) for entity in reference_entities} - {""}
    if not wanted:
        raise UndefinedScore("no entities in the reference", code="no_entities")
    return len(wanted & {normalize_text(entity) for entity in context_entities}) / len(wanted)


class ExtractedSentences(NamedTuple):
    """Share of the context's sentences that a judge copied as needed for the answer."""

    value: float
    found: tuple[str, ...]
    """Distinct copies that are sentences of the context."""
    invented: tuple[str, ...]
    """Copies that aren't sentences of the context; not counted."""
    n_sentences: int


def extracted_ratio(extracted: Iterable[str], context_sentences: Iterable[str]) -> ExtractedSentences:
    """Copied sentences / sentences of the contexts, 0 where the contexts have none (RAGAS before 0.1.12).

    Sentences are compared after :func:`normalize_text`; a repeat counts once.
    """
    sentences = {normalize_text(sentence) for sentence in context_sentences} - {""}
    copies = {normalize_text(sentence): sentence for sentence in extracted}
    copies.pop("", None)
    found = tuple(text for key, text in copies.items() if key in sentences)
    invented = tuple(text for key, text in copies.items() if key not in sentences)
    value = len(found) / len(sentences) if sentences else 0.0
    return ExtractedSentences(value, found, invented, len(sentences))


# --- checks ------------------------------------------------------------------------------------


def _bools(verdicts: Iterable[Any]) -> list[bool]:
    found = []
    for index, verdict in enumerate(verdicts):
        plain = verdict.item() if getattr(verdict, "ndim", None) == 0 else verdict  # one of numpy's numbers
        if not isinstance(plain, (bool, int, float)) or plain not in (0, 1):
            raise UsageError(f"verdict {index} must be True/1 or False/0, got {verdict!r}")
        found.append(bool(plain))
    return found


def _check_beta(beta: float) -> None:
    if not 0 < beta < math.inf:
        raise UsageError(f"beta must be a finite number above 0, got {beta!r}")
