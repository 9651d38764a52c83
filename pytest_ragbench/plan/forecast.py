"""How many calls a run will make, counted from its plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import Question, RagSample, sample_from
from pytest_ragbench.plan.model import Ask, Plan, is_known


@dataclass(frozen=True)
class Judges:
    """Who judges a test, by name: ``asked`` for each score, ``perhaps`` where the first one's says so."""

    asked: tuple[str, ...]
    perhaps: tuple[str, ...] = ()


@dataclass(frozen=True)
class UpcomingTest:
    """A test that has not begun. ``retriever`` tells systems under test apart; ``votes`` are by question."""

    name: str
    plan: Plan
    questions: Sequence[Question]
    judges: Judges
    retriever: object = None
    votes: Sequence[int] = ()


@dataclass
class Forecast:
    """Calls by judge and metric. What two tests ask alike is asked once."""

    answers: set[Any] = field(default_factory=set)
    judged: Counter[tuple[str, str]] = field(default_factory=Counter)
    perhaps: int = 0
    """Calls of judges that depend on replies: further votes, second opinions, helpers below an ``if``."""
    embedded: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    """Tests of which not everything that they ask can be told."""
    _counted: set[Any] = field(default_factory=set)

    def add(self, test: UpcomingTest) -> None:
        """Count what the test will ask."""
        self.answers |= {(test.retriever, question.question) for question in test.questions}
        complete = test.plan.complete or not test.questions
        for place, ask in enumerate(test.plan.asks):
            for name in ask.metrics:
                complete = self._add_metric(test, place, ask, name) and complete
        if not complete:
            self.unknown.append(test.name)

    def _add_metric(self, test: UpcomingTest, place: int, ask: Ask, name: str) -> bool:
        """False where the number of calls can't be told."""
        try:
            metric = fitted_metric(name, ask, Question(id="", question="-"))
        except RagbenchError:
            return True  # the test will say so
        if metric.of == "set":
            self.embedded |= {name} if metric.embedder else set()
            return not metric.tasks
        for question, votes in zip(test.questions, test.votes or [1] * len(test.questions), strict=True):
            fitted = fitted_metric(name, ask, question)
            self.embedded |= {name} if fitted.embedder else set()
            # Two tests that judge the same answer in the same way share the calls; a sample that the test
            # makes itself is like no other.
            same = (test.name, place) if ask.of == "other" else (test.retriever, question.question)
            key = (name, repr(sorted(ask.options.items())), same, ask.certain)
            self._add_calls(test, ask, metric.name, len(fitted.tasks), votes, key)
        return True

    def _add_calls(self, test: UpcomingTest, ask: Ask, name: str, tasks: int, votes: int, key: Any) -> None:
        judges = Judges((ask.judge,)) if isinstance(ask.judge, str) else test.judges
        for judge in (*judges.asked, *judges.perhaps):
            if not tasks or (judge, key) in self._counted:
                continue
            self._counted.add((judge, key))
            # The local judge always says the same, and votes once.
            most = 1 if judge == "local" else votes
            # Votes are asked for until a majority agrees; how many more it takes depends on the replies.
            sure = most // 2 + 1 if ask.certain and judge in judges.asked else 0
            if sure:
                self.judged[judge, name] += tasks * sure
            if judge != "local":
                self.perhaps += tasks * (most - sure)


def fitted_metric(name: str, ask: Ask, example: Question | RagSample) -> Metric:
    """The metric as the options of the call make it, where those are known.

    Raises
    ------
    UsageError
        There is no metric of that name.
    """
    metric = find(name)
    if metric.of == "set" or metric.adapt is None or not is_known(dict(ask.options)):
        return metric
    try:
        if isinstance(example, Question):
            # Not blank: a metric refuses a sample whose fields are.
            example = sample_from(example, answer="-", contexts=("-",))
        return metric.adapted(example, ask.options)
    except RagbenchError:  # the test will say so
        return metric
