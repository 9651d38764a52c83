"""Quality is FAILED; judge, endpoint, embedder and usage are ERROR. What was found rides on the report."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
    Traceback,
)

from pytest_ragbench.clean import clean
from pytest_ragbench.model import errors
from pytest_ragbench.model.scores import plain
from pytest_ragbench.plugin.collected import (
    collected_of,
    has_questions,
    metrics_asked,
    questions_asked,
    system_of,
)
from pytest_ragbench.plugin.state import RESULTS, STATE

if TYPE_CHECKING:
    from pytest_ragbench.model.tests import TestRecord

_HERE = Path(__file__).parents[1]

KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (errors.QualityFailure, "quality"),
    (errors.UsageError, "usage"),
    (errors.JudgeError, "judge"),
    (errors.EndpointError, "endpoint"),
    (errors.EmbeddingError, "embedding"),
    (errors.BudgetError, "budget"),
    (errors.UndefinedScore, "undefined"),
    (errors.Unscored, "unscored"),
    (errors.RagbenchError, "unscored"),
)


_UNREAD: Any = "value"
"""A style of pytest's by which an entry's source is not looked up."""


_ATTEMPT = pytest.StashKey[list["TestRecord"]]()
"""What the test has left since its last setup."""
_EARLIER = pytest.StashKey[list["TestRecord"]]()
"""What its attempts before left, until the present one has a record that takes that along."""


@dataclass(frozen=True, slots=True)
class PhaseOutcome:
    """What one phase of a test left for the controller; rides on pytest's report."""

    kind: str | None = None
    """As in a test's record."""
    usage: dict[str, Any] = field(default_factory=dict)
    """Of calls since the last report."""
    warnings: list[str] = field(default_factory=list)
    record: TestRecord | None = None
    evidence: str | None = None
    """What passing scores rest on, where that is to be shown."""
    collected: Sequence[Any] = ()
    """From a worker, once: records of the tests that it has collected."""

    def to_json(self) -> str:
        from pytest_ragbench.report.writing import to_json

        return to_json(self)

    @classmethod
    def of(cls, report: object) -> PhaseOutcome | None:
        """From a report of this process, or, as JSON, of a worker's; None where a test has nothing to do with us."""
        told = getattr(report, "ragbench", None)
        if not isinstance(told, str):
            return told
        data = json.loads(told)
        if data.get("record") is not None:
            from pytest_ragbench.model.tests import TestRecord
            from pytest_ragbench.report.reading import part_from

            data["record"] = part_from(TestRecord, data["record"], name="a worker's result")
        return cls(**data)


def kind_of(error: BaseException | None) -> str | None:
    """How an exception is counted: "quality", "judge" ...; None for what is not ours."""
    return next((kind for error_type, kind in KINDS if isinstance(error, error_type)), None)


def make_writable(call: pytest.CallInfo[Any]) -> None:
    """Escape halves of surrogate pairs, which a reply may hold, in what exceptions say: other report plugins
    (Allure) take the text from there, and end the run where they can't write it to a file.
    """
    error = call.excinfo.value if call.excinfo is not None else None
    seen: set[int] = set()  # two errors may each be the cause of the other
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        try:
            str(error).encode()
        except UnicodeEncodeError:
            error.args = tuple(_escaped(part) if isinstance(part, str) else part for part in error.args)
        error = error.__cause__ or error.__context__


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def shorten(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Where the message will stand alone, spare pytest the traceback: it reads and parses the file of each
    frame, a tenth of a second for one of our errors, and a run may have thousands.
    """
    if (
        call.excinfo is None
        or kind_of(call.excinfo.value) is None
        or item.config.getoption("fulltrace", False)
    ):
        return
    shown = [entry for entry in call.excinfo.traceback if not entry.ishidden(call.excinfo)]
    if shown and _is_ours(str(shown[-1].path)):
        call.excinfo.traceback = Traceback([shown[-1].with_repr_style(_UNREAD)])


def label(item: pytest.Item, call: pytest.CallInfo[Any], report: pytest.TestReport) -> None:
    """Turn our exceptions into their outcome, and attach what was found out to the report."""
    error = call.excinfo.value if call.excinfo is not None else None
    kind = kind_of(error)
    phase = call.when
    if error is not None and kind is not None:
        assert call.excinfo is not None
        _tidy(report, call.excinfo, kind, item)
        if kind != "quality":
            # Neither xfail nor the call phase may hide an outage: ERROR, and <error> in JUnit.
            report.outcome = "failed"
            report.__dict__.pop("wasxfail", None)
            if phase == "call":
                report.when = "setup"
    state = item.config.stash[STATE]
    if phase == "setup" and (attempt := item.stash.get(_ATTEMPT, None)):
        item.stash[_EARLIER], item.stash[_ATTEMPT] = attempt, []  # the test is run again
    results = item.stash.get(RESULTS, [])
    usage, warnings = state.new_usage(), state.new_warnings()
    told = [] if state.is_controller else collected_of(item.config).tell_once()
    fails = phase != "teardown" and report.outcome != "passed"
    asks = collected_of(item.config).asks(item) if fails else has_questions(item)
    if kind is None and not results and not usage and not warnings and not asks and not told:
        return
    from pytest_ragbench.report.records import properties, record_of, traces_of, with_attempt

    record, evidence = None, None
    if (asks and (phase == "call" or fails)) or results or kind:
        limit = state.settings.report_replies if results else 0
        collected = questions_asked(item) if fails and asks else ()
        metrics = metrics_asked(item) if fails and asks else ()
        record = record_of(
            item, report, error, kind, results, reply_limit=limit, collected=collected, metrics=metrics,
            system=system_of(item),
            prompts=bool(item.config.getoption("ragbench_otel")),
        )  # fmt: skip
        for earlier in item.stash.get(_EARLIER, ()):
            record = with_attempt(earlier, record)
        item.stash[_EARLIER] = []
        item.stash.setdefault(_ATTEMPT, []).append(record)
        if report.passed and results and item.config.getoption("ragbench_verbose"):
            from pytest_ragbench.assertions.failure import evidence_text

            evidence = evidence_text(results)
        if item.config.getoption("allure_report_dir", None) or item.config.getoption("htmlpath", None):
            from pytest_ragbench.plugin.others import tell_others

            tell_others(item, report, record, results)
        template = state.settings.trace_url if state.is_loaded else None
        traces = traces_of(record, template)
        if fails and template:  # an id alone helps nobody at the terminal
            _show_traces(report, traces)
        if state.tells_junit:
            item.user_properties += properties(results, kind, traces)
        # In place: the report of the teardown has them, too, and a number of numpy does not cross to the controller.
        item.user_properties[:] = [(str(name), plain(value)) for name, value in item.user_properties]
        report.user_properties = list(item.user_properties)
        state.take_results(results)
        results.clear()
    if record is None and not usage and not warnings and not told:
        return  # setup and teardown, as a rule: two reports of three need not carry anything to the controller
    outcome = PhaseOutcome(kind, usage, warnings, record, evidence, told)
    # Text crosses to the controller ten times as fast as what it is made of.
    report.ragbench = outcome if state.is_controller else outcome.to_json()  # type: ignore[attr-defined]


def _tidy(
    report: pytest.TestReport, raised: pytest.ExceptionInfo[BaseException], kind: str, item: pytest.Item
) -> None:
    """Our message alone in the summary line; no frame of ours in the traceback; no control characters."""
    longrepr, error = report.longrepr, raised.value
    crash = getattr(longrepr, "reprcrash", None)
    shown = getattr(longrepr, "reprtraceback", None)
    if shown is None:
        return
    message = clean(str(error)) or type(error).__name__
    name = f"{type(error).__module__}.{type(error).__qualname__}: "
    # The type tells one kind of error from another; a failure needs none, its first line stands alone.
    said = message if kind == "quality" else f"{type(error).__name__}: {message}"
    headline = said.partition("\n")[0]  # the message attribute in JUnit; the whole text stands in the element
    last = shown.reprentries[-1] if shown.reprentries else None
    hidden = str(getattr(shown, "extraline", "") or "").startswith("All traceback entries are hidden")
    if crash is None or hidden:  # a test without Python
        crash = ReprFileLocation(str(item.path), (item.location[1] or 0) + 1, headline)
    where = getattr(getattr(last, "reprfileloc", None), "path", "") or ""
    native = isinstance(last, ReprEntryNative)  # --tb=native: one entry for all frames, and for all causes
    if last is None or hidden or native or last.style == _UNREAD or _is_ours(where):
        frames = _frames(raised, item) if native and not hidden else []
        columns = item.config.stash[STATE].columns
        told = [f"E   {part}" for line in said.splitlines() for part in _wrapped(line, columns - 4)]
        lines = [*frames, *(f"{line}\n" for line in told)]
        crash = ReprFileLocation(crash.path, crash.lineno, headline)
        plain_traceback = ReprTraceback([ReprEntryNative(lines)], None, style="native")
        report.longrepr = ExceptionChainRepr([(plain_traceback, crash, None)])
        return
    crash.message = headline
    if isinstance(longrepr, ExceptionChainRepr):
        longrepr.chain = longrepr.chain[-1:]
    cleaned = [
        clean(line).replace(name, "" if kind == "quality" else f"{type(error).__name__}: ", 1)
        for line in last.lines
    ]
    last.lines[:] = _fitted(cleaned, item.config.stash[STATE].columns)


_LABELS = 13
"""Cells of the column of labels in the evidence: question, answer, claims ..."""
_MARKS = ("✓", "✗", "·", "?", "[")
"""What a claim or a chunk begins with, behind the labels."""


def _wrapped(line: str, width: int) -> list[str]:
    from pytest_ragbench.report.layout import wrapped

    indent = _LABELS if line.startswith("  ") else 2
    indent += 2 * (line[_LABELS : _LABELS + 1] in _MARKS and indent == _LABELS)
    return wrapped(line, max(width, 2 * _LABELS), indent)


def _fitted(lines: Sequence[str], columns: int) -> list[str]:
    """Lines of pytest's, of which those of the error (with an E in front) are broken where they are too long."""
    marked = next((line for line in lines if line.startswith("E ")), "")
    margin = len(marked) - len(marked[1:].lstrip())
    return [
        line[:margin] + part
        for line in lines
        for part in (_wrapped(line[margin:], columns - margin) if line.startswith("E ") else [line[margin:]])
    ]


def _frames(raised: pytest.ExceptionInfo[BaseException], item: pytest.Item) -> list[str]:
    """The test's part of a traceback as Python writes it."""
    shown = [
        (entry.frame.raw, entry.lineno + 1)
        for entry in raised.traceback.cut(path=item.path)
        if not entry.ishidden(raised) and not _is_ours(str(entry.path))
    ]
    found = traceback.StackSummary.extract(iter(shown)).format()
    return ["Traceback (most recent call last):\n", *found] if found else []


def _show_traces(report: pytest.TestReport, traces: Sequence[tuple[str, str]]) -> None:
    """Below the failure, whatever failed: where the service's own trace of the question is."""
    from pytest_ragbench.report.records import MOST_TRACES

    add = getattr(report.longrepr, "addsection", None)
    if add is None or not traces:
        return
    lines = [f"{where}   {clean(name)}" for name, where in traces[:MOST_TRACES]]
    if len(traces) > MOST_TRACES:
        lines.append(f"... and {len(traces) - MOST_TRACES} more, which stand in the report")
    add("trace of the question" if len(traces) == 1 else "traces of the questions", "\n".join(lines))


def stop_in_the_test(error: BaseException) -> None:
    """Cut our frames off the traceback of one of our errors, so that a debugger stops where the sample is in scope."""
    if kind_of(error) is None:
        return
    from pytest_ragbench.plan.values import is_installed

    entry = error.__traceback__
    started = False
    while entry is not None and (following := entry.tb_next) is not None:
        file = entry.tb_frame.f_code.co_filename
        # pytest and its plugins call the test by way of hooks of ours: those come before any frame of the test.
        started = started or not (is_installed(file) or _is_ours(file))
        if started and _is_ours(following.tb_frame.f_code.co_filename):
            entry.tb_next = None
        entry = following


def _is_ours(path: str) -> bool:
    try:
        return Path(path).resolve().is_relative_to(_HERE)
    except (OSError, ValueError):
        return False
