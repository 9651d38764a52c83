"""The embedded local judge: no key, no network, the same verdict every time.

It compares words, numbers, names, negation and roles. It has no knowledge of the world, does not
infer, and misses a paraphrase that shares no words: see docs/local-judge.md for measurements.
"""

from __future__ import annotations

from pytest_ragbench.judge.local.answered import verify
from pytest_ragbench.judge.local.claims import Part, answer_parts, split_claims
from pytest_ragbench.judge.local.comparing import compare
from pytest_ragbench.judge.local.consistency import contradiction
from pytest_ragbench.judge.local.relevance import addresses, is_abstention
from pytest_ragbench.judge.local.support import SUPPORTED, Support

VERSION = "4"
"""Changes with every change of rules, weights or word lists: part of what a stored verdict is kept by."""

__all__ = [
    "SUPPORTED",
    "VERSION",
    "Part",
    "Support",
    "addresses",
    "answer_parts",
    "compare",
    "contradiction",
    "is_abstention",
    "split_claims",
    "verify",
]
