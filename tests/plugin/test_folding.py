"""What the terminal makes of many tests with one cause, and of tests with subtests, from made-up reports of pytest."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntryNative, ReprFileLocation, ReprTraceback

from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.model.tests import ScoreRecord, TestRecord
from pytest_ragbench.plugin.outcomes import make_writable
from pytest_ragbench.plugin.shared_errors import SharedErrors
from pytest_ragbench.plugin.subtests import Subtests, is_subtest

CONNECTION = "no connection to x: is it running?"


def errored(name: str, message: str) -> pytest.TestReport:
    place = ReprFileLocation("test_a.py", 1, f"JudgeError: {message}")
    entry = ReprTraceback([ReprEntryNative([f"E   JudgeError: {message}\n"])], None, style="native")
    longrepr = ExceptionChainRepr([(entry, place, None)])
    return pytest.TestReport(
        f"test_a.py::test_it[{name}]", ("test_a.py", 1, name), {}, "failed", longrepr, "setup"
    )


def message_of(report: pytest.TestReport) -> str:
    assert isinstance(report.longrepr, ExceptionChainRepr)
    assert report.longrepr.reprcrash is not None
    return report.longrepr.reprcrash.message


def listed(shared: SharedErrors, reports: list[pytest.TestReport]) -> Any:
    """What pytest finds to list; the generator is where it lists."""
    out: Any = SimpleNamespace(stats={"error": reports})
    listing = shared.pytest_terminal_summary(out)
    next(listing)
    return out


def test_errors_of_one_cause_are_listed_once_and_counted_again() -> None:
    shared = SharedErrors()
    alike = [errored(f"q{n}", CONNECTION) for n in range(5)]
    other, foreign = errored("other", "refused the key"), errored("foreign", CONNECTION)
    for report in (*alike, other):
        shared.see(report, message_of(report).partition(": ")[2])
    everything = [foreign, *alike[:2], other, *alike[2:]]
    out = listed(shared, everything)
    assert out.stats["error"] == [foreign, alike[0], other]
    assert isinstance(alike[0].longrepr, ExceptionChainRepr)
    [(title, names, _)] = alike[0].longrepr.sections
    assert title == "the same in 4 more tests"
    assert names.splitlines() == [*(f"test_a.py::test_it[q{n}]" for n in (1, 2, 3)), "..."]
    shared.unfold(out)
    assert out.stats["error"] == everything
    same = "JudgeError: the same"
    assert [message_of(report) == same for report in everything] == [
        False, False, True, False, False, True, True,
    ]  # fmt: skip
    # Once only: a second call finds nothing folded.
    out.stats["error"] = []
    shared.unfold(out)
    assert out.stats["error"] == []


def test_errors_that_differ_are_left_as_they_are() -> None:
    shared = SharedErrors()
    reports = [errored("a", "one"), errored("b", "two")]
    for report in reports:
        shared.see(report, message_of(report))
    out = listed(shared, reports)
    assert out.stats["error"] is reports
    shared.unfold(out)
    assert [message_of(report) for report in reports] == ["JudgeError: one", "JudgeError: two"]
    two = [errored("a", "one"), errored("b", "one")]
    for report in two:
        shared.see(report, "one")
    listed(shared, two)
    assert isinstance(two[0].longrepr, ExceptionChainRepr)
    assert two[0].longrepr.sections[0][:2] == ("the same in 1 more test", "test_a.py::test_it[b]")


def test_the_most_frequent_causes_are_named_in_the_closing_block() -> None:
    shared = SharedErrors()
    for cause, times in (("a", 1), ("b", 4), ("c", 3), ("d", 2)):
        for _ in range(times):
            shared.see(errored("q", cause), cause)
    three = ["4 tests: b", "3 tests: c", "2 tests: d"]
    assert list(shared.lines()) == [*three, "1 test: 1 other cause, in the list of errors"]
    shared.see(errored("q", "e"), "e")
    assert list(shared.lines()) == [*three, "2 tests: 2 other causes, in the list of errors"]
    few = SharedErrors()
    few.see(errored("q", "only"), "only")
    assert list(few.lines()) == ["1 test: only"]
    long = SharedErrors()
    long.see(errored("q", "x" * 400), "x" * 400)
    assert len(next(long.lines())) == len("1 test: ") + 300
    assert list(SharedErrors().lines()) == []


class SubtestReport(pytest.TestReport):
    """As pytest and pytest-subtests call theirs."""


NAME = "test_a.py::test_many"
CONTAINS = "contains 1 failed subtest"


def report(
    outcome: Any, *, of: type[pytest.TestReport] = SubtestReport, when: Any = "call", said: Any = None
) -> Any:
    return of(NAME, ("test_a.py", 1, "test_many"), {}, outcome, said, when)


def whole(outcome: Any, when: Any = "call", said: Any = None) -> Any:
    return report(outcome, of=pytest.TestReport, when=when, said=said)


def record(outcome: Any, *metrics: str, asked: tuple[str, ...] = ()) -> TestRecord:
    scores = tuple(ScoreRecord(metric=name, tier="generation", value=1.0) for name in metrics)
    return TestRecord(test=NAME, outcome=outcome, scores=scores, metrics=asked)


def test_a_test_ends_as_its_subtests_did() -> None:
    assert is_subtest(report("passed"))
    assert not is_subtest(whole("passed"))
    for kinds, outcome, kind, message in (
        (["judge"], "error", "judge", CONTAINS),
        (["judge", "quality"], "failed", "quality", "contains 2 failed subtests"),
        (["endpoint", None, "judge"], "failed", None, "contains 3 failed subtests"),
        ([None, "quality"], "failed", "quality", "contains 2 failed subtests"),
    ):
        subtests = Subtests()
        for each in kinds:
            subtests.see(report("failed"), each)
            assert list(subtests.records(report("failed"), record("failed", "mrr"))) == [
                record("failed", "mrr")
            ]
        subtests.see(report("passed"), None)
        end = whole("failed", said=CONTAINS)
        assert subtests.stands_for_subtests(end)
        [found] = subtests.records(end, record("passed"))
        assert (found.outcome, found.kind, found.message) == (outcome, kind, message)
        # What is said of a test is forgotten where it is run again.
        [again] = subtests.records(end, record("passed"))
        assert again.outcome == "passed"


def test_a_failure_of_a_test_itself_is_its_own() -> None:
    subtests = Subtests()
    subtests.see(whole("failed", said=CONTAINS), None)
    assert not subtests.stands_for_subtests(whole("failed", said=CONTAINS))
    subtests.see(report("failed"), "judge")
    assert not subtests.stands_for_subtests(whole("failed", said="boom"))
    assert not subtests.stands_for_subtests(whole("failed", "teardown", CONTAINS))
    assert not subtests.stands_for_subtests(whole("failed", said=ValueError("contains ")))
    own = record("failed")
    assert list(subtests.records(whole("failed"), own)) == [own]


def test_what_other_subtests_scored_is_not_missing_from_one_that_was_skipped() -> None:
    def left(scored: TestRecord | None, *asked: str, own: TestRecord | None = None) -> list[tuple[str, ...]]:
        subtests = Subtests()
        skipped = record("skipped", asked=asked)
        assert list(subtests.records(report("skipped"), skipped)) == []
        if scored is not None:
            assert list(subtests.records(report("passed"), scored)) == [scored]
        # Of the phases of a test its call ends the subtests.
        assert list(subtests.records(whole("passed", "setup"), None)) == []
        assert list(subtests.records(whole("passed", "teardown"), None)) == []
        return [each.metrics for each in subtests.records(whole("passed"), own) if each is not own]

    assert left(None, "mrr", "bleu") == [("mrr", "bleu")]
    assert left(record("passed", "mrr"), "mrr", "bleu") == [("bleu",)]
    assert left(record("passed", "mrr"), "mrr") == []
    assert left(None, "mrr", own=record("passed", "mrr")) == []
    assert left(record("passed", "search_rag_groundedness"), "search_rag") == []
    assert left(record("passed", "mrr"), "*") == []
    assert left(None, "*") == [("*",)]
    # One that was skipped after it had scored keeps its own scores.
    subtests = Subtests()
    late = record("skipped", "mrr")
    assert list(subtests.records(report("skipped"), late)) == [late]


def test_halves_of_surrogate_pairs_are_escaped_in_an_error_and_in_what_caused_it() -> None:
    error, cause = JudgeError("half \ud800"), ValueError("other \udfff")
    error.__cause__, cause.__context__ = cause, error  # two may each be the cause of the other

    def fails() -> None:
        raise error

    make_writable(pytest.CallInfo.from_call(fails, "call"))
    assert (error.args, cause.args) == (("half \\ud800",), ("other \\udfff",))
    good = ValueError("\U0001f600")
    error.__cause__ = good
    make_writable(pytest.CallInfo.from_call(fails, "call"))
    assert good.args == ("\U0001f600",)
    make_writable(pytest.CallInfo.from_call(lambda: None, "call"))
