"""A second judge that confirms failures, or decides near the threshold."""

from __future__ import annotations

import pytest

from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.model.scores import Score
from tests.metrics.test_voting import SAMPLE, Grader, score
from tests.scoring.asking import score_one


def test_a_failure_has_to_be_confirmed() -> None:
    def asked(first: float, second: float | None) -> tuple[float, int]:
        members = (Grader(first, name="a"), Grader(second, name="b"))
        return score(Panel(members, kind="confirm")).value, len(members[1].votes)

    assert asked(0.9, 0.1) == (0.9, 0)
    assert asked(0.1, 0.2) == (0.1, 1)
    assert asked(0.1, 0.9) == (0.9, 1)
    assert asked(0.1, None) == (0.1, 1)


def test_a_failure_that_is_confirmed_or_acquitted_says_by_whom() -> None:
    def judged(second: float | None, limit: str = ">=0.7") -> Score:
        return score(Panel((Grader(0.1, name="a"), Grader(second, name="b")), kind="confirm"), limit=limit)

    acquitted = judged(0.9)
    assert (acquitted.judge, acquitted.details["judges_passed"]) == ("b, after a", 1)
    assert acquitted.details["disagreement"].endswith("; the second one decides")
    confirmed = judged(0.3)
    assert (confirmed.value, confirmed.judge) == (0.1, "a, b")
    assert "disagreement" not in confirmed.details
    assert confirmed.details["panel"] == {"a": 0.1, "b": 0.3}
    alone = judged(None)
    assert (alone.value, alone.judge) == (0.1, "a")
    assert alone.details["panel_failed"] == {"b": "b could not be asked: the judge is down"}


def test_without_a_threshold_no_second_judge_is_asked() -> None:
    for kind in ("confirm", "cascade"):
        members = (Grader(0.1, name="a"), Grader(0.9, name="b"))
        found = score(Panel(members, kind=kind), limit=None)
        assert (found.value, found.judge, members[1].votes) == (0.1, "a", [])


@pytest.mark.parametrize(
    ("first", "limit", "asked"),
    [
        (0.9, ">=0.7", False),
        (0.75, ">=0.7", True),
        (0.6, ">=0.7", True),  # 0.7 - 0.6 is 0.09999999999999998, 0.8 - 0.7 is 0.10000000000000009
        (0.8, ">=0.7", True),
        (0.5, ">=0.7", False),
        (0.81, ">=0.7", False),
        (0.35, "0.3..0.7", True),
        (0.65, "0.3..0.7", True),
        (0.5, "0.3..0.7", False),
    ],
)
def test_a_cascade_asks_the_second_judge_near_the_threshold(first: float, limit: str, asked: bool) -> None:
    members = (Grader(first, name="a"), Grader(0.2, name="b"))
    found = score(Panel(members, kind="cascade"), limit=limit)
    assert len(members[1].votes) == asked
    assert (found.value, found.judge) == ((0.2, "b, after a") if asked else (first, "a"))


def test_how_near_is_the_margin() -> None:
    members = (Grader(0.4, name="a"), Grader(0.9, name="b"))
    assert score(Panel(members, kind="cascade", margin=0.3)).value == 0.9


def test_a_cascade_asks_near_the_threshold_of_a_grade() -> None:
    """The answer is far from its threshold, what it is grounded in is near the other one."""
    members = (Grader(1.0, name="a", grounded=0.75), Grader(1.0, name="b", grounded=0.1))
    grades = {"threshold": ">=0.7", "answer_correctness": None, "groundedness": None}
    found = score_one("search_rag", SAMPLE, judge=Panel(members, kind="cascade"), grades=grades)
    assert (len(members[1].votes), found.details["groundedness"]) == (1, 0.1)
