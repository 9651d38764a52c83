"""Do two answers contradict each other? A claim of the later one against the sentences of the earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragbench.judge.local.claims import split_claims
from pytest_ragbench.judge.local.relevance import is_abstention
from pytest_ragbench.judge.local.support import Evidence, weigh
from pytest_ragbench.judge.local.terms import Chunk, analyse, analyse_chunk
from pytest_ragbench.text import is_blank

SAME_SUBJECT = 0.5
"""Share of the claim that a sentence must cover to be about the same thing."""

_OPPOSED = ("negation", "contrast", "swap", "quantifier")
_COUNTED = ("number", "misplaced")


@dataclass(frozen=True, slots=True)
class Contradiction:
    """``turn`` is the 1-based number of the earlier answer."""

    turn: int
    reason: str


def contradiction(answer: str, earlier: Sequence[str], question: str = "") -> Contradiction | None:
    """The first earlier answer that can't be true together with ``answer``, or None.

    It sees denials, opposites, exchanged roles, "all" against "some", and other numbers of the same thing. Other
    words for a different fact (another name, another colour in no list) escape it. Deterministic.
    """
    if is_abstention(answer):
        return None
    claims = [analyse(claim) for claim in split_claims(answer, question)]
    for turn, text in enumerate(earlier, start=1):
        if is_blank(text) or is_abstention(text):
            continue
        chunk = analyse_chunk(text)
        for claim in claims:
            if not claim.content:
                continue
            if problem := _problem(weigh(claim, chunk), chunk):
                return Contradiction(turn, f"answer {turn} {problem}")
    return None


def _problem(evidence: Evidence, chunk: Chunk) -> str | None:
    """What the earlier answer says instead, where it speaks of the same thing."""
    signals = evidence.signals
    if signals["sentence"] < SAME_SUBJECT:
        return None
    opposed = [name for name in _OPPOSED if signals[name] >= 0.5]
    # A number that the earlier answer merely lacks is more detail.
    counted = any(term.number is not None and term.number.firm for s in chunk.sentences for term in s.terms)
    if counted:
        opposed += [name for name in _COUNTED if signals[name] >= 0.5]
    said = [problem for name, problem in evidence.problems if name in opposed]
    if not opposed:
        return None
    return (
        said[0].replace("does not have the number", "has another number than") if said else "says otherwise"
    )
