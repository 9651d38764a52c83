"""What is made from the results when a run is over: the table for spreadsheets, the page for browsers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.errors import RagbenchError
from pytest_ragbench.plugin.github import on_github, tell_github
from pytest_ragbench.plugin.state import RunState

if TYPE_CHECKING:
    from pytest_ragbench.report.reading import Report


class Outputs:
    """The controller's; ``lines`` tells the terminal what was written."""

    def __init__(self, config: pytest.Config, state: RunState) -> None:
        self.config = config
        self.state = state
        self.lines: list[str] = []
        self.annotations: list[str] = []

    @property
    def wanted(self) -> bool:
        return on_github() or any(self._path(name) for name in ("ragbench_csv", "ragbench_html"))

    def check(self) -> None:
        """Before anything is paid for: can the files be written?"""
        for name in ("ragbench_csv", "ragbench_html"):
            if path := self._path(name):
                _check_writable(path, "--" + name.replace("_", "-"))

    def write(
        self, run: Mapping[str, Any], records: Sequence[Mapping[str, Any]], end: Mapping[str, Any]
    ) -> list[str]:
        """Write all that is wanted; what could not be written is told in the texts returned."""
        problems: list[str] = []

        def attempt(job: Callable[[], None]) -> None:
            try:
                job()
            except RagbenchError as error:
                problems.append(str(error))

        if path := self._path("ragbench_csv"):
            attempt(lambda: self._csv(path, records))
        page = self._path("ragbench_html")
        if page or on_github():
            from pytest_ragbench.report.json_report import SCHEMA, VERSION
            from pytest_ragbench.report.reading import report_from

            head = {"schema": SCHEMA, "version": VERSION, "run": run, "results": records}
            report = report_from({**head, **end})
            if page:
                attempt(lambda: self._html(page, report))
            if on_github():
                attempt(lambda: self.annotations.extend(tell_github(report)))
        return problems

    def _csv(self, path: Path, records: Sequence[Mapping[str, Any]]) -> None:
        from pytest_ragbench.report.csv_export import score_rows, write_csv

        write_csv(path, score_rows(records))

    def _html(self, path: Path, report: Report) -> None:
        from pytest_ragbench.report.html import write_html

        write_html(path, report, baseline=self._baseline(), lang=self.state.settings.lang)
        self.lines.append(f"page: {path}")

    def _baseline(self) -> Report | None:
        """The run that this one is held against, for its answers; the gates have read it before."""
        given = self.state.settings.gating.baseline
        if not given or self.config.getoption("ragbench_no_gates"):
            return None
        from pytest_ragbench.report.reading import read_report

        typed = self.config.getoption("ragbench_baseline") == given
        base = self.config.invocation_params.dir if typed else self.config.rootpath
        return read_report(base / Path(given).expanduser())

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
