"""Metrics of the chunks, driven by a scripted judge."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench import (
    JudgeError,
    QualityFailure,
    RagSample,
    UndefinedScore,
    UsageError,
    assert_context_precision,
    assert_context_recall,
    score,
)
from tests.metrics.scripted import Scripted, claims, verdicts

EINSTEIN = RagSample(
    "Who was Albert Einstein?",
    "A physicist from Germany, Nobel laureate of 1921.",
    [
        "Einstein was a German-born physicist.",
        "He developed relativity.",
        "He got the Nobel Prize in 1921.",
    ],
    reference="Einstein was a physicist. He got the Nobel Prize in 1921. He published 4 papers in 1905.",
    id="einstein",
)


def chunks(n: int) -> RagSample:
    return EINSTEIN.with_(contexts=[f"Chunk {i} speaks of Einstein." for i in range(n)])


# --- precision ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("useful", "expected"),
    [
        ([1, 1, 1], 1.0),  # CP1
        ([0, 1], 0.5),  # CP2
        ([1, 0], 1.0),  # CP3
        ([1, 0, 1], 5 / 6),  # CP4
        ([0, 1, 1], 7 / 12),  # CP5
        ([1, 0, 1, 1, 0], 29 / 36),  # CP6
        ([0, 0], 0.0),  # CP7
    ],
)
def test_context_precision_is_average_precision(useful: list[int], expected: float) -> None:
    judge = Scripted(judge_chunks=verdicts(*useful))
    found = score("context_precision", chunks(len(useful)), judge=judge)
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert judge.asked == ["judge_chunks"]
    assert [finding.ok for finding in found.evidence] == [bool(v) for v in useful]
    ratio = score(
        "context_relevance_ratio", chunks(len(useful)), judge=Scripted(judge_chunks=verdicts(*useful))
    )
    assert ratio.value == pytest.approx(sum(useful) / len(useful))


def test_a_perfect_ranking_is_exactly_one() -> None:
    assert (
        assert_context_precision(EINSTEIN, "==1", judge=Scripted(judge_chunks=verdicts(1, 1, 1))).value == 1.0
    )


def test_context_utilization_holds_chunks_against_the_answer() -> None:
    judge = Scripted(judge_chunks=verdicts(1, 1, 1))
    sample = EINSTEIN.with_(reference=None)
    assert score("context_utilization", sample, judge=judge).value == 1.0  # CU
    assert "A physicist from Germany" in judge.messages[0][1]["content"]
    assert score("context_precision", sample, judge=judge, target="response").value == 1.0
    assert score("context_precision", sample, judge=judge, target="auto").value == 1.0
    with pytest.raises(UsageError, match="reference"):
        score("context_precision", sample, judge=judge)
    score("context_precision", EINSTEIN, judge=judge, target="auto")
    assert "published 4 papers" in judge.messages[-1][1]["content"]


def test_verdicts_in_another_order_and_in_other_words() -> None:
    shuffled = {
        "verdicts": [
            {"number": 3, "verdict": "да"},
            {"number": 1, "verdict": "はい"},
            {"number": 2, "verdict": "no"},
        ]
    }
    found = score("context_precision", EINSTEIN, judge=Scripted(judge_chunks=shuffled))
    assert found.value == pytest.approx(5 / 6)


def test_missing_verdicts_are_asked_for_once_more() -> None:
    judge = Scripted(judge_chunks=[verdicts(1), {"verdicts": {"2": {"verdict": 0}, "3": {"verdict": 1}}}])
    assert score("context_precision", EINSTEIN, judge=judge).value == pytest.approx(5 / 6)
    assert "no other: 2, 3." in judge.messages[1][0]["content"]


@pytest.mark.parametrize(
    "reply",
    [
        verdicts(1),
        verdicts(1, 1, 1, 1),
        verdicts(1, 2, 1),
        verdicts(1, -1, 1),
        verdicts(1, None, 1),
        verdicts(1, "maybe", 1),
        {"verdicts": {}},
        {},
    ],
)
def test_wrong_verdicts_are_no_score(reply: object) -> None:
    with pytest.raises(JudgeError):
        score("context_precision", EINSTEIN, judge=Scripted(judge_chunks=[reply, reply]))


def test_no_contexts() -> None:
    judge = Scripted()
    for name in ("context_precision", "context_utilization", "context_recall", "context_relevance",
                 "context_entity_recall", "context_sentence_relevancy", "context_relevance_ratio"):  # fmt: skip
        for contexts in ([], ["", "  "]):
            found = score(name, EINSTEIN.with_(contexts=contexts), judge=judge)
            assert (found.value, found.reason) == (0.0, "no contexts retrieved")
        with pytest.raises(UsageError, match="contexts"):
            score(name, EINSTEIN.with_(contexts=None), judge=judge)
    assert not judge.asked


def test_a_blank_chunk_is_not_asked_about_and_keeps_its_rank() -> None:
    judge = Scripted(judge_chunks=verdicts(1))
    found = score(
        "context_precision", EINSTEIN.with_(contexts=["", "Einstein was a physicist."]), judge=judge
    )
    assert found.value == 0.5
    assert [(each.ok, each.chunk, each.reason) for each in found.evidence] == [
        (False, 1, "a blank chunk"), (True, 2, ""),
    ]  # fmt: skip
    assert (found.details["n_contexts"], found.details["n_useful"]) == (2, 1)


@pytest.mark.parametrize(
    ("useful", "precision", "ratio"),
    [
        ([1, 1, 0], "", "not useful: chunk 3 of 3"),
        ([0, 1, 0], "not useful: chunk 1 of 3, before a useful one", "not useful: chunks 1, 3 of 3"),
        ([0, 0, 1], "not useful: chunks 1, 2 of 3, before a useful one", "not useful: chunks 1, 2 of 3"),
        ([0, 0, 0], "no chunk of 3 is useful", "no chunk of 3 is useful"),
        ([1, 1, 1], "", ""),
    ],
)
def test_useless_chunks_are_named_where_they_cost_something(
    useful: list[int], precision: str, ratio: str
) -> None:
    for name, reason in (("context_precision", precision), ("context_relevance_ratio", ratio)):
        found = score(name, EINSTEIN, judge=Scripted(judge_chunks=verdicts(*useful)))
        assert found.reason == reason


def test_options_are_checked_before_anything_is_asked() -> None:
    judge = Scripted()
    with pytest.raises(UsageError, match="target"):
        score("context_precision", EINSTEIN, judge=judge, target="chunks")
    with pytest.raises(UsageError, match="matching"):
        score("context_entity_recall", EINSTEIN, judge=judge, matching="fuzzy")
    with pytest.raises(UsageError, match="no option 'tarket'"):
        score("context_precision", EINSTEIN, judge=judge, tarket="reference")
    with pytest.raises(UsageError, match="reference, which is blank"):
        score("context_recall", EINSTEIN.with_(reference=" "), judge=judge)
    with pytest.raises(UsageError, match="units"):
        score("context_recall", EINSTEIN, judge=judge, units="words")
    assert not judge.asked


def test_by_likeness() -> None:
    wanted = ["Paris is the capital of France.", "The Louvre is in Paris."]
    sample = RagSample("q", contexts=[wanted[0]], reference_contexts=wanted)
    assert score("non_llm_context_recall", sample).value == 0.5  # NL1
    assert score("non_llm_context_precision", sample).value == 1.0
    half = RagSample("q", contexts=["ab"], reference_contexts=["ac"])  # similarity exactly 0.5
    assert (
        score("non_llm_context_recall", half).value == score("non_llm_context_precision", half).value == 1.0
    )
    assert score("non_llm_context_recall", half, cutoff=0.6).value == 0.0
    assert score("non_llm_context_recall", sample.with_(contexts=[])).value == 0.0
    assert score("non_llm_context_precision", sample.with_(contexts=[])).value == 0.0
    ranked = score("non_llm_context_precision", sample.with_(contexts=["xyz", wanted[0]]))
    assert (ranked.value, [finding.chunk for finding in ranked.evidence]) == (0.5, [1, 2])
    with pytest.raises(UsageError, match="reference_contexts"):
        score("non_llm_context_recall", sample.with_(reference_contexts=[]))
    blank = RagSample("q", contexts=["", "ab"], reference_contexts=["ab", " "])
    assert score("non_llm_context_recall", blank).value == 1.0
    assert score("non_llm_context_precision", blank).value == 0.5
    assert [each.value for each in score("non_llm_context_precision", blank).evidence] == [0.0, 1.0]
    assert score("non_llm_context_recall", half, cutoff=0.5 + 5e-13).value == 1.0
    assert score("non_llm_context_recall", half, cutoff=0.5 + 5e-12).value == 0.0
    told = score("non_llm_context_recall", sample)
    assert told.reason == f"no chunk resembles: {wanted[1]}"
    for cutoff in (-0.1, 1.1, True, "0.5"):
        with pytest.raises(UsageError, match="cutoff must lie in 0..1"):
            score("non_llm_context_recall", sample, cutoff=cutoff)


def test_a_cut_off_is_given_once() -> None:
    sample = RagSample("q", context_ids=list("abcd"), relevant_ids=["d"])
    with pytest.raises(UsageError, match="ndcg@3 was given k=4, too"):
        score("ndcg@3", sample, k=4)
    assert score("ndcg", sample, k=4).value == pytest.approx(0.430677, abs=1e-6)


def test_by_id() -> None:
    ids: Any = [1, 2, 3, 4]  # compared as text
    sample = RagSample("q", contexts=list("wxyz"), context_ids=ids, relevant_ids=["1", "4", "5", "6"])
    assert score("id_based_context_precision", sample).value == 0.5  # ID1
    three = RagSample("q", context_ids=["1", "2", "3"], relevant_ids=["1", "4", "5", "6"])
    assert score("id_based_context_recall", three).value == 0.25  # ID2
    assert score("id_based_context_precision", three.with_(context_ids=["1", "1", "2"])).value == 0.5
    assert score("id_based_context_precision", three.with_(context_ids=[])).value == 0.0
    with pytest.raises(UsageError, match="relevant_ids"):
        score("id_based_context_recall", three.with_(relevant_ids=[]))
    more = RagSample("q", context_ids=["a", "x", "x", "b", "y"], relevant_ids=["a", "b"])
    found = score("id_based_context_precision", more)
    assert (found.value, found.reason) == (0.5, "not relevant: x, y")
    assert [(each.text, each.ok) for each in found.evidence] == [
        ("a", True), ("x", False), ("b", True), ("y", False),
    ]  # fmt: skip
    assert score("id_based_context_recall", more).reason == ""
    missing = score("id_based_context_recall", more.with_(relevant_ids=["a", "b", "c"]))
    assert missing.value == pytest.approx(2 / 3)
    assert "c" in missing.reason


# --- recall ------------------------------------------------------------------------------------


def test_context_recall() -> None:
    judge = Scripted(split_claims=claims("a", "b", "c"), verify_claims=verdicts(1, 1, 0))
    found = score("context_recall", EINSTEIN, judge=judge)  # CR1
    assert found.value == pytest.approx(2 / 3)
    assert judge.asked == ["split_claims", "verify_claims"]
    assert "published 4 papers" in judge.messages[0][1]["content"]
    assert [finding.text for finding in found.evidence if not finding.ok] == ["c"]
    with pytest.raises(QualityFailure, match="in no chunk: c"):
        again = Scripted(split_claims=claims("a", "b", "c"), verify_claims=verdicts(1, 1, 0))
        assert_context_recall(EINSTEIN, ">=0.8", judge=again)


def test_context_recall_by_sentence_takes_one_call() -> None:
    judge = Scripted(verify_claims=verdicts(1, 1, 0))
    assert score("context_recall", EINSTEIN, judge=judge, units="sentences").value == pytest.approx(2 / 3)
    assert judge.asked == ["verify_claims"]


def test_a_reference_without_claims_has_no_recall() -> None:
    with pytest.raises(UndefinedScore) as caught:
        score("context_recall", EINSTEIN, judge=Scripted(split_claims=claims()))
    assert caught.value.code == "no_reference_claims"


@pytest.mark.parametrize("value", [2, -1, 0.5, None, "unknown"])
def test_context_recall_refuses_other_verdicts(value: object) -> None:
    reply = verdicts(1, value, 0)
    judge = Scripted(split_claims=claims("a", "b", "c"), verify_claims=[reply, reply])
    with pytest.raises(JudgeError):
        score("context_recall", EINSTEIN, judge=judge)


def entities(*names: str) -> dict[str, list[str]]:
    return {"entities": list(names)}


TAJ = ["Taj Mahal", "Yamuna", "Agra", "1631", "Shah Jahan", "Mumtaz Mahal"]


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (["Eiffel Tower", "Paris"], ["Eiffel Tower", "Paris"], 1.0),  # ER1
        (TAJ, ["Taj Mahal", "Agra", "Shah Jahan", "Mumtaz Mahal", "India"], 4 / 6),  # ER2
        (TAJ, ["Taj Mahal", "UNESCO", "India"], 1 / 6),  # ER3
        (["Paris"], ["paris"], 1.0),  # ER4
        (["Eiffel Tower", "Paris", "France", "1889", "World's Fair"],) * 2 + (1.0,),  # ER5
        (["Paris", "Paris"], ["«Париж»", " Paris. "], 1.0),
        (["東京タワー"], ["東京ﾀﾜｰ"], 1.0),
    ],
)
def test_context_entity_recall(ours: list[str], theirs: list[str], expected: float) -> None:
    def reply(user: str) -> dict[str, list[str]]:
        return entities(*(ours if "published 4 papers" in user else theirs))

    judge = Scripted(extract_entities=reply)
    found = score("context_entity_recall", EINSTEIN, judge=judge)
    assert found.value == pytest.approx(expected)
    assert judge.asked == ["extract_entities"] * 2


def test_inflected_entities_by_the_judge() -> None:
    sample = RagSample(
        "Где офис?",
        "В Париже.",
        ["Офис находится в Париже, на улице Риволи."],
        reference="Офис — Париж, Риволи.",
    )
    judge = Scripted(
        extract_entities=entities("Париж", "Риволи", "париж"), find_entities=verdicts("да", "нет")
    )
    found = score("context_entity_recall", sample, judge=judge, matching="judge")
    assert found.value == 0.5
    assert judge.asked == ["extract_entities", "find_entities"]
    assert "Задание" in judge.messages[0][0]["content"]


def test_a_null_is_no_entity_and_no_claim() -> None:
    sample = RagSample("q", "a", ["Paris."], reference="Paris, Seine.")
    with pytest.raises(JudgeError, match=r"entities.1: null is not allowed in a list of strings"):
        score("context_entity_recall", sample, judge=Scripted(extract_entities={"entities": ["Paris", None]}))
    with pytest.raises(JudgeError, match=r"claims.0: null is not allowed in a list of strings"):
        score("faithfulness", sample, judge=Scripted(split_claims={"claims": [None, "It is."]}))


def test_no_entities() -> None:
    for matching in ("exact", "judge"):
        judge = Scripted(extract_entities=entities("...", ""))
        with pytest.raises(UndefinedScore, match="the judge found no entities in the reference") as caught:
            score("context_entity_recall", EINSTEIN, judge=judge, matching=matching)
        assert caught.value.code == "no_entities"


# --- the old context relevancy -----------------------------------------------------------------


def test_sentences_that_were_copied() -> None:
    sample = RagSample(
        "Расскажите об Эйнштейне.",
        contexts=["Эйнштейн родился в 1879 г. в Ульме. Он создал теорию относительности.",
                  "Его формула знаменита! Он получил премию в 1921 году."],
    )  # fmt: skip
    copied = ["Эйнштейн родился в 1879 г. в Ульме.", "он получил премию в 1921 году", "Он получил премию в 1921 году.",
              "Он жил в Принстоне."]  # fmt: skip
    found = score(
        "context_sentence_relevancy", sample, judge=Scripted(extract_sentences={"sentences": copied})
    )
    assert found.value == 0.5  # OCR: 2 of 4
    assert (found.details["n_found"], found.details["n_invented"]) == (2, 1)
    assert found.reason == "2 of 4 sentences are needed"
    assert [(each.ok, each.reason) for each in found.evidence] == [
        (True, ""), (True, ""), (None, "in no chunk: not counted"),
    ]  # fmt: skip
    rulers = score("context_sentence_relevancy", sample.with_(contexts=["---", "..."]), judge=Scripted())
    assert (rulers.value, rulers.reason) == (0.0, "the chunks have no sentences")
    for nothing in ([], ["Insufficient Information"]):
        judge = Scripted(extract_sentences={"sentences": nothing})
        assert score("context_sentence_relevancy", sample, judge=judge).value == 0.0
    together = Scripted(extract_sentences={"sentences": [" ".join(copied[0:3:2])]})
    assert score("context_sentence_relevancy", sample, judge=together).value == 0.5


def test_japanese_sentences() -> None:
    sample = RagSample(
        "誰ですか。", contexts=["彼は物理学者です。1921年に受賞しました！日本にも来ました。本当？"]
    )
    copied = {"sentences": ["1921年に受賞しました！"]}
    judge = Scripted(extract_sentences=copied)
    assert score("context_sentence_relevancy", sample, judge=judge).value == 0.25
    assert "課題" in judge.messages[0][0]["content"]
