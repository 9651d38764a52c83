"""Tier 3, end to end: two grades of each answer of /llm/search-rag, and the reference answers."""

import pytest

from pytest_ragbench import assert_search_rag, assert_semantic_similarity


@pytest.mark.rag_questions("questions.jsonl", tags="smoke")
def test_search_rag(rag_sample):
    assert_search_rag(rag_sample, answer_correctness=">=0.4", groundedness=">=0.7")


@pytest.mark.rag_questions("questions.jsonl", tags="smoke")
def test_answer_is_close_to_the_reference(rag_sample):
    assert_semantic_similarity(rag_sample, ">=0.3")
