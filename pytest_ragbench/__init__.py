"""Quality assertions for RAG systems, as pytest tests.

Public names are imported on first use, so that importing the package (pytest does, in every run)
costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "RagSample": "model.samples",
    "RagSamples": "model.sample_sets",
    "Question": "model.samples",
    "Score": "model.scores",
    "Finding": "model.scores",
    "Usage": "model.scores",
    "Threshold": "model.thresholds",
    "score": "assertions.samples",
    "ascore": "assertions.samples",
    "aassert_metric": "assertions.samples",
    "aassert_quality": "assertions.samples",
    "assert_metric": "assertions.samples",
    "assert_quality": "assertions.samples",
    "assert_faithfulness": "assertions.samples",
    "assert_answer_relevancy": "assertions.samples",
    "assert_semantic_similarity": "assertions.samples",
    "assert_search_rag": "assertions.samples",
    "assert_abstains": "assertions.samples",
    "assert_expected": "expectations",
    "assert_retrieval": "assertions.sets",
    "assert_answer_accuracy": "asserts",
    "assert_answer_correctness": "asserts",
    "assert_answer_relevancy_holistic": "asserts",
    "assert_aspect": "asserts",
    "assert_bleu": "asserts",
    "assert_cache_hit_rate": "asserts",
    "assert_chrf": "asserts",
    "assert_cohen_kappa": "asserts",
    "assert_context_entity_recall": "asserts",
    "assert_context_precision": "asserts",
    "assert_context_preservation": "asserts",
    "assert_context_recall": "asserts",
    "assert_context_relevance": "asserts",
    "assert_context_relevance_ratio": "asserts",
    "assert_context_sentence_relevancy": "asserts",
    "assert_context_utilization": "asserts",
    "assert_corpus_bleu": "asserts",
    "assert_e2e_score": "asserts",
    "assert_exact_match": "asserts",
    "assert_factual_correctness": "asserts",
    "assert_faithfulness_holistic": "asserts",
    "assert_gwet_ac1": "asserts",
    "assert_hit_rate": "asserts",
    "assert_id_based_context_precision": "asserts",
    "assert_id_based_context_recall": "asserts",
    "assert_inter_cluster_distance": "asserts",
    "assert_intra_cluster_similarity": "asserts",
    "assert_judge_accuracy": "asserts",
    "assert_judge_agreement": "calibration.asserting",
    "assert_judge_consistency": "asserts",
    "assert_judge_error_rate": "asserts",
    "assert_judge_f1": "asserts",
    "assert_judge_latency": "asserts",
    "assert_judge_precision": "asserts",
    "assert_judge_recall": "asserts",
    "assert_judged": "asserts",
    "assert_krippendorff_alpha": "asserts",
    "assert_map": "asserts",
    "assert_mrr": "asserts",
    "assert_multi_turn_consistency": "asserts",
    "assert_ndcg": "asserts",
    "assert_noise_sensitivity": "asserts",
    "assert_non_llm_context_precision": "asserts",
    "assert_non_llm_context_recall": "asserts",
    "assert_precision": "asserts",
    "assert_r_precision": "asserts",
    "assert_recall": "asserts",
    "assert_response_groundedness": "asserts",
    "assert_rouge": "asserts",
    "assert_rubric": "asserts",
    "assert_silhouette": "asserts",
    "assert_string_similarity": "asserts",
    "assert_token_f1": "asserts",
    "assert_over": "assertions.sets",
    "assert_same_meaning": "variants",
    "shuffled_contexts": "variants",
    "with_distractor": "variants",
    "score_over": "assertions.sets",
    "metric": "metrics.registry",
    "Metric": "metrics.registry",
    "Tools": "metrics.tools",
    "define_aspect": "metrics.critics",
    "define_rubric": "metrics.critics",
    "load_questions": "questions",
    "QualityFailure": "model.errors",
    "RagbenchError": "model.errors",
    "UsageError": "model.errors",
    "QuestionFileError": "model.errors",
    "Unscored": "model.errors",
    "UndefinedScore": "model.errors",
    "JudgeError": "model.errors",
    "EndpointError": "model.errors",
    "EmbeddingError": "model.errors",
}

if TYPE_CHECKING:
    from pytest_ragbench.assertions.samples import (
        aassert_metric as aassert_metric,
    )
    from pytest_ragbench.assertions.samples import (
        aassert_quality as aassert_quality,
    )
    from pytest_ragbench.assertions.samples import (
        ascore as ascore,
    )
    from pytest_ragbench.assertions.samples import (
        assert_abstains as assert_abstains,
    )
    from pytest_ragbench.assertions.samples import (
        assert_answer_relevancy as assert_answer_relevancy,
    )
    from pytest_ragbench.assertions.samples import (
        assert_faithfulness as assert_faithfulness,
    )
    from pytest_ragbench.assertions.samples import (
        assert_metric as assert_metric,
    )
    from pytest_ragbench.assertions.samples import (
        assert_quality as assert_quality,
    )
    from pytest_ragbench.assertions.samples import (
        assert_search_rag as assert_search_rag,
    )
    from pytest_ragbench.assertions.samples import (
        assert_semantic_similarity as assert_semantic_similarity,
    )
    from pytest_ragbench.assertions.samples import (
        score as score,
    )
    from pytest_ragbench.assertions.sets import assert_over as assert_over
    from pytest_ragbench.assertions.sets import assert_retrieval as assert_retrieval
    from pytest_ragbench.assertions.sets import score_over as score_over
    from pytest_ragbench.asserts import (
        assert_answer_accuracy as assert_answer_accuracy,
    )
    from pytest_ragbench.asserts import (
        assert_answer_correctness as assert_answer_correctness,
    )
    from pytest_ragbench.asserts import (
        assert_answer_relevancy_holistic as assert_answer_relevancy_holistic,
    )
    from pytest_ragbench.asserts import (
        assert_aspect as assert_aspect,
    )
    from pytest_ragbench.asserts import (
        assert_bleu as assert_bleu,
    )
    from pytest_ragbench.asserts import (
        assert_cache_hit_rate as assert_cache_hit_rate,
    )
    from pytest_ragbench.asserts import (
        assert_chrf as assert_chrf,
    )
    from pytest_ragbench.asserts import (
        assert_cohen_kappa as assert_cohen_kappa,
    )
    from pytest_ragbench.asserts import (
        assert_context_entity_recall as assert_context_entity_recall,
    )
    from pytest_ragbench.asserts import (
        assert_context_precision as assert_context_precision,
    )
    from pytest_ragbench.asserts import (
        assert_context_preservation as assert_context_preservation,
    )
    from pytest_ragbench.asserts import (
        assert_context_recall as assert_context_recall,
    )
    from pytest_ragbench.asserts import (
        assert_context_relevance as assert_context_relevance,
    )
    from pytest_ragbench.asserts import (
        assert_context_relevance_ratio as assert_context_relevance_ratio,
    )
    from pytest_ragbench.asserts import (
        assert_context_sentence_relevancy as assert_context_sentence_relevancy,
    )
    from pytest_ragbench.asserts import (
        assert_context_utilization as assert_context_utilization,
    )
    from pytest_ragbench.asserts import (
        assert_corpus_bleu as assert_corpus_bleu,
    )
    from pytest_ragbench.asserts import (
        assert_e2e_score as assert_e2e_score,
    )
    from pytest_ragbench.asserts import (
        assert_exact_match as assert_exact_match,
    )
    from pytest_ragbench.asserts import (
        assert_factual_correctness as assert_factual_correctness,
    )
    from pytest_ragbench.asserts import (
        assert_faithfulness_holistic as assert_faithfulness_holistic,
    )
    from pytest_ragbench.asserts import (
        assert_gwet_ac1 as assert_gwet_ac1,
    )
    from pytest_ragbench.asserts import (
        assert_hit_rate as assert_hit_rate,
    )
    from pytest_ragbench.asserts import (
        assert_id_based_context_precision as assert_id_based_context_precision,
    )
    from pytest_ragbench.asserts import (
        assert_id_based_context_recall as assert_id_based_context_recall,
    )
    from pytest_ragbench.asserts import (
        assert_inter_cluster_distance as assert_inter_cluster_distance,
    )
    from pytest_ragbench.asserts import (
        assert_intra_cluster_similarity as assert_intra_cluster_similarity,
    )
    from pytest_ragbench.asserts import (
        assert_judge_accuracy as assert_judge_accuracy,
    )
    from pytest_ragbench.asserts import (
        assert_judge_consistency as assert_judge_consistency,
    )
    from pytest_ragbench.asserts import (
        assert_judge_error_rate as assert_judge_error_rate,
    )
    from pytest_ragbench.asserts import (
        assert_judge_f1 as assert_judge_f1,
    )
    from pytest_ragbench.asserts import (
        assert_judge_latency as assert_judge_latency,
    )
    from pytest_ragbench.asserts import (
        assert_judge_precision as assert_judge_precision,
    )
    from pytest_ragbench.asserts import (
        assert_judge_recall as assert_judge_recall,
    )
    from pytest_ragbench.asserts import (
        assert_judged as assert_judged,
    )
    from pytest_ragbench.asserts import (
        assert_krippendorff_alpha as assert_krippendorff_alpha,
    )
    from pytest_ragbench.asserts import (
        assert_map as assert_map,
    )
    from pytest_ragbench.asserts import (
        assert_mrr as assert_mrr,
    )
    from pytest_ragbench.asserts import (
        assert_multi_turn_consistency as assert_multi_turn_consistency,
    )
    from pytest_ragbench.asserts import (
        assert_ndcg as assert_ndcg,
    )
    from pytest_ragbench.asserts import (
        assert_noise_sensitivity as assert_noise_sensitivity,
    )
    from pytest_ragbench.asserts import (
        assert_non_llm_context_precision as assert_non_llm_context_precision,
    )
    from pytest_ragbench.asserts import (
        assert_non_llm_context_recall as assert_non_llm_context_recall,
    )
    from pytest_ragbench.asserts import (
        assert_precision as assert_precision,
    )
    from pytest_ragbench.asserts import (
        assert_r_precision as assert_r_precision,
    )
    from pytest_ragbench.asserts import (
        assert_recall as assert_recall,
    )
    from pytest_ragbench.asserts import (
        assert_response_groundedness as assert_response_groundedness,
    )
    from pytest_ragbench.asserts import (
        assert_rouge as assert_rouge,
    )
    from pytest_ragbench.asserts import (
        assert_rubric as assert_rubric,
    )
    from pytest_ragbench.asserts import (
        assert_silhouette as assert_silhouette,
    )
    from pytest_ragbench.asserts import (
        assert_string_similarity as assert_string_similarity,
    )
    from pytest_ragbench.asserts import (
        assert_token_f1 as assert_token_f1,
    )
    from pytest_ragbench.calibration.asserting import assert_judge_agreement as assert_judge_agreement
    from pytest_ragbench.expectations import assert_expected as assert_expected
    from pytest_ragbench.metrics.critics import define_aspect as define_aspect
    from pytest_ragbench.metrics.critics import define_rubric as define_rubric
    from pytest_ragbench.metrics.registry import Metric as Metric
    from pytest_ragbench.metrics.registry import metric as metric
    from pytest_ragbench.metrics.tools import Tools as Tools
    from pytest_ragbench.model.errors import (
        EmbeddingError as EmbeddingError,
    )
    from pytest_ragbench.model.errors import (
        EndpointError as EndpointError,
    )
    from pytest_ragbench.model.errors import (
        JudgeError as JudgeError,
    )
    from pytest_ragbench.model.errors import (
        QualityFailure as QualityFailure,
    )
    from pytest_ragbench.model.errors import (
        QuestionFileError as QuestionFileError,
    )
    from pytest_ragbench.model.errors import (
        RagbenchError as RagbenchError,
    )
    from pytest_ragbench.model.errors import (
        UndefinedScore as UndefinedScore,
    )
    from pytest_ragbench.model.errors import (
        Unscored as Unscored,
    )
    from pytest_ragbench.model.errors import (
        UsageError as UsageError,
    )
    from pytest_ragbench.model.sample_sets import RagSamples as RagSamples
    from pytest_ragbench.model.samples import Question as Question
    from pytest_ragbench.model.samples import RagSample as RagSample
    from pytest_ragbench.model.scores import Finding as Finding
    from pytest_ragbench.model.scores import Score as Score
    from pytest_ragbench.model.scores import Usage as Usage
    from pytest_ragbench.model.thresholds import Threshold as Threshold
    from pytest_ragbench.questions import load_questions as load_questions
    from pytest_ragbench.variants import assert_same_meaning as assert_same_meaning
    from pytest_ragbench.variants import shuffled_contexts as shuffled_contexts
    from pytest_ragbench.variants import with_distractor as with_distractor

__all__ = sorted(_HOME)  # noqa: PLE0605 - a list of the names above, and of nothing else


def __getattr__(name: str) -> Any:
    # assert_<name> of a metric of one's own is made on demand, where that metric has been registered.
    if name not in _HOME and not name.startswith("assert_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME.get(name, 'asserts')}"), name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
