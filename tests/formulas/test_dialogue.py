from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench.metrics.formulas import dialogue as d
from pytest_ragbench.model.errors import EmbeddingError, UndefinedScore, UsageError


def test_a_hit_must_exceed_the_threshold() -> None:
    assert d.cache_hit_rate([0.85, 0.8500001, 0.2, None]) == 0.25
    assert d.cache_hit_rate([0.85 + 1e-12]) == 0.0  # float noise is no hit
    assert d.cache_hit_rate([0.9, 0.9], threshold=0.95) == 0.0
    with pytest.raises(UndefinedScore, match="no questions"):
        d.cache_hit_rate([])
    with pytest.raises(UsageError, match="must lie in"):
        d.cache_hit_rate([float("nan")])
    assert d.cache_hit_rate([1 + 5e-10, -1 - 5e-10]) == 0.5
    for outside in (1 + 2e-9, -1 - 2e-9):
        with pytest.raises(UsageError, match="must lie in"):
            d.cache_hit_rate([outside])


def test_the_question_itself_is_left_out_of_the_cache() -> None:
    vectors: Any = [[1, 0], [0.6, 0.8], [0, 1]]
    assert d.best_cosines_to_cache(vectors, vectors) == pytest.approx([1.0, 1.0, 1.0])
    assert d.best_cosines_to_cache(vectors, vectors, [0, 1, 2]) == pytest.approx([0.6, 0.8, 0.8])
    assert d.best_cosines_to_cache([[1, 0]], [[1, 0]], [0]) == [None]
    assert d.best_cosines_to_cache([[1, 0]], []) == [None]
    assert d.best_cosines_to_cache([[1, 0]], [[0, 1]], [None]) == [0.0]
    with pytest.raises(UsageError, match="3 questions but 1 places"):
        d.best_cosines_to_cache(vectors, vectors, [0])
    with pytest.raises(EmbeddingError, match="2 and 3"):
        d.best_cosines_to_cache([[1, 0]], [[1, 0, 0]])


THREE: Any = [[1, 0], [0.6, 0.8], [0, 1]]


def test_context_preservation_is_a_mean_of_sessions() -> None:
    found = d.context_preservation([THREE, [[1, 0]], [[1, 0], [2, 0]], []])
    assert found.value == pytest.approx((0.7 + 1.0) / 2)
    assert found.per_session == pytest.approx((0.7, None, 1.0, None))
    assert found.n_left_out == 2
    assert d.context_preservation([THREE, [[1, 0], [2, 0]]], pooled=True).value == pytest.approx(
        (0.6 + 0.8 + 1) / 3
    )


@pytest.mark.parametrize("sessions", [[], [[[1, 0]]]])
def test_one_question_preserves_nothing(sessions: Any) -> None:
    with pytest.raises(UndefinedScore, match="one question"):
        d.context_preservation(sessions)
