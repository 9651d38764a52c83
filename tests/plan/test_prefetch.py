"""What a finished guess is handed over for, and when the test has to ask for itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragbench.engine import Call, Engine, Sent
from pytest_ragbench.engine.lookahead import looking_ahead
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Usage
from pytest_ragbench.plan.model import UNKNOWN, Ask
from pytest_ragbench.plan.prefetch import Ahead, score_ahead
from pytest_ragbench.scoring import Context, ScoreRequest, context_of, prepare, wait_for_scores
from pytest_ragbench.settings import Settings

SAMPLE = RagSample("When?", answer="At nine.", contexts=["It opens at nine."], id="q", metadata={"a": [1]})
METRIC = "faithfulness_holistic"


class Grader:
    """A judge whose replies the engine keeps; counts its calls."""

    tasks = None
    shared = True

    def __init__(self, engine: Engine, name: str = "grader", grade: float = 1.0) -> None:
        self.engine = engine
        self.name = name
        self.grade = grade
        self.calls = 0
        self.fails = False

    async def ask(self, task: Task[Any]) -> Answered[Any]:
        async def fetch(send: Any) -> Any:
            async def attempt() -> Sent:
                self.calls += 1
                if self.fails:
                    raise JudgeError("no reply", code="invalid_reply")
                return Sent({"grade": self.grade, "reason": ""}, prompt_tokens=7)

            return (await send(attempt)).payload

        key = {"task": task.name, "data": dict(task.data()), "vote": task.vote, "judge": self.name}
        call = Call("judge", self.name, "none", None, None, key)
        got = await self.engine.fetch(call, task.read, send=fetch)
        return Answered(got.value, self.name, got.usage, got.duration, got.cached)


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(store=None, run_id="r")
    yield made
    made.close()


@pytest.fixture
def grader(engine: Engine) -> Grader:
    return Grader(engine)


class Case:
    """A test that was looked ahead to, and the context in which it runs."""

    def __init__(self, engine: Engine, judge: Any, settings: Settings | None = None) -> None:
        self.engine = engine
        self.ahead = Ahead(sample=SAMPLE)
        plain = context_of(engine, settings or Settings(), judge=judge)
        self.plain = plain
        self.handed: list[bool] = []
        self.context = replace(plain, prefetched=self._prefetched)

    def _prefetched(self, prepared: Any) -> Any:
        found = self.ahead.take_score(prepared, self.engine)
        self.handed.append(found is not None)
        return found

    def guess(self, *asks: Ask) -> None:
        with ahead_of_the_test():
            self.engine.wait(score_ahead(self.plain, asks, self.ahead))

    def run(self, sample: RagSample = SAMPLE, **how: Any) -> Any:
        request = ScoreRequest(metric=METRIC, sample=sample, threshold=">=0.5", asserted=True, **how)
        [found] = wait_for_scores(self.context, [prepare(self.context, request)])
        return found


@contextmanager
def ahead_of_the_test() -> Iterator[None]:
    token = looking_ahead.set(True)
    try:
        yield
    finally:
        looking_ahead.reset(token)


ASK = Ask({METRIC: ">=0.5"})


def test_a_finished_score_is_the_tests_own(engine: Engine, grader: Grader) -> None:
    case = Case(engine, grader)
    case.guess(ASK)
    found = case.run()
    assert (case.handed, grader.calls) == ([True], 1)
    assert (found.value, found.cached, found.usage) == (1.0, False, Usage(1, 7, 0, None))
    again = case.run()
    assert (case.handed, grader.calls) == ([True, False], 1)
    assert (again.cached, again.usage.calls) == (True, 0)


def test_it_is_paid_for_once_whoever_comes_first(engine: Engine, grader: Grader) -> None:
    one, other = Case(engine, grader), Case(engine, grader)
    one.guess(ASK)
    other.ahead.scores.clear()
    first, second = other.run(), one.run()  # the other test had not been looked ahead to
    assert (other.handed, one.handed) == ([False], [False])
    assert [first.usage.calls, second.usage.calls] == [1, 0]
    assert grader.calls == 1


@pytest.mark.parametrize(
    ("sample", "how"),
    [
        (SAMPLE.with_(answer="At ten."), {}),
        (SAMPLE.with_(metadata={"a": [2]}), {}),
        (SAMPLE, {"votes": 3}),
        (SAMPLE, {"fresh": True}),
        (SAMPLE, {"judge": "local"}),
    ],
)
def test_another_request_is_asked_for(
    engine: Engine, grader: Grader, sample: RagSample, how: dict[str, Any]
) -> None:
    case = Case(engine, grader)
    case.guess(ASK)
    case.run(sample, **how)
    assert case.handed == [False]


def test_an_error_is_handed_over_once(engine: Engine, grader: Grader) -> None:
    case = Case(engine, grader)
    grader.fails = True
    case.guess(ASK)
    calls = grader.calls
    assert isinstance(case.run(), JudgeError)
    assert grader.calls == calls
    grader.fails = False
    assert case.run().value == 1.0


def votes(limit: Any, grade: float) -> Callable[[Engine], tuple[Case, Any]]:
    def made(engine: Engine) -> tuple[Case, Any]:
        judge = Grader(engine, grade=grade)
        case = Case(engine, judge, Settings(votes=3))
        case.guess(Ask({METRIC: limit}))
        return case, judge

    return made


def test_a_majority_of_votes_is_certain(engine: Engine) -> None:
    case, judge = votes(">=0.5", 1.0)(engine)
    assert judge.calls == 2
    found = case.run()
    assert (found.votes, judge.calls, case.handed) == (2, 2, [True])


def test_a_majority_where_the_threshold_is_not_known(engine: Engine) -> None:
    case, judge = votes(UNKNOWN, 1.0)(engine)
    assert judge.calls == 2
    found = case.run()
    assert (found.votes, judge.calls, case.handed) == (2, 2, [False])


def test_each_member_of_a_panel(engine: Engine) -> None:
    members = Grader(engine, "one"), Grader(engine, "two")
    case = Case(engine, Panel(members))
    case.guess(ASK)
    assert case.run().usage.calls == 2
    assert (case.handed, [member.calls for member in members]) == ([True], [1, 1])


def test_a_second_opinion_only_where_the_first_wants_it(engine: Engine) -> None:
    members = Grader(engine, "one"), Grader(engine, "two")
    case = Case(engine, Panel(members, "confirm"))
    case.guess(ASK)
    case.run()
    assert [member.calls for member in members] == [1, 0]


def test_nothing_after_what_is_wrong_with_the_test(engine: Engine, grader: Grader) -> None:
    wrong = Ask({METRIC: "<=0.5"})
    case = Case(engine, grader)
    case.guess(wrong, ASK)
    assert grader.calls == 0
    case.guess(replace(wrong, may_fail=True), ASK)
    assert grader.calls == 1


def test_a_context_without_look_ahead_asks(engine: Engine, grader: Grader) -> None:
    context: Context = context_of(engine, Settings(), judge=grader)
    request = ScoreRequest(metric=METRIC, sample=SAMPLE)
    [found] = wait_for_scores(context, [prepare(context, request)])
    assert not isinstance(found, Exception)
    assert grader.calls == 1
