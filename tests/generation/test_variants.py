from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import (
    QualityFailure,
    RagSample,
    UsageError,
    assert_same_meaning,
    shuffled_contexts,
    with_distractor,
)

SAMPLE = RagSample(
    question="How long?", answer="Returns are possible within 30 days.", contexts=["a", "b", "c"],
    context_ids=["1", "2", "3"], context_scores=[0.9, 0.8, 0.7], id="q",
)  # fmt: skip


@given(st.lists(st.text(), min_size=2, max_size=6, unique=True), st.integers(0, 50))
def test_another_order_of_the_same_chunks(texts: list[str], seed: int) -> None:
    sample = RagSample(question="q", answer="a", contexts=texts, context_ids=[f"id {text}" for text in texts])
    other = shuffled_contexts(sample, seed)
    assert other.contexts is not None
    assert other.contexts != sample.contexts
    assert sorted(other.contexts) == sorted(texts)
    assert other.context_ids == tuple(f"id {text}" for text in other.contexts)
    assert other.answer is None
    assert other == shuffled_contexts(sample, seed)


def test_a_chunk_beside_the_point() -> None:
    other = with_distractor(SAMPLE, "It rains.", at=1)
    assert other.contexts == ("a", "It rains.", "b", "c")
    assert other.context_ids == ("1", "distractor", "2", "3")
    assert other.context_scores is None


def test_what_has_no_variant() -> None:
    with pytest.raises(UsageError, match="no other order"):
        shuffled_contexts(SAMPLE.with_(contexts=["a"], context_ids=None, context_scores=None))
    with pytest.raises(UsageError, match="has no chunks"):
        with_distractor(RagSample(question="q"), "x")
    with pytest.raises(UsageError, match=r"0\.\.3"):
        with_distractor(SAMPLE, "x", at=4)
    with pytest.raises(UsageError, match="no answer to compare"):
        assert_same_meaning(SAMPLE.with_(answer=None), SAMPLE)


def test_the_same_meaning_and_another() -> None:
    assert_same_meaning(SAMPLE, SAMPLE.with_(question="Until when?"), metric="token_f1")
    with pytest.raises(QualityFailure, match="token_f1"):
        assert_same_meaning(SAMPLE, SAMPLE.with_(answer="The shop opens at nine."), metric="token_f1")
