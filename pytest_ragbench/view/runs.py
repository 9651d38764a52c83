"""The runs that are shown: those of histories, and those of JSON reports that were named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.history import History
from pytest_ragbench.report.reading import read_report

_SQLITE = b"SQLite format 3\0"


class NotThere(UsageError):
    """No such run, or its report is gone."""


@dataclass(frozen=True)
class ShownRun:
    """A run, and where its whole report is."""

    head: RunReport
    """Without results."""
    file: Path | None
    """None where its report was not kept."""

    @property
    def id(self) -> str:
        """``run.id`` of the report."""
        return self.head.run.id

    @property
    def why_not(self) -> str:
        """Why it can't be opened; empty where it can."""
        if self.file is None:
            return "report not kept"
        return "" if self.file.exists() else "report deleted"


class Runs:
    """Files are read again whenever a page is asked for: runs may be added, and reports deleted, meanwhile.

    Parameters
    ----------
    files
        Histories and JSON reports, in any order.

    Raises
    ------
    UsageError
        A file isn't there, or is neither of them.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = list(files)
        self._histories: list[History] = []
        self._reports: list[Path] = []
        self._heads: dict[Path, tuple[tuple[int, int], RunReport]] = {}
        for path in files:
            if _is_history(path):
                self._histories.append(History(path))
            else:
                self._head(path)
                self._reports.append(path)
        # A history of a newer version is refused before a page is asked for.
        for history in self._histories:
            history.runs(1)

    def latest(self, count: int, *, branch: str | None = None, before: float | None = None) -> list[ShownRun]:
        """So many runs, the latest first; only those of a ``branch``, only those started ``before``."""
        found: dict[str, ShownRun] = {}
        for history in self._histories:
            kept = history.reports()
            for head in history.runs(count, branch=branch, before=before):
                found[head.run.id] = ShownRun(head, kept.get(head.run.id))
        # A file that was named wins over what a history has of the same run.
        for path in self._reports:
            head = self._last_head(path)
            of_branch = branch is None or (head.run.git is not None and head.run.git.branch == branch)
            if of_branch and (before is None or head.run.started < before):
                found[head.run.id] = ShownRun(head, path)
        runs = sorted(found.values(), key=lambda run: (run.head.run.started, run.id), reverse=True)
        return runs[:count]

    def report(self, run: str) -> RunReport:
        """The whole report of a run.

        Raises
        ------
        NotThere
            There is no such run, its report was not kept, or has been deleted.
        UsageError
            The report is damaged.
        """
        path = self._file_of(run)
        if path is None:
            raise NotThere(
                "There is no such run, or its report was not kept: set history_reports beside history to keep them."
            )
        if not path.exists():
            raise NotThere(f"The report of this run has been deleted: there is no file {path}.")
        report = read_report(path)
        if report.run.id != run:
            raise NotThere(f"{path} has the report of another run by now.")
        return report

    def _file_of(self, run: str) -> Path | None:
        named = (path for path in self._reports if self._last_head(path).run.id == run)
        kept = (found[run] for history in self._histories if run in (found := history.reports()))
        return next(named, None) or next(kept, None)

    def _head(self, path: Path) -> RunReport:
        """What a report file says of the run; it is read again only where it has changed."""
        try:
            stat = path.stat()
        except OSError as error:
            raise UsageError(f"{path}: can't be read: {error.strerror}") from None
        version = (stat.st_mtime_ns, stat.st_size)
        if path not in self._heads or self._heads[path][0] != version:
            self._heads[path] = (version, replace(read_report(path), results=(), missing=()))
        return self._heads[path][1]

    def _last_head(self, path: Path) -> RunReport:
        """The same, or what the file said last: one that was deleted or damaged keeps its line in the list."""
        try:
            return self._head(path)
        except UsageError:
            return self._heads[path][1]


def _is_history(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
