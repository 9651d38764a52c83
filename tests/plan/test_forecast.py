"""How many calls a run will make."""

from __future__ import annotations

import pytest

from pytest_ragbench.model.samples import Question
from pytest_ragbench.plan.forecast import Forecast, Judges, UpcomingTest
from pytest_ragbench.plan.model import Ask, Plan

QUESTIONS = [Question(id="a", question="A?"), Question(id="b", question="B?")]
METRIC = "faithfulness_holistic"
"""Which asks its judge once."""


def forecast(judges: Judges, votes: int, certain: bool = True) -> Forecast:
    made = Forecast()
    plan = Plan((Ask({METRIC: 0.8}, certain=certain),))
    for name in ("test_one", "test_two"):  # which share their calls
        made.add(UpcomingTest(name, plan, QUESTIONS, judges, votes=[votes] * len(QUESTIONS)))
    return made


@pytest.mark.parametrize(
    ("judges", "votes", "sure", "perhaps"),
    [
        (Judges(("lab:m",)), 1, {"lab:m": 2}, 0),
        (Judges(("lab:m",)), 3, {"lab:m": 4}, 2),
        (Judges(("local",)), 3, {"local": 2}, 0),
        (Judges(("lab:m", "lab:n")), 1, {"lab:m": 2, "lab:n": 2}, 0),
        (Judges(("lab:m",), ("lab:n",)), 1, {"lab:m": 2}, 2),
    ],
    ids=["one vote", "best of three", "the local judge votes once", "a panel", "a second opinion"],
)
def test_calls(judges: Judges, votes: int, sure: dict[str, int], perhaps: int) -> None:
    made = forecast(judges, votes)
    assert made.judged == {(judge, METRIC): number for judge, number in sure.items()}
    assert (made.perhaps, len(made.answers), made.unknown) == (perhaps, 2, [])


def test_a_call_below_a_condition_is_a_perhaps() -> None:
    made = forecast(Judges(("lab:m",)), 3, certain=False)
    assert (dict(made.judged), made.perhaps) == ({}, 6)
