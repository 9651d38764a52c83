"""Dialogue: the questions of a session are asked in their order; does the service contradict itself?"""

import pytest

from pytest_ragbench import assert_cache_hit_rate, assert_context_preservation, assert_multi_turn_consistency

pytestmark = pytest.mark.rag_questions("dialogues.jsonl")


def test_no_answer_contradicts_an_earlier_one(rag_conversation):
    """One test for each session."""
    assert_multi_turn_consistency(rag_conversation, ">=0.9")


def test_users_stay_on_their_topic(rag_samples):
    assert_context_preservation(rag_samples, ">=0.1")


def test_hardly_two_questions_are_alike(rag_samples):
    """What a cache of answers could save; high where people ask the same things again and again."""
    assert_cache_hit_rate(rag_samples, "0..0.5")
