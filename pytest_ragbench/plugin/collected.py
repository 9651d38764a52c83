"""The tests that were collected, whatever becomes of them: the denominator of the gates.

Each process knows what it has collected. With xdist the controller collects nothing: it hears of the questions from
a worker, with the first report of its tests, and only looks at them where tests left no result.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.clean import clean
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.model.scores import plain
from pytest_ragbench.plugin.collecting import as_question, questions_for

if TYPE_CHECKING:
    from pytest_ragbench.model.tests import Outcome, TestRecord
    from pytest_ragbench.plan.model import Plan

FIXTURES = frozenset({"rag_sample", "rag_samples", "rag_conversation", "rag_question", "rag_session"})
_PACKAGE = "pytest_ragbench"
_COLLECTED = pytest.StashKey["CollectedTests"]()


class CollectedTests:
    """Those of one process, before anything is deselected."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._items: list[pytest.Item] = []
        self._before: list[pytest.Item] = []
        self._seen: dict[str, pytest.Item] = {}
        self._asking: dict[FunctionType, bool] = {}
        self._modules: dict[int, bool] = {}
        self._told = False
        # Of a file of which single tests are named, or the last failures wanted, pytest collects all tests and
        # drops the others before any hook for deselection is called.
        by_name = any("::" in str(arg) for arg in config.args)
        self._watches = by_name or bool(config.getoption("lf", False))

    def see(self, report: pytest.CollectReport) -> None:
        """Keep in mind what a file or class has, before pytest chooses from it."""
        if not self._watches or not report.passed:
            return
        for each in report.result:
            if isinstance(each, pytest.Item):
                self._seen.setdefault(each.nodeid, each)

    @contextmanager
    def choosing(self, items: list[pytest.Item]) -> Generator[None]:
        """Inside, pytest and its plugins choose among ``items``, in place."""
        self._before = list(items)
        yield
        # The list itself: --lf, whose hook is outside of ours, goes on choosing.
        self._items = items

    @cached_property
    def _deselected(self) -> list[pytest.Item]:
        """Once collection is over."""
        kept = {item.nodeid for item in self._items}
        everything = {item.nodeid: item for item in self._before} | self._seen
        return [item for name, item in everything.items() if name not in kept]

    def asks(self, item: pytest.Item) -> bool:
        """Whether a test asks for metrics: by our fixtures, or by helpers that its source calls."""
        if has_questions(item):
            return True
        function = getattr(item, "function", None)
        if not isinstance(function, FunctionType):
            return False
        if function not in self._asking:
            self._asking[function] = self._knows_us(function.__globals__) and bool(plan_of(item).asks)
        return self._asking[function]

    def unheard(self, reported: Collection[str]) -> list[str]:
        """Node ids of those that ask for metrics, were to run, and are not among ``reported``."""
        return [item.nodeid for item in self._items if item.nodeid not in reported and self.asks(item)]

    def tests(self, names: Collection[str] | None = None) -> Generator[TestRecord]:
        """What is known of tests before they run: those of ``names`` (by default all that have questions of ours)
        with outcome ``not_run``, and what was ``deselected``.
        """
        for item in self._items:
            if has_questions(item) if names is None else item.nodeid in names and self.asks(item):
                yield not_run(item, "not_run")
        for item in self._deselected:
            if self.asks(item):
                yield not_run(item, "deselected")

    def _knows_us(self, names: dict[str, Any], depth: int = 1) -> bool:
        """Whether a module uses our helpers, itself or by functions of another module: reading the tests of all
        modules for that would take as long as collecting them.
        """
        if f"{_PACKAGE}.assertions" not in sys.modules:
            return False
        if (known := self._modules.get(id(names))) is not None:
            return known
        others: dict[int, dict[str, Any]] = {}
        found = False
        for value in list(names.values()):
            home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            found = found or (isinstance(home, str) and f"{home}.".startswith(f"{_PACKAGE}."))
            inner = vars(value) if isinstance(value, ModuleType) else getattr(value, "__globals__", None)
            if isinstance(inner, dict) and inner is not names and not _is_installed(inner):
                others[id(inner)] = inner
        found = found or (depth > 0 and any(self._knows_us(inner, depth - 1) for inner in others.values()))
        if depth > 0:
            self._modules[id(names)] = found
        return found

    def tell_once(self) -> list[TestRecord]:
        """In a worker: the tests, the first time; all workers collect the same, so that not each has to."""
        if self._told:
            return []
        self._told = True
        worker: Mapping[str, Any] = getattr(self._config, "workerinput", {})
        number = str(worker.get("workerid", "")).removeprefix("gw")
        # The first worker, or one in the place of a worker that crashed: that may have been the first.
        tells = not number.isdigit() or int(number) == 0 or int(number) >= int(worker.get("workercount", 1))
        return list(self.tests()) if worker and tells else []


def plan_of(item: pytest.Item) -> Plan:
    """What a test will ask. Reading it takes modules that a run without questions has no need of."""
    from pytest_ragbench.plugin import upcoming

    return upcoming.plan_of(item)


def collected_of(config: pytest.Config) -> CollectedTests:
    """That of this process."""
    if (found := config.stash.get(_COLLECTED, None)) is None:
        found = CollectedTests(config)
        config.stash[_COLLECTED] = found
    return found


def system_of(item: pytest.Item) -> str | None:
    """The name of the system that a test asks, where the run, the test's file or its author names several."""
    chosen = getattr(getattr(item, "callspec", None), "params", {}).get("retriever")
    if isinstance(chosen, str):  # the address alone: a query may hold a key
        return clean(chosen.partition("?")[0])
    name = getattr(chosen, "name", None) or getattr(chosen, "__name__", None)
    return (clean(name) or None) if isinstance(name, str) else None


def has_questions(item: pytest.Item) -> bool:
    """Whether a test uses our fixtures."""
    return not FIXTURES.isdisjoint(getattr(item, "fixturenames", ()))


def _is_installed(names: Mapping[str, Any]) -> bool:
    from pytest_ragbench.plan.values import is_installed

    return is_installed(str(names.get("__file__") or ""))


def not_run(item: pytest.Item, outcome: Outcome) -> TestRecord:
    """The record of a test that did not run."""
    from pytest_ragbench.model.tests import TestRecord
    from pytest_ragbench.report.records import question_record

    questions = questions_asked(item)
    return TestRecord(
        test=plain(item.nodeid),
        system=system_of(item),
        outcome=outcome,
        question_id=plain(questions[0].id) if len(questions) == 1 else None,
        questions=tuple(question_record(each) for each in questions),
        metrics=metrics_asked(item),
    )


def metrics_asked(item: pytest.Item) -> tuple[str, ...]:
    """The metrics that a test would ask for; with :data:`OTHERS` where its source does not tell all of them."""
    from pytest_ragbench.gates.observations import OTHERS
    from pytest_ragbench.gates.rules import GRADES

    plan = plan_of(item)
    names = dict.fromkeys(plan.metric_names())
    if any(ask.grades for ask in plan.asks):  # one metric with two scores
        names |= dict.fromkeys(GRADES)
    if not plan.complete or not plan.asks or any(not ask.metrics for ask in plan.asks):
        names[OTHERS] = None
    return tuple(names)


def questions_asked(item: pytest.Item) -> Sequence[Question | RagSample]:
    """The questions that a test is about, as far as its parameters and its mark tell."""
    params: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    try:
        if isinstance(turns := params.get("rag_session"), tuple):
            return turns
        if (question := params.get("rag_question")) is not None:
            return [as_question(question, item)]
        if given := [each for each in params.values() if isinstance(each, (Question, RagSample))]:
            return given
        if "rag_samples" in getattr(item, "fixturenames", ()):
            return questions_for(item, item.config) or []
    except RagbenchError:
        pass  # the test says what is wrong with them
    return []


class Missing:
    """On the controller: which of the collected tests left no result, and why."""

    def __init__(self) -> None:
        self.crashed = False
        """Whether a worker died during a test."""
        self.files: set[str] = set()
        """That skip themselves, or can't be imported."""
        self._told: list[Mapping[str, Any]] = []
        self._outcomes: dict[str, Outcome] = {}
        self._functions: set[str] = set()
        self._with_result: set[str] = set()

    def told(self, tests: Sequence[Mapping[str, Any]]) -> None:
        """By a worker: what it knows of the tests before they run. It is read at the end, if at all."""
        self._told += tests

    def see(self, report: pytest.TestReport) -> None:
        """Keep in mind how a test ended that did not pass."""
        outcome: Outcome | None = None
        if report.when not in ("setup", "call", "teardown"):
            self.crashed, outcome = True, "crashed"
        elif report.when != "teardown" and not report.passed:
            skipped: Outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
            outcome = skipped if report.skipped else "error"
        if outcome is not None:
            self._outcomes.setdefault(report.nodeid, outcome)

    def add(self, result: TestRecord) -> None:
        """A test has left a result."""
        self._with_result.add(result.test)
        if result.scores:
            self._functions.add(result.test.partition("[")[0])

    def tests(self, collected: CollectedTests, lost: Collection[str]) -> Generator[TestRecord]:
        """Those without a result; ``lost`` are tests of which nothing was heard again."""
        outcomes: dict[str, Outcome] = {**dict.fromkeys(sorted(lost), "not_run"), **self._outcomes}
        for name in self._with_result:
            outcomes.pop(name, None)
        known = {test.test: test for test in (*collected.tests(outcomes), *self._read(outcomes))}
        for name, test in known.items():
            if name not in self._with_result:
                yield replace(test, outcome=outcomes.get(name, test.outcome))
        for name, outcome in outcomes.items():
            if name not in known and name.partition("[")[0] in self._functions:
                # Nothing is known of it but that others of its function were scored.
                from pytest_ragbench.model.tests import TestRecord

                yield TestRecord(test=name, outcome=outcome)

    def _read(self, names: Collection[str]) -> Generator[TestRecord]:
        """What a worker told of these tests, and of what was deselected."""
        wanted = [each for each in self._told if each["outcome"] == "deselected" or each["test"] in names]
        if wanted:
            from pytest_ragbench.model.tests import TestRecord
            from pytest_ragbench.report.reading import part_from

            for each in wanted:
                yield part_from(TestRecord, each, name="a worker's test")
