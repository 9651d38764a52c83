"""The run that another one is held against: a report in a file, or the last run of a branch in the history."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from pytest_ragbench.gates.baseline import Baseline, baseline_of
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.history import History
from pytest_ragbench.report.reading import read_report


def find_report(given: str, *, base: Path, history: Path | None) -> tuple[RunReport, str]:
    """The report of an earlier run, and what to call it.

    Parameters
    ----------
    given
        A JSON report, seen from ``base``, or a branch: the last complete run of it in ``history``.

    Raises
    ------
    UsageError
        There is neither; or the file can't be read, isn't a report, or is of a run that did not end well.
    """
    path = base / Path(given).expanduser()
    # A file wins over a branch of that name: it is what the user sees in the folder.
    if path.exists() or given.endswith(".json") or history is None:
        try:
            report = read_report(path)
        except UsageError as error:
            unknown = "" if path.exists() else "; to name a branch, keep a history: `history = FILE`"
            raise UsageError(f"baseline {error}{unknown}") from None
        if not report.complete:
            raise UsageError(f"baseline {path}: that run did not end well, so its scores are not complete")
        return report, str(path)
    return _last_of(given, path, history)


def _last_of(branch: str, path: Path, file: Path) -> tuple[RunReport, str]:
    history = History(file)
    report = history.last(branch)
    if report is None:
        known = ", ".join(history.branches()[:10]) or "of no branch"
        raise UsageError(
            f"baseline {branch}: there is no file {path}, and the history {file} has no complete run of a branch "
            f"{branch} with scores; it has: {known}"
        )
    commit = f", commit {report.run.git.commit[:8]}" if report.run.git else ""
    return (
        report,
        f"{branch} (run of {datetime.fromtimestamp(report.run.started, UTC):%Y-%m-%d %H:%M}{commit})",
    )


def read_baseline(given: str | Path, *, base: Path | None = None, history: Path | None = None) -> Baseline:
    """The baseline that is meant: :func:`find_report`. Raises as that does."""
    report, name = find_report(str(given), base=base or Path(), history=history)
    return baseline_of(report, name=name)
