"""Earlier runs, in a SQLite file: what each one came to, and of the last one of each branch the scores of its
questions, without their texts. With a folder for them, the whole JSON report of each run is kept beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_ragbench.gates.observations import fingerprint
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import QuestionRecord, SampleRecord, ScoreRecord, TestRecord
from pytest_ragbench.report.files import replace_file
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.reading import report_from
from pytest_ragbench.report.writing import as_dict, to_json
from pytest_ragbench.text import detect_language

_FORMAT = 1
_PATIENCE = 30.0
"""Seconds to wait for another run that is writing."""
_FORGET = "DELETE FROM runs WHERE id NOT IN (SELECT id FROM runs ORDER BY started DESC, id DESC LIMIT ?)"


class History:
    """A file of runs. Two runs may write it at once: each adds its run in one transaction.

    Raises
    ------
    UsageError
        By each method: the file is none of ours, is of a newer version, or can't be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, report: RunReport, *, keep: int = 0, reports: Path | None = None) -> None:
        """Add a run, in place of one with the same id.

        Parameters
        ----------
        keep
            Forget all but so many runs, the oldest first; 0: none.
        reports
            Folder in which the whole report is kept, with its texts, until the run is forgotten.
        """
        file = reports / _file_name(report.run.id) if reports is not None else None
        failed = None
        if file is not None:
            try:
                replace_file(file, to_json(report) + "\n")
            except UsageError as error:  # the run itself is kept all the same
                file, failed = None, error
        head = to_json(_without_texts(report))
        branch = report.run.git.branch if report.run.git else None
        with self._open(create=True) as base, base:
            # A deferred transaction could fail at its first write, when another run holds the lock.
            base.execute("BEGIN IMMEDIATE")
            # Files of earlier versions lack it, and those versions do not miss it.
            base.execute("CREATE TABLE IF NOT EXISTS scores (run TEXT PRIMARY KEY, results BLOB NOT NULL)")
            base.execute(
                "INSERT OR REPLACE INTO runs (id, started, branch, report) VALUES (?, ?, ?, ?)",
                (report.run.id, report.run.started, branch, head),
            )
            base.execute("CREATE TABLE IF NOT EXISTS reports (run TEXT PRIMARY KEY, path TEXT NOT NULL)")
            if file is not None:
                told = (report.run.id, self._seen_from_here(file))
                base.execute("INSERT OR REPLACE INTO reports (run, path) VALUES (?, ?)", told)
            if keep:
                base.execute(_FORGET, (keep,))
            forgotten = self._forget_reports(base)
            # An incomplete run as baseline would make the next one look better or worse by chance.
            if branch is not None and report.complete and report.results:
                kept = {"results": _scores(report.results), "missing": _scores(report.missing)}
                results = zlib.compress(json.dumps(kept, ensure_ascii=False).encode())
                base.execute(
                    "INSERT OR REPLACE INTO scores (run, results) VALUES (?, ?)", (report.run.id, results)
                )
            base.execute(
                "DELETE FROM scores WHERE run NOT IN (SELECT id FROM (SELECT id, row_number() OVER "
                "(PARTITION BY branch ORDER BY started DESC, id DESC) AS place FROM runs JOIN scores ON run = id) "
                "WHERE place = 1)"
            )
        self._delete(forgotten)
        if failed is not None:
            raise failed

    def last(self, branch: str) -> RunReport | None:
        """The last complete run of a branch, with the scores of its questions; their texts are fingerprints,
        and answers and chunks are not kept.
        """
        if not self.path.exists():
            return None
        with self._open(create=False) as base:
            if not _has(base, "scores"):
                return None
            row = base.execute(
                "SELECT report, results FROM runs JOIN scores ON run = id WHERE branch = ? "
                "ORDER BY started DESC, id DESC LIMIT 1",
                (branch,),
            ).fetchone()
        if row is None:
            return None
        kept = json.loads(zlib.decompress(row[1]))
        # Earlier versions kept the results alone.
        told = kept if isinstance(kept, dict) else {"results": kept}
        return report_from({**json.loads(row[0]), **told}, name=str(self.path))

    def branches(self) -> list[str]:
        """Those that :meth:`last` knows a run of, the latest first."""
        if not self.path.exists():
            return []
        with self._open(create=False) as base:
            if not _has(base, "scores"):
                return []
            rows = base.execute(
                "SELECT branch FROM runs JOIN scores ON run = id ORDER BY started DESC, id DESC"
            )
            return [branch for (branch,) in rows]

    def runs(
        self, count: int = 30, *, branch: str | None = None, before: float | None = None
    ) -> list[RunReport]:
        """The latest ``count`` runs, oldest first; only those of a ``branch``, only those started ``before``."""
        if not self.path.exists():
            return []
        with self._open(create=False) as base:
            rows = base.execute(
                "SELECT report FROM runs WHERE (?1 IS NULL OR branch = ?1) AND (?2 IS NULL OR started < ?2) "
                "ORDER BY started DESC, id DESC LIMIT ?3",
                (branch, before, count),
            ).fetchall()
        return [report_from(json.loads(text), name=str(self.path)) for (text,) in reversed(rows)]

    def reports(self) -> dict[str, Path]:
        """Run id -> file of its whole report, of the runs whose report was kept. Somebody may have deleted it since."""
        if not self.path.exists():
            return {}
        with self._open(create=False) as base:
            if not _has(base, "reports"):
                return {}
            return {
                run: self.path.parent / path for run, path in base.execute("SELECT run, path FROM reports")
            }

    def prune(self, keep: int) -> int:
        """Forget all but the latest ``keep`` runs, and delete their reports; returns how many went."""
        with self._open(create=False) as base:
            base.execute("BEGIN IMMEDIATE")
            gone = base.execute(_FORGET, (keep,)).rowcount
            forgotten = self._forget_reports(base) if _has(base, "reports") else []
            base.execute("COMMIT")
        self._delete(forgotten)
        return gone

    def _seen_from_here(self, file: Path) -> str:
        """A path that stays right where the history and its reports are moved together."""
        try:
            return Path(os.path.relpath(file, self.path.parent)).as_posix()
        except ValueError:  # on another drive
            return str(file.resolve())

    def _forget_reports(self, base: sqlite3.Connection) -> list[Path]:
        """The files of runs that are no longer in the history."""
        # Those that an earlier version has forgotten, which knew nothing of reports, are among them.
        rows = base.execute("SELECT run, path FROM reports WHERE run NOT IN (SELECT id FROM runs)").fetchall()
        base.execute("DELETE FROM reports WHERE run NOT IN (SELECT id FROM runs)")
        # A history from elsewhere may name any file.
        return [self.path.parent / path for run, path in rows if Path(path).name == _file_name(run)]

    def _delete(self, files: Sequence[Path]) -> None:
        for file in files:
            with suppress(OSError):
                file.unlink()

    @contextmanager
    def _open(self, *, create: bool) -> Iterator[sqlite3.Connection]:
        try:
            if create:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            mode = "rwc" if create else "rw"
            uri = f"{self.path.resolve().as_uri()}?mode={mode}"
            # Transactions are begun by hand where they have to be: reading needs none.
            with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)) as base:
                self._prepare(base)
                yield base
        except (sqlite3.Error, OSError) as error:
            raise UsageError(f"history {self.path}: {error}") from None

    def _prepare(self, base: sqlite3.Connection) -> None:
        [version] = base.execute("PRAGMA user_version").fetchone()
        if version > _FORMAT:
            raise UsageError(
                f"history {self.path}: written by a newer ragbench (format {version}; this one reads {_FORMAT})"
            )
        if version == 0:
            if base.execute("SELECT count(*) FROM sqlite_master WHERE name <> 'runs'").fetchone()[0]:
                raise UsageError(f"history {self.path}: a database of something else")
            base.execute(
                "CREATE TABLE IF NOT EXISTS runs "
                "(id TEXT PRIMARY KEY, started REAL NOT NULL, branch TEXT, report TEXT NOT NULL) WITHOUT ROWID"
            )
            base.execute(f"PRAGMA user_version = {_FORMAT}")


class HistoryReport:
    """Adds a run to the file."""

    whole_run = True

    def __init__(self, path: Path, context: ReportContext) -> None:
        self._history = History(path)
        self._keep = context.history_keep
        self._reports = context.history_reports

    def add(self, result: TestRecord) -> None:
        pass

    def finish(self, run: RunReport) -> None:
        self._history.add(run, keep=self._keep, reports=self._reports)


_RUN_ID = re.compile("[0-9a-f]{32}")
_ASKED = ("id", "tags", "must_pass", "session", "cluster", "file", "relevant_ids", "latency", "cached")
_SCORED = ("metric", "tier", "sample", "value", "threshold", "passed", "judge", "embedder")
_DETAILS = ("values", "unscored", "undefined", "votes", "votes_passed")


def _has(base: sqlite3.Connection, table: str) -> bool:
    """Files of earlier versions lack some, and may be read-only."""
    found = base.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,))
    return found.fetchone() is not None


def _file_name(run: str) -> str:
    """Of a kept report. No other file is ever deleted."""
    told = run if _RUN_ID.fullmatch(run) else hashlib.sha256(run.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{told}.json"


def _without_texts(report: RunReport) -> RunReport:
    """Without what has questions and answers in it."""
    mutations = report.mutations
    if mutations is not None:
        mutations = replace(
            mutations, metrics=tuple(replace(each, survivors=()) for each in mutations.metrics)
        )
    return replace(report, results=(), missing=(), mutations=mutations)


def _scores(results: Sequence[TestRecord]) -> list[dict[str, Any]]:
    """Results with nothing in them but what a baseline needs."""

    def asked(question: SampleRecord | QuestionRecord) -> dict[str, Any]:
        told = {name: getattr(question, name) for name in _ASKED}
        # The text is gone afterwards, and gates may choose by language.
        lang = question.lang or detect_language(question.question)
        return {**told, "lang": lang, "question": fingerprint(question.question)}

    def scored(score: ScoreRecord) -> dict[str, Any]:
        told: dict[str, Any] = {name: getattr(score, name) for name in _SCORED}
        told["details"] = {name: score.details[name] for name in _DETAILS if name in score.details}
        told["setup"] = score.setup and as_dict(score.setup)
        told["usage"] = {"calls": score.usage.calls, "cost": score.usage.cost}
        told["error"] = score.error and {"type": score.error.type, "code": score.error.code}
        return told

    return [
        {
            "test": result.test,
            "outcome": result.outcome,
            "kind": result.kind,
            "question_id": result.question_id,
            "system": result.system,
            "metrics": list(result.metrics),
            "samples": [asked(sample) for sample in result.samples],
            "questions": [asked(question) for question in result.questions],
            "scores": [scored(score) for score in result.scores],
        }
        for result in results
    ]
