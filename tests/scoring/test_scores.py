"""From a prepared request to a score: what a formula returns, and what was used on the way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.metrics.registry import Metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import ScoreRequest, prepare, score_all
from tests.metrics.scripted import Scripted
from tests.scoring.asking import context, score_one

SAMPLE = RagSample("How long?", "30 days.", ["30 days."], id="q1")


async def said(sample: RagSample, tools: Tools) -> Score:
    """The number that the answer is."""
    return tools.score(sample, float(sample.answer or ""))


SAID = Metric("said", said, tier="generation", needs=("answer",), low=-1, high=2)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("-1", -1.0),
        ("2", 2.0),
        ("0.5", 0.5),
        ("-1.0000000005", -1.0),
        ("2.0000000005", 2.0),
        ("1.9999", 1.9999),
    ],
)
def test_float_noise_at_the_ends_of_the_range_is_cut_off(answer: str, value: float) -> None:
    assert score_one(SAID, SAMPLE.with_(answer=answer)).value == value


@pytest.mark.parametrize("answer", ["-1.00000001", "2.00000001", "7"])
def test_a_value_outside_the_range_is_an_error(answer: str) -> None:
    with pytest.raises(UsageError, match=r"^said returned \S+, outside its range -1\.\.2$"):
        score_one(SAID, SAMPLE.with_(answer=answer))


def test_of_several_requests_each_gets_its_score_or_its_error() -> None:
    known = context()
    for answers in (["0.5"], ["7"], ["0.5", "7", "1"]):
        requests = [
            prepare(known, ScoreRequest(metric=SAID, sample=SAMPLE.with_(answer=answer)))
            for answer in answers
        ]
        found = asyncio.run(score_all(requests))
        assert [type(each) for each in found] == [UsageError if each == "7" else Score for each in answers]


def test_what_was_used_is_told_of_a_score_and_of_a_failure() -> None:
    """A call that failed was made, too."""
    watched: list[Tools] = []
    replies: list[Any] = [{"grade": 0.9, "reason": ""}, "no idea", "no idea"]
    judge = callable_judge(Scripted(grade_relevance=replies), "grader")
    more: dict[str, Any] = {"judge": judge, "watch": watched.append, "votes": 1}
    assert score_one("answer_relevancy_holistic", SAMPLE, **more).value == 0.9
    with pytest.raises(JudgeError):
        score_one("answer_relevancy_holistic", SAMPLE, **more)
    assert [each.metric for each in watched] == ["answer_relevancy_holistic"] * 2


def test_a_repeat_asks_past_the_votes_of_those_before_it() -> None:
    """Each repeat has votes of its own, which no other repeat is answered from."""
    asked: list[list[int]] = []
    for repeat in range(2):
        watched: list[Tools] = []
        judge = callable_judge(Scripted(grade_relevance={"grade": 0.9, "reason": ""}), "grader")
        more: dict[str, Any] = {"judge": judge, "watch": watched.append, "votes": 3, "repeat": repeat}
        score_one("answer_relevancy_holistic", SAMPLE, threshold=">=0.5", **more)
        asked.append(sorted(each.repeat for each in watched))
    assert asked == [[0, 1], [3, 4]]
