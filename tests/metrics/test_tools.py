"""What formulas are handed: a judge to ask, a record of what it took, and the steps that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

import pytest

from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.tasks import GradeFaithfulness, JudgeChunks, VerifyClaims
from pytest_ragbench.judge.tasks.one_word import YesChance
from pytest_ragbench.metrics.steps import check_number, first_fault, head, share_of, unsure_of, verify
from pytest_ragbench.metrics.tools import SampleOutcome, Tools
from pytest_ragbench.model.errors import JudgeError, UndefinedScore, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score, Usage

SAMPLE = RagSample("How long?", "30 days.", ["30 days."], id="q1")
GRADE = GradeFaithfulness("How long?", "30 days.", ("30 days.",))


class Answering:
    """Answers each task as told; ``graded``, with a P(yes) of its own."""

    tasks: Collection[str] | None = None

    def __init__(self, name: str = "judge", *, yes: float = 1.0, **answered: Any) -> None:
        self.name = name
        self.yes = yes
        self.answered = answered
        self.asked: list[Task[Any]] = []

    async def ask(self, task: Task[Any]) -> Answered[Any]:
        self.asked.append(task)
        if task.one_word:
            reply: Any = YesChance(probability=self.yes, mass=1.0)
        elif isinstance(task, (VerifyClaims, JudgeChunks)):
            reply = task.read({"verdicts": {str(n): {"verdict": 1} for n in range(1, len(task.items) + 1)}})
        else:
            reply = task.read({"grade": 0.5, "reason": ""})
        return Answered(reply, self.name, **self.answered)


def asked(tools: Tools, *tasks: Task[Any], **more: Any) -> Score:
    for task in tasks:
        asyncio.run(tools.ask(task, **more))
    return tools.score(SAMPLE, 0.5)


def test_what_the_calls_took_is_in_the_score() -> None:
    used: dict[str, Any] = {
        "usage": Usage(calls=2, prompt_tokens=10, completion_tokens=1),
        "duration": 1.5,
        "votes": 3,
    }
    found = asked(Tools("m", Answering(**used, said=("a", "b"))), GRADE, GRADE)
    assert (found.judge, found.votes, found.duration, found.cached) == ("judge", 3, 3.0, False)
    assert found.usage == Usage(calls=4, prompt_tokens=20, completion_tokens=2)
    # What a conversation took stands with its last reply.
    assert [(each.text, each.usage.calls, each.duration) for each in found.replies] == [
        ("a", 0, 0.0), ("b", 2, 1.5), ("a", 0, 0.0), ("b", 2, 1.5),
    ]  # fmt: skip
    assert found.sample_id == "q1"


def test_a_score_is_stored_where_all_its_replies_were() -> None:
    stored, sent = Answering(cached=True, took=0.7), Answering(duration=1.25)
    tools = Tools("m", stored, second=sent)
    assert asked(tools, GRADE).cached
    assert (tools.durations, tools.stored_durations) == ([], [0.7])
    assert not asked(tools, GRADE, second=True).cached
    assert (tools.durations, tools.stored_durations) == ([1.25], [0.7])
    unknown = Tools("m", Answering(cached=True))
    assert asked(unknown, GRADE).cached
    assert unknown.stored_durations == []
    assert not Tools("m").score(SAMPLE, 1.0).cached  # arithmetic asked nothing


def test_the_second_examiner_is_the_judge_where_there_is_no_other() -> None:
    first, second = Answering("first"), Answering("second")
    asked(Tools("m", first, second=second), GRADE, second=True)
    asked(Tools("m", first), GRADE, second=True)
    assert (len(first.asked), len(second.asked)) == (1, 1)
    with pytest.raises(UsageError, match="m was given no judge"):
        asked(Tools("m"), GRADE)


def test_a_repeat_and_a_fresh_task_are_other_calls() -> None:
    judge = Answering()
    asked(Tools("m", judge), GRADE)
    asked(Tools("m", judge, repeat=2, fresh=True), GRADE)
    assert [(task.vote, task.fresh) for task in judge.asked] == [(0, False), (2000, True)]


def test_votes_of_several_judges_and_parts_are_put_together() -> None:
    whole, part = Tools("m", Answering("a", votes=2)), Tools("m", Answering("b", votes=3), embedded=True)
    asked(whole, GRADE)
    asked(part, GRADE, GRADE)
    part.judges["a"] = 1
    whole.include(part)
    found = whole.score(SAMPLE, 0.5)
    assert (found.judge, found.votes, whole.judges) == ("a, b", 3, {"a": 2, "b": 3})
    assert (whole.asked, whole.embedded) == (3, True)
    assert whole.score(SAMPLE, 0.5, votes=7).votes == 7
    assert Tools("m").score(SAMPLE, 0.5).votes == 1


def test_samples_are_scored_by_a_metric_that_watches_its_judge_alone() -> None:
    with pytest.raises(UsageError, match="m was given no way to score samples"):
        asyncio.run(Tools("m").score_samples("faithfulness", [SAMPLE], {}))


def test_what_a_scored_sample_came_to() -> None:
    score = SampleOutcome(Score(metric="m", value=0.25))
    undefined, failed = SampleOutcome(UndefinedScore("x")), SampleOutcome(JudgeError("x"))
    assert [each.value for each in (score, undefined, failed)] == [0.25, None, None]
    assert [each.error is None for each in (score, undefined, failed)] == [True, False, False]
    assert [each.failed for each in (score, undefined, failed)] == [False, False, True]


def test_verdicts_are_asked_for_in_a_word_by_probability_alone() -> None:
    task = VerifyClaims(("one", "two"), ("chunk",), "q")
    judge = Answering(yes=0.6)
    asked(Tools("m", judge), task)
    asked(Tools("m", judge, verdicts="json"), task)
    assert [each.name for each in judge.asked] == ["verify_claims"] * 2
    asked(Tools("m", judge, verdicts="probability"), task, GRADE)
    assert [each.name for each in judge.asked[2:]] == ["word_verify_claims"] * 2 + [GRADE.name]
    graded = Answering()
    graded.graded = True  # type: ignore[attr-defined]  # grades each anyway
    asked(Tools("m", graded, verdicts="probability"), task)
    assert [each.name for each in graded.asked] == ["verify_claims"]
    assert [Tools("m", each).graded_by_default for each in (judge, graded, None)] == [False, True, False]
    assert not Tools("m", graded, verdicts="json").graded_by_default


@pytest.mark.parametrize(("yes_from", "holds"), [(0.6, True), (0.61, False), (0.2, True)])
def test_from_where_on_a_verdict_is_yes(yes_from: float, holds: bool) -> None:
    tools = Tools("m", Answering(yes=0.6), verdicts="probability", yes_from=yes_from)
    [found] = asyncio.run(verify(tools, ["a claim"], ["a chunk"], "q"))
    assert (found.ok, found.value) == (holds, 0.6)


def test_what_needs_no_judge_is_not_asked() -> None:
    tools = Tools("m")
    assert asyncio.run(verify(tools, [], ["a chunk"], "q")) == []
    assert asyncio.run(verify(tools, ["a claim"], ["", " "], "q")) == [
        Finding("a claim", False, "nothing was retrieved")
    ]


def test_what_a_judge_can_do() -> None:
    able, bound = Answering(), Answering()
    bound.tasks = ("split_claims",)
    assert [Tools("m", each).can("verify_claims") for each in (able, bound, None)] == [True, False, False]
    assert Tools("m", bound).can("split_claims")


def test_a_share_counts_probabilities_where_all_findings_have_one() -> None:
    graded = [Finding("a", True, value=0.9), Finding("b", False, value=0.2)]
    assert share_of(graded, graded=True) == pytest.approx(0.55)
    assert share_of(graded, graded=False) == 0.5
    assert share_of([*graded, Finding("c", True)], graded=True) == pytest.approx(2 / 3)
    with pytest.raises(UndefinedScore, match="no claims"):
        share_of([], graded=True)


def test_unsure_findings_at_the_edges() -> None:
    assert unsure_of([Finding("a", None, value=0.5)]) == {}
    assert unsure_of([Finding("a", False, value=0.0), Finding("b", True, value=0.5)]) == {
        "n_unsure": 1, "lowest": 0.0, "highest": 0.5,
    }  # fmt: skip


def test_the_first_fault_is_told() -> None:
    assert first_fault([Finding("a", True), Finding("b", None)]) == ""
    assert first_fault([Finding("a", True), Finding("b", False)]) == "not supported: b"
    three = [Finding("a", False, "why"), Finding("b", False), Finding("c", False)]
    assert first_fault(three[:1], "in no chunk") == "why"
    assert first_fault(three, "in no chunk") == "why (and 2 more)"
    assert first_fault(three[1:], "in no chunk") == "in no chunk: b (and 1 more)"


def test_a_line_of_evidence() -> None:
    assert head("a \n b") == "a b"
    assert head("x" * 120) == "x" * 120
    assert head("x" * 121) == "x" * 119 + "…"


@pytest.mark.parametrize("value", [True, False, "1", None, -0.1, 1.1, float("nan")])
def test_what_is_no_number_in_a_range(value: Any) -> None:
    with pytest.raises(UsageError, match=r"m: cutoff must lie in 0\.\.1, got"):
        check_number("m", "cutoff", value, 0, 1)


def test_the_ends_of_a_range_lie_in_it() -> None:
    for value in (0, 0.0, 0.5, 1):
        check_number("m", "cutoff", value, 0, 1)
