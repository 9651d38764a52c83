"""Made by ``python -m pytest_ragbench.assertions.stub``: not to be edited."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal

from pytest_ragbench.assertions.expectations import assert_expected
from pytest_ragbench.assertions.samples import (
    aassert_metric,
    aassert_quality,
    ascore,
    assert_abstains,
    assert_metric,
    assert_quality,
    assert_rouge,
    assert_search_rag,
    score,
)
from pytest_ragbench.assertions.sets import assert_over, assert_retrieval, score_over
from pytest_ragbench.assertions.variants import assert_same_meaning, shuffled_contexts, with_distractor
from pytest_ragbench.calibration.asserting import assert_judge_agreement
from pytest_ragbench.embeddings.base import Embedder
from pytest_ragbench.embeddings.openai import OpenAIEmbedder
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.judge.clients import OpenAIJudge
from pytest_ragbench.metrics.critics import define_aspect, define_rubric
from pytest_ragbench.metrics.registry import Metric, metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import (
    EmbeddingError,
    EndpointError,
    JudgeError,
    QualityFailure,
    QuestionFileError,
    RagbenchError,
    UndefinedScore,
    Unscored,
    UsageError,
)
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.model.scores import Finding, Score, Usage
from pytest_ragbench.model.thresholds import Threshold
from pytest_ragbench.questions import load_questions
from pytest_ragbench.rag import Retriever
from pytest_ragbench.rag.trace_context import traceparent
from pytest_ragbench.scoring.requests import ThresholdLike
from pytest_ragbench.scoring.sets import Items

__all__ = [
    "Embedder",
    "EmbeddingError",
    "EndpointError",
    "Finding",
    "Items",
    "Judge",
    "JudgeError",
    "Metric",
    "OpenAIEmbedder",
    "OpenAIJudge",
    "QualityFailure",
    "Question",
    "QuestionFileError",
    "RagSample",
    "RagSamples",
    "RagbenchError",
    "Retriever",
    "Score",
    "Threshold",
    "ThresholdLike",
    "Tools",
    "UndefinedScore",
    "Unscored",
    "Usage",
    "UsageError",
    "aassert_metric",
    "aassert_quality",
    "ascore",
    "assert_abstains",
    "assert_abstention",
    "assert_answer_accuracy",
    "assert_answer_correctness",
    "assert_answer_relevancy",
    "assert_answer_relevancy_holistic",
    "assert_aspect",
    "assert_bleu",
    "assert_cache_hit_rate",
    "assert_chrf",
    "assert_cohen_kappa",
    "assert_context_entity_recall",
    "assert_context_precision",
    "assert_context_preservation",
    "assert_context_recall",
    "assert_context_relevance",
    "assert_context_relevance_ratio",
    "assert_context_sentence_relevancy",
    "assert_context_utilization",
    "assert_corpus_bleu",
    "assert_e2e_score",
    "assert_exact_match",
    "assert_expected",
    "assert_factual_correctness",
    "assert_faithfulness",
    "assert_faithfulness_holistic",
    "assert_gwet_ac1",
    "assert_hallucination",
    "assert_hit_rate",
    "assert_id_based_context_precision",
    "assert_id_based_context_recall",
    "assert_inter_cluster_distance",
    "assert_intra_cluster_similarity",
    "assert_judge_accuracy",
    "assert_judge_agreement",
    "assert_judge_consistency",
    "assert_judge_error_rate",
    "assert_judge_f1",
    "assert_judge_latency",
    "assert_judge_precision",
    "assert_judge_recall",
    "assert_judged",
    "assert_krippendorff_alpha",
    "assert_map",
    "assert_metric",
    "assert_mrr",
    "assert_multi_turn_consistency",
    "assert_ndcg",
    "assert_noise_sensitivity",
    "assert_noise_sensitivity_irrelevant",
    "assert_non_llm_context_precision",
    "assert_non_llm_context_recall",
    "assert_over",
    "assert_precision",
    "assert_quality",
    "assert_r_precision",
    "assert_recall",
    "assert_response_groundedness",
    "assert_retrieval",
    "assert_rouge",
    "assert_rouge1",
    "assert_rouge2",
    "assert_rougeL",
    "assert_rubric",
    "assert_same_meaning",
    "assert_search_rag",
    "assert_semantic_similarity",
    "assert_silhouette",
    "assert_string_similarity",
    "assert_token_f1",
    "assert_url_hit_rate",
    "assert_url_mrr",
    "assert_url_ndcg",
    "assert_url_precision",
    "assert_url_recall",
    "define_aspect",
    "define_rubric",
    "load_questions",
    "metric",
    "score",
    "score_over",
    "shuffled_contexts",
    "traceparent",
    "with_distractor",
]

__version__: str

def assert_abstention(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether the answer says that it has no answer: 1, or 0 where it gives one, right or wrong."""

def assert_answer_accuracy(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    scale: Sequence[int] = ...,
    mode: Literal["single", "swap_average", "confirm"] = ...,
    require_both: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How well the answer agrees with the reference: a judge's rating, normalised to 0..1."""

def assert_answer_correctness(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    mode: Literal["classify", "bidirectional"] = ...,
    weights: tuple[float, float] = ...,
    beta: float = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How far answer and reference make the same claims, weighted with the similarity of the two."""

def assert_answer_relevancy(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    strictness: int = ...,
    noncommittal: Literal["all", "any", "majority"] = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How close the question is to questions that the answer would answer (mean cosine)."""

def assert_answer_relevancy_holistic(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How well the answer addresses the question, true or not, as one grade in 0..1."""

def assert_aspect(
    sample: RagSample,
    definition: str,
    threshold: ThresholdLike | None = ...,
    *,
    votes: int = ...,
    include: Sequence[str] = ...,
    direction: Literal["higher", "lower"] = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether the answer meets your own criterion: 1, else 0, by the majority of ``votes`` judge calls."""

def assert_bleu(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    tokenizer: str | None = ...,
    lowercase: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How many word sequences of the answer are in the reference: sentence BLEU, 0..100."""

def assert_cache_hit_rate(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    cache: Sequence[str] | None = ...,
    cutoff: float = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Share of the questions that a cached question comes close to (cosine strictly above ``cutoff``)."""

def assert_chrf(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    word_order: int = ...,
    lowercase: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How many character sequences answer and reference share: chrF, 0..100."""

def assert_cohen_kappa(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    weights: Literal["linear", "quadratic"] | None = ...,
    levels: Sequence[Any] | None = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Cohen's kappa of two raters, (po - pe) / (1 - pe), from (rating, rating) pairs; range -1..1."""

def assert_context_entity_recall(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    matching: Literal["exact", "judge"] = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the reference's distinct entities that the retrieved chunks name."""

def assert_context_precision(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    target: Literal["reference", "response", "auto"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether useful chunks come first: average precision of the ranking, judged chunk by chunk."""

def assert_context_preservation(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    pooled: bool = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """How far users stay on their topic: mean cosine of neighbouring questions of a session, range -1..1."""

def assert_context_recall(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    units: Literal["claims", "sentences"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the reference's claims that the retrieved chunks support."""

def assert_context_relevance(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    scale: Sequence[int] = ...,
    mode: Literal["single", "average"] = ...,
    per: Literal["all", "chunk"] = ...,
    require_both: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How much of what the question needs the chunks hold: a judge's rating, normalised to 0..1."""

def assert_context_relevance_ratio(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    target: Literal["reference", "response", "auto"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the chunks that are useful; their order does not count."""

def assert_context_sentence_relevancy(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the chunks' sentences that are needed to answer the question."""

def assert_context_utilization(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    target: Literal["reference", "response", "auto"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether chunks that the answer makes use of come first: context_precision by the answer."""

def assert_corpus_bleu(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    lang: str | None = ...,
    tokenizer: str | None = ...,
    lowercase: bool = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """BLEU of all answers of a set taken as one document, 0..100."""

def assert_e2e_score(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How useful the answer is compared with the reference, as one grade in 0..1."""

def assert_exact_match(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether the answer equals the reference (1, else 0), apart from case, width, spaces and outer punctuation."""

def assert_factual_correctness(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    mode: Literal["f1", "precision", "recall"] = ...,
    beta: float = ...,
    atomicity: Literal["low", "high"] = ...,
    claim_coverage: Literal["low", "high"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How far answer and reference support each other's claims: F of precision and recall."""

def assert_faithfulness(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    on_no_claims: float | None = ...,
    verifier: Literal["judge", "local"] | Callable[[Sequence[str], Sequence[str]], Sequence[float]] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the answer's claims that the retrieved chunks support."""

def assert_faithfulness_holistic(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How much of the answer the chunks support, as one grade in 0..1."""

def assert_gwet_ac1(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    levels: Sequence[Any] | None = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Gwet's AC1 of two raters, from pairs: as kappa, but steady where one grade is frequent; range -1..1."""

def assert_hallucination(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    mode: Literal["relevant", "irrelevant", "hallucination"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the answer's claims invented: neither in the reference nor in any chunk. Lower is better."""

def assert_hit_rate(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether any of the first k ids is relevant: 1, else 0."""

def assert_id_based_context_precision(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the retrieved ids that are relevant; their order does not count."""

def assert_id_based_context_recall(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the relevant ids that were retrieved. Source: RAGAS' IDBasedContextRecall."""

def assert_inter_cluster_distance(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    labels: Sequence[Hashable] | None = ...,
    text: Literal["question", "answer", "reference"] = ...,
    normalize: bool = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """How far clusters lie apart: mean Euclidean distance between the centroids of all pairs of clusters."""

def assert_intra_cluster_similarity(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    labels: Sequence[Hashable] | None = ...,
    text: Literal["question", "answer", "reference"] = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """How close texts of one cluster lie: mean cosine of their pairs, averaged over clusters; range -1..1."""

def assert_judge_accuracy(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Right verdicts / verdicts of a judge that says yes or no, from (reply, truth) pairs."""

def assert_judge_consistency(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    by: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    delta: float | None = ...,
    scale: tuple[float, float] | None = ...,
    levels: Sequence[float] | None = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Share of samples that a judge scores (nearly) alike when asked twice: |s1 - s2| <= delta."""

def assert_judge_error_rate(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    by: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Samples that the judge failed at / samples. Lower is better."""

def assert_judge_f1(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """2 TP / (2 TP + FP + FN), "yes" positive. See ``judge_accuracy``."""

def assert_judge_latency(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    by: str | None = ...,
    options: Mapping[str, Any] | None = ...,
    stat: Literal["mean", "p95"] = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Seconds of a judge's reply, mean or 95th percentile; retries and stored replies left out. Lower is better."""

def assert_judge_precision(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Right "yes" / all "yes" of the judge; undefined where it never said yes. See ``judge_accuracy``."""

def assert_judge_recall(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Right "yes" / all that should be "yes". See ``judge_accuracy``."""

def assert_judged(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the first k ids that have a grade at all: how far the other metrics can be trusted."""

def assert_krippendorff_alpha(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    level: Literal["nominal", "ordinal", "interval"] = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Krippendorff's alpha of any number of raters: one row of ratings an item, None where one is missing."""

def assert_map(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int | None = ...,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether relevant ids come first: average precision; the mean over questions is MAP."""

def assert_mrr(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int | None = ...,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How early the first relevant id comes: 1 / its rank, 0 where there is none. The mean over questions is MRR."""

def assert_multi_turn_consistency(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Share of the later answers of a session that contradict no earlier one, averaged over sessions."""

def assert_ndcg(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int | None = ...,
    gain: Literal["linear", "exponential"] = ...,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How close the first k ids come to the best possible ranking by grades: DCG / ideal DCG."""

def assert_noise_sensitivity(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    mode: Literal["relevant", "irrelevant", "hallucination"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the answer's claims that are wrong and come from relevant chunks. Lower is better."""

def assert_noise_sensitivity_irrelevant(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    mode: Literal["relevant", "irrelevant", "hallucination"] = ...,
    verdicts: Literal["json", "probability"] | None = ...,
    yes_from: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the answer's claims that are wrong and come from irrelevant chunks only. Lower is better."""

def assert_non_llm_context_precision(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    cutoff: float = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether chunks that resemble a reference chunk come first (average precision, no judge)."""

def assert_non_llm_context_recall(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    cutoff: float = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the reference chunks that a retrieved chunk resembles (no judge)."""

def assert_precision(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int,
    denominator: Literal["k", "returned"] = ...,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the first k ids that are relevant."""

def assert_r_precision(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the first R ids that are relevant, where R is the number of relevant ids."""

def assert_recall(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of all relevant ids that are among the first k."""

def assert_response_groundedness(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    scale: Sequence[int] = ...,
    mode: Literal["single", "average"] = ...,
    require_both: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How far the chunks support the answer: a judge's rating, normalised to 0..1."""

def assert_rouge1(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    part: Literal["f1", "precision", "recall"] = ...,
    tokenizer: Literal["unicode", "whitespace"] | Callable[[str], list[str]] = ...,
    stem: bool = ...,
    fold_yo: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How many words answer and reference share (F1); ``details`` hold precision, recall and signature."""

def assert_rouge2(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    part: Literal["f1", "precision", "recall"] = ...,
    tokenizer: Literal["unicode", "whitespace"] | Callable[[str], list[str]] = ...,
    stem: bool = ...,
    fold_yo: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How many pairs of neighbouring words answer and reference share (F1); ``details`` hold precision, recall and signature."""

def assert_rougeL(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    part: Literal["f1", "precision", "recall"] = ...,
    tokenizer: Literal["unicode", "whitespace"] | Callable[[str], list[str]] = ...,
    stem: bool = ...,
    fold_yo: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How many words of the reference the answer has in the same order (F1); ``details`` hold precision, recall and signature."""

def assert_rubric(
    sample: RagSample,
    rubric: Mapping[int, str],
    threshold: ThresholdLike | None = ...,
    *,
    include: Sequence[str] = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Which grade of your own rubric fits the answer best, normalised to 0..1."""

def assert_semantic_similarity(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    cutoff: float | None = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How close answer and reference are in meaning: the cosine of their embeddings, range -1..1."""

def assert_silhouette(
    items: Items,
    threshold: ThresholdLike | None = ...,
    *,
    labels: Sequence[Hashable] | None = ...,
    text: Literal["question", "answer", "reference"] = ...,
    distance: Literal["cosine", "euclidean"] = ...,
    judge: object = ...,
    embedder: object = ...,
    coverage: float = ...,
) -> Score:
    """Whether texts lie nearer to their own cluster than to the next one: the mean silhouette, range -1..1."""

def assert_string_similarity(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How similar answer and reference are, letter by letter: 1 - Levenshtein distance / longer length."""

def assert_token_f1(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How many words answer and reference share, in any order (F1 of SQuAD; any script, articles kept)."""

def assert_url_hit_rate(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Whether one of the first k chunks comes from a URL that was shown to the user: 1, else 0."""

def assert_url_mrr(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int | None = ...,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How early the first chunk from a URL shown to the user comes: 1 / its rank, 0 where there is none."""

def assert_url_ndcg(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int | None = ...,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """How close the first k chunks come to a ranking with the shown URLs first: DCG / ideal DCG."""

def assert_url_precision(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int,
    denominator: Literal["k", "returned"] = ...,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the first k chunks that come from a URL shown to the user."""

def assert_url_recall(
    sample: RagSample,
    threshold: ThresholdLike | None = ...,
    *,
    k: int,
    collapse: bool = ...,
    judge: object = ...,
    embedder: object = ...,
) -> Score:
    """Share of the URLs shown to the user that the first k chunks come from."""

# Helpers of your own metrics: made when the metric is registered.
def __getattr__(name: str) -> Any: ...
