"""Ratings, criteria and rubrics, driven by a scripted judge."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from pytest_ragbench import (
    JudgeError,
    QualityFailure,
    RagSample,
    UsageError,
    assert_answer_accuracy,
    assert_aspect,
    assert_rubric,
    define_aspect,
    define_rubric,
    score,
)
from pytest_ragbench.judge.base import Answered
from pytest_ragbench.metrics.registry import find
from tests.metrics.scripted import Scripted

PARIS = RagSample(
    "What is the capital of France?", "It is Paris.", ["Paris is the capital of France."], reference="Paris."
)


def rated(grade: Any) -> dict[str, Any]:
    return {"reason": f"rated {grade}", "rating": grade}


# --- answer accuracy ---------------------------------------------------------------------------


@pytest.mark.parametrize(("raw", "expected"), [(0, 0.0), (1, 0.5), (2, 1.0), ("2", 1.0), (1.0, 0.5)])  # AA2
def test_a_rating_is_normalised(raw: Any, expected: float) -> None:
    judge = Scripted(rate_accuracy=rated(raw))
    found = score("answer_accuracy", PARIS, judge=judge)
    assert (found.value, found.reason) == (expected, f"rated {raw}")
    assert judge.asked == ["rate_accuracy"]


@pytest.mark.parametrize("raw", [4, "1.5", 1.5, -1, True, None, "4, not 0", "0 out of 2", "(scale 0-2)", [2]])
def test_a_rating_off_the_scale_is_no_score(raw: Any) -> None:
    with pytest.raises(JudgeError) as caught:
        score("answer_accuracy", PARIS, judge=Scripted(rate_accuracy=[rated(raw), rated(raw)]))
    assert "0..2" in str(caught.value)
    assert json.dumps(raw) in str(caught.value).replace("'", '"')


@pytest.mark.parametrize(
    ("first", "swapped", "expected"), [(4, 4, 1.0), (4, 2, 0.75), (2, 0, 0.25), (4, 0, 0.5)]  # AA1
)  # fmt: skip
def test_swap_average(first: int, swapped: int, expected: float) -> None:
    def rate(user: str) -> dict[str, Any]:
        answer = user.partition("The answer:")[2]
        return rated(first if "It is Paris." in answer else swapped)

    judge = Scripted(rate_accuracy=rate)
    found = score("answer_accuracy", PARIS, judge=judge, mode="swap_average", scale=(0, 2, 4))
    assert found.value == expected
    assert found.details["ratings"] == [first, swapped]
    assert found.details["gap"] == abs(first - swapped) / 4
    assert found.details["disagree"] is (abs(first - swapped) > 2)
    assert ("more than half the scale" in found.reason) is found.details["disagree"]
    assert judge.asked == ["rate_accuracy"] * 2
    assert "0, 2, 4" in judge.messages[0][0]["content"]
    with pytest.raises(JudgeError, match="0..4 by 2"):
        score("answer_accuracy", PARIS, judge=Scripted(rate_accuracy=lambda _: rated(1)), scale=(0, 2, 4))


def test_one_of_two_ratings_failed() -> None:
    def rate(user: str) -> Any:
        return rated(2) if "It is Paris." in user.partition("The answer:")[2] else "I can't say."

    found = score("answer_accuracy", PARIS, judge=Scripted(rate_accuracy=rate), mode="swap_average")
    assert found.value == 1.0
    assert "one of two ratings failed" in found.reason
    with pytest.raises(JudgeError):
        score(
            "answer_accuracy",
            PARIS,
            judge=Scripted(rate_accuracy=rate),
            mode="swap_average",
            require_both=True,
        )
    with pytest.raises(JudgeError):
        score("answer_accuracy", PARIS, judge=Scripted(rate_accuracy=lambda _: "?"), mode="swap_average")


def test_confirm() -> None:
    judge = Scripted(rate_accuracy=rated(2), confirm_accuracy=rated(1))
    found = score("answer_accuracy", PARIS, judge=judge, mode="confirm")
    assert (found.value, found.details["ratings"], found.details["confirmed"]) == (0.5, [2, 1], True)
    system, user = (message["content"] for message in judge.messages[1])
    assert "gave 2" in system
    assert "rated 2" in user


def test_only_a_confirmation_asks_the_judge_to_confirm() -> None:
    class Rater:
        name = "rater"
        tasks = ("rate_accuracy",)

        async def ask(self, task: Any) -> Any:
            return Answered(task.read(rated(2)), self.name)

    for mode in ("single", "swap_average"):
        assert score("answer_accuracy", PARIS, judge=Rater(), mode=mode).value == 1.0
    with pytest.raises(UsageError, match="the judge 'rater' can't do 'confirm_accuracy'"):
        score("answer_accuracy", PARIS, judge=Rater(), mode="confirm")


def test_a_failed_confirmation_keeps_the_first_rating_and_says_so() -> None:
    judge = Scripted(rate_accuracy=rated(1), confirm_accuracy=["unparsable text", "again"])
    found = score("answer_accuracy", PARIS, judge=judge, mode="confirm")
    assert found.value == 0.5
    assert "confirmation failed, the primary rating is used" in found.reason
    assert found.details["confirmed"] is False
    with pytest.raises(QualityFailure, match="confirmation failed"):
        assert_answer_accuracy(
            PARIS, ">=0.8", mode="confirm",
            judge=Scripted(rate_accuracy=rated(1), confirm_accuracy=["unparsable text", "again"]),
        )  # fmt: skip
    with pytest.raises(JudgeError):
        score("answer_accuracy", PARIS, judge=Scripted(rate_accuracy=["?", "?"]), mode="confirm")


@pytest.mark.parametrize(
    "options",
    [{"mode": "dual"}, {"scale": (0,)}, {"scale": (0, 1, 3)}, {"scale": "0-2"}, {"scale": (2, 1, 0)}],
)
def test_wrong_options(options: dict[str, Any]) -> None:
    judge = Scripted()
    with pytest.raises(UsageError):
        score("answer_accuracy", PARIS, judge=judge, **options)
    assert not judge.asked


def test_scale_of_one_to_five() -> None:
    judge = Scripted(rate_accuracy=rated(4))
    assert score("answer_accuracy", PARIS, judge=judge, scale=range(1, 6)).value == 0.75


def test_what_the_two_examiners_said_is_in_the_score() -> None:
    def found(first: int, second: int, mode: str) -> Any:
        def rate(user: str) -> dict[str, Any]:
            return rated(first if "It is Paris." in user.partition("The answer:")[2] else second)

        judge = Scripted(rate_accuracy=rate, confirm_accuracy=rated(second))
        return score("answer_accuracy", PARIS, judge=judge, mode=mode)

    for ratings in ((2, 1), (1, 2)):
        averaged = found(*ratings, "swap_average")
        assert [(each.text, each.reason, each.value) for each in averaged.evidence] == [
            (f"rating {rating} of 0..2", f"rated {rating}", rating / 2) for rating in ratings
        ]
        assert averaged.reason == "rated 1"  # the lower one has to be explained
        assert (averaged.votes, averaged.details["scale"]) == (2, "0..2")
    near, far = found(2, 1, "confirm"), found(2, 0, "confirm")
    assert (near.details["gap"], near.details["disagree"], near.reason) == (0.5, False, "rated 1")
    assert (far.details["gap"], far.details["disagree"]) == (1.0, True)
    assert far.reason == "the two ratings are more than half the scale apart; rated 0"
    [shown] = far.evidence
    assert (shown.text, shown.value, far.details["rating"]) == ("rating 0 of 0..2", 0.0, 0)
    single = score("answer_accuracy", PARIS, judge=Scripted(rate_accuracy=rated(2)))
    assert "gap" not in single.details


def test_a_mistake_in_one_of_two_ratings_is_not_passed_over() -> None:
    def judge(messages: Any) -> str:
        if "It is Paris." in messages[1]["content"].partition("The answer:")[2]:
            return json.dumps(rated(2))
        raise UsageError("no such model")

    with pytest.raises(UsageError, match="no such model"):
        score("answer_accuracy", PARIS, judge=judge, mode="swap_average")


# --- context relevance and groundedness --------------------------------------------------------


def test_context_relevance() -> None:
    assert score("context_relevance", PARIS, judge=Scripted(rate_context_relevance=rated(1))).value == 0.5
    judge = Scripted(rate_context_relevance=[rated(2), rated(1)])
    found = score("context_relevance", PARIS, judge=judge, mode="average")
    assert (found.value, found.votes, len(judge.asked)) == (0.75, 2, 2)
    # No shortcut: a chunk that is a part of the question is rated as any other.
    part = PARIS.with_(question="is Paris big", contexts=["Paris"])
    assert score("context_relevance", part, judge=Scripted(rate_context_relevance=rated(2))).value == 1.0


def test_context_relevance_by_chunk() -> None:
    sample = PARIS.with_(contexts=["Paris is the capital.", "", "Bananas are yellow."])
    judge = Scripted(rate_context_relevance=lambda user: rated(0 if "Bananas" in user else 2))
    found = score("context_relevance", sample, judge=judge, per="chunk")
    assert found.value == pytest.approx(1 / 3)
    assert found.details["values"] == [1.0, 0.0, 0.0]
    assert len(judge.asked) == 2
    assert [(each.chunk, each.value, each.reason) for each in found.evidence] == [
        (1, 1.0, "rated 2"), (2, 0.0, "a blank chunk"), (3, 0.0, "rated 0"),
    ]  # fmt: skip
    assert found.reason == "a blank chunk"  # the first of the lowest
    twice = score("context_relevance", sample, judge=judge, per="chunk", mode="average")
    assert twice.value == pytest.approx(1 / 3)
    assert len(judge.asked) == 2 + 4


def test_groundedness() -> None:
    assert score("response_groundedness", PARIS, judge=Scripted(rate_groundedness=rated(1))).value == 0.5
    assert score("response_groundedness", PARIS.with_(answer=""), judge=Scripted()).value == 0.0
    judge = Scripted(rate_groundedness=[rated(2), rated(1)])
    assert score("response_groundedness", PARIS, judge=judge, mode="average").value == 0.75
    copied = PARIS.with_(answer=PARIS.contexts[0])  # type: ignore[index]
    assert score("response_groundedness", copied, judge=Scripted(rate_groundedness=rated(0))).value == 0.0


# --- the founding E2E score --------------------------------------------------------------------


def test_e2e_score() -> None:
    found = score(
        "e2e_score", PARIS, judge=Scripted(grade_end_to_end={"grade": "0.65", "reason": "a bit short"})
    )
    assert (found.value, found.reason, found.error_message) == (0.65, "a bit short", "")
    assert find("e2e_score").band(0.65) == "good"
    for grade in (4, 1.2, "80%", None):
        with pytest.raises(JudgeError):
            score("e2e_score", PARIS, judge=Scripted(grade_end_to_end=[{"grade": grade}] * 2))


# --- criteria ----------------------------------------------------------------------------------


def votes(*values: Any) -> list[dict[str, Any]]:
    return [{"reason": f"says {value}", "verdict": value} for value in values]


def test_each_vote_is_a_call_of_its_own() -> None:
    judge = Scripted(check_aspect=votes("yes", "no", "да"))
    found = score("aspect", PARIS, judge=judge, definition="Is the answer polite?", votes=3)
    assert (found.value, found.votes, found.details["yes"], found.details["no"]) == (1.0, 3, 2, 1)
    assert found.reason.endswith(" (2:1)")
    assert found.reason.startswith(("says yes", "says да"))  # of the winning side
    assert sorted((each.text, each.ok) for each in found.evidence) == [
        ("no", False), ("yes", True), ("yes", True),
    ]  # fmt: skip
    lower = Scripted(check_aspect=votes("no", "no", "yes"))
    found = score("aspect", PARIS, judge=lower, definition="Rude?", votes=3, direction="lower")
    assert (found.value, found.reason) == (0.0, "says no (1:2)")
    assert sorted((each.text, each.ok) for each in found.evidence) == [
        ("no", True), ("no", True), ("yes", False),
    ]  # fmt: skip
    assert score("aspect", PARIS, judge=Scripted(check_aspect=votes(1)), definition="x?").reason == "says 1"
    assert len(judge.asked) == 3
    assert "Criterion: Is the answer polite?" in judge.messages[0][0]["content"]


def test_votes_are_stored_apart() -> None:
    """A judge whose replies are kept is asked once for each vote, and no vote is another's reply."""
    lock, calls = threading.Lock(), []

    def judge(messages: Any) -> str:
        with lock:
            calls.append(1)
            return json.dumps({"verdict": len(calls) % 2 == 1})

    judge.ragbench_key = {"model": "votes apart"}  # type: ignore[attr-defined]
    for _ in range(2):
        found = score(
            "aspect", PARIS.with_(answer=f"It is {id(calls)}."), judge=judge, definition="True?", votes=3
        )
        assert (found.details["yes"], found.details["no"]) == (2, 1)
    assert len(calls) == 3


@pytest.mark.parametrize(
    "options",
    [
        {"votes": 2},
        {"votes": 0},
        {"votes": True},
        {"definition": " "},
        {"include": "chunks"},
        {"direction": "up"},
    ],
)
def test_criteria_that_can_not_be(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        score("aspect", PARIS, judge=Scripted(), **{"definition": "Polite?", **options})
    with pytest.raises(UsageError, match="needs the option 'definition'"):
        score("aspect", PARIS, judge=Scripted())


def test_a_criterion_that_should_not_be_met() -> None:
    harmful = "Does the answer insult the reader?"
    passed = assert_aspect(PARIS, harmful, direction="lower", judge=Scripted(check_aspect=votes("no")))
    assert passed.value == 0.0
    with pytest.raises(QualityFailure, match="aspect 1.00, wanted ==0: says yes"):
        assert_aspect(PARIS, harmful, direction="lower", judge=Scripted(check_aspect=votes("yes")))
    with pytest.raises(QualityFailure):
        assert_aspect(PARIS, "Is it polite?", judge=Scripted(check_aspect=votes("no")))
    with pytest.raises(UsageError, match="lower is better"):
        assert_aspect(PARIS, harmful, ">=0.5", direction="lower", judge=Scripted())


def test_what_the_judge_of_a_criterion_sees() -> None:
    judge = Scripted(check_aspect=votes(1))
    score("aspect", PARIS, judge=judge, definition="x?", include=["contexts", "reference"])
    user = judge.messages[0][1]["content"]
    assert user.index("<question") < user.index("<chunk") < user.index("<reference") < user.index("<answer")
    with pytest.raises(UsageError, match="reference"):
        score("aspect", PARIS.with_(reference=None), judge=judge, definition="x?", include="reference")


RUBRIC = {1: "wrong", 2: "half right", 5: "right"}


@pytest.mark.parametrize(("grade", "expected"), [(1, 0.0), (2, 0.25), ("5", 1.0)])
def test_rubric(grade: Any, expected: float) -> None:
    judge = Scripted(rate_rubric=rated(grade))
    found = assert_rubric(PARIS, RUBRIC, ">=0", judge=judge)
    assert (found.value, found.details["grade"]) == (expected, int(grade))
    assert "2 - half right" in judge.messages[0][0]["content"]


@pytest.mark.parametrize("grade", [0, 3, 4, 6, 1.5, None, "good"])
def test_a_grade_that_the_rubric_does_not_have(grade: Any) -> None:
    with pytest.raises(JudgeError, match="grade"):
        score("rubric", PARIS, rubric=RUBRIC, judge=Scripted(rate_rubric=[rated(grade)] * 2))


@pytest.mark.parametrize(
    "rubric",
    [
        {},
        {1: "one"},
        {1: "a", 2: ""},
        {1: "a", 2: 3},
        {"x": "a", 2: "b"},
        {1: "a", "1": "b"},
        [1, 2],
        {True: "a", 2: "b"},
        {1.5: "a", 2: "b"},
    ],
)
def test_rubrics_that_can_not_be(rubric: Any) -> None:
    with pytest.raises(UsageError, match="rubric"):
        score("rubric", PARIS, rubric=rubric, judge=Scripted())


def test_grades_below_zero_in_any_order() -> None:
    judge = Scripted(rate_rubric=rated(0))
    found = score("rubric", PARIS, rubric={"1": "good", "-1": "bad", 0: "so so"}, judge=judge)
    assert (found.value, found.details["scale"], found.reason) == (0.5, "-1..1", "rated 0")
    assert [each.text for each in found.evidence] == ["grade 0: so so"]


def test_what_the_judge_of_a_rubric_sees() -> None:
    judge = Scripted(rate_rubric=rated(5))
    score("rubric", PARIS, judge=judge, rubric=RUBRIC, include="reference")
    assert "<reference" in judge.messages[0][1]["content"]
    assert "<chunk" not in judge.messages[0][1]["content"]
    define_rubric("test_sees", RUBRIC, include=["contexts"])
    score("test_sees", PARIS, judge=judge)
    assert "<chunk" in judge.messages[1][1]["content"]
    # Without them there is nothing to show, which is for the judge to say.
    assert score("test_sees", PARIS.with_(contexts=[]), judge=judge).value == 1.0
    with pytest.raises(UsageError, match="needs contexts"):
        score("test_sees", PARIS.with_(contexts=None), judge=judge)


def test_named_criteria_are_metrics() -> None:
    define_aspect("test_rude", "Is the answer rude?", direction="lower")
    define_aspect("test_rude", "Is the answer rude?", direction="lower")  # imported twice
    define_rubric("test_depth", RUBRIC)
    assert score("test_rude", PARIS, judge=Scripted(check_aspect=votes("no"))).metric == "test_rude"
    assert score("test_depth", PARIS, judge=Scripted(rate_rubric=rated(2))).value == 0.25
    assert find("test_rude").direction == "lower"
    for name in ("test_rude", "faithfulness"):
        with pytest.raises(UsageError, match="registered already"):
            define_aspect(name, "Something else?")
