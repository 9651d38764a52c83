"""What people want to know of a RAG system, and the metrics that tell them, the one to begin with first."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragbench.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Purpose:
    """A question about a RAG system."""

    question: str
    problems: tuple[str, ...]
    """What people call it when it goes wrong; what ``ragbench metrics --for`` is looked up in."""
    metrics: tuple[str, ...]
    """Names without cut-off, the one to begin with first."""


PURPOSES: tuple[Purpose, ...] = (
    Purpose(
        "Did it make something up?",
        ("hallucinations", "invented facts", "made-up answers", "unsupported claims", "grounding", "fabrication"),
        ("faithfulness", "response_groundedness", "faithfulness_holistic", "hallucination"),
    ),
    Purpose(
        "Is the answer right?",
        ("wrong answers", "incorrect answers", "accuracy against a reference", "mistakes", "incomplete answers"),
        ("answer_correctness", "factual_correctness", "answer_accuracy", "e2e_score", "semantic_similarity"),
    ),
    Purpose(
        "Does it answer the question?",
        ("off-topic answers", "irrelevant answers", "evasive answers", "beside the point", "rambling"),
        ("answer_relevancy", "answer_relevancy_holistic"),
    ),
    Purpose(
        "Is the whole reply good, answer and chunks in one grade?",
        ("end to end quality", "one number", "overall score"),
        ("search_rag",),
    ),
    Purpose(
        "Does it refuse when it should, and only then?",
        ("refusals", "says it does not know", "over-refusing", "unanswerable questions", "abstaining"),
        ("abstention",),
    ),
    Purpose(
        "Did retrieval find the right documents?",
        ("missing documents", "missing chunks", "search misses", "low recall", "incomplete retrieval", "bad search"),
        (
            "hit_rate", "recall", "id_based_context_recall", "context_recall", "context_entity_recall",
            "non_llm_context_recall",
        ),
    ),
    Purpose(
        "Do the right documents come first?",
        ("bad ranking", "wrong order", "reranker", "search quality", "relevant chunk too far down"),
        (
            "ndcg", "mrr", "map", "r_precision", "context_precision", "context_utilization",
            "non_llm_context_precision",
        ),
    ),
    Purpose(
        "Is much of what was retrieved useless?",
        ("noisy retrieval", "irrelevant chunks", "too many chunks", "long contexts", "chunk size"),
        (
            "precision", "id_based_context_precision", "context_relevance", "context_relevance_ratio",
            "context_sentence_relevancy",
        ),
    ),
    Purpose(
        "Do useless or wrong chunks mislead the answer?",
        ("distracted by noise", "robustness", "misleading documents"),
        ("noise_sensitivity", "noise_sensitivity_irrelevant"),
    ),
    Purpose(
        "Is the answer worded like the reference?",
        ("wording", "exact values", "string match", "translation", "summaries", "without a judge"),
        (
            "exact_match", "token_f1", "string_similarity", "chrf", "rougeL", "rouge1", "rouge2", "bleu",
            "corpus_bleu",
        ),
    ),
    Purpose(
        "Does it meet a criterion of our own?",
        ("tone of voice", "politeness", "style guide", "policy", "safety", "custom criteria", "rubric"),
        ("aspect", "rubric"),
    ),
    Purpose(
        "Does a conversation hold together?",
        ("contradicts itself", "loses the thread", "multi-turn", "chat sessions", "dialogue"),
        ("multi_turn_consistency", "context_preservation"),
    ),
    Purpose(
        "Would a cache of answers pay off?",
        ("repeated questions", "cost of answers", "caching"),
        ("cache_hit_rate",),
    ),
    Purpose(
        "Can the judge be trusted?",
        ("unreliable judge", "judge errors", "judge scores jump", "disagreement with people", "flaky judge"),
        (
            "cohen_kappa", "gwet_ac1", "krippendorff_alpha", "judge_consistency", "judge_accuracy", "judge_precision",
            "judge_recall", "judge_f1", "judge_error_rate", "judge_latency",
        ),
    ),
    Purpose(
        "Can the labels of the documents be trusted?",
        ("unjudged documents", "incomplete labels", "missing relevance grades"),
        ("judged",),
    ),
    Purpose(
        "Does retrieval show what users were shown before?",
        ("production logs", "clicked pages", "urls", "real users", "replacing a search engine"),
        ("url_hit_rate", "url_mrr", "url_ndcg", "url_recall", "url_precision"),
    ),
    Purpose(
        "Does the embedding model keep topics apart?",
        ("embedding quality", "clusters", "choosing an embedder", "similar texts far apart"),
        ("silhouette", "intra_cluster_similarity", "inter_cluster_distance"),
    ),
)  # fmt: skip

# Words that say nothing of the problem.
_EMPTY = frozenset(
    (
        "a",
        "an",
        "and",
        "answer",
        "answers",
        "are",
        "be",
        "can",
        "do",
        "does",
        "for",
        "i",
        "in",
        "is",
        "it",
        "my",
        "of",
        "on",
        "or",
        "our",
        "the",
        "to",
        "what",
        "when",
    )
)


def purpose_of(metric: str) -> Purpose | None:
    """The first purpose that a metric serves; None for one that we don't know, of a user's own."""
    return next((each for each in PURPOSES if metric in each.metrics), None)


def purposes_for(problem: str) -> list[Purpose]:
    """Those that a few words describe ("wrong answers", "hallucinations"), the closest first.

    Raises
    ------
    UsageError
        No purpose has to do with these words.
    """
    wanted = _words(problem)
    ranked = [(_match(wanted, purpose), purpose) for purpose in PURPOSES]
    best = max(match for match, _ in ranked)
    if best > 0:
        # A phrase that one purpose has as it stands means that one; single words may mean several.
        return [
            purpose for match, purpose in sorted(ranked, key=lambda each: -each[0]) if match >= 0.75 * best
        ]
    known = "\n".join(f"  {each.question:58}{', '.join(each.problems[:2])}" for each in PURPOSES)
    raise UsageError(f"no metric is known to be for {problem!r}; say it in words of these:\n{known}")


def _match(wanted: Sequence[str], purpose: Purpose) -> float:
    """Share of the wanted words that one phrase of the purpose has, or by half that all of it has; 0..1."""
    if not wanted:
        return 0.0
    phrases = [_words(text) for text in (*purpose.problems, purpose.question, *purpose.metrics)]
    closest = max(_found(wanted, phrase) for phrase in phrases)
    anywhere = _found(wanted, [word for phrase in phrases for word in phrase])
    return max(closest, anywhere / 2) / len(wanted)


def _found(wanted: Sequence[str], words: list[str]) -> float:
    """How many of the words there are; a misspelt one counts for less than the word itself."""
    close = (difflib.get_close_matches(word, words, n=1, cutoff=0.8) for word in wanted if word not in words)
    return sum(word in words for word in wanted) + 0.7 * sum(map(bool, close))


def _words(text: str) -> list[str]:
    """Lower-case, without endings, and without those that nearly every phrase has, unless there are no others."""
    found = re.findall(r"[^\W_]+", text.lower())
    telling = [word for word in found if word not in _EMPTY] or found
    return [re.sub(r"(ing|ations?|ated?|ed|es|s)$", "", word) if len(word) > 4 else word for word in telling]
