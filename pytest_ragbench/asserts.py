"""One helper a metric: ``assert_<metric>(sample, threshold, **options)``.

They are ``assert_metric`` and ``assert_over`` under
names that read well in a test; what they raise is said there. Any other registered metric, one of your own
too, has its ``assert_<name>`` as well: it is made when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pytest_ragbench.assertions.samples import assert_metric
from pytest_ragbench.assertions.sets import assert_over
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import Items, ThresholdLike

# --- one sample --------------------------------------------------------------------------------


def assert_context_precision(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the average precision of the ranking, each chunk judged useful or not; ``target``."""
    __tracebackhide__ = True
    return assert_metric("context_precision", sample, threshold, **options)


def assert_context_utilization(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert context precision held against the answer: it needs no reference."""
    __tracebackhide__ = True
    return assert_metric("context_utilization", sample, threshold, **options)


def assert_context_relevance_ratio(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the share of useful chunks, whatever their order."""
    __tracebackhide__ = True
    return assert_metric("context_relevance_ratio", sample, threshold, **options)


def assert_non_llm_context_precision(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert context precision by likeness to ``reference_contexts``: no judge."""
    __tracebackhide__ = True
    return assert_metric("non_llm_context_precision", sample, threshold, **options)


def assert_id_based_context_precision(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the share of retrieved ids that are relevant: no judge."""
    __tracebackhide__ = True
    return assert_metric("id_based_context_precision", sample, threshold, **options)


def assert_context_recall(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert the share of the reference's claims that the chunks support."""
    __tracebackhide__ = True
    return assert_metric("context_recall", sample, threshold, **options)


def assert_non_llm_context_recall(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the share of ``reference_contexts`` that were retrieved, by likeness: no judge."""
    __tracebackhide__ = True
    return assert_metric("non_llm_context_recall", sample, threshold, **options)


def assert_id_based_context_recall(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the share of relevant ids that were retrieved: no judge."""
    __tracebackhide__ = True
    return assert_metric("id_based_context_recall", sample, threshold, **options)


def assert_context_entity_recall(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the share of the reference's entities that the chunks name; ``matching="judge"`` where words inflect."""
    __tracebackhide__ = True
    return assert_metric("context_entity_recall", sample, threshold, **options)


def assert_context_relevance(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the rating of how much of what the question needs the chunks hold."""
    __tracebackhide__ = True
    return assert_metric("context_relevance", sample, threshold, **options)


def assert_context_sentence_relevancy(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the share of the chunks' sentences that the answer needs."""
    __tracebackhide__ = True
    return assert_metric("context_sentence_relevancy", sample, threshold, **options)


def assert_faithfulness_holistic(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert one grade for how much of the answer the chunks support."""
    __tracebackhide__ = True
    return assert_metric("faithfulness_holistic", sample, threshold, **options)


def assert_answer_relevancy_holistic(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert one grade for how well the answer addresses the question."""
    __tracebackhide__ = True
    return assert_metric("answer_relevancy_holistic", sample, threshold, **options)


def assert_response_groundedness(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the rating of how far the chunks support the answer."""
    __tracebackhide__ = True
    return assert_metric("response_groundedness", sample, threshold, **options)


def assert_noise_sensitivity(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the share of claims that are wrong and come from the chunks: lower is better, ``"<=0.2"``."""
    __tracebackhide__ = True
    return assert_metric("noise_sensitivity", sample, threshold, **options)


def assert_answer_correctness(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert F over claims, and similarity, of answer and reference."""
    __tracebackhide__ = True
    return assert_metric("answer_correctness", sample, threshold, **options)


def assert_factual_correctness(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert F (or precision, recall: ``mode``) of the claims of answer and reference."""
    __tracebackhide__ = True
    return assert_metric("factual_correctness", sample, threshold, **options)


def assert_answer_accuracy(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the rating of how well the answer agrees with the reference; ``scale`` and ``mode``."""
    __tracebackhide__ = True
    return assert_metric("answer_accuracy", sample, threshold, **options)


def assert_e2e_score(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert one grade for how useful the answer is beside the reference."""
    __tracebackhide__ = True
    return assert_metric("e2e_score", sample, threshold, **options)


def assert_bleu(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert sentence BLEU, 0..100."""
    __tracebackhide__ = True
    return assert_metric("bleu", sample, threshold, **options)


def assert_chrf(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert chrF, 0..100."""
    __tracebackhide__ = True
    return assert_metric("chrf", sample, threshold, **options)


def assert_exact_match(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert that the answer is the reference, up to case, width and punctuation at the ends."""
    __tracebackhide__ = True
    return assert_metric("exact_match", sample, threshold, **options)


def assert_token_f1(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert F1 of the words of answer and reference."""
    __tracebackhide__ = True
    return assert_metric("token_f1", sample, threshold, **options)


def assert_string_similarity(
    sample: RagSample, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert 1 - edit distance / length of answer and reference."""
    __tracebackhide__ = True
    return assert_metric("string_similarity", sample, threshold, **options)


def assert_r_precision(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert the share of relevant ids among the first R, where R ids are relevant."""
    __tracebackhide__ = True
    return assert_metric("r_precision", sample, threshold, **options)


def assert_rouge(
    sample: RagSample,
    threshold: ThresholdLike | None = None,
    kind: Literal["rouge1", "rouge2", "rougeL"] = "rougeL",
    **options: Any,
) -> Score:
    """Assert the share of words, pairs of words, or the longest common run of words (default)."""
    __tracebackhide__ = True
    return assert_metric(kind, sample, threshold, **options)


def assert_aspect(
    sample: RagSample,
    definition: str,
    threshold: ThresholdLike | None = None,
    *,
    direction: Literal["higher", "lower"] = "higher",
    **options: Any,
) -> Score:
    """Assert that a yes/no criterion is met (or is not, with ``direction="lower"``); ``votes``, ``include``."""
    __tracebackhide__ = True
    wanted = ("==1" if direction == "higher" else "==0") if threshold is None else threshold
    return assert_metric("aspect", sample, wanted, definition=definition, direction=direction, **options)


def assert_rubric(
    sample: RagSample, rubric: Mapping[int, str], threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the grade of ``{grade: description}`` that fits the answer, normalised to 0..1; ``include``."""
    __tracebackhide__ = True
    return assert_metric("rubric", sample, threshold, rubric=rubric, **options)


# --- the ranking of one sample; of a set: assert_retrieval -------------------------------------


def assert_hit_rate(
    sample: RagSample, threshold: ThresholdLike | None = None, *, k: int, **options: Any
) -> Score:
    """Assert that a relevant id is among the first k."""
    __tracebackhide__ = True
    return assert_metric(f"hit_rate@{k}", sample, threshold, **options)


def assert_recall(
    sample: RagSample, threshold: ThresholdLike | None = None, *, k: int, **options: Any
) -> Score:
    """Assert relevant ids among the first k / all relevant ids."""
    __tracebackhide__ = True
    return assert_metric(f"recall@{k}", sample, threshold, **options)


def assert_precision(
    sample: RagSample, threshold: ThresholdLike | None = None, *, k: int, **options: Any
) -> Score:
    """Assert relevant ids among the first k / k."""
    __tracebackhide__ = True
    return assert_metric(f"precision@{k}", sample, threshold, **options)


def assert_judged(
    sample: RagSample, threshold: ThresholdLike | None = None, *, k: int, **options: Any
) -> Score:
    """Assert the share of the first k ids that have a grade at all."""
    __tracebackhide__ = True
    return assert_metric(f"judged@{k}", sample, threshold, **options)


def assert_mrr(
    sample: RagSample, threshold: ThresholdLike | None = None, *, k: int | None = None, **options: Any
) -> Score:
    """Assert 1 / rank of the first relevant id (of the first k)."""
    __tracebackhide__ = True
    return assert_metric(_at("mrr", k), sample, threshold, **options)


def assert_map(
    sample: RagSample, threshold: ThresholdLike | None = None, *, k: int | None = None, **options: Any
) -> Score:
    """Assert the average precision of the ids (of the first k)."""
    __tracebackhide__ = True
    return assert_metric(_at("map", k), sample, threshold, **options)


def assert_ndcg(
    sample: RagSample, threshold: ThresholdLike | None = None, *, k: int | None = None, **options: Any
) -> Score:
    """Assert the discounted gain of the first k ids, ``gain="linear"`` or ``"exponential"``."""
    __tracebackhide__ = True
    return assert_metric(_at("ndcg", k), sample, threshold, **options)


def _at(name: str, k: int | None) -> str:
    return name if k is None else f"{name}@{k}"


# --- a set -------------------------------------------------------------------------------------


def assert_corpus_bleu(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert BLEU of all answers as one text."""
    __tracebackhide__ = True
    return assert_over(items, "corpus_bleu", threshold, **options)


def assert_intra_cluster_similarity(
    items: Items, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the mean cosine within clusters: of samples with a ``cluster``, or texts or vectors with ``labels``."""
    __tracebackhide__ = True
    return assert_over(items, "intra_cluster_similarity", threshold, **options)


def assert_inter_cluster_distance(
    items: Items, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the mean distance between the centroids of clusters; items as above."""
    __tracebackhide__ = True
    return assert_over(items, "inter_cluster_distance", threshold, **options)


def assert_silhouette(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert the mean silhouette of clusters; items as above; ``distance="cosine"`` or ``"euclidean"``."""
    __tracebackhide__ = True
    return assert_over(items, "silhouette", threshold, **options)


def assert_cache_hit_rate(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert the share of questions with a near one in ``cache`` (default: among the others)."""
    __tracebackhide__ = True
    return assert_over(items, "cache_hit_rate", threshold, **options)


def assert_context_preservation(
    items: Items, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert the mean cosine of neighbouring questions of a session."""
    __tracebackhide__ = True
    return assert_over(items, "context_preservation", threshold, **options)


def assert_multi_turn_consistency(
    items: Items, threshold: ThresholdLike | None = None, **options: Any
) -> Score:
    """Assert that the answers of a session do not contradict each other."""
    __tracebackhide__ = True
    return assert_over(items, "multi_turn_consistency", threshold, **options)


def assert_judge_consistency(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert that the judge scores alike when asked twice: samples and ``by=``, or pairs of scores."""
    __tracebackhide__ = True
    return assert_over(items, "judge_consistency", threshold, **options)


def assert_judge_error_rate(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert the share of samples that the judge fails at: lower is better."""
    __tracebackhide__ = True
    return assert_over(items, "judge_error_rate", threshold, **options)


def assert_judge_latency(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert the seconds of a judge's reply, ``stat="mean"`` or ``"p95"``: lower is better."""
    __tracebackhide__ = True
    return assert_over(items, "judge_latency", threshold, **options)


def assert_judge_accuracy(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert right verdicts / verdicts, from (reply, truth) pairs."""
    __tracebackhide__ = True
    return assert_over(items, "judge_accuracy", threshold, **options)


def assert_judge_precision(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert right "yes" / all "yes", from (reply, truth) pairs."""
    __tracebackhide__ = True
    return assert_over(items, "judge_precision", threshold, **options)


def assert_judge_recall(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert right "yes" / all that should be, from (reply, truth) pairs."""
    __tracebackhide__ = True
    return assert_over(items, "judge_recall", threshold, **options)


def assert_judge_f1(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert F1 of "yes", from (reply, truth) pairs."""
    __tracebackhide__ = True
    return assert_over(items, "judge_f1", threshold, **options)


def assert_cohen_kappa(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert the kappa of two raters, from pairs; ``weights`` for ordered grades."""
    __tracebackhide__ = True
    return assert_over(items, "cohen_kappa", threshold, **options)


def assert_gwet_ac1(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert Gwet's AC1 of two raters, from pairs."""
    __tracebackhide__ = True
    return assert_over(items, "gwet_ac1", threshold, **options)


def assert_krippendorff_alpha(items: Items, threshold: ThresholdLike | None = None, **options: Any) -> Score:
    """Assert Krippendorff's alpha, from a row of ratings for each item; ``level``."""
    __tracebackhide__ = True
    return assert_over(items, "krippendorff_alpha", threshold, **options)


# --- any other metric --------------------------------------------------------------------------


def __getattr__(name: str) -> Callable[..., Score]:
    """``assert_<name>`` of any registered metric."""
    from pytest_ragbench.metrics.registry import all_metrics

    known = all_metrics().get(name.removeprefix("assert_")) if name.startswith("assert_") else None
    if known is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if known.of == "set":

        def over(items: Sequence[Any], threshold: ThresholdLike | None = None, **options: Any) -> Score:
            __tracebackhide__ = True
            return assert_over(items, known.name, threshold, **options)

        over.__name__, over.__doc__ = name, known.summary
        return over

    def one(sample: RagSample, threshold: ThresholdLike | None = None, **options: Any) -> Score:
        __tracebackhide__ = True
        return assert_metric(known.name, sample, threshold, **options)

    one.__name__, one.__doc__ = name, known.summary
    return one
