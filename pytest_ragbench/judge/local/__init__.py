"""The embedded local judge: no key, no network, the same verdict every time.

It compares words, numbers, names, negation and roles. It has no knowledge of the world, does not
infer, and misses a paraphrase that shares no words: see docs/local-judge.md for measurements.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ragbench.judge.local.answered import verify
from pytest_ragbench.judge.local.claims import Part, answer_parts, split_claims
from pytest_ragbench.judge.local.comparing import compare
from pytest_ragbench.judge.local.consistency import contradiction
from pytest_ragbench.judge.local.relevance import addresses, is_abstention
from pytest_ragbench.judge.local.support import Support

VERSION = "2"
"""Changes with every change of rules, weights or word lists: part of what a stored verdict is kept by."""

__all__ = [
    "VERSION",
    "Part",
    "Support",
    "addresses",
    "answer_parts",
    "answer_support",
    "compare",
    "contradiction",
    "is_abstention",
    "split_claims",
    "verify",
]


def answer_support(answer: str, contexts: Sequence[str], question: str = "") -> float:
    """Mean support (0..1) of the claims of ``answer``; for calibration against human labels.

    An answer without claims is verified as a whole, so that every labelled row has a value.
    """
    claims = split_claims(answer, question) or [answer]
    return sum(verify(claim, contexts, question, claims).value for claim in claims) / len(claims)
