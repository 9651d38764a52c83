"""On GitHub: the summary on the job's page, and annotations at the questions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport, TestRecord
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.markdown import github_annotations, markdown_report


class GithubSummary:
    """Adds the run to the file of the job's page; its lines are annotations."""

    whole_run = True

    def __init__(self, path: Path, context: ReportContext) -> None:
        self._path = path

    def add(self, result: TestRecord) -> None:
        pass

    def finish(self, run: RunReport) -> Iterable[str]:
        # A job of unit tests alone gets no page about RAG quality.
        if not any(result.scores or result.kind for result in run.results):
            return []
        if self._path.name:
            try:
                with self._path.open("a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(markdown_report(run))
            except OSError as error:
                raise UsageError(
                    f"GITHUB_STEP_SUMMARY {self._path}: can't be written: {error.strerror}"
                ) from None
        return list(github_annotations(run))
