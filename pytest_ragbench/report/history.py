"""Earlier runs, in a SQLite file: what each one came to, without its questions."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_ragbench.errors import UsageError
from pytest_ragbench.report.reading import Report, report_from

_FORMAT = 1
_PATIENCE = 30.0
"""Seconds to wait for another run that is writing."""


class History:
    """A file of runs. Two runs may write it at once: each adds its run in one transaction.

    Raises
    ------
    UsageError
        By each method: the file is none of ours, is of a newer version, or can't be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, report: Report, *, keep: int = 0) -> None:
        """Add a run, in place of one with the same id. ``keep``: forget all but so many, the oldest first (0: none)."""
        head = report.model_dump_json(by_alias=True, exclude={"results"})
        branch = report.run.git.branch if report.run.git else None
        with self._open(create=True) as base, base:
            base.execute("BEGIN IMMEDIATE")
            base.execute(
                "INSERT OR REPLACE INTO runs (id, started, branch, report) VALUES (?, ?, ?, ?)",
                (report.run.id, report.run.started, branch, head),
            )
            if keep:
                base.execute(
                    "DELETE FROM runs WHERE id NOT IN (SELECT id FROM runs ORDER BY started DESC, id DESC LIMIT ?)",
                    (keep,),
                )

    def runs(
        self, count: int = 30, *, branch: str | None = None, before: float | None = None
    ) -> list[Report]:
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

    def prune(self, keep: int) -> int:
        """Forget all but the latest ``keep`` runs; returns how many went."""
        with self._open(create=False) as base, base:
            done = base.execute(
                "DELETE FROM runs WHERE id NOT IN (SELECT id FROM runs ORDER BY started DESC, id DESC LIMIT ?)",
                (keep,),
            )
            return done.rowcount

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
