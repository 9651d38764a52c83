"""What is made from the results when a run is over: the table for spreadsheets, the page for browsers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.garbage import uncollected
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.github import on_github, tell_github
from pytest_ragbench.plugin.state import RunState

if TYPE_CHECKING:
    from pytest_ragbench.model.report import RunReport
    from pytest_ragbench.report.history import History
    from pytest_ragbench.report.kept import Kept


_TREND = 30
"""So many earlier runs are plotted."""


class Outputs:
    """The controller's; ``lines`` tells the terminal what was written."""

    def __init__(self, config: pytest.Config, state: RunState) -> None:
        self.config = config
        self.state = state
        self.lines: list[str] = []
        self.annotations: list[str] = []
        self._kept: Kept | None = None

    @property
    def wanted(self) -> bool:
        return (
            on_github()
            or self._history is not None
            or any(self._path(name) for name in ("ragbench_csv", "ragbench_html"))
        )

    def check(self) -> None:
        """Before anything is paid for: can the files be written?"""
        if self._history is not None:
            _check_writable(self._history.path, "--ragbench-history")
        for name in ("ragbench_csv", "ragbench_html"):
            if path := self._path(name):
                _check_writable(path, "--" + name.replace("_", "-"))

    def keep(self, record: Mapping[str, Any]) -> None:
        """One result, for the end."""
        if self._kept is None:
            from pytest_ragbench.report.kept import Kept

            self._kept = Kept()
        self._kept.add(record)

    def write(self, run: Mapping[str, Any], end: Mapping[str, Any]) -> list[str]:
        """Write all that is wanted; what could not be written is told in the texts returned."""
        problems: list[str] = []
        records = self._kept or ()

        def attempt(job: Callable[[], None]) -> None:
            try:
                job()
            except RagbenchError as error:
                problems.append(str(error))

        if path := self._path("ragbench_csv"):
            attempt(lambda: self._csv(path, records))
        page, history = self._path("ragbench_html"), self._history
        if page or on_github() or history:
            from pytest_ragbench.model.report import SCHEMA, VERSION
            from pytest_ragbench.report.reading import report_from

            head = {
                "schema": SCHEMA,
                "version": VERSION,
                "run": run,
                "results": (record for record in records),
            }
            with uncollected():  # of thousands of results nothing is garbage
                report = report_from({**head, **end})
                if page:
                    attempt(lambda: self._html(page, report))
            if history:  # after the page, whose trend is of earlier runs
                attempt(lambda: history.add(report, keep=self.state.settings.history_keep))
            if on_github():
                attempt(lambda: self.annotations.extend(tell_github(report)))
        return problems

    def _csv(self, path: Path, records: Iterable[Mapping[str, Any]]) -> None:
        from pytest_ragbench.report.csv_export import score_rows, write_csv

        write_csv(path, score_rows(records))

    def _html(self, path: Path, report: RunReport) -> None:
        from pytest_ragbench.report.html import write_html

        earlier = self._history.runs(_TREND, before=report.run.started) if self._history else []
        write_html(path, report, trend=earlier, baseline=self._baseline(), lang=self.state.settings.lang)
        self.lines.append(f"page: {path}")

    @cached_property
    def _history(self) -> History | None:
        """Where runs are kept, if they are."""
        if not self.state.is_configured or not self.state.settings.history:
            return None
        from pytest_ragbench.report.history import History

        return History(self.state.located("ragbench_history", self.state.settings.history))

    def _baseline(self) -> RunReport | None:
        """The run that this one is held against, for its answers; the gates have read it before."""
        given = self.state.settings.gating.baseline
        if not given or self.config.getoption("ragbench_no_gates"):
            return None
        from pytest_ragbench.gates.baseline import find_report

        base = self.state.base_of("ragbench_baseline", given)
        return find_report(given, base=base, history=self._history.path if self._history else None)[0]

    def _path(self, name: str) -> Path | None:
        given = self.config.getoption(name)
        return self.config.invocation_params.dir / Path(given).expanduser() if given else None


def _check_writable(path: Path, option: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise pytest.UsageError(f"{option} {path}: can't be written: {error.strerror}") from None
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        why = "it is a directory" if path.is_dir() else "no permission"
        raise pytest.UsageError(f"{option} {path}: can't be written: {why}")
