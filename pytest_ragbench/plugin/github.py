"""On GitHub: the summary on the job's page, and annotations at the questions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from pytest_ragbench.model.report import RunReport


def on_github() -> bool:
    return os.environ.get("GITHUB_ACTIONS") == "true"


def tell_github(report: RunReport) -> list[str]:
    """Add the run to the job's page; the lines returned are annotations, for standard output.

    Raises
    ------
    UsageError
        The file that GitHub named can't be written.
    """
    if not any(result.scores or result.kind for result in report.results):
        return []
    from pytest_ragbench.report.markdown import github_annotations, markdown_report

    if name := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(name).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(markdown_report(report))
        except OSError as error:
            raise UsageError(f"GITHUB_STEP_SUMMARY {name}: can't be written: {error.strerror}") from None
    return list(github_annotations(report))
