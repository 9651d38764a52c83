"""The pages, made by the renderers of the HTML report and of the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from pytest_ragbench.languages import DEFAULT
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.html import TREND, html_report
from pytest_ragbench.report.html.matrix import matrix_page
from pytest_ragbench.report.html.page import Labels, Served
from pytest_ragbench.report.html.runs import RunLine, runs_page
from pytest_ragbench.report.matrix import matrix_of
from pytest_ragbench.report.systems import columns_of, systems_in
from pytest_ragbench.view.labels import LabelsFile
from pytest_ragbench.view.runs import Runs, ShownRun

PAGE = 50
"""So many runs are listed at once."""


class Pages:
    """Each method returns a page as text.

    Parameters
    ----------
    runs
        What there is to show.
    labels
        Where the labels go that are set on a report's page.
    lang
        Language of the metrics' explanations.
    """

    def __init__(self, runs: Runs, labels: LabelsFile, *, lang: str = DEFAULT) -> None:
        self._runs = runs
        self.labels = labels
        self._lang = lang

    def list(self, *, count: int = PAGE, branch: str | None = None) -> str:
        """The latest runs."""
        found = self._runs.latest(count + 1, branch=branch)
        asked = {"count": count + PAGE, **({"branch": branch} if branch is not None else {})}
        lines = [RunLine(run.head, _address(run), run.why_not) for run in found[:count]]
        return runs_page(
            lines,
            source=", ".join(str(path) for path in self._runs.files),
            labels_file=str(self.labels.path),
            branch=branch,
            more=f"?{urlencode(asked)}" if len(found) > count else None,
        )

    def run(self, run: str) -> str:
        """The report of one run, with the trend of those before it. Raises as :meth:`Runs.report`."""
        report = self._runs.report(run)
        earlier = self._runs.latest(TREND, before=report.run.started)
        trend = [each.head for each in reversed(earlier)]
        labels = Labels(url="../labels", file=str(self.labels.path), marked=self.labels.of_run(run))
        matrix = f"../compare?{urlencode({'run': run})}" if systems_in(report) else None
        served = Served("../", labels, matrix)
        return html_report(report, trend=trend, lang=self._lang, served=served)

    def compare(self, runs: Sequence[str]) -> str:
        """Runs side by side, the oldest first, or the systems of one. Raises as :meth:`Runs.report`, and where there is
        less than two of them.
        """
        reports = sorted(
            (self._runs.report(run) for run in dict.fromkeys(runs)), key=lambda each: each.run.started
        )
        columns = columns_of(list(zip(_names(reports), reports, strict=True)))
        if len(columns) < 2:
            raise UsageError("Tick two or more runs in the list to see them side by side.")
        return matrix_page(matrix_of(columns), served=Served("."))


def _address(run: ShownRun) -> str | None:
    return None if run.why_not else f"run/{quote(run.id, safe='')}"


def _names(reports: Sequence[RunReport]) -> list[str]:
    """Short ones, no two alike: the branch where each has its own, else branch and start, else the id, too."""
    branches = [report.run.git.branch or "" if report.run.git else "" for report in reports]
    started = [f"{datetime.fromtimestamp(report.run.started, UTC):%m-%d %H:%M}" for report in reports]
    ways = (
        branches,
        [f"{branch} {start}".strip() for branch, start in zip(branches, started, strict=True)],
        [f"{start} {report.run.id[:8]}" for start, report in zip(started, reports, strict=True)],
    )
    for names in ways:
        if all(names) and len(set(names)) == len(names):
            return names
    return [report.run.id for report in reports]
