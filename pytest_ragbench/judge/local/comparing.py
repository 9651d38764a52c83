"""A claim held against the other side: an answer's against the reference, a reference's against the answer.

The other side answers the same question, so that what the question says need not be said again: "14 days." is all of
"The trial period of the Plus plan is 14 days."
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_ragbench.judge.local import support
from pytest_ragbench.judge.local.answered import SHARED_TOPIC, share_of, verify
from pytest_ragbench.judge.local.claims import answered
from pytest_ragbench.judge.local.support import SUPPORTED, Support, weigh
from pytest_ragbench.judge.local.terms import analyse, analyse_chunk
from pytest_ragbench.text import is_blank

SHORT = 4
"""A side of so many words with content at most may be a short answer."""
GIVEN = 0.02
"""Weight of a word that the question has, where the other side is read as the answer to it."""


def compare(claim: str, others: Sequence[str], question: str = "") -> Support:
    """How well the claims of the other side, together or one of them, say what ``claim`` says."""
    said = answered(claim, question)
    words = [(other, answered(other, question)) for other in others]
    given = [(other, word) for other, word in words if word is not None]
    if said is not None and given:
        agrees = all(word is said for _, word in given)
        return Support(float(agrees), 1, "" if agrees else "chunk 1 says " + ("no" if said else "yes"))
    # Together, since two claims of one side may say what is one claim of the other.
    sides = [" ".join(others), *others]
    if said is None and not given:
        sides = [side for side in sides if not _opposes(claim, side, question)]
    if not sides:
        return Support(0.0, 1, "chunk 1 says the opposite")
    plain = verify(claim, sides, question, others)
    if plain.value >= SUPPORTED or said is not None or is_blank(question):
        return plain
    if given:
        repeated = _repeats(claim, question)
        if repeated is not None:
            agrees = all(word is repeated for _, word in given)
            return Support(
                float(agrees), 1, "" if agrees else "chunk 1 says " + ("no" if repeated else "yes")
            )
        # "Yes." in the reference: does the claim answer so?
        return max((verify(other, (claim,), question) for other, _ in given), key=lambda found: found.value)
    readings = [read(claim, side, question) for side in sides for read in (_given, _in_full)]
    return max(plain, *readings, key=lambda found: found.value)


def _repeats(claim: str, question: str) -> bool | None:
    """Whether a claim in words of the question alone affirms it; None where it says more."""
    asked, said = analyse(question), analyse(claim)
    more = any(term.key not in asked.keys for term in said.content)
    return None if more or not said.content else said.denies == asked.denies


def _opposes(claim: str, side: str, question: str) -> bool:
    """Whether one of the two is a short answer, and the other denies something that neither it nor the question
    denies: "Two years." and "The warranty is not two years."
    """
    said, told = analyse(claim), analyse(side)
    short = 0 < min(len(said.content), len(told.content)) <= SHORT
    return short and said.denies != told.denies and not analyse(question).denies


def _in_full(claim: str, side: str, question: str) -> Support:
    """A whole sentence around a short answer: "Every product has a warranty of two years." says "Two years." to a
    question for the warranty, in words that are neither the question's nor the short answer's.
    """
    asked, said, told = analyse(question), analyse(claim), analyse(side)
    if not told.content or len(told.content) > SHORT or told.keys >= said.keys or said.denies != told.denies:
        return Support(0.0, None, "")
    # Another number or name in the sentence may be its answer, and that of the other side a detail.
    known = asked.keys | told.keys
    others = [term for term in said.content if term.kind in ("number", "name") and term.key not in known]
    if others or share_of(asked, said) < SHARED_TOPIC:
        return Support(0.0, None, "")
    evidence = weigh(told, analyse_chunk(claim), question)
    return Support(evidence.probability if not evidence.problems else 0.0, None, "")


def _given(claim: str, side: str, question: str) -> Support:
    asked, said, told = analyse(question), analyse(claim), analyse(side)
    chosen = {term.key for term in told.content}
    news = {term.key for term in said.content} - asked.keys
    if chosen <= asked.keys:
        # A choice among what the question offers ("red or blue?"): its words prove nothing, those of the choice do.
        agrees = bool(chosen) and not news and chosen <= said.keys and said.denies == told.denies
        return Support(float(agrees), None, "")
    if not news:
        return Support(0.0, None, "")
    statement = f"{question.strip().rstrip('?？。. ')} — {side}"
    evidence = weigh(said, analyse_chunk(statement), question, asked_weight=GIVEN)
    value = 1.0 / (1.0 + math.exp(-evidence.logit))
    return Support(value, None, support.fault(evidence))
