"""Tier 2, generation: is the answer supported by the retrieved passages, and by nothing else?"""

import pytest

from pytest_ragbench import assert_abstains, assert_faithfulness, assert_quality


@pytest.mark.rag_questions("questions.jsonl")
def test_answer(rag_sample):
    """A question that the documents answer gets a faithful answer; any other one gets a refusal."""
    if rag_sample.should_abstain:
        assert_abstains(rag_sample)
    else:
        assert_faithfulness(rag_sample, ">=0.8", on_no_claims=0)  # no claims: it refused, which is wrong here


@pytest.mark.rag_questions("questions.jsonl", tags="smoke")
def test_several_at_once(rag_sample):
    assert_quality(rag_sample, faithfulness=">=0.8", answer_relevancy=">=0.5")
