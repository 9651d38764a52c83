"""Faithfulness, relevancy and similarity: the worked examples of the founding documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_ragbench import JudgeError, RagSample, UndefinedScore, UsageError, score
from tests.metrics.scripted import Scripted, claims, embedder, verdicts

FILM = RagSample(
    "映画『オッペンハイマー』の監督は誰で、主演は誰ですか？",
    "クリストファー・ノーランが監督し、キリアン・マーフィーが演じています。",
    ["『オッペンハイマー』はクリストファー・ノーラン監督の映画。キリアン・マーフィーが主演。"],
    reference="監督はノーラン、主演はマーフィー。",
)


@pytest.mark.parametrize(
    ("given", "expected"), [((1, 1), 1.0), ((1, 0), 0.5), (("はい", "いいえ"), 0.5)]
)  # F1, F2
def test_faithfulness(given: tuple[Any, ...], expected: float) -> None:
    judge = Scripted(
        split_claims=claims("ノーランが監督した。", "マーフィーが演じた。"), verify_claims=verdicts(*given)
    )
    assert score("faithfulness", FILM, judge=judge).value == expected
    assert judge.asked == ["split_claims", "verify_claims"]
    assert all("課題" in messages[0]["content"] for messages in judge.messages)


def test_one_verdict_for_four_claims() -> None:  # F3
    judge = Scripted(split_claims=claims(*"abcd"), verify_claims=[verdicts(1), verdicts(1)])
    with pytest.raises(JudgeError, match="4 asked, 1 returned"):
        score("faithfulness", FILM, judge=judge)
    more = Scripted(split_claims=claims("a"), verify_claims=[verdicts(1, 1, 0)] * 2)
    with pytest.raises(JudgeError, match="verdict_count_mismatch"):
        score("faithfulness", FILM, judge=more)


def test_faithfulness_at_its_edges() -> None:
    with pytest.raises(UndefinedScore, match="no statements"):
        score("faithfulness", FILM, judge=Scripted(split_claims=claims()))
    assert score("faithfulness", FILM, judge=Scripted(split_claims=claims()), on_no_claims=1.0).value == 1.0
    for contexts in ([], [""]):
        judge = Scripted(split_claims=claims("a"))
        found = score("faithfulness", FILM.with_(contexts=contexts), judge=judge)
        assert (found.value, found.reason) == (0.0, "no contexts retrieved")
        assert [(each.ok, each.reason) for each in found.evidence] == [(False, "no chunk was retrieved")]
        assert judge.asked == ["split_claims"]
    assert score("faithfulness", FILM.with_(answer=" \n"), judge=Scripted()).value == 0.0


def test_the_local_verifier_saves_a_call() -> None:
    sample = RagSample("How long?", "It takes 30 days.", ["Delivery takes 30 days."])
    judge = Scripted(split_claims=claims("Delivery takes 30 days.", "Delivery takes 45 days."))
    found = score("faithfulness", sample, judge=judge, verifier="local")
    assert [finding.ok for finding in found.evidence] == [True, False]
    assert found.value == pytest.approx(0.5, abs=0.05)
    assert found.details["verifier"] == "local"
    assert judge.asked == ["split_claims"]


def test_a_verifier_of_ones_own() -> None:
    judge = Scripted(split_claims=claims("a", "b", "c"))
    seen: list[Any] = []

    def nli(claims: Sequence[str], chunks: Sequence[str]) -> list[float]:
        seen.append((tuple(claims), tuple(chunks)))
        return [0.9, 0.5, 0.51]

    found = score("faithfulness", FILM, judge=judge, verifier=nli)
    assert found.value == pytest.approx(2 / 3)  # 0.5 rounds to 0
    assert [(each.ok, each.value) for each in found.evidence] == [(True, 0.9), (False, 0.5), (True, 0.51)]
    assert (found.details["verifier"], found.details["n_claims"]) == ("own", 3)
    assert found.reason == "not supported: b"
    edges = Scripted(split_claims=claims("a", "b"))
    assert score("faithfulness", FILM, judge=edges, verifier=lambda *_: [0, 1]).value == 0.5
    assert seen == [(("a", "b", "c"), FILM.contexts)]
    for wrong in ([0.9], [0.9, 2.0, 0.1], [0.9, float("nan"), 0.1]):
        with pytest.raises(JudgeError, match="one probability"):
            score(
                "faithfulness",
                FILM,
                judge=Scripted(split_claims=claims("a", "b", "c")),
                verifier=lambda *_, w=wrong: w,
            )
    with pytest.raises(UsageError, match="verifier"):
        score("faithfulness", FILM, judge=Scripted(), verifier="hhem")


def questions(*flags: int) -> dict[str, Any]:
    return {
        "questions": [
            {"question": name, "noncommittal": flag} for name, flag in zip("abc", flags, strict=False)
        ]
    }


@pytest.mark.parametrize(
    ("cosines", "flags", "rule", "expected"),
    [
        ((0.95, 0.90), (0, 0), "all", 0.925),  # AR1
        ((0.95, 0.90), (1, 0), "all", 0.925),  # AR2
        ((0.95, 0.90), (1, 0), "any", 0.0),
        ((0.95, 0.90), (1, 1), "all", 0.0),  # AR3
        ((-1.0,), (0,), "all", -1.0),  # AR4
        ((0.9, 0.8, 0.7), (1, 1, 0), "majority", 0.0),
    ],
)
def test_answer_relevancy(
    cosines: tuple[float, ...], flags: tuple[int, ...], rule: str, expected: float
) -> None:
    vectors = embedder(**dict(zip("abc", cosines, strict=False)))
    judge = Scripted(write_questions=questions(*flags))
    found = score("answer_relevancy", FILM, judge=judge, embedder=vectors, noncommittal=rule)
    assert found.value == pytest.approx(expected)


def test_a_question_that_is_written_twice_counts_once() -> None:
    twice = {
        "questions": [
            {"question": text, "noncommittal": flag} for text, flag in (("a", 0), ("b", 1), ("a ", 1))
        ]
    }
    judge = Scripted(write_questions=twice)
    found = score("answer_relevancy", FILM, judge=judge, embedder=embedder(a=0.9, b=0.5))
    assert found.value == pytest.approx(0.7)
    assert found.details["n_questions"] == 2


def test_no_question() -> None:
    with pytest.raises(JudgeError, match="question"):
        score(
            "answer_relevancy",
            FILM,
            judge=Scripted(write_questions=[{"questions": []}] * 2),
            embedder=embedder(),
        )


def test_semantic_similarity() -> None:
    vectors = embedder(**{str(FILM.reference): 0.95})
    assert score("semantic_similarity", FILM, embedder=vectors).value == pytest.approx(0.95)  # SS
    assert score("semantic_similarity", FILM, embedder=vectors, cutoff=0.95).value == 1.0
    assert score("semantic_similarity", FILM, embedder=vectors, cutoff=0.96).value == 0.0
    opposite = embedder(**{str(FILM.reference): -0.1})
    assert score("semantic_similarity", FILM, embedder=opposite, cutoff=0.0).value == 0.0
    assert score("semantic_similarity", FILM.with_(answer=""), embedder=vectors).value == 0.0


def test_the_cosine_is_told_beside_the_value() -> None:
    vectors = embedder(**{str(FILM.reference): 0.95})
    found = score("semantic_similarity", FILM, embedder=vectors, cutoff=0.95 + 5e-10)
    assert (found.value, found.details["cosine"]) == (1.0, pytest.approx(0.95))
    assert score("semantic_similarity", FILM, embedder=vectors, cutoff=0.95 + 2e-9).value == 0.0
    assert found.reason == f"compared with the reference: {FILM.reference}"


def test_no_more_questions_than_asked_for_are_compared() -> None:
    judge = Scripted(write_questions=questions(0, 0, 1))
    vectors = embedder(a=0.9, b=0.5, c=0.1)
    found = score("answer_relevancy", FILM, judge=judge, embedder=vectors, strictness=2)
    assert found.value == pytest.approx(0.7)
    assert found.details["n_questions"] == 2
    with pytest.raises(UsageError, match="strictness must be 1 or more, got 0"):
        score("answer_relevancy", FILM, judge=judge, embedder=vectors, strictness=0)
