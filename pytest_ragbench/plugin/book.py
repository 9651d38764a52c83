"""The controller's book of the run: results as they come, summary, exit code."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.outputs import Outputs
from pytest_ragbench.plugin.state import RunState

if TYPE_CHECKING:
    from pytest_ragbench.gates.preflight import Preflight
    from pytest_ragbench.plugin.gating import Gates
    from pytest_ragbench.report.few_values import FewValues
    from pytest_ragbench.report.json_report import JsonReport
    from pytest_ragbench.report.opinions import Opinions
    from pytest_ragbench.report.summary import Summary

EXIT_UNSCORED = 8
"""Nothing failed, but judge, endpoint or embedder did (0-6 are pytest's, 7 is taken)."""


class RunBook:
    """Registered on the controller (and in a run without xdist) only."""

    def __init__(self, config: pytest.Config, state: RunState) -> None:
        self.config = config
        self.state = state
        self.expected: set[str] = set()
        self.reported: set[str] = set()
        self.kinds: set[str] = set()
        self.other_failures = 0
        self.collection_failed = False
        self.ended_early = False
        self.warnings: dict[str, None] = {}
        self.recorded: str | None = None
        self._summary: Summary | None = None
        self._json: JsonReport | None = None
        self._gates: Gates | None = None
        self._opinions: Opinions | None = None
        self._preflight: Preflight | None = None
        self._trials: list[dict[str, Any]] = []
        self._mutations: dict[str, Any] | None = None
        self._few: FewValues | None = None
        self._outputs = Outputs(config, state)
        self._head: dict[str, Any] = {}
        self._evidence: list[tuple[str, str]] = []
        self._started = time.time()

    # xdist

    def expect(self, ids: Iterable[str]) -> None:
        """Node ids that a worker has collected; each has to come back as a report."""
        self.expected.update(ids)

    # What comes in

    def pytest_sessionstart(self) -> None:
        try:
            self.state.check_recording()
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None
        from pytest_ragbench.plugin.gating import gates_of

        self._gates = gates_of(self.config, self.state)
        self._outputs.check()
        self._open_report()
        from pytest_ragbench.plugin.preflight import run_preflight

        self._preflight = run_preflight(self.config, self.state, EXIT_UNSCORED)
        self._show_progress()

    def _open_report(self) -> None:
        path = self.config.getoption("ragbench_json")
        if not path and not self._outputs.wanted:
            return
        from pytest_ragbench.report.json_report import JsonReport

        try:
            self._head = self._run()
            if path:
                self._json = JsonReport(
                    self.config.invocation_params.dir / Path(path).expanduser(), self._head
                )
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None

    def _show_progress(self) -> None:
        if not getattr(self.config.pluginmanager.get_plugin("terminalreporter"), "isatty", False):
            return
        from pytest_ragbench.plugin.progress import progress_for

        if (progress := progress_for(self.config, self)) is not None:
            self.config.pluginmanager.register(progress, "ragbench-progress")

    @property
    def books(self) -> dict[str, Any]:
        """Calls so far, as tests reported them."""
        return self._summary.books if self._summary else {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.collection_failed = True
            self._count_failure(_told(report))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in ("setup", "call"):  # the last report of a test, or that of a crashed worker
            self.reported.add(report.nodeid)
        data = _told(report)
        rerun = getattr(report, "outcome", None) == "rerun"
        if report.failed and not rerun:
            self._count_failure(data)
        if data is None:
            return
        report.ragbench = None  # type: ignore[attr-defined]  # pytest keeps all reports until the end
        summary = self._summary = self._summary or self._new_summary()
        summary.add_books(data["books"])
        for text in data["warnings"]:
            self._warn(text)
        if "evidence" in data and not rerun:
            self._evidence.append((report.nodeid, data["evidence"]))
        if "record" in data and not rerun:
            summary.add_record(data["record"])
            self._note_opinions(data["record"])
            self._note_few_values(data["record"])
            if self._json is not None:
                self._json.add(data["record"])
            if self._gates is not None:
                self._gates.add(data["record"])
            if self._outputs.wanted:
                self._outputs.keep(data["record"])

    def add_rest(
        self, books: dict[str, Any], warnings: list[str], trials: Iterable[dict[str, Any]] = ()
    ) -> None:
        """What a process did after its last report: calls for tests that others ran, worse answers tried."""
        self._trials += trials
        for text in warnings:
            self._warn(text)
        if books:
            summary = self._summary = self._summary or self._new_summary()
            summary.add_books(books)

    def _note_opinions(self, record: dict[str, Any]) -> None:
        """Votes and panels, where there are any."""
        told = [score.get("details") or {} for score in record["scores"]]
        if any("flaky" in details or "panel" in details for details in told):
            from pytest_ragbench.report.opinions import Opinions

            self._opinions = self._opinions or Opinions()
            self._opinions.add(record)

    def _note_few_values(self, record: dict[str, Any]) -> None:
        """Scores that are shares of a few claims."""
        if any(score.get("threshold") and score.get("evidence") for score in record["scores"]):
            from pytest_ragbench.report.few_values import FewValues

            self._few = self._few or FewValues()
            self._few.add(record)

    def _count_failure(self, data: dict[str, Any] | None) -> None:
        kind: str | None = data["kind"] if data else None
        if kind is None or kind == "quality":
            self.other_failures += 1
        else:
            self.kinds.add(kind)

    def _new_summary(self) -> Summary:
        from pytest_ragbench.report.summary import Summary

        return Summary()

    def _warn(self, text: str) -> None:
        """Once per text and run, in pytest's own list of warnings; never an error under -W error."""
        if text in self.warnings:
            return
        self.warnings[text] = None
        import warnings

        message = warnings.WarningMessage(RagbenchWarning(text), RagbenchWarning, "pytest_ragbench", 0)
        self.config.hook.pytest_warning_recorded.call_historic(
            kwargs={"warning_message": message, "when": "runtest", "nodeid": "", "location": None}
        )

    # What comes out

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self.add_rest(self.state.new_books(), self.state.new_warnings(), self.state.trials)
        self.ended_early = exitstatus == pytest.ExitCode.INTERRUPTED or bool(
            session.shouldfail or session.shouldstop
        )
        session.exitstatus = self.exit_code(int(exitstatus))
        try:
            self.recorded = self.state.end_recording()
        except RagbenchError as error:
            self._warn(str(error))
        if self._gates is not None:
            self._gates.preflight = self._preflight.fingerprint if self._preflight else None
            self._gates.decide(complete=not self.ended_early and not self.lost)
            session.exitstatus = self._gates.exit_code(int(session.exitstatus), EXIT_UNSCORED)
            for text in self._gates.warnings():
                self._warn(text)
        for text, matters in self._few.lines() if self._few else ():
            if matters:
                self._warn(text)
        if self._trials:
            self._mutations = self._outcome_of_trials()
        if self._json is None and not self._outputs.wanted:
            return
        end = self._end(int(session.exitstatus))
        if self._json is not None:
            self._json.finish(end)
        if self._outputs.wanted:
            for text in self._outputs.write(self._head, end):
                self._warn(text)

    def _outcome_of_trials(self) -> dict[str, Any]:
        from pytest_ragbench.mutation.outcome import outcome
        from pytest_ragbench.mutation.running import Trial

        trials = [Trial.of(told) for told in self._trials]
        return outcome(trials, *self._gates.grounds) if self._gates else outcome(trials)

    def _end(self, exit_code: int) -> dict[str, Any]:
        """What the JSON report says when the run is over."""
        return {
            "complete": not self.ended_early and not self.lost,
            "exit_code": exit_code,
            "finished": time.time(),
            "summary": self._summary.to_dict(self._bands()) if self._summary else None,
            "lost": sorted(self.lost),
            "warnings": list(self.warnings),
            **(self._gates.to_dict() if self._gates else {"gates": []}),
            **(self._opinions.to_dict() if self._opinions else {}),
            **({"mutations": self._mutations} if self._mutations else {}),
            **({"preflight": self._preflight.to_dict()} if self._preflight else {}),
        }

    @property
    def lost(self) -> set[str]:
        """Tests that a worker collected and nobody reported."""
        return self.expected - self.reported

    def exit_code(self, given: int) -> int:
        """Pytest's own code, but for runs in which nothing is known to be wrong with the system under test."""
        green = given in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if green and self.lost and not self.config.getoption("collectonly"):
            return pytest.ExitCode.INTERNAL_ERROR
        only_ours = bool(self.kinds) and not self.other_failures
        # INTERRUPTED is what an error during collection ends in, and Ctrl-C, which keeps its own code.
        ended = given == pytest.ExitCode.INTERRUPTED and self.collection_failed
        if only_ours and (given == pytest.ExitCode.TESTS_FAILED or ended):
            return pytest.ExitCode.USAGE_ERROR if "usage" in self.kinds else EXIT_UNSCORED
        return given

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._outputs.annotations:  # GitHub reads them wherever they stand
            terminalreporter.line(line)
        if self._summary is not None and (self._summary.rows or self._summary.outcomes):
            self._show(terminalreporter, self._summary)
        if self._opinions is not None:
            for line in self._opinions.lines():
                terminalreporter.line(line)
        if self._gates is not None:
            terminalreporter.section("gates")
            colours = {"PASS": {"green": True}, "FAIL": {"red": True}, "UNDECIDED": {"yellow": True}}
            for outcome, line in self._gates.lines():
                terminalreporter.line(line, **colours.get(outcome, {}))
        if self._mutations is not None:
            from pytest_ragbench.clean import clean
            from pytest_ragbench.mutation.outcome import text

            terminalreporter.section("worse answers")
            for line in text(self._mutations, terminalreporter._tw.fullwidth):
                terminalreporter.line(clean(line))
        lost = set() if self.ended_early or self.config.getoption("collectonly") else self.lost
        if lost and not terminalreporter.stats.get("failed") and not terminalreporter.stats.get("error"):
            terminalreporter.section("ragbench: results lost", red=True)
            terminalreporter.line(
                f"{len(lost)} of {len(self.expected)} tests were collected, but no result came back:"
            )
            for nodeid in sorted(lost)[:10]:
                terminalreporter.line(f"  {nodeid}")

    def _show(self, out: pytest.TerminalReporter, summary: Summary) -> None:
        from pytest_ragbench.plugin.terminal import show_evidence, show_summary

        if self._evidence:
            show_evidence(out, self._evidence)
        notes = [self.state.describe()]
        notes += [text for text, matters in self._few.lines() if not matters] if self._few else []
        notes += [self.recorded] if self.recorded else []
        notes += [f"results: {self._json.path}"] if self._json is not None else []
        show_summary(out, summary, self._bands(), [*notes, *self._outputs.lines])

    def _bands(self) -> dict[str, str | None]:
        return self._summary.bands() if self._summary else {}

    def _run(self) -> dict[str, Any]:
        import platform

        from pytest_ragbench import __version__
        from pytest_ragbench.clean import clean
        from pytest_ragbench.judge.rendering import prompt_versions
        from pytest_ragbench.report.revision import revision

        return {
            "id": self.state.run_id,
            "started": self._started,
            "ragbench": __version__,
            "pytest": pytest.__version__,
            "python": platform.python_version(),
            "platform": sys.platform,
            "settings": self.state.describe(),
            "sources": [clean(name) for name in self.state.settings.sources],
            "git": revision(self.config.invocation_params.dir),
            "prompts": prompt_versions(),
        }


def _told(report: object) -> dict[str, Any] | None:
    """What rides on a report: from a worker, as JSON."""
    data = getattr(report, "ragbench", None)
    return json.loads(data) if isinstance(data, str) else data


class RagbenchWarning(pytest.PytestWarning):
    """Something that the run can do without, such as a store that can't be written."""
