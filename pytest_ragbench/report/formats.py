"""Report formats: each is a class that takes the results of a run and, at its end, the whole report.

Formats are found by the entry point group ``ragbench.reports``; those of this package stand in :data:`BUILT_IN` and
are loaded the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pytest_ragbench.extensions import loaded, points
from pytest_ragbench.languages import DEFAULT
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunInfo, RunReport
from pytest_ragbench.model.tests import TestRecord

GROUP = "ragbench.reports"
BUILT_IN = {
    "json": "pytest_ragbench.report.json_report:JsonReport",
    "csv": "pytest_ragbench.report.csv_export:CsvReport",
    "html": "pytest_ragbench.report.html:HtmlReport",
    "matrix": "pytest_ragbench.report.html.matrix:MatrixReport",
    "markdown": "pytest_ragbench.report.markdown:MarkdownReport",
    "history": "pytest_ragbench.report.history:HistoryReport",
    "github": "pytest_ragbench.report.github:GithubSummary",
    "otel": "pytest_ragbench.traces.otlp:OtlpReport",
    "phoenix": "pytest_ragbench.traces.phoenix:PhoenixReport",
}


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What a format may want to know before the first result."""

    run: RunInfo
    lang: str = DEFAULT
    """Of the explanations of metrics."""
    history: Path | None = None
    """The file of earlier runs, where one is kept."""
    history_keep: int = 0
    """How many runs to keep in it; 0: all."""
    history_reports: Path | None = None
    """The folder in which it keeps whole reports."""
    baseline: Callable[[], RunReport | None] = lambda: None
    """Reads the run that this one is held against."""
    url: str = ""
    """Of the server that a report is sent to, where it is not written to a file."""


class ReportFormat(Protocol):
    """What a factory of the group ``ragbench.reports`` returns.

    The factory, as a rule the class itself, is called as ``factory(path, context)`` before the first test, and not
    where there is none to run: with the file that was asked for, and a :class:`ReportContext`. It raises
    UsageError where it can't work. A class whose attribute ``whole_run`` is true finds all results in
    ``run.results`` at the end; for others they are not kept, and the tuple is empty.
    """

    def add(self, result: TestRecord) -> None:
        """One test has ended."""

    def finish(self, run: RunReport) -> Iterable[str] | None:
        """The run has ended; what is returned are lines for the terminal."""


Factory = Callable[[Path, ReportContext], ReportFormat]


def format_names() -> list[str]:
    """All formats that are installed."""
    return sorted({point.name for point in points(GROUP, BUILT_IN)})


def find_format(name: str) -> Factory:
    """The factory of a format.

    Raises
    ------
    UsageError
        There is none of that name, or it can't be imported.
    """
    for point in points(GROUP, BUILT_IN):
        if point.name == name:
            factory: Factory = loaded(point, f"report format {name}")
            return factory
    raise UsageError(f"no report format {name!r}; there are: {', '.join(format_names())}")


def needs_whole_run(report: ReportFormat) -> bool:
    """Whether ``finish`` is to find all results in the report."""
    return bool(getattr(report, "whole_run", False))
