"""What a score says of itself beside its value: every metric of one sample, on a good answer and on a bad one.

Read as people read it: ``NAME VALUE: REASON``. A full value has no fault to tell, and a low one says what is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pytest_ragbench import RagSample, score
from pytest_ragbench.assertions.stub import is_built_in
from pytest_ragbench.metrics.registry import all_metrics, find
from pytest_ragbench.report.explanations import explanation
from tests.metrics.scripted import Scripted

WARRANTY = "The warranty on all devices lasts two years from the day of purchase."
DELIVERY = "Express delivery costs 12 euros and takes one working day."
ASKED: dict[str, Any] = {
    "question": "How long does the warranty last?",
    "reference": "It lasts two years.",
    "id": "q",
}
ASKED |= {"relevant_ids": ["w"], "relevant_urls": ["https://a.example/w"], "reference_contexts": [WARRANTY]}
GOOD = RagSample(
    answer="The warranty lasts two years from the day of purchase.",
    contexts=[WARRANTY, DELIVERY],
    context_ids=["w", "d"],
    context_urls=["https://a.example/w", "https://a.example/d"],
    **ASKED,
)
BAD = RagSample(
    answer="The founders met in Paris in 1998.",
    contexts=[DELIVERY],
    context_ids=["d"],
    context_urls=["https://a.example/d"],
    **ASKED,
)
LATE = GOOD.with_(
    contexts=[DELIVERY, WARRANTY],
    context_ids=["d", "w"],
    context_urls=["https://a.example/d", "https://a.example/w"],
)
"""The right chunk at rank 2."""
ONE = {"contexts": [WARRANTY], "context_ids": ["w"], "context_urls": ["https://a.example/w"]}
SAME = GOOD.with_(answer="It lasts two years.")


@dataclass(frozen=True)
class Row:
    metric: str
    best: str
    """Reason of the best value."""
    low: str
    """Beginning of the reason of a low value."""
    good: RagSample = GOOD
    bad: RagSample = BAD
    scripts: tuple[dict[str, Any], dict[str, Any]] | None = None
    """Replies to the good and the bad sample, where the local judge can't do the task."""
    options: tuple[tuple[str, Any], ...] = ()


def _said(task: str, good: Any, bad: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {task: good}, {task: bad}


_RATED = ({"rating": 2, "reason": "it fits"}, {"rating": 0, "reason": "it does not fit"})
_GRADED = ({"grade": 1.0, "reason": "as good as the reference"}, {"grade": 0.1, "reason": "another topic"})
_NOT_SAID = "no chunk says so; missing: founders, met, Paris"
_NOT_COMPARED = "the reference does not say so; missing: founders, met, Paris"
_MISSING = "not retrieved: w"
_NO_URL = "not retrieved: //a.example/w"
_REFERENCE = "the reference is: It lasts two years."

TABLE = [
    Row("faithfulness", "", _NOT_SAID),
    Row("faithfulness_holistic", "", _NOT_SAID),
    Row("response_groundedness", "it fits", "it does not fit", scripts=_said("rate_groundedness", *_RATED)),
    Row("hallucination", "", "neither in the reference nor in any chunk"),
    Row("noise_sensitivity", "", "not in the reference; a relevant chunk says it", bad=GOOD.with_(
        answer="The warranty covers all devices.", reference="It lasts two years.",
        **{**ONE, "contexts": ["It lasts two years. The warranty covers all devices."]})),
    Row("noise_sensitivity_irrelevant", "", "not in the reference; only an irrelevant chunk says it",
        bad=GOOD.with_(answer="Express delivery costs 12 euros.")),
    Row("answer_relevancy", "answers the question; not taken up: long", "off the topic; not taken up: long, warranty",
        bad=GOOD.with_(answer="The founders met in Paris and later in Rome for a period of three years.")),
    Row("answer_relevancy_holistic", "answers the question; not taken up: long",
        "off the topic; not taken up: long, warranty",
        bad=GOOD.with_(answer="The founders met in Paris and later in Rome for a period of three years.")),
    Row("abstention", "the answer says that it has none", "it gives an answer",
        good=GOOD.with_(answer="I don't know.")),
    Row("search_rag", "", "no such price", scripts=_said(
        "grade_search_rag", {"answer_correctness": 1, "groundedness": 1, "error_message": "it is short"},
        {"answer_correctness": 0.2, "groundedness": 0.9, "error_message": "no such price"})),
    Row("answer_correctness",
        "1 of 1 claim of the answer in the reference, 1 of 1 of the reference in the answer; similarity 1.00",
        _NOT_COMPARED, good=SAME),
    Row("factual_correctness", "", _NOT_COMPARED),
    Row("answer_accuracy", "it fits", "it does not fit", scripts=_said("rate_accuracy", *_RATED)),
    Row("e2e_score", "as good as the reference", "another topic", scripts=_said("grade_end_to_end", *_GRADED)),
    Row("semantic_similarity", "compared with the reference: It lasts two years.",
        "compared with the reference: It lasts two years.", good=SAME),
    Row("context_precision", "", "not useful: chunk 1 of 2, before a useful one", bad=LATE),
    Row("context_utilization", "", "no chunk of 1 is useful"),
    Row("context_relevance_ratio", "", "not useful: chunk 1 of 2", good=GOOD.with_(**ONE), bad=LATE),
    Row("context_recall", "", "no chunk says so; missing: lasts, two years"),
    Row("context_relevance", "it fits", "it does not fit", scripts=_said("rate_context_relevance", *_RATED)),
    Row("context_entity_recall", "", "in no chunk: Paris", good=GOOD.with_(reference="two years"),
        bad=GOOD.with_(reference="In Paris."), scripts=_said(
        "extract_entities", {"entities": ["two years"]},
        lambda text: {"entities": ["Paris"] if "Paris" in text else []})),
    Row("context_sentence_relevancy", "1 of 1 sentences are needed", "0 of 1 sentences are needed",
        good=GOOD.with_(**ONE), scripts=_said(
        "extract_sentences", {"sentences": [WARRANTY]}, {"sentences": []})),
    Row("non_llm_context_precision", "", "no chunk of 1 is useful"),
    Row("non_llm_context_recall", "", f"no chunk resembles: {WARRANTY}"),
    Row("id_based_context_precision", "", "not relevant: d", good=GOOD.with_(**ONE), bad=LATE),
    Row("id_based_context_recall", "", _MISSING),
    *(Row(name, "", "relevant: rank 2 of 2", bad=LATE) for name in (
        "hit_rate@1", "mrr", "map", "ndcg@2", "r_precision")),
    Row("recall@2", "", _MISSING),
    Row("precision@1", "", _MISSING),
    Row("judged@1", "", "without a grade: d"),
    *(Row(name, "", "relevant: rank 2 of 2", bad=LATE) for name in ("url_hit_rate@1", "url_mrr", "url_ndcg@2")),
    Row("url_recall@2", "", _NO_URL),
    Row("url_precision@1", "", _NO_URL),
    *(Row(name, _REFERENCE, _REFERENCE, good=SAME) for name in (
        "exact_match", "token_f1", "string_similarity", "chrf", "rouge1", "rouge2", "rougeL", "bleu")),
    Row("aspect", "it is", "it is not", options=(("definition", "Is it polite?"),), scripts=_said(
        "check_aspect", {"verdict": 1, "reason": "it is"}, {"verdict": 0, "reason": "it is not"})),
    Row("rubric", "fits", "does not fit", options=(("rubric", {1: "bad", 2: "good"}),), scripts=_said(
        "rate_rubric", {"rating": 2, "reason": "fits"}, {"rating": 1, "reason": "does not fit"})),
]  # fmt: skip


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.metric)
def test_a_reason_fits_its_value(row: Row) -> None:
    metric = find(row.metric)
    judges = (Scripted(**row.scripts[0]), Scripted(**row.scripts[1])) if row.scripts else ("local", "local")
    options = dict(row.options)
    good = score(row.metric, row.good, judge=judges[0], embedder="local", **options)
    bad = score(row.metric, row.bad, judge=judges[1], embedder="local", **options)
    assert (good.reason, bad.reason[: len(row.low)]) == (row.best, row.low), (good.value, bad.reason)
    better, worse = (good.value, bad.value) if metric.direction == "higher" else (bad.value, good.value)
    assert better > worse
    # A message is about what is wrong: none beside a good value.
    assert good.error_message == ""


def test_the_table_holds_every_metric_of_one_sample() -> None:
    sets = {"corpus_bleu", "cache_hit_rate", "context_preservation", "multi_turn_consistency"}
    ours = {
        name for name, known in all_metrics().items()
        if known.needs and name not in sets and not name.startswith("test_") and is_built_in(known)
    }  # fmt: skip
    assert {row.metric.partition("@")[0] for row in TABLE} == ours


def test_a_full_value_tells_no_fault_of_what_does_not_count() -> None:
    more = GOOD.with_(relevant_ids=["w", "x"])
    assert score("hit_rate@1", more).reason == ""
    assert score("mrr", more).reason == ""
    assert score("recall@2", more).reason == "not retrieved: x"
    made_up = GOOD.with_(answer="The founders met in Paris in 1998.")
    assert score("noise_sensitivity", made_up, judge="local").reason == ""


@pytest.mark.parametrize(
    ("correctness", "groundedness", "said"),
    [
        (0.9, 0.2, ("", "no such price")),
        (0.3, 0.9, ("no such price", "")),
        (0.3, 0.2, ("", "no such price")),
        (0.2, 0.2, ("no such price",) * 2),
    ],
)
def test_each_of_two_grades_keeps_its_own_message(
    correctness: float, groundedness: float, said: tuple[str, str]
) -> None:
    from pytest_ragbench import QualityFailure, assert_search_rag

    reply = {
        "answer_correctness": correctness,
        "groundedness": groundedness,
        "error_message": "no such price",
    }
    with pytest.raises(QualityFailure) as caught:
        assert_search_rag(GOOD, judge=Scripted(grade_search_rag=reply))
    by_name = {each.metric: each.error_message for each in caught.value.scores}
    wanted = {"search_rag_answer_correctness": said[0], "search_rag_groundedness": said[1]}
    missed = {
        "search_rag_answer_correctness": correctness < 0.7,
        "search_rag_groundedness": groundedness < 0.7,
    }
    assert by_name == {name: text for name, text in wanted.items() if missed[name]}


@pytest.mark.parametrize(
    ("lang", "words"),
    [("en", ("invented", "chunk")), ("ru", ("выдуманных", "эталоне")), ("ja", ("作り話", "正解"))],
)
def test_hallucination_is_described_as_what_it_is(lang: str, words: tuple[str, str]) -> None:
    told = explanation("hallucination", lang) or ""
    assert all(word in told for word in words)


def test_where_no_judge_is_asked_none_is_blamed() -> None:
    from pytest_ragbench import QualityFailure, assert_search_rag

    bare = GOOD.with_(contexts=[], context_ids=[], context_urls=[])
    for sample, why in ((GOOD.with_(answer=""), "empty answer"), (bare, "no contexts")):
        with pytest.raises(QualityFailure) as caught:
            assert_search_rag(sample, judge=Scripted())
        assert all(why in each.reason for each in caught.value.scores), [
            each.reason for each in caught.value.scores
        ]
