"""Metrics over a set: means with coverage, clusters, sessions, the judge's own quality."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pytest_ragbench import (
    JudgeError,
    QualityFailure,
    RagSample,
    UndefinedScore,
    UsageError,
    assert_cache_hit_rate,
    assert_cohen_kappa,
    assert_judge_accuracy,
    assert_judge_consistency,
    assert_judge_error_rate,
    assert_over,
    assert_retrieval,
    assert_silhouette,
    score_over,
)
from tests.metrics.scripted import Scripted, verdicts


def grading(user: str) -> Any:
    """The grade that stands in the answer: 'grade 0.9'; anything else is no reply."""
    grade = user.rpartition("grade ")[2].split()[0]
    return {"grade": float(grade), "reason": f"graded {grade}"} if grade[0].isdigit() else "no idea"


def answers(*grades: object) -> list[RagSample]:
    return [RagSample("How?", f"grade {grade} .", id=f"q{place}") for place, grade in enumerate(grades)]


METRIC = "answer_relevancy_holistic"

# --- means -------------------------------------------------------------------------------------


def test_mean() -> None:
    judge = Scripted(grade_relevance=grading)
    found = assert_over(answers(1.0, 0.5, 0.9), METRIC, ">=0.8", judge=judge)
    assert found.value == pytest.approx(0.8)
    assert {name: found.details[name] for name in ("n_scored", "n_unscored", "n_total", "min", "max")} == {
        "n_scored": 3, "n_unscored": 0, "n_total": 3, "min": 0.5, "max": 1.0,
    }  # fmt: skip
    with pytest.raises(QualityFailure) as caught:
        assert_over(answers(1.0, 0.5, 0.6), METRIC, ">=0.8", judge=Scripted(grade_relevance=grading))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"{METRIC} 0.70, wanted >=0.8: mean of 3 of 3")
    assert "0.50 q1   graded 0.5" in lines[1]


def test_a_mean_never_drops_what_failed() -> None:
    samples = answers(*[0.9] * 5, *["x"] * 5)
    judge = Scripted(grade_relevance=grading)
    with pytest.raises(JudgeError, match="5 of 10 have a score, 5 do not") as caught:
        assert_over(samples, METRIC, ">=0.8", judge=judge)
    assert caught.value.code == "coverage"
    assert assert_over(samples, METRIC, ">=0.8", judge=judge, coverage=0.5).details["n_unscored"] == 5
    found = score_over(samples, METRIC, judge=judge)
    assert found.value == pytest.approx(0.9)
    assert found.details["unscored"]["q5"] == "not_json"
    with pytest.raises(JudgeError):
        score_over(answers("x"), METRIC, judge=judge)


def test_wrong_sets() -> None:
    with pytest.raises(UsageError, match="nothing to score"):
        assert_over([], METRIC, ">=0.5")
    with pytest.raises(UsageError, match="list"):
        assert_over(answers(1)[0], METRIC, ">=0.5")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="contexts"):
        assert_over(answers(1, 1), "context_recall", ">=0.5")
    with pytest.raises(UsageError, match="threshold"):
        assert_over(answers(1), METRIC)
    with pytest.raises(UsageError, match="coverage"):
        assert_over(answers(1), METRIC, ">=0.5", coverage=2)
    with pytest.raises(UsageError, match="assert_over"):
        assert_retrieval(answers(1), "context_precision", ">=0.5")


# --- clusters ----------------------------------------------------------------------------------

POINTS: dict[str, list[float]] = {
    "a0": [1, 0],
    "a1": [0.6, 0.8],
    "a2": [0.8, 0.6],
    "b0": [0, 1],
    "b1": [0, 2],
}


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [POINTS[text] for text in texts]


def test_clusters_of_samples_texts_and_vectors() -> None:
    samples = [RagSample(text, cluster=text[0]) for text in POINTS]
    texts, labels = list(POINTS), [text[0] for text in POINTS]
    vectors = np.array(list(POINTS.values()), dtype=float)
    cases: list[tuple[str, dict[str, Any], float]] = [
        ("intra_cluster_similarity", {}, 0.8933333333333333),
        ("inter_cluster_distance", {"normalize": False}, 1.3068197189275108),
        ("silhouette", {"distance": "euclidean"}, 0.4045166496635469),
    ]
    for name, opts, expected in cases:
        assert score_over(samples, name, embedder=embed, **opts).value == pytest.approx(expected, abs=1e-9)
        assert score_over(texts, name, embedder=embed, labels=labels, **opts).value == pytest.approx(expected)
        assert score_over(vectors, name, labels=labels, **opts).value == pytest.approx(expected)  # type: ignore[arg-type]
        assert score_over(vectors.tolist(), name, labels=labels, **opts).value == pytest.approx(expected)


def test_silhouette_vectors() -> None:
    points = [[0.0, 0.0], [0.0, 1.0], [10.0, 10.0], [10.0, 11.0]]
    found = score_over(points, "silhouette", labels="aabb", distance="euclidean")
    assert found.value == pytest.approx(0.929290, abs=1e-6)  # SI1
    assert found.details["distance"] == "euclidean"
    three = score_over(points[:3], "silhouette", labels="aab", distance="euclidean")
    assert three.value == pytest.approx(0.618320, abs=1e-6)  # SI2
    with pytest.raises(QualityFailure, match="silhouette 0.62"):
        assert_silhouette(points[:3], ">=0.7", labels="aab", distance="euclidean")


def test_clusters_at_their_edges() -> None:
    points = [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]
    assert score_over(points, "intra_cluster_similarity", labels=[0, 0, 1]).value == pytest.approx(0.6)
    for name in ("silhouette", "inter_cluster_distance"):
        with pytest.raises(UndefinedScore):
            score_over(points, name, labels=[0, 0, 0])
    with pytest.raises(UsageError, match="labels"):
        score_over(points, "silhouette")
    with pytest.raises(UsageError, match="3 vectors but 2 labels"):
        score_over(points, "silhouette", labels=[0, 1])
    with pytest.raises(UsageError, match="cluster"):
        score_over([RagSample("q")], "silhouette", embedder=embed)


def test_which_text_of_a_sample_is_embedded_and_which_cluster_it_has() -> None:
    asked: list[Sequence[str]] = []

    def look(texts: Sequence[str]) -> list[list[float]]:
        asked.append(list(texts))
        return embed(texts)

    samples = [RagSample("q", text, cluster="one", reference=text) for text in ("a0", "b0", "a1", "b1")]
    name = "inter_cluster_distance"
    found = score_over(samples, name, embedder=look, text="answer", labels=[0, 1, 0, 1])
    assert sorted(asked[0]) == ["a0", "a1", "b0", "b1"]
    assert (found.details["n_clusters"], found.details["n_items"], found.details["normalized"]) == (
        2,
        4,
        True,
    )
    assert found.reason == "2 clusters"
    with pytest.raises(UsageError, match="4 samples but 3 labels"):
        score_over(samples, name, embedder=look, labels=[0, 1, 0])
    with pytest.raises(UsageError, match="cluster metrics of texts need labels"):
        score_over(["a0", "b0"], name, embedder=look)
    with pytest.raises(UsageError, match="needs answer"):
        score_over([samples[0], samples[1].with_(answer=None)], name, embedder=look, text="answer")


def test_the_worst_ten_of_a_silhouette_are_shown() -> None:
    points = [[float(n), 1.0] for n in range(11)] + [[100.0, 1.0]]
    found = score_over(points, "silhouette", labels=["near"] * 11 + ["far"], distance="euclidean")
    assert len(found.evidence) == 10
    assert (found.evidence[0].text, found.evidence[0].reason) == (
        "vector 11",
        "cluster far",
    )  # 0: it is alone
    assert [each.value for each in found.evidence] == sorted(each.value or 0.0 for each in found.evidence)
    assert found.reason == "euclidean distance, 2 clusters"
    texts = score_over(list(POINTS), "silhouette", embedder=embed, labels=[text[0] for text in POINTS])
    assert {each.text for each in texts.evidence} == set(POINTS)
    samples = [RagSample("q", text, cluster=text[0]) for text in POINTS]
    told = score_over(samples, "silhouette", embedder=embed, text="answer")
    assert {each.text for each in told.evidence} == set(POINTS)
    intra = score_over(points, "intra_cluster_similarity", labels=["near"] * 2 + ["far"] * 10)
    assert "singletons left out" in intra.reason


# --- dialogue ----------------------------------------------------------------------------------

CACHE = {"a": [1.0, 0.0], "b": [0.6, 0.8], "c": [0.0, 1.0], "a too": [0.999, 0.0447]}


def look_up(texts: Sequence[str]) -> list[list[float]]:
    return [CACHE[text] for text in texts]


def test_cache_hit_rate() -> None:
    questions = [RagSample(text) for text in ("a", "b", "c")]
    assert score_over(questions, "cache_hit_rate", embedder=look_up).value == 0.0  # none is its own hit
    assert score_over([*questions, RagSample("a too")], "cache_hit_rate", embedder=look_up).value == 0.5
    assert score_over(
        questions, "cache_hit_rate", embedder=look_up, cache=["a too", "c"]
    ).value == pytest.approx(1 / 3)
    assert score_over(questions, "cache_hit_rate", embedder=look_up, cache=[]).value == 0.0
    at_limit = score_over(questions[:2], "cache_hit_rate", embedder=look_up, cutoff=0.6)
    assert at_limit.value == 0.0  # strictly above
    with pytest.raises(UsageError, match="cache"):
        assert_cache_hit_rate(questions, ">=0.1", cache="a")


def test_what_is_told_of_a_cache() -> None:
    questions = [RagSample(text) for text in ("a", "b", "c")]
    found = score_over(questions, "cache_hit_rate", embedder=look_up, cache=["b", "a too"])
    assert found.reason == "1 hit among 3 questions, 2 cached"
    assert [(each.text, each.ok) for each in found.evidence] == [("a", True), ("b", False), ("c", False)]
    assert found.evidence[1].value == pytest.approx(0.999 * 0.6 + 0.0447 * 0.8, abs=1e-3)  # not to itself
    assert {name: found.details[name] for name in ("n_items", "n_cached", "cutoff")} == {
        "n_items": 3, "n_cached": 2, "cutoff": 0.85,
    }  # fmt: skip
    empty = score_over(questions, "cache_hit_rate", embedder=look_up, cache=[])
    assert [(each.ok, each.value) for each in empty.evidence] == [(False, None)] * 3
    for cutoff in (-1.5, 1.5, True):
        with pytest.raises(UsageError, match=r"cutoff must lie in -1\.\.1"):
            score_over(questions, "cache_hit_rate", embedder=look_up, cutoff=cutoff)
    with pytest.raises(UsageError, match="must be a list of questions"):
        score_over(questions, "cache_hit_rate", embedder=look_up, cache=["a", 1])


def test_context_preservation() -> None:
    turns = [RagSample(text, session="s") for text in ("a", "b", "c")] + [RagSample("a", session="alone")]
    found = score_over(turns, "context_preservation", embedder=look_up)
    assert found.value == pytest.approx(0.7)
    assert found.details["n_left_out"] == 1
    assert [(each.text, each.reason) for each in found.evidence] == [
        ("s", "3 questions"), ("alone", "1 question"),
    ]  # fmt: skip
    assert [each.value for each in found.evidence] == [pytest.approx(0.7), None]
    assert found.reason == "2 sessions, 1 of one question left out"
    assert (found.details["n_items"], found.details["n_sessions"]) == (4, 2)
    both = [*turns[:3], RagSample("a", session="t"), RagSample("a", session="t")]
    assert score_over(both, "context_preservation", embedder=look_up).value == pytest.approx(0.85)
    assert score_over(both, "context_preservation", embedder=look_up, pooled=True).value == pytest.approx(0.8)
    with pytest.raises(UndefinedScore, match="one question"):
        score_over(turns[-1:], "context_preservation", embedder=look_up)
    with pytest.raises(UsageError, match="session"):
        score_over([RagSample("a")], "context_preservation", embedder=look_up)


def talk(session: str, *said: str) -> list[RagSample]:
    return [RagSample(f"question {place}", text, session=session) for place, text in enumerate(said)]


def test_multi_turn_consistency() -> None:
    def reply(user: str) -> dict[str, Any]:
        if "45 дней" in user:
            return {
                "verdicts": {
                    "2": {"verdict": True},
                    "3": {"verdict": False, "turn": 1, "reason": "другой срок"},
                }
            }
        return {"verdicts": {"2": {"verdict": "yes"}}}

    judge = Scripted(check_consistency=reply)
    samples = [
        *talk("ru", "Срок — 30 дней.", "Нужен чек.", "Срок — 45 дней."),
        *talk("en", "It is open.", "", "It opens at 9."),
        *talk("alone", "Yes."),
    ]
    found = score_over(samples, "multi_turn_consistency", judge=judge)
    assert found.value == pytest.approx((0.5 + 1) / 2)
    assert found.details["per_session"] == {"ru": 0.5, "en": 1.0}
    assert found.details["n_left_out"] == 1
    assert [(each.text, each.ok, each.reason) for each in found.evidence] == [
        ("ru, answer 2: Нужен чек.", True, ""),
        ("ru, answer 3: Срок — 45 дней.", False, "contradicts answer 1: другой срок"),
        ("en, answer 2: It opens at 9.", True, ""),
    ]
    assert found.reason == "contradicts answer 1: другой срок"
    assert (found.details["n_items"], found.details["n_sessions"]) == (7, 3)
    assert len(judge.asked) == 2
    with pytest.raises(UndefinedScore):
        score_over(talk("alone", "Yes.", " "), "multi_turn_consistency", judge=judge)
    with pytest.raises(JudgeError):
        wrong = Scripted(check_consistency=lambda _: verdicts(1, 1, 1, 1))
        score_over(samples, "multi_turn_consistency", judge=wrong)


# --- the judge ---------------------------------------------------------------------------------


def test_consistency_of_pairs() -> None:
    pairs = [(0.2, 0.7), (0.0, 0.51), (1.0, 0.5), (0.9, 0.4)]
    found = score_over(pairs, "judge_consistency", delta=0.5)
    assert (found.value, found.details["chance"]) == (0.75, 0.75)
    grades = score_over([(0, 0), (1, 2), (2, 2), (None, 1)], "judge_consistency", levels=[0, 1, 2])
    assert grades.value == pytest.approx(2 / 3)
    assert grades.details["n_failed"] == 1
    with pytest.raises(JudgeError, match="3 of 4"):
        assert_judge_consistency([(0, 0), (1, 2), (2, 2), (None, 1)], ">=0.5", levels=[0, 1, 2])
    with pytest.raises(UsageError, match="pair"):
        score_over([0.5, 0.6], "judge_consistency")


def test_a_judge_is_really_asked_twice() -> None:
    calls: list[int] = []

    def judge(messages: Any) -> str:
        calls.append(1)
        return json.dumps({"grade": 0.5 if "steady" in messages[1]["content"] else len(calls) / 100})

    judge.ragbench_key = {"model": f"twice {id(calls)}"}  # type: ignore[attr-defined]
    samples = [RagSample("q", f"steady {id(calls)}"), RagSample("q", f"other {id(calls)}")]
    found = score_over(samples, "judge_consistency", by=METRIC, judge=judge, delta=0.001)
    assert len(calls) == 4
    assert found.value == 0.5
    assert found.usage.calls == 4


def test_consistency_needs_a_judged_metric() -> None:
    with pytest.raises(UsageError, match="by="):
        score_over(answers(1), "judge_consistency")
    with pytest.raises(UsageError, match="asks no judge"):
        score_over([RagSample("q", "a", reference="a")], "judge_consistency", by="rouge1")


def test_error_rate_and_latency() -> None:
    judge = Scripted(grade_relevance=grading)
    found = score_over(answers(0.5, "x", 0.7, "x"), "judge_error_rate", by=METRIC, judge=judge)
    assert (found.value, found.details["n_errors"]) == (0.5, 2)
    assert score_over([0.5, None, JudgeError("x")], "judge_error_rate").value == pytest.approx(2 / 3)
    with pytest.raises(QualityFailure, match="judge_error_rate 0.50, wanted <=0.1"):
        assert_judge_error_rate(answers(0.5, "x"), "<=0.1", by=METRIC, judge=judge)
    seconds = score_over([1.0, 2.0, 3.0], "judge_latency")
    assert (seconds.value, seconds.details["p95"]) == (2.0, pytest.approx(2.9))
    assert score_over(answers(0.5), "judge_latency", by=METRIC, judge=judge, stat="p95").value >= 0


def test_what_stands_beside_the_judges_quality() -> None:
    pairs = [(n / 20, (n + 12 - place) / 20) for place, n in enumerate([0] * 12)]
    found = score_over(pairs, "judge_consistency", delta=0.1)
    assert [each.text for each in found.evidence] == [f"pair {n}" for n in range(1, 11)]
    assert found.evidence[0].reason == "0 and 0.6"
    errors = score_over([0.5, None, JudgeError("it is down\nbadly"), UndefinedScore("x")], "judge_error_rate")
    assert (errors.value, errors.reason) == (0.5, "2 of 4 failed")
    assert [(each.text, each.reason) for each in errors.evidence] == [
        ("call 2", "no reply"), ("call 3", "it is down"),
    ]  # fmt: skip
    quick = score_over([1.0, 2.0], "judge_latency", stat="p95")
    assert quick.value == pytest.approx(1.95)
    assert (quick.details["mean"], quick.details["n_stored"]) == (1.5, 0)
    assert quick.reason == "2 replies"
    read = score_over([("x" * 300, True), ("yes", True)], "judge_accuracy", coverage=0.5)
    assert read.reason == "TP 1, FP 0, FN 0, TN 0, 1 without a verdict"
    assert len(read.evidence[0].reason) == 200
    with pytest.raises(UndefinedScore, match="no call was made"):
        score_over(answers(""), "judge_latency", by=METRIC, judge=Scripted())


def test_raters_of_items() -> None:
    found = score_over([(1, 1), (0, 1), (0, 0), (1, None)], "cohen_kappa", coverage=0.5)
    assert (found.reason, found.details["n_items"], found.details["n_failed"]) == (
        "3 items, weights none", 4, 1,
    )  # fmt: skip
    assert score_over([(1, 1), (0, 1), (0, 0)], "gwet_ac1").reason == "3 items"
    alpha = score_over([(1, 1, 0), (0, 0, 0), (1, 1, None)], "krippendorff_alpha")
    assert alpha.reason == "3 items, 3 raters, nominal"
    with pytest.raises(UsageError, match=r"one entry for each rater; got \[2, 3\]"):
        score_over([(1, 1, 0), (0, 0)], "krippendorff_alpha")
    for wrong in ("ab", [1], (1, 2, 3), 5):
        with pytest.raises(UsageError, match="cohen_kappa: item 1 must be a pair"):
            score_over([(1, 1), wrong], "cohen_kappa")


def test_by_is_for_samples() -> None:
    with pytest.raises(UsageError, match="by='faithfulness' scores samples, and these aren't"):
        score_over([(0.1, 0.2)], "judge_consistency", by="faithfulness")
    with pytest.raises(UsageError, match="faithfulness needs contexts, .*; sample "):
        score_over(answers(1), "judge_error_rate", by="faithfulness", judge=Scripted())


def test_a_yes_no_judge() -> None:
    pairs = [
        ("Yes.", True),
        ("yesterday", True),
        ("not yes", False),
        ("no", "no"),
        ("да", 1),
        ("いいえ", 0),
        (None, True),
        ("yes", False),
    ]
    found = score_over(pairs, "judge_accuracy")
    assert found.value == pytest.approx(4 / 5)
    assert {name: found.details[name] for name in ("tp", "fp", "fn", "tn", "n_failed")} == {
        "tp": 2, "fp": 1, "fn": 0, "tn": 2, "n_failed": 3,
    }  # fmt: skip
    assert found.details["error_rate"] == pytest.approx(3 / 8)
    assert score_over(pairs, "judge_precision").value == pytest.approx(2 / 3)
    assert score_over(pairs, "judge_recall").value == 1.0
    assert score_over(pairs, "judge_f1").value == pytest.approx(0.8)
    with pytest.raises(JudgeError, match="5 of 8"):
        assert_judge_accuracy(pairs, ">=0.5")
    with pytest.raises(UndefinedScore):
        score_over([("no", True)], "judge_precision")
    with pytest.raises(UsageError, match="truth of item 0"):
        score_over([("no", "maybe")], "judge_accuracy")


def test_agreement() -> None:
    one = list(zip([1, 1, 0, 0], [1, 0, 0, 0], strict=True))
    assert score_over(one, "cohen_kappa").value == pytest.approx(0.5)  # KA1
    assert score_over(one, "krippendorff_alpha").value == pytest.approx(0.533333, abs=1e-6)
    two = list(zip([0, 1, 2, 2], [0, 2, 2, 1], strict=True))
    assert score_over(two, "cohen_kappa", weights="quadratic").value == pytest.approx(
        0.636364, abs=1e-6
    )  # KA2
    assert score_over(two, "krippendorff_alpha", level="interval").value == pytest.approx(0.681818, abs=1e-6)
    assert score_over(two, "krippendorff_alpha", level="ordinal").value == pytest.approx(0.5625)
    for name in ("cohen_kappa", "krippendorff_alpha", "gwet_ac1"):
        with pytest.raises(UndefinedScore):
            score_over([(1, 1), (1, 1)], name)  # KA3
    assert score_over([(1, 1), (1, 1)], "gwet_ac1", levels=[0, 1]).value == 1.0
    with pytest.raises(QualityFailure, match="cohen_kappa 0.50"):
        assert_cohen_kappa(one, "good")
