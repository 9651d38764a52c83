"""The one stream of results, on the controller: from tests, in whatever process they ran, to all that take them.

Results are taken in once and handed to each consumer (``add``), and so is the report at the end of the run
(``finish``): totals, gates and worse answers fill in their part, then the report formats write it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_ragbench.garbage import uncollected
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.choosing import files_not_chosen
from pytest_ragbench.plugin.collected import Missing, collected_of
from pytest_ragbench.plugin.gating import gates_of
from pytest_ragbench.plugin.outcomes import PhaseOutcome
from pytest_ragbench.plugin.preflight import run_preflight
from pytest_ragbench.plugin.reports import Reports, run_info
from pytest_ragbench.plugin.state import RunState
from pytest_ragbench.plugin.subtests import Subtests

if TYPE_CHECKING:
    from pytest_ragbench.calibration.preflight import Preflight
    from pytest_ragbench.gates.deciding import RunGates
    from pytest_ragbench.model.report import RunInfo, RunReport
    from pytest_ragbench.model.tests import TestRecord
    from pytest_ragbench.plugin.mutating import WorseAnswers
    from pytest_ragbench.plugin.shared_errors import SharedErrors
    from pytest_ragbench.report.kept import KeptResults
    from pytest_ragbench.report.matrix import Matrix
    from pytest_ragbench.report.totals import Totals

EXIT_UNSCORED = 8
"""Nothing failed, but judge, endpoint or embedder did (0-6 are pytest's, 7 is taken)."""


_OFTEN_SHARED = ("endpoint", "judge", "embedding", "usage")
"""Kinds of errors whose causes many tests share."""
_LAST = ("passed", "failed", "skipped")
"""Outcomes of a phase that is not run again."""


class RagbenchWarning(pytest.PytestWarning):
    """Something that the run can do without, such as a store that can't be written."""


class Consumer(Protocol):
    """Who takes the results of a run."""

    def add(self, result: TestRecord) -> None:
        """One result, as it comes."""

    def finish(self, run: RunReport) -> object:
        """The run is over: put a part into its report, or write it."""


class RunResults:
    """Registered on the controller (and in a run without xdist) only."""

    def __init__(self, config: pytest.Config, state: RunState) -> None:
        self.config = config
        self.state = state
        self.expected: set[str] = set()
        self.reported: set[str] = set()
        self._kinds: set[str] = set()
        self._other_failures = 0
        self._collection_failed = False
        self._ended_early = False
        self._begun = False
        self._warned: dict[str, None] = {}
        self._evidence: list[tuple[str, str]] = []
        self._notes: list[str] = []
        self._started = time.time()
        self._preflight: Preflight | None = None
        self._reports: Reports | None = None
        self._gates: RunGates | None = None
        # These are made when there is something for them: most runs of pytest have no RAG test.
        self._totals: Totals | None = None
        self._worse: WorseAnswers | None = None
        self._kept: KeptResults | None = None
        self._matrix: Matrix | None = None
        self._missing = Missing()
        self._subtests = Subtests()
        self._shared: SharedErrors | None = None

    # What comes in

    def pytest_sessionstart(self) -> None:
        try:
            self.state.check_recording()
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None
        self._gates = gates_of(self.config, self.state)
        self._reports = Reports(self.config, self.state, self._started)
        self._preflight = run_preflight(self.config, self.state, EXIT_UNSCORED)
        self._show_progress()

    def _show_progress(self) -> None:
        if not getattr(self.config.pluginmanager.get_plugin("terminalreporter"), "isatty", False):
            return
        from pytest_ragbench.plugin.progress import progress_for

        if (progress := progress_for(self.config, self)) is not None:
            self.config.pluginmanager.register(progress, "ragbench-progress")

    # Not before: a run that finds no test, or can't collect them, leaves the reports of the last one.
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        if session.items and not (
            session.testsfailed and not session.config.option.continue_on_collection_errors
        ):
            self._begin()

    def expect(self, ids: Iterable[str]) -> None:
        """Node ids that a worker has collected; each has to come back as a report."""
        self.expected.update(ids)
        if self.expected:
            self._begin()

    def _begin(self) -> None:
        """There are tests to run, so there will be something to report."""
        if self._begun or not self.state.runs_tests:
            return
        self._begun = True
        if self._reports is not None:
            self._reports.open()
            if self._reports and self._reports.need_whole_run:
                self._kept = _new_kept()

    def told(self, collected: Sequence[Mapping[str, Any]]) -> None:
        """By a worker: the tests that it has collected."""
        self._missing.told(collected)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._missing.files.add(report.nodeid)
        if report.failed:
            self._collection_failed = True
            outcome = PhaseOutcome.of(report)
            self._count_failure(outcome.kind if outcome else None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in ("setup", "call"):  # the last report of a test, or that of a crashed worker
            self.reported.add(report.nodeid)
        outcome = PhaseOutcome.of(report)
        rerun = report.outcome not in _LAST  # its record comes with the last attempt
        if not rerun:
            self._missing.see(report)
        if report.failed and not rerun and not self._subtests.stands_for_subtests(report):
            self._count_failure(outcome.kind if outcome else None)
        self._subtests.see(report, outcome.kind if outcome else None)
        if outcome is None:
            return
        self.told(outcome.collected)
        report.ragbench = None  # type: ignore[attr-defined]  # pytest keeps all reports until the end
        self.take_rest(outcome.usage, outcome.warnings)
        if rerun:
            return
        if outcome.evidence is not None:
            self._evidence.append((report.nodeid, outcome.evidence))
        for record in self._subtests.records(report, outcome.record):
            self._totals = self._totals or _new_totals()
            self._missing.add(record)
            if record.system is not None and self._kept is None:  # for the matrix
                self._kept = _new_kept()
            if record.kind in _OFTEN_SHARED and record.message:
                self._see_error(report, record.message)
            for consumer in self._consumers():
                consumer.add(record)

    def _see_error(self, report: pytest.TestReport, message: str) -> None:
        if self._shared is None:
            from pytest_ragbench.plugin.shared_errors import SharedErrors

            self._shared = SharedErrors()
            self.config.pluginmanager.register(self._shared, "ragbench-shared-errors")
        self._shared.see(report, message)

    def take_rest(
        self, usage: dict[str, Any], texts: Iterable[str], trials: Iterable[dict[str, Any]] = ()
    ) -> None:
        """Usage, warnings and worse answers of a test, or of a process after its last one."""
        for text in texts:
            self._warn(text)
        if usage:
            self._totals = self._totals or _new_totals()
            self._totals.add_usage(usage)
        if trials := list(trials):
            from pytest_ragbench.plugin.mutating import WorseAnswers

            self._worse = self._worse or WorseAnswers(self._gates)
            self._worse.add_trials(trials)

    def _consumers(self) -> Iterator[Consumer]:
        """In the order in which they fill in the report: what decides on it before what writes it."""
        known: tuple[Consumer | None, ...] = (
            self._totals,
            self._gates,
            self._worse,
            self._kept,
            self._reports,
        )
        return (consumer for consumer in known if consumer is not None)

    @property
    def usage(self) -> dict[str, Any]:
        """Calls so far, as tests reported them."""
        return self._totals.summary.usage if self._totals else {}

    def _count_failure(self, kind: str | None) -> None:
        if kind is None or kind == "quality":
            self._other_failures += 1
        else:
            self._kinds.add(kind)

    def _warn(self, text: str) -> None:
        """Once per text and run, in pytest's own list of warnings; never an error under -W error."""
        if text in self._warned:
            return
        self._warned[text] = None
        message = warnings.WarningMessage(RagbenchWarning(text), RagbenchWarning, "pytest_ragbench", 0)
        self.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": message, "when": "runtest", "nodeid": "", "location": None}
        )

    # What comes out

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.take_rest(self.state.new_usage(), self.state.new_warnings(), self.state.trials)
        self._ended_early = exitstatus == pytest.ExitCode.INTERRUPTED or bool(
            session.shouldfail or session.shouldstop
        )
        session.exitstatus = self._exit_code(int(exitstatus))
        try:
            if self._begun and (recorded := self.state.end_recording()):
                self._notes.append(recorded)
        except RagbenchError as error:
            self._warn(str(error))
        if not any((self._totals, self._gates, self._worse, self._reports)):
            return
        run = self._report(int(session.exitstatus))
        with (
            uncollected() if self._kept is not None else nullcontext()
        ):  # of thousands of results none is garbage
            for consumer in self._consumers():
                consumer.finish(run)
        self._matrix = self._side_by_side(run)
        session.exitstatus = run.exit_code if run.exit_code is not None else session.exitstatus
        lost_report = self._reports is not None and self._reports.incomplete
        if lost_report and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = (
                pytest.ExitCode.INTERNAL_ERROR
            )  # who reads the report must not find a green run
        for text in (*run.warnings, *(self._reports.warnings if self._reports is not None else ())):
            self._warn(text)

    def _side_by_side(self, run: RunReport) -> Matrix | None:
        """The systems of the run; None where there are not several."""
        if self._kept is None:
            return None
        from pytest_ragbench.report.matrix import matrix_of
        from pytest_ragbench.report.systems import systems_in

        systems = systems_in(run)
        try:
            return matrix_of(list(systems.items())) if len(systems) > 1 else None
        except RagbenchError as error:
            self._notes.append(f"{', '.join(systems)} side by side: {error}")
            return None

    def _report(self, exit_code: int) -> RunReport:
        """What is known of the run before its consumers fill in the rest."""
        from pytest_ragbench.model.report import RunReport

        missing: tuple[TestRecord, ...] = ()
        if self.state.runs_tests:
            missing = tuple(self._missing.tests(collected_of(self.config), self.lost))
        not_chosen = tuple(self._not_chosen())
        self._note_partial(sum(test.outcome == "deselected" for test in missing), not_chosen)
        return RunReport(
            run=self._info(),
            complete=not self._ended_early and not self.lost and not self._missing.crashed,
            missing=missing,
            exit_code=exit_code,
            finished=time.time(),
            lost=tuple(sorted(self.lost)),
            not_chosen=not_chosen,
            warnings=tuple(self._warned),
            preflight=self._preflight.record() if self._preflight else None,
        )

    def _not_chosen(self) -> Iterator[str]:
        if self._totals is None or not (self._gates or self._reports) or not self.state.runs_tests:
            return
        known = self.expected | self.reported
        yield from files_not_chosen(self.config, self.state, known, self._missing.files)

    def _note_partial(self, deselected: int, not_chosen: Sequence[str]) -> None:
        were = (
            "1 test that asks for metrics was"
            if deselected == 1
            else f"{deselected} tests that ask for metrics were"
        )
        parts = [f"{were} deselected"] if deselected else []
        if not_chosen:
            named = ", ".join(not_chosen[:3]) + (" ..." if len(not_chosen) > 3 else "")
            parts.append(f"not run: {named}")
        if parts:
            self._notes.append(f"this run is partial: {'; '.join(parts)}")

    def _info(self) -> RunInfo:
        from pytest_ragbench.model.report import RunInfo

        if self._reports and self._reports.info is not None:
            return self._reports.info
        if self._gates is not None:  # which look at the prompts
            return run_info(self.config, self.state, self._started)
        return RunInfo(id=self.state.run_id, started=self._started, systems=tuple(self.state.systems))

    @cached_property
    def lost(self) -> Set[str]:
        """At the end of the run: tests that a worker collected, or that ask for metrics, and nobody reported."""
        return (self.expected - self.reported) | set(collected_of(self.config).unheard(self.reported))

    def _exit_code(self, given: int) -> int:
        """Pytest's own code, but for runs in which nothing is known to be wrong with the system under test."""
        green = given in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if green and self.state.runs_tests and self.lost:
            return pytest.ExitCode.INTERNAL_ERROR
        only_ours = bool(self._kinds) and not self._other_failures
        # INTERRUPTED is what an error during collection ends in, and Ctrl-C, which keeps its own code.
        ended = given == pytest.ExitCode.INTERRUPTED and self._collection_failed
        if only_ours and (given == pytest.ExitCode.TESTS_FAILED or ended):
            return pytest.ExitCode.USAGE_ERROR if "usage" in self._kinds else EXIT_UNSCORED
        return given

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._shared is not None:
            self._shared.unfold(terminalreporter)
        written = self._reports.lines if self._reports else []
        for line in (line for line in written if line.startswith("::")):
            terminalreporter.line(line)  # commands, which GitHub reads wherever they stand
        if any((self._totals, self._gates, self._worse)):
            self._show(terminalreporter, [line for line in written if not line.startswith("::")])
        if not self._ended_early and self.state.runs_tests:
            _show_lost(terminalreporter, self.lost, max(len(self.expected), len(self.reported | self.lost)))

    def _show(self, out: pytest.TerminalReporter, written: list[str]) -> None:
        from pytest_ragbench.plugin import terminal

        if self._totals is not None and self._totals.summary.has_results:
            summary = self._totals.summary
            used = self.state.describe_used(summary.judges, summary.embedders)
            notes = [*(self._shared.lines() if self._shared else ()), used]
            notes += [text for text, matters in self._totals.few_values.lines() if not matters]
            notes += self._totals.left_out.lines()
            terminal.show_evidence(out, self._evidence)
            terminal.show_summary(out, summary, [*notes, *self._notes, *written])
        if self._totals is not None:
            terminal.show_opinions(out, self._totals.opinions)
        if self._matrix is not None:
            terminal.show_matrix(out, self._matrix)
        if self._gates is not None:
            terminal.show_gates(out, self._gates)
        if self._worse is not None:
            terminal.show_worse_answers(out, self._worse)


def _new_totals() -> Totals:
    from pytest_ragbench.report.totals import Totals

    return Totals()


def _new_kept() -> KeptResults:
    from pytest_ragbench.report.kept import KeptResults

    return KeptResults()


_MOST_LOST = 10


def _show_lost(out: pytest.TerminalReporter, lost: Collection[str], expected: int) -> None:
    """Tests that a worker collected and of which no result came back, where nothing else is red."""
    if not lost or out.stats.get("failed") or out.stats.get("error"):
        return
    out.section("ragbench: results lost", red=True)
    out.line(f"{len(lost)} of {expected} tests were collected, but no result came back:")
    for nodeid in sorted(lost)[:_MOST_LOST]:
        out.line(f"  {nodeid}")
