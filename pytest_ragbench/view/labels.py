"""The labels file of ``ragbench view``; its format is that of docs/calibration.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_ragbench.calibration.labels import ABOUT, label_of
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.files import only_writer, replace_file

_PATIENCE = 30.0
"""Seconds to wait for another server that is writing the file."""
_LINE_ENDS = {ord(letter): f"\\u{ord(letter):04x}" for letter in "\x85\u2028\u2029"}
"""JSON may hold them as they are, and some readers take them for the end of a line."""

About = tuple[str | int | None, ...]


class LabelsFile:
    """A file that several servers, and any other program, may add labels to.

    Raises
    ------
    UsageError
        It has a line that isn't a label, or can't be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines()

    def of_run(self, run: str) -> list[Mapping[str, Any]]:
        """The labels on a run's verdicts, as they are written. Raises as the constructor."""
        found = {about: json.loads(line) for line, about in self._lines() if about[0] == run}
        return list(found.values())

    def save(self, marked: Sequence[object], cleared: Sequence[object]) -> None:
        """Put labels in place of those on the same verdicts, and take away those on the verdicts of ``cleared``.

        All other lines stay as they are. A kill leaves the old file or the new one.

        Raises
        ------
        UsageError
            One isn't a label, or the file can't be read or written; then nothing is changed.
        """
        lines = [json.dumps(label, ensure_ascii=False).translate(_LINE_ENDS) for label in marked]
        fresh = {label_of(line, "label").about: line for line in lines}
        gone = {_about(each) for each in cleared} | fresh.keys()
        with self._alone():
            left = [line for line, about in self._lines() if about not in gone]
            replace_file(self.path, "".join(f"{line}\n" for line in (*left, *fresh.values())))

    def _lines(self) -> list[tuple[str, About]]:
        if not self.path.exists():
            return []
        try:
            lines = self.path.read_text(encoding="utf-8-sig").split("\n")  # a string may hold U+2028
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"labels {self.path}: can't be read: {error}") from None
        numbered = ((number, line.rstrip("\r")) for number, line in enumerate(lines, 1) if line.strip())
        return [(line, label_of(line, f"{self.path}:{number}").about) for number, line in numbered]

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other server changes the file, nor another request to this one."""
        try:
            lock = only_writer(self.path, wait=_PATIENCE)
        except BlockingIOError as error:
            raise UsageError(str(error)) from None
        try:
            yield
        finally:
            if lock is not None:
                lock.close()


def _about(given: object) -> About:
    if not isinstance(given, Mapping):
        raise UsageError(f"a label is an object, got {type(given).__name__}")
    told = tuple(given.get(name) for name in ABOUT)
    if not all(each is None or isinstance(each, (str, int)) for each in told):
        raise UsageError(f"of a label, {', '.join(ABOUT)} are strings, numbers or null")
    return told
