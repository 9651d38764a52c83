"""Tier 2, generation: is the answer supported by the retrieved passages, and by nothing else?"""

import pytest

from pytest_ragbench import UndefinedScore, assert_faithfulness


@pytest.mark.rag_questions("questions.jsonl")
def test_answer_is_faithful(rag_sample):
    try:
        assert_faithfulness(rag_sample, ">=0.8")
    except UndefinedScore:
        # A refusal claims nothing. Whether it was right to refuse is test_end_to_end's question.
        pytest.skip("the service did not answer")
