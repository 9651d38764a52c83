"""Metrics of conversations and of a question cache; they describe the users as much as the system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from pytest_ragbench.metrics.formulas.vectors import Vectors, cosine_matrix, cosines, matrix
from pytest_ragbench.model.errors import UndefinedScore, UsageError

CACHE_THRESHOLD = 0.85
"""Default cosine that a question must exceed to count as cached."""


def cache_hit_rate(best_cosines: Iterable[float | None], threshold: float = CACHE_THRESHOLD) -> float:
    """Share of the questions whose nearest cached question is closer than ``threshold`` (strictly).

    Parameters
    ----------
    best_cosines
        One for each question, see :func:`best_cosines_to_cache`; None where the cache was empty: a miss.
    threshold
        What a hit must exceed.

    Raises
    ------
    UndefinedScore
        No questions (code ``no_questions``).
    UsageError
        A cosine outside [-1, 1].
    """
    best = list(best_cosines)
    if not best:
        raise UndefinedScore("cache hit rate: no questions", code="no_questions")
    for cosine in best:
        if cosine is not None and not -1 - 1e-9 <= cosine <= 1 + 1e-9:
            raise UsageError(f"a cosine must lie in [-1, 1], got {cosine!r}")
    # Strictly above: what equals the threshold, up to float noise, is a miss.
    return sum(cosine is not None and cosine > threshold + 1e-9 for cosine in best) / len(best)


def best_cosines_to_cache(
    questions: Vectors, cache: Vectors, same: Sequence[int | None] | None = None
) -> list[float | None]:
    """Cosine of each question to the nearest cached one.

    Parameters
    ----------
    questions, cache
        (n, d) and (m, d) vectors; m may be 0.
    same
        (n,) where in the cache the question itself lies (None: nowhere). It is left out, or every
        cached question would be a hit.

    Returns
    -------
    list
        None where nothing else is cached.

    Raises
    ------
    EmbeddingError
        Vectors that can't be compared.
    """
    asked = matrix(questions, "question")
    own = [None] * len(asked) if same is None else list(same)
    if len(own) != len(asked):
        raise UsageError(f"{len(asked)} questions but {len(own)} places in the cache; give one for each")
    stored = matrix(cache, "cached")
    if not len(stored):
        return [None] * len(asked)
    best: list[float | None] = []
    # At most 16 million cosines at a time (128 MB), however large the cache is.
    step = max(1, (1 << 24) // len(stored))
    for start in range(0, len(asked), step):
        near = cosine_matrix(asked[start : start + step], stored)
        for row, place in zip(near, own[start : start + step], strict=True):
            if place is not None:
                # So that it is never the nearest.
                row[place] = -np.inf
            top = float(row.max())
            best.append(top if np.isfinite(top) else None)
    return best


class ContextPreservation(NamedTuple):
    """How far the questions of a session stay on their topic, in [-1, 1]."""

    value: float
    per_session: tuple[float | None, ...]
    """None for a session with fewer than two questions."""
    n_left_out: int


def context_preservation(sessions: Iterable[Any], *, pooled: bool = False) -> ContextPreservation:
    """Mean cosine of neighbouring questions: per session, then over sessions.

    Parameters
    ----------
    sessions
        One (questions, d) array of vectors for each session, in the order asked.
    pooled
        Mean over all neighbours of all sessions at once: long sessions weigh more.

    Raises
    ------
    UndefinedScore
        No session has two questions (code ``one_question``).
    EmbeddingError
        Vectors that can't be compared.
    """
    found = []
    for session in sessions:
        rows = matrix(session, "question")
        found.append(cosines(rows[:-1], rows[1:]) if len(rows) > 1 else np.zeros(0))
    scored = [values for values in found if len(values)]
    if not scored:
        raise UndefinedScore(
            f"context preservation needs a session of two questions; all {len(found)} have one question "
            "or none",
            code="one_question",
        )
    means = [float(values.mean()) for values in scored]
    value = float(np.concatenate(scored).mean()) if pooled else sum(means) / len(means)
    per_session = tuple(float(values.mean()) if len(values) else None for values in found)
    return ContextPreservation(value, per_session, len(found) - len(scored))
