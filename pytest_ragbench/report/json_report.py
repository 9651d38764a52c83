"""The JSON report: valid at every moment, complete at the end.

Each record is written when it exists, together with the closing brackets behind it, which the next
record overwrites: a run that is killed leaves a file that parses, with ``"complete": false``.
Fields: docs/json-report.md.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.files import only_writer
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.writing import as_dict, to_json


class JsonReport:
    """Writes one report file.

    Raises
    ------
    UsageError
        The file can't be written, or another run is writing it right now.
    """

    def __init__(self, path: Path, context: ReportContext) -> None:
        self.path = path
        self._lock = _only_writer(path)
        self._file = _opened(path)
        self._first = True
        told = as_dict(RunReport(run=context.run))
        head = {name: told[name] for name in ("schema", "version", "run")}
        self._file.write(_dump(head)[:-1] + ',\n"results": [')
        self._trailer = self._file.tell()
        self._close_brackets({"complete": False})

    def add(self, result: TestRecord) -> None:
        """Append one result; it is on disk when this returns."""
        text = ("\n" if self._first else ",\n") + to_json(result)
        self._first = False
        # Over the closing brackets that the last record left.
        self._file.seek(self._trailer)
        self._trailer += len(text.encode())
        self._close_brackets({"complete": False}, before=text)

    def finish(self, run: RunReport) -> Iterable[str]:
        """Write the end of the run and let go of the file."""
        self._file.seek(self._trailer)
        end = as_dict(replace(run, results=()))
        self._close_brackets(
            {name: end[name] for name in end if name not in ("schema", "version", "run", "results")}
        )
        self._file.close()
        if self._lock is not None:
            self._lock.close()
        return [f"results: {self.path}"]

    def _close_brackets(self, end: dict[str, object], before: str = "") -> None:
        # One write of one buffer: a kill falls before or after it, not inside.
        self._file.write(f"{before}\n],\n{_dump(end)[1:]}\n")
        self._file.truncate()
        self._file.flush()


def _dump(value: dict[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _opened(path: Path) -> IO[str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UsageError(f"--ragbench-json {path}: can't be written: {error.strerror}") from None


def _only_writer(path: Path) -> sqlite3.Connection | None:
    try:
        return only_writer(path)
    except BlockingIOError:
        raise UsageError(
            f"--ragbench-json {path}: another run is writing it; give each run its own file"
        ) from None
