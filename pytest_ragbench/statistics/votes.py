"""Votes of one judge on one question."""

from __future__ import annotations

from math import comb

from pytest_ragbench.model.errors import UsageError


def self_agreement(passes: int, votes: int) -> float:
    """Share of the pairs of votes that say the same: .6 for 4 of 5, .4 for 3 of 5."""
    if not 0 <= passes <= votes or votes < 2:
        raise UsageError(f"{passes} of {votes} votes is not possible")
    return (comb(passes, 2) + comb(votes - passes, 2)) / comb(votes, 2)
