"""The reports that a run was asked for: checked when it starts, opened when there are tests to run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ragbench.clean import clean
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.state import RunState
from pytest_ragbench.version import VERSION

if TYPE_CHECKING:
    from pytest_ragbench.model.report import RunInfo, RunReport
    from pytest_ragbench.model.tests import TestRecord
    from pytest_ragbench.report.formats import Factory, ReportContext, ReportFormat


SENT = ("otel", "phoenix")
"""Reports that are sent, not written: whether they arrive says nothing of the run."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A report that was asked for, and by which option."""

    name: str
    path: Path
    option: str


class Reports:
    """All formats of a run. One that fails is given up with a warning; the others go on."""

    def __init__(self, config: pytest.Config, state: RunState, started: float) -> None:
        self._config = config
        self._state = state
        self._factories: dict[_Wanted, Factory] = {}
        self._formats: dict[_Wanted, ReportFormat] = {}
        self._started = started
        self.info: RunInfo | None = None
        self.lines: list[str] = []
        """For the terminal, once the run has ended."""
        self.warnings: list[str] = []
        self.incomplete = False
        """A report that was asked for could not be written."""
        if not state.runs_tests or not (wanted := list(self._wanted())):
            return
        from pytest_ragbench.report.formats import find_format

        self._told = self._context(wanted)
        self.info = self._told.run
        for each in wanted:
            if each.option.startswith("--") and each.name not in SENT:
                _check_writable(each)
            if each.name == "history" and self._told.history_reports is not None:
                _check_folder(self._told.history_reports)
            try:
                self._factories[each] = find_format(each.name)
            except RagbenchError as error:
                raise pytest.UsageError(str(error)) from None

    def open(self) -> None:
        """Begin them; what stands in their files may be gone."""
        for each, factory in self._factories.items():
            try:
                self._formats[each] = factory(each.path, self._told)
            except RagbenchError as error:
                raise pytest.UsageError(str(error)) from None

    def __bool__(self) -> bool:
        return bool(self._formats)

    @property
    def need_whole_run(self) -> bool:
        """Whether any of them wants all results at the end."""
        from pytest_ragbench.report.formats import needs_whole_run

        return any(needs_whole_run(report) for report in self._formats.values())

    def add(self, result: TestRecord) -> None:
        for wanted, report in list(self._formats.items()):
            try:
                report.add(result)
            except Exception as error:
                self._give_up(wanted, error)

    def finish(self, run: RunReport) -> None:
        for wanted, report in list(self._formats.items()):
            try:
                self.lines += report.finish(run) or ()
            except Exception as error:
                self._give_up(wanted, error)

    def _give_up(self, wanted: _Wanted, error: Exception) -> None:
        option = wanted.option
        said = str(error) if isinstance(error, RagbenchError) else f"{type(error).__name__}: {error}"
        self.warnings.append(said if option in said else f"{option}: {said}")
        del self._formats[wanted]
        # The history and GitHub's page are kept beside a run; the others are what was asked of this one.
        self.incomplete = self.incomplete or wanted.name not in ("history", "github", *SENT)

    # What was asked for

    def _wanted(self) -> Iterator[_Wanted]:
        for name in ("json", "csv", "html"):
            if path := self._path(self._config.getoption(f"ragbench_{name}")):
                yield _Wanted(name, path, f"--ragbench-{name}")
        for text in self._config.getoption("ragbench_report") or ():
            name, _, given = text.partition("=")
            path = self._path(given)
            if not name or path is None:
                raise pytest.UsageError(
                    f"--ragbench-report {text}: NAME=FILE is wanted, such as markdown=run.md"
                )
            yield _Wanted(name, path, f"--ragbench-report {name}")
        for name in SENT:
            if self._config.getoption(f"ragbench_{name}"):
                yield _Wanted(name, Path(), f"--ragbench-{name}")
        if history := self._history():  # after the page, whose trend is of earlier runs
            yield _Wanted("history", history, "--ragbench-history")
        if os.environ.get("GITHUB_ACTIONS") == "true":
            yield _Wanted("github", Path(os.environ.get("GITHUB_STEP_SUMMARY", "")), "GITHUB_STEP_SUMMARY")

    def _path(self, given: str | None) -> Path | None:
        return self._config.invocation_params.dir / Path(given).expanduser() if given else None

    def _history(self) -> Path | None:
        if not self._state.is_configured or not self._state.settings.history:
            return None
        return self._state.located("ragbench_history", self._state.settings.history)

    def _history_reports(self) -> Path | None:
        folder = self._state.settings.history_reports
        return self._state.located("ragbench_history_reports", folder) if folder else None

    def _context(self, wanted: list[_Wanted]) -> ReportContext:
        from pytest_ragbench.report.formats import ReportContext

        try:
            return ReportContext(
                run=run_info(self._config, self._state, self._started),
                lang=self._state.settings.lang,
                history=next((each.path for each in wanted if each.name == "history"), None),
                history_keep=self._state.settings.history_keep,
                history_reports=self._history_reports(),
                url=self._config.getoption("ragbench_phoenix") or "",
                baseline=self._baseline,
            )
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None

    def _baseline(self) -> RunReport | None:
        """The run that this one is held against, for its answers; the gates have read it before."""
        given = self._state.settings.gating.baseline
        left_out = self._config.getoption("ragbench_no_gates") and not self._config.getoption("ragbench_gate")
        if not given or left_out:
            return None
        from pytest_ragbench.report.earlier import find_report

        base = self._state.base_of("ragbench_baseline", given)
        return find_report(given, base=base, history=self._history())[0]


def run_info(config: pytest.Config, state: RunState, started: float) -> RunInfo:
    """Who runs what."""
    import platform

    from pytest_ragbench.judge.rendering import prompt_versions
    from pytest_ragbench.model.report import RunInfo
    from pytest_ragbench.report.revision import revision

    return RunInfo(
        id=state.run_id,
        started=started,
        ragbench=VERSION,
        pytest=pytest.__version__,
        python=platform.python_version(),
        platform=sys.platform,
        settings=state.describe(),
        systems=tuple(state.systems),
        sources=tuple(clean(name) for name in state.settings.sources),
        git=revision(config.invocation_params.dir),
        prompts=prompt_versions(),
        trace_url=state.settings.trace_url,
        spans=bool(config.getoption("ragbench_otel")),
    )


def _check_writable(wanted: _Wanted) -> None:
    """Before anything is paid for."""
    path = wanted.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"{wanted.option} {path}: can't be written: {error.strerror}") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        why = "it is a directory" if path.is_dir() else "no permission"
        raise pytest.UsageError(f"{wanted.option} {path}: can't be written: {why}")


def _check_folder(folder: Path) -> None:
    """Before anything is paid for; it is made when there is a report to keep."""
    nearest = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        why = "no permission" if nearest.is_dir() else f"{nearest} is a file"
        raise pytest.UsageError(f"--ragbench-history-reports {folder}: can't be written: {why}")
