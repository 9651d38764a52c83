"""The embedded local judge: no key, no network, the same verdict every time.

It compares words, numbers, names, negation and roles. It has no knowledge of the world, does not
infer, and misses a paraphrase that shares no words: see docs/local-judge.md for measurements.

Names are imported on first use: a test module that imports a helper needs one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.judge.local.answered import verify as verify
    from pytest_ragbench.judge.local.claims import Part as Part
    from pytest_ragbench.judge.local.claims import answer_parts as answer_parts
    from pytest_ragbench.judge.local.claims import split_claims as split_claims
    from pytest_ragbench.judge.local.comparing import compare as compare
    from pytest_ragbench.judge.local.consistency import contradiction as contradiction
    from pytest_ragbench.judge.local.relevance import addresses as addresses
    from pytest_ragbench.judge.local.relevance import is_abstention as is_abstention
    from pytest_ragbench.judge.local.support import SUPPORTED as SUPPORTED
    from pytest_ragbench.judge.local.support import Support as Support

VERSION = "7"
"""Changes with every change of rules, weights or word lists: part of what a stored verdict is kept by."""

__getattr__ = lazily(
    __name__,
    answered="verify",
    claims="Part answer_parts split_claims",
    comparing="compare",
    consistency="contradiction",
    relevance="addresses is_abstention",
    support="SUPPORTED Support",
)
