"""Tier 1, retrieval: does the service find the passages that hold the answer?"""

import pytest

from pytest_ragbench import assert_retrieval

pytestmark = pytest.mark.rag_questions("questions.jsonl")


@pytest.mark.parametrize(
    ("metric", "threshold"),
    [("recall@4", ">=0.8"), ("hit_rate@4", ">=0.8"), ("mrr", ">=0.7"), ("ndcg@4", ">=0.7"), ("map", ">=0.6")],
)
def test_over_the_whole_set(rag_samples, metric, threshold):
    assert_retrieval(rag_samples, metric, threshold)


@pytest.mark.parametrize("lang", ["en", "ru", "ja"])
def test_each_language(rag_samples, lang):
    samples = [sample for sample in rag_samples if sample.lang == lang]
    assert_retrieval(samples, "recall@4", ">=0.75")
