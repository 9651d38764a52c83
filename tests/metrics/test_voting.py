"""Votes of one judge, and judges that disagree, die or flatter."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import comb
from typing import Any

import pytest

from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.choose import judge_from
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.metrics.registry import find
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.settings import Settings
from pytest_ragbench.statistics.votes import self_agreement
from tests.metrics.scripted import Scripted
from tests.scoring.asking import score_one

SAMPLE = RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], id="q1")


class Grader:
    """Grades by the number of the vote; a grade of None is a failed call."""

    tasks: Collection[str] | None = None

    def __init__(self, *grades: float | None, name: str = "grader", grounded: float = 1.0) -> None:
        self.grades = grades
        self.grounded = grounded
        self.name = name
        self.votes: list[int] = []

    async def ask(self, task: Task[Any]) -> Answered[Any]:
        vote = task.vote // 1000
        self.votes.append(vote)
        grade = self.grades[vote % len(self.grades)]
        if grade is None:
            raise JudgeError("the judge is down", code="timeout")
        payload = {"answer_correctness": grade, "groundedness": self.grounded, "error_message": ""}
        return Answered(task.read(payload), self.name)


def score(judge: Any, *, votes: int = 1, limit: str | None = ">=0.7") -> Score:
    return score_one("search_rag", SAMPLE, judge=judge, threshold=limit, votes=votes)


@pytest.mark.parametrize(
    ("grades", "votes", "value", "asked"),
    [
        ((0.9, 0.8, 0.1), 3, 0.85, 2),
        ((0.9, 0.1, 0.8), 3, 0.8, 3),
        ((0.1, 0.9, 0.2), 3, 0.2, 3),
        ((0.9, 0.9, 0.9, 0.1, 0.1), 5, 0.9, 3),
        ((0.9, None, 0.8), 3, 0.85, 3),
    ],
)
def test_a_third_vote_only_where_two_disagree(
    grades: tuple[float | None, ...], votes: int, value: float, asked: int
) -> None:
    judge = Grader(*grades)
    found = score(judge, votes=votes)
    assert found.value == pytest.approx(value)
    assert sorted(judge.votes) == list(range(asked))
    assert found.details["answer_correctness"] == pytest.approx(value)


def test_a_flaky_question_says_so() -> None:
    found = score(Grader(0.9, 0.1, 0.8), votes=3)
    assert found.details["votes"] == [0.9, 0.1, 0.8]
    assert found.details["spread"] == pytest.approx(0.8)
    assert found.details["self_agreement"] == pytest.approx(1 / 3)
    assert found.details["votes_passed"] == 2
    assert "2 of 3 votes pass" in found.reason
    assert "flaky" not in score(Grader(0.9, 0.8), votes=3).details
    failed = score(Grader(0.9, None, 0.8), votes=3)
    assert (failed.votes, len(failed.details["votes_failed"])) == (2, 1)
    with pytest.raises(JudgeError):
        score(Grader(None), votes=3)


def test_votes_of_a_score_without_a_threshold_have_no_agreement() -> None:
    """None is met or missed; two that differ by float noise are one score."""
    judge = Grader(0.9, 0.9 - 5e-10, 0.1)
    found = score(judge, votes=3, limit=None)
    assert (found.votes, len(judge.votes)) == (2, 2)
    assert not {"self_agreement", "votes_passed", "flaky"} & set(found.details)
    judge = Grader(0.9, 0.85, 0.1)
    assert score(judge, votes=3, limit=None).value == 0.85
    assert len(judge.votes) == 3


def test_of_one_vote_left_nothing_is_said_about_agreement() -> None:
    found = score(Grader(0.9, None, None), votes=3)
    assert (found.value, found.votes, found.details["votes"]) == (0.9, 1, [0.9])
    assert found.details["votes_failed"] == ["the judge is down"] * 2
    assert not {"self_agreement", "votes_passed", "flaky"} & set(found.details)


def test_votes_that_agree_say_so() -> None:
    found = score(Grader(0.9, 0.8), votes=3)
    assert (found.details["votes_passed"], found.details["self_agreement"]) == (2, 1.0)
    assert found.details["spread"] == pytest.approx(0.1)
    assert "votes pass" not in found.reason
    missed = score(Grader(0.1, 0.2), votes=3)
    assert missed.details["votes_passed"] == 0
    assert "flaky" not in missed.details


def test_the_local_judge_votes_once() -> None:
    judge = Grader(0.9, 0.1, name="local")
    found = score(judge, votes=3)
    assert (judge.votes, found.votes, "votes" in found.details) == ([0], 1, False)


def test_a_mistake_is_not_outvoted() -> None:
    class Mistaken(Grader):
        async def ask(self, task: Task[Any]) -> Answered[Any]:
            if self.name == "wrong" or task.vote >= 1000:
                raise UsageError("there is no such model")
            return await super().ask(task)

    with pytest.raises(UsageError, match="no such model"):
        score(Mistaken(0.9), votes=3)
    with pytest.raises(UsageError, match="no such model"):
        score(Panel((Grader(0.9, name="a"), Mistaken(0.9, name="wrong"))))


def test_worked_values_of_votes() -> None:
    assert self_agreement(4, 5) == pytest.approx(0.6)
    assert self_agreement(3, 5) == pytest.approx(0.4)

    def wrong(e: float, k: int) -> float:
        """How often the median of the shipped votes is wrong: every pattern of right and wrong, weighed."""
        total = 0.0
        for pattern in range(2**k):
            errors = [bool(pattern >> place & 1) for place in range(k)]
            judge = Grader(*[0.1 if error else 0.9 for error in errors])
            if score(judge, votes=k).value < 0.7:
                total += e ** sum(errors) * (1 - e) ** (k - sum(errors))
        return total

    assert wrong(0.2, 3) == pytest.approx(0.104)
    assert wrong(0.1, 3) == pytest.approx(0.028)
    assert wrong(0.2, 5) == pytest.approx(0.05792)
    assert sum(comb(5, k) * 0.2**k * 0.8 ** (5 - k) for k in (3, 4, 5)) == pytest.approx(0.05792)


def test_votes_of_two_plus_one_take_2_32_calls() -> None:
    calls = 0.0
    for pattern in range(8):
        errors = [bool(pattern >> place & 1) for place in range(3)]
        judge = Grader(*[0.1 if error else 0.9 for error in errors])
        score(judge, votes=3)
        calls += len(judge.votes) * 0.2 ** sum(errors) * 0.8 ** (3 - sum(errors))
    assert calls == pytest.approx(2.32)


def panel(*grades: float | None, **how: Any) -> Panel:
    return Panel(tuple(Grader(grade, name=f"judge {n}") for n, grade in enumerate(grades)), **how)


@pytest.mark.parametrize(
    ("aggregate", "value"),
    [("mean", 0.6), ("median", 0.8), ("min", 0.1), ("max", 0.9), ("majority", 0.85)],
)
def test_a_panel(aggregate: Any, value: float) -> None:
    found = score(panel(0.1, 0.8, 0.9, aggregate=aggregate))
    assert found.value == pytest.approx(value)
    assert found.details["panel"] == {"judge 0": 0.1, "judge 1": 0.8, "judge 2": 0.9}
    assert found.judge == "judge 0, judge 1, judge 2"
    assert [finding.text for finding in found.evidence[-3:]] == ["judge 0", "judge 1", "judge 2"]


def test_consensus() -> None:
    assert score(panel(0.7, 0.8, aggregate="consensus")).value == pytest.approx(0.75)
    with pytest.raises(JudgeError, match="no consensus within 0.2: judge 0 0.10, judge 1 0.90"):
        score(panel(0.1, 0.9, aggregate="consensus"))
    two = score(panel(0.7, None, 0.8, aggregate="consensus"))
    assert two.value == pytest.approx(0.75)
    assert two.details["panel_failed"] == {"judge 1": "the judge is down"}


@pytest.mark.parametrize(("grades", "agree"), [((0.7, 0.9), True), ((0.7, 0.91), False), ((0.9, 0.3), True)])
def test_consensus_within_a_tolerance(grades: tuple[float, ...], agree: bool) -> None:
    """0.9 - 0.7 is 0.20000000000000007 to Python."""
    how: dict[str, Any] = {"aggregate": "consensus", **({"tolerance": 0.6} if grades[1] == 0.3 else {})}
    if agree:
        assert score(panel(*grades, **how)).value == pytest.approx(sum(grades) / 2)
    else:
        with pytest.raises(JudgeError, match="no consensus within 0.2") as caught:
            score(panel(*grades, **how))
        assert caught.value.code == "no_consensus"


def test_one_judge_alone_is_no_consensus() -> None:
    alone = "no consensus, since only one judge gave a score: judge 1 0.90; judge 0: the judge is down"
    with pytest.raises(JudgeError, match=alone) as caught:
        score(panel(None, 0.9, aggregate="consensus"))
    assert caught.value.code == "no_consensus"


@pytest.mark.parametrize(
    ("grades", "limit", "value", "decides"),
    [
        ((0.1, 1.0), ">=0.5", 0.1, "the stricter one decides"),
        ((1.0, 0.1), ">=0.5", 0.1, "the stricter one decides"),
        ((0.4, 0.5), ">=0.5", 0.4, "the stricter one decides"),
        ((0.2, 0.6), "0.3..0.7", 0.2, "the stricter one decides"),
        ((0.1, 0.8, 0.9), ">=0.5", 0.8, "the majority decides"),
        ((0.1, 0.2, 1.0), ">=0.5", 0.2, "the majority decides"),
        # Two of three miss the range, on both sides of it: the median alone would meet it.
        ((0.2, 0.5, 0.9), "0.3..0.7", 0.2, "the majority decides"),
        ((0.1, 0.3, 0.9, 1.0), ">=0.5", 0.3, "the stricter half decides"),
        ((0.1, 0.4, 0.5, 0.5), ">=0.5", 0.4, "the stricter half decides"),  # their median, 0.45, no one gave
        ((0.1, 0.2, None, 1.0), ">=0.5", 0.2, "the majority decides"),
        ((0.1, None, 1.0), ">=0.5", 0.1, "the stricter one decides"),
    ],
)
def test_judges_that_disagree_about_the_threshold(
    grades: tuple[float | None, ...], limit: str, value: float, decides: str
) -> None:
    found = score(panel(*grades), limit=limit)
    assert found.value == value
    assert found.details["answer_correctness"] == value
    assert found.details["disagreement"].startswith(
        f"the judges disagree about {limit} (judge 0 {grades[0]:.2f}, "
    )
    assert found.details["disagreement"].endswith(f"; {decides}")
    assert found.reason.startswith(found.details["disagreement"])
    passed = [each.reason == "passes" for each in found.evidence if each.value is not None]
    assert sum(passed) == found.details["judges_passed"] < len(passed)


def test_judges_that_agree_about_the_threshold_have_their_median() -> None:
    for grades, limit, value in (
        ((0.8, 0.9), ">=0.5", 0.85),
        ((0.1, 0.3), ">=0.5", 0.2),
        ((0.1, 1.0), None, 0.55),
    ):
        found = score(panel(*grades), limit=limit)
        assert found.value == pytest.approx(value)
        assert "disagreement" not in found.details
        assert {each.reason for each in found.evidence if each.value is not None} == {""}


@pytest.mark.parametrize(
    ("aggregate", "value"), [("mean", 0.55), ("max", 1.0), ("min", 0.1), ("majority", 0.1)]
)
def test_a_disagreement_is_shown_whatever_decides_it(aggregate: Any, value: float) -> None:
    found = score(panel(0.1, 1.0, aggregate=aggregate), limit=">=0.5")
    assert found.value == pytest.approx(value)
    assert "judge 0 0.10, judge 1 1.00" in found.reason


def test_where_lower_is_better_the_stricter_judge_gives_more() -> None:
    risk = replace(find("search_rag"), direction="lower")
    found = score_one(risk, SAMPLE, judge=panel(0.1, 0.9), threshold="<=0.5", votes=1)
    assert (found.value, found.details["judges_passed"]) == (0.9, 1)


def test_each_grade_is_decided_by_its_own_threshold() -> None:
    """Each judge finds another grade too low; the mean of each would do."""
    limits = {"threshold": ">=0.5", "answer_correctness": None, "groundedness": None}
    both = Panel((Grader(0.1, name="a", grounded=1.0), Grader(1.0, name="b", grounded=0.1)))
    found = score_one("search_rag", SAMPLE, judge=both, grades=limits)
    assert (found.details["answer_correctness"], found.details["groundedness"]) == (0.1, 0.1)
    told = "answer_correctness >=0.5 (a 0.10, b 1.00) and groundedness >=0.5 (a 1.00, b 0.10)"
    assert told in found.details["disagreement"]
    assert found.details["judges_passed"] == 0
    confirmed = Panel(
        (Grader(0.1, name="a", grounded=1.0), Grader(1.0, name="b", grounded=1.0)), kind="confirm"
    )
    found = score_one("search_rag", SAMPLE, judge=confirmed, grades=limits)
    assert (found.details["answer_correctness"], found.judge) == (1.0, "b, after a")


def test_of_votes_that_tie_the_missing_one_counts() -> None:
    assert score(Grader(0.9, 0.1), votes=2).value == 0.1
    found = score(Grader(0.9, None, 0.1), votes=3)
    assert (found.value, found.details["votes_passed"]) == (0.1, 1)
    assert "1 of 2 votes pass" in found.reason


def test_a_majority_that_is_none_fails() -> None:
    assert score(panel(0.1, 0.9, aggregate="majority")).value == 0.1


def test_a_member_that_dies_is_left_out_and_named() -> None:
    found = score(panel(0.8, None, 0.9, aggregate="mean"))
    assert found.value == pytest.approx(0.85)
    assert found.judge == "judge 0, judge 2"
    assert found.details["panel_failed"] == {"judge 1": "the judge is down"}
    assert any("left out: the judge is down" in finding.reason for finding in found.evidence)
    with pytest.raises(JudgeError, match="the judge is down"):
        score(panel(None, None))


def test_panels_of_the_configuration() -> None:
    engine = Engine(store=None, run_id="panels")

    def chosen(**given: Any) -> Any:
        settings = Settings.model_validate(
            {"providers": {"a": {"base_url": "http://localhost:1", "model": "m"}}} | given
        )
        return judge_from(None, engine, settings, environ={})

    found = chosen(judges=["a:x", "local"], panel={"aggregate": "mean"})
    assert isinstance(found, Panel)
    assert (found.name, found.aggregate) == ("a:x, local", "mean")
    assert chosen(judge="local", judge_confirm="a").kind == "confirm"
    assert chosen(judge="local", judge_cascade="a").kind == "cascade"
    for wrong in ({"judges": ["local"]}, {"judges": ["a", "a"]}, {"judges": ["a", "local"], "judge": "a"}):
        with pytest.raises(UsageError):
            chosen(**wrong)


def test_what_the_threshold_did_not_choose_is_told_by_the_judge_it_chose() -> None:
    """The parts belong to the value: its judge's where one was chosen, else put together in the same way."""
    split = Panel((Grader(0.1, name="a", grounded=1.0), Grader(1.0, name="b", grounded=0.8)))
    found = score(split)
    assert (found.value, found.details["groundedness"]) == (0.1, 1.0)
    agreed = Panel((Grader(0.8, name="a", grounded=1.0), Grader(1.0, name="b", grounded=0.9)))
    found = score(agreed)
    assert found.value == pytest.approx(0.85)
    assert found.details["groundedness"] == pytest.approx(0.95)


def saying(name: str, grade: float) -> Any:
    reply = {"grade": grade, "reason": f"{name} thinks so"}
    return callable_judge(Scripted(grade_relevance=reply), name)


def test_the_reason_is_of_the_judge_nearest_to_the_value_on_its_side() -> None:
    def found(*grades: float) -> Score:
        members = tuple(saying(f"judge {n}", grade) for n, grade in enumerate(grades))
        judges = Panel(members, aggregate="mean")
        return score_one("answer_relevancy_holistic", SAMPLE, judge=judges, threshold=">=0.5")

    assert "judge 1 thinks so" in found(0.9, 0.75, 0.6).reason
    # The mean, 0.47, is nearer to 0.5 than to 0.3, but a judge that finds it good can't explain a miss.
    assert found(0.5, 0.3, 0.61).reason.endswith("judge 1 thinks so")


def test_replies_of_several_votes_are_numbered_and_all_kept() -> None:
    judge = saying("one", 0.9)
    found = score_one("answer_relevancy_holistic", SAMPLE, judge=judge, threshold=">=0.5", votes=3)
    assert [reply.vote for reply in found.replies] == [1, 2]
    [only] = score_one("answer_relevancy_holistic", SAMPLE, judge=judge, votes=1).replies
    assert only.vote == 0
    both = Panel((saying("a", 0.9), saying("b", 0.8)))
    assert len(score_one("answer_relevancy_holistic", SAMPLE, judge=both).replies) == 2


# --- two examiners -----------------------------------------------------------------------------


class Examiner:
    """Rates as scripted, and says which texts it saw in which place; "follower": confirms whatever came first."""

    tasks: Collection[str] | None = None

    def __init__(self, name: str, rating: int | None, *, follower: bool = False) -> None:
        self.name = name
        self.rating = rating
        self.follower = follower
        self.seen: list[tuple[str, str]] = []

    async def ask(self, task: Task[Any]) -> Answered[Any]:
        data = dict(task.data())
        self.seen.append((task.name, str(data["answer"])))
        if self.rating is None:
            raise JudgeError(f"{self.name} is down", code="timeout")
        confirms = task.name == "confirm_accuracy" and self.follower
        rating = dict(task.options())["first"] if confirms else self.rating
        return Answered(task.read({"reason": f"{self.name} says so", "rating": rating}), self.name)


def accuracy(panel: Panel, mode: str, **more: Any) -> Score:
    sample = RagSample("How long?", "30 days.", reference="14 days.", id="q1")
    return score_one("answer_accuracy", sample, judge=panel, options={"mode": mode, **more})


def test_the_second_examiner_is_another_judge() -> None:
    first, second = Examiner("a", 2), Examiner("b", 1)
    found = accuracy(Panel((first, second), "dual"), "confirm")
    assert (found.value, found.judge, found.details["roles"]) == (0.5, "a, b", ["a", "b"])
    assert [first.seen, second.seen] == [[("rate_accuracy", "30 days.")], [("confirm_accuracy", "30 days.")]]
    first, second = Examiner("a", 4), Examiner("b", 2)
    found = accuracy(Panel((first, second), "dual"), "swap_average", scale=(0, 2, 4))
    assert (found.value, found.details["ratings"], found.details["gap"]) == (0.75, [4, 2], 0.5)
    assert [first.seen, second.seen] == [[("rate_accuracy", "30 days.")], [("rate_accuracy", "14 days.")]]


def test_the_first_rating_stays_where_the_second_examiner_is_down() -> None:
    found = accuracy(Panel((Examiner("a", 2), Examiner("b", None)), "dual"), "confirm")
    assert (found.value, found.details["confirmed"]) == (1.0, False)
    assert "confirmation failed, the primary rating is used: b is down" in found.reason


def test_swapped_roles_show_a_judge_that_follows_the_first() -> None:
    """b always confirms what it is shown; with the roles swapped its own rating comes to light."""
    panel = Panel((Examiner("a", 2), Examiner("b", 0, follower=True)), "dual", swap_roles=True)
    found = accuracy(panel, "confirm")
    assert found.details["panel"] == {"a, then b": 1.0, "b, then a": 1.0}
    panel = Panel((Examiner("a", 2, follower=True), Examiner("b", 0, follower=True)), "dual", swap_roles=True)
    found = accuracy(panel, "confirm")
    assert found.details["panel"] == {"a, then b": 1.0, "b, then a": 0.0}
    assert (found.value, found.details["gap_of_roles"], found.judge) == (0.5, 1.0, "a, b")
    assert found.reason.startswith("the judges disagree when their roles are swapped")
    assert [each.text for each in found.evidence][-2:] == ["a, then b", "b, then a"]


def test_a_small_gap_between_swapped_roles_is_told_and_no_disagreement() -> None:
    panel = Panel((Examiner("a", 2, follower=True), Examiner("b", 1, follower=True)), "dual", swap_roles=True)
    found = accuracy(panel, "confirm")
    assert (found.value, found.details["gap_of_roles"]) == (0.75, 0.5)
    assert "disagree" not in found.reason


def test_of_swapped_roles_one_may_fail() -> None:
    panel = Panel((Examiner("a", 1), Examiner("b", None)), "dual", swap_roles=True)
    found = accuracy(panel, "confirm")
    assert (found.value, list(found.details["panel"])) == (0.5, ["a, then b"])
    assert found.details["panel_failed"] == {"b, then a": "b is down"}
    with pytest.raises(JudgeError, match="is down"):
        accuracy(Panel((Examiner("a", None), Examiner("b", None)), "dual", swap_roles=True), "confirm")


def test_metrics_with_one_examiner_take_both_judges_as_a_panel() -> None:
    panel = Panel((Grader(0.9, name="a"), Grader(0.5, name="b")), "dual", "mean")
    assert score(panel).value == pytest.approx(0.7)
