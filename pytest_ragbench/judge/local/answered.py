"""A yes or no, held against the chunks as the answer to its question."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ragbench.judge.local import support
from pytest_ragbench.judge.local.claims import answered
from pytest_ragbench.judge.local.contrasts import contrasts
from pytest_ragbench.judge.local.support import WEIGHTS, Evidence, Support, weigh
from pytest_ragbench.judge.local.terms import Chunk, Sentence, analyse, analyse_chunk
from pytest_ragbench.judge.local.words import words
from pytest_ragbench.text import is_blank

DENIED = 3.0
"""What a chunk that denies the question takes from a yes and gives to a no; as much as a denied word."""
SHARED_TOPIC = 0.3
"""Share of the question's words that another claim of the answer must take up to speak for its yes or no."""
BY_OTHERS = 0.62
"""Support of a yes or no that only the supported rest of the answer speaks for."""
_FACTS = ("number", "misplaced", "negation", "contrast", "swap", "quantifier")
_OTHERWISE = ("number", "contrast")
"""Signals of a fact that stands otherwise in the chunk, so that its word is missing from the coverage."""


def verify(claim: str, contexts: Sequence[str], question: str = "", claims: Sequence[str] = ()) -> Support:
    """How well ``contexts`` (ranked chunks) support ``claim``; a claim "Yes: QUESTION" claims what was asked.

    ``claims``: all claims of the answer. "Yes, breakfast is included" answers "Is breakfast part of the price?" by
    what it goes on to say. See :func:`pytest_ragbench.judge.local.support.verify` for the rest.
    """
    affirmed = answered(claim, question)
    if affirmed is None:
        return support.verify(claim, contexts, question)
    asked = analyse(question)
    chunks = [(number, text) for number, text in enumerate(contexts, start=1) if not is_blank(text)]
    if not asked.content or not chunks:
        return support.verify(question, contexts)
    found = [(number, *_answer(asked, analyse_chunk(text))) for number, text in chunks]
    # The chunk that decides most clearly, for or against: a denial in one outweighs shared words in another.
    number, yes, no = max(found, key=lambda each: (max(each[1], each[2]), -each[0]))
    value = 1.0 / (1.0 + math.exp(-(yes if affirmed else no)))
    if value >= support.SUPPORTED:
        return Support(value, number, f"chunk {number} {'says so' if affirmed else 'denies it'}")
    if max(yes, no) >= 0:
        return Support(value, number, f"chunk {number} says {'no' if affirmed else 'yes'}")
    rest = [other for other in claims if answered(other, question) is None]
    if _speak_for(affirmed, asked, rest, contexts, question):
        return Support(BY_OTHERS, None, "what the answer goes on to say is supported")
    return Support(value, None, "no chunk answers the question")


def _answer(asked: Sentence, chunk: Chunk) -> tuple[float, float]:
    """The logits of yes and of no."""
    evidence = weigh(asked, chunk)
    signals = evidence.signals
    # The questioner's own "I" is everybody.
    yes = evidence.logit - WEIGHTS["personal"] * signals["personal"]
    denial = 0.0 if signals["negation"] or signals["contrast"] else DENIED * _denied(asked, chunk)
    against = denial - sum(WEIGHTS[name] * signals[name] for name in _FACTS)
    # A word of denial stands in the place of what was asked: "may I take" / "are excluded".
    replaced = 0.35 * min(1.0, max(denial, *(signals[name] for name in _OTHERWISE)))
    topic = _topic(evidence, replaced)
    no = topic + min(against, DENIED) - DENIED
    return evidence.steepness * (yes - denial), evidence.steepness * no


def _topic(evidence: Evidence, replaced: float) -> float:
    signals = evidence.signals
    return support.BIAS + sum(
        WEIGHTS[name] * min(1.0, signals[name] + replaced) for name in ("coverage", "sentence")
    )


def _denied(asked: Sentence, chunk: Chunk) -> float:
    """1 where the sentence nearest to the question says that something is forbidden, excluded, impossible."""
    known = words(asked.lang)
    if known.denial(asked.folded, asked.keys):
        return 0.0
    best = max(chunk.sentences, key=lambda part: share_of(asked, part))
    if share_of(asked, best) < SHARED_TOPIC or contrasts(asked.lang).hedged(best):
        return 0.0
    # "Used goods are not accepted": what is denied need not be a word of the question.
    return float(known.denial(best.folded, best.keys) != (best.denies and not asked.denies))


def share_of(asked: Sentence, part: Sentence) -> float:
    """Share (0..1, by weight) of the question's words with content that a sentence has."""
    total = sum(term.weight for term in asked.content)
    return sum(t.weight for t in asked.content if t.key in part.keys or t.key in part.folded) / total


def _speak_for(
    affirmed: bool, asked: Sentence, rest: Sequence[str], contexts: Sequence[str], question: str
) -> bool:
    """Whether a supported claim of the answer is about what was asked, and says it in the same sense."""
    for other in rest:
        sentence = analyse(other)
        says_no = sentence.denies or _otherwise(asked, sentence)
        if share_of(asked, sentence) < SHARED_TOPIC or says_no is affirmed:
            continue
        if support.verify(other, contexts, question).value >= support.SUPPORTED:
            return True
    return False


def _otherwise(asked: Sentence, said: Sentence) -> bool:
    """Whether a name or number of the question has another one in its place: "No, Paris is in France"."""
    for term in asked.content:
        kinds = [other for other in said.content if other.kind == term.kind and other.key not in asked.keys]
        if term.kind in ("name", "number") and term.key not in said.keys and kinds:
            return True
    return False
