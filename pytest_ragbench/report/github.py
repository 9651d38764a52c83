"""On GitHub: the summary on the job's page, and annotations at the questions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.markdown import github_annotations, markdown_report

MAX_BYTES = 2**20
"""GitHub shows no summary of a step at all that is longer."""


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
                written = self._path.stat().st_size if self._path.exists() else 0
                with self._path.open("ab") as file:
                    file.write(_fitting(markdown_report(run), MAX_BYTES - written))
            except OSError as error:
                raise UsageError(
                    f"GITHUB_STEP_SUMMARY {self._path}: can't be written: {error.strerror}"
                ) from None
        return list(github_annotations(run))


def _fitting(text: str, room: int) -> bytes:
    """As many lines as there is room for, and that there were more."""
    whole = text.encode("utf-8", "backslashreplace")
    if len(whole) <= room:
        return whole
    note = b"\n\nThe rest is left out: GitHub shows no more than 1 MiB.\n"
    kept = whole[: max(0, room - len(note))].rpartition(b"\n")[0]
    return kept + note if kept else b""
