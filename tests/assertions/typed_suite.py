"""A suite with annotations, as a user writes it, that has every public name: ``mypy --strict`` has to pass on it (it is
among the files of the step in ``.ci/run``), and test_typed_suite.py fails where a name is missing.

It is not run as tests: what helpers do is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from pytest_ragbench import (
    Embedder,
    EmbeddingError,
    EndpointError,
    Finding,
    Items,
    Judge,
    JudgeError,
    Metric,
    OpenAIEmbedder,
    OpenAIJudge,
    QualityFailure,
    Question,
    QuestionFileError,
    RagbenchError,
    RagSample,
    RagSamples,
    Retriever,
    Score,
    Threshold,
    ThresholdLike,
    Tools,
    UndefinedScore,
    Unscored,
    Usage,
    UsageError,
    aassert_metric,
    aassert_quality,
    ascore,
    assert_abstains,
    assert_abstention,
    assert_answer_accuracy,
    assert_answer_correctness,
    assert_answer_relevancy,
    assert_answer_relevancy_holistic,
    assert_aspect,
    assert_bleu,
    assert_cache_hit_rate,
    assert_chrf,
    assert_cohen_kappa,
    assert_context_entity_recall,
    assert_context_precision,
    assert_context_preservation,
    assert_context_recall,
    assert_context_relevance,
    assert_context_relevance_ratio,
    assert_context_sentence_relevancy,
    assert_context_utilization,
    assert_corpus_bleu,
    assert_e2e_score,
    assert_exact_match,
    assert_expected,
    assert_factual_correctness,
    assert_faithfulness,
    assert_faithfulness_holistic,
    assert_gwet_ac1,
    assert_hallucination,
    assert_hit_rate,
    assert_id_based_context_precision,
    assert_id_based_context_recall,
    assert_inter_cluster_distance,
    assert_intra_cluster_similarity,
    assert_judge_accuracy,
    assert_judge_agreement,
    assert_judge_consistency,
    assert_judge_error_rate,
    assert_judge_f1,
    assert_judge_latency,
    assert_judge_precision,
    assert_judge_recall,
    assert_judged,
    assert_krippendorff_alpha,
    assert_map,
    assert_metric,
    assert_mrr,
    assert_multi_turn_consistency,
    assert_ndcg,
    assert_noise_sensitivity,
    assert_noise_sensitivity_irrelevant,
    assert_non_llm_context_precision,
    assert_non_llm_context_recall,
    assert_over,
    assert_precision,
    assert_quality,
    assert_r_precision,
    assert_recall,
    assert_response_groundedness,
    assert_retrieval,
    assert_rouge,
    assert_rouge1,
    assert_rouge2,
    assert_rougeL,
    assert_rubric,
    assert_same_meaning,
    assert_search_rag,
    assert_semantic_similarity,
    assert_silhouette,
    assert_string_similarity,
    assert_token_f1,
    assert_url_hit_rate,
    assert_url_mrr,
    assert_url_ndcg,
    assert_url_precision,
    assert_url_recall,
    define_aspect,
    define_rubric,
    load_questions,
    metric,
    score,
    score_over,
    shuffled_contexts,
    traceparent,
    with_distractor,
)

LIMIT: ThresholdLike = ">=0.5"
SCORES: list[Score] = []


def registered() -> None:
    """In a conftest.py; here not at the top, since this module is imported by a test."""

    @metric("politeness", tier="generation", needs="answer")
    async def politeness(sample: RagSample, tools: Tools, *, word: str = "please") -> float:
        return float(word in (sample.answer or ""))

    define_aspect("kind", "Is the answer kind?", votes=3, direction="higher")
    define_rubric("tone", {1: "rude", 5: "kind"}, include=("contexts",))


class OneVector:
    """An embedder of one's own."""

    name = "one"

    async def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        return np.ones((len(texts), 2))


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return OneVector()


@pytest.fixture(scope="session")
def judge() -> OpenAIJudge:
    return OpenAIJudge(object(), model="gpt-4o-mini", temperature=0)


def tasks_of(found: Judge) -> int | None:
    return None if found.tasks is None else len(found.tasks)


def other_embedder(client: object) -> OpenAIEmbedder:
    return OpenAIEmbedder(client, model="text-embedding-3-small")


def name_of(retriever: Retriever) -> str:
    return f"{retriever.name} {traceparent()}"


def asked(path: str) -> list[Question]:
    return load_questions(path)


def test_thresholds_and_scores(rag_sample: RagSample) -> None:
    limit: Threshold = Threshold(">=0.5", low=0.5)
    found: Score = assert_metric("ndcg@10", rag_sample, limit)
    value: float = found.value
    usage: Usage = found.usage
    findings: Sequence[Finding] = found.evidence
    assert value >= usage.tokens
    assert all(finding.text for finding in findings)
    both: dict[str, Score] = assert_quality(rag_sample, {"ndcg@10": limit}, faithfulness=">=0.8")
    assert both["faithfulness"].value == score("faithfulness", rag_sample, on_no_claims=1).value


def test_metrics_of_a_sample(rag_sample: RagSample) -> None:
    SCORES.append(assert_abstention(rag_sample, LIMIT))
    SCORES.append(assert_answer_accuracy(rag_sample, LIMIT))
    SCORES.append(assert_answer_correctness(rag_sample, LIMIT))
    SCORES.append(assert_answer_relevancy(rag_sample, LIMIT))
    SCORES.append(assert_answer_relevancy_holistic(rag_sample, LIMIT))
    SCORES.append(assert_bleu(rag_sample, LIMIT))
    SCORES.append(assert_chrf(rag_sample, LIMIT))
    SCORES.append(assert_context_entity_recall(rag_sample, LIMIT))
    SCORES.append(assert_context_precision(rag_sample, LIMIT))
    SCORES.append(assert_context_recall(rag_sample, LIMIT))
    SCORES.append(assert_context_relevance(rag_sample, LIMIT))
    SCORES.append(assert_context_relevance_ratio(rag_sample, LIMIT))
    SCORES.append(assert_context_sentence_relevancy(rag_sample, LIMIT))
    SCORES.append(assert_context_utilization(rag_sample, LIMIT))
    SCORES.append(assert_e2e_score(rag_sample, LIMIT))
    SCORES.append(assert_exact_match(rag_sample, LIMIT))
    SCORES.append(assert_factual_correctness(rag_sample, LIMIT))
    SCORES.append(assert_faithfulness(rag_sample, LIMIT))
    SCORES.append(assert_faithfulness_holistic(rag_sample, LIMIT))
    SCORES.append(assert_hallucination(rag_sample, LIMIT))
    SCORES.append(assert_hit_rate(rag_sample, LIMIT, k=5))
    SCORES.append(assert_id_based_context_precision(rag_sample, LIMIT))
    SCORES.append(assert_id_based_context_recall(rag_sample, LIMIT))
    SCORES.append(assert_judged(rag_sample, LIMIT, k=5))
    SCORES.append(assert_map(rag_sample, LIMIT))

    SCORES.append(assert_mrr(rag_sample, LIMIT))
    SCORES.append(assert_ndcg(rag_sample, LIMIT))
    SCORES.append(assert_noise_sensitivity(rag_sample, LIMIT))
    SCORES.append(assert_noise_sensitivity_irrelevant(rag_sample, LIMIT))
    SCORES.append(assert_non_llm_context_precision(rag_sample, LIMIT))
    SCORES.append(assert_non_llm_context_recall(rag_sample, LIMIT))
    SCORES.append(assert_precision(rag_sample, LIMIT, k=5))
    SCORES.append(assert_r_precision(rag_sample, LIMIT))
    SCORES.append(assert_recall(rag_sample, LIMIT, k=5))
    SCORES.append(assert_response_groundedness(rag_sample, LIMIT))
    SCORES.append(assert_rouge1(rag_sample, LIMIT))
    SCORES.append(assert_rouge2(rag_sample, LIMIT))
    SCORES.append(assert_rougeL(rag_sample, LIMIT))
    SCORES.append(assert_semantic_similarity(rag_sample, LIMIT))
    SCORES.append(assert_string_similarity(rag_sample, LIMIT))
    SCORES.append(assert_token_f1(rag_sample, LIMIT))
    SCORES.append(assert_url_hit_rate(rag_sample, LIMIT, k=5))
    SCORES.append(assert_url_mrr(rag_sample, LIMIT))
    SCORES.append(assert_url_ndcg(rag_sample, LIMIT))
    SCORES.append(assert_url_precision(rag_sample, LIMIT, k=5))
    SCORES.append(assert_url_recall(rag_sample, LIMIT, k=5))


def test_metrics_with_arguments_of_their_own(rag_sample: RagSample) -> None:
    assert_abstains(rag_sample, rag_sample.should_abstain)
    assert_aspect(rag_sample, "Is the answer polite?", "==1", votes=3)
    assert_expected(rag_sample, contains="receipt", max_latency=5)
    assert_rouge(rag_sample, LIMIT, "rouge1")
    assert_rubric(rag_sample, {1: "rude", 5: "polite"}, ">=3")
    assert_search_rag(rag_sample, answer_correctness=">=0.7", groundedness=0.8)


def test_variants(rag_sample: RagSample) -> None:
    assert_same_meaning(rag_sample, shuffled_contexts(rag_sample, seed=1))
    assert_same_meaning(rag_sample, with_distractor(rag_sample, "It rains.", at=0), ">=0.7")


def test_sets(rag_samples: RagSamples) -> None:
    items: Items = rag_samples
    assert_over(items, "faithfulness", ">=0.8", coverage=0.9)
    assert_retrieval(rag_samples, "mrr", ">=0.7")
    assert score_over(items, "faithfulness").details["n_scored"]
    SCORES.append(assert_cache_hit_rate(items, LIMIT))
    SCORES.append(assert_cohen_kappa(items, LIMIT))
    SCORES.append(assert_context_preservation(items, LIMIT))
    SCORES.append(assert_corpus_bleu(items, LIMIT))
    SCORES.append(assert_gwet_ac1(items, LIMIT))
    SCORES.append(assert_inter_cluster_distance(items, LIMIT))
    SCORES.append(assert_intra_cluster_similarity(items, LIMIT))
    SCORES.append(assert_judge_accuracy(items, LIMIT))
    SCORES.append(assert_judge_consistency(items, LIMIT))
    SCORES.append(assert_judge_error_rate(items, LIMIT))
    SCORES.append(assert_judge_f1(items, LIMIT))
    SCORES.append(assert_judge_latency(items, LIMIT))
    SCORES.append(assert_judge_precision(items, LIMIT))
    SCORES.append(assert_judge_recall(items, LIMIT))
    SCORES.append(assert_krippendorff_alpha(items, LIMIT))
    SCORES.append(assert_multi_turn_consistency(items, LIMIT))
    SCORES.append(assert_silhouette(items, LIMIT))


def test_the_judge() -> None:
    assert_judge_agreement("labels.jsonl", kappa=">=0.6")


async def test_async(rag_sample: RagSample) -> None:
    one: Score = await aassert_metric("faithfulness", rag_sample, ">=0.8")
    more: dict[str, Score] = await aassert_quality(rag_sample, faithfulness=">=0.8")
    other: Score = await ascore("faithfulness", rag_sample)
    assert one.value == more["faithfulness"].value == other.value


@pytest.mark.parametrize(
    "error",
    [EmbeddingError, EndpointError, JudgeError, QuestionFileError, UndefinedScore, Unscored, UsageError],
)
def test_errors(error: type[RagbenchError], rag_sample: RagSample) -> None:
    with pytest.raises(error):
        score("faithfulness", rag_sample)
    with pytest.raises(QualityFailure) as caught:
        assert_metric("faithfulness", rag_sample, ">=0.8")
    assert str(caught.value)


def all_metrics(found: Metric) -> str:
    return found.name
