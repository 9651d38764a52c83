"""A project of a user, and pytest run in it by a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HARNESS = Path(__file__).parent / "harness"
ROOT = Path(__file__).parents[2]
_INI = "[pytest]\nasyncio_default_fixture_loop_scope = function\n"  # or pytest-asyncio warns
LIMIT = 180.0
_INSTALLED = {"env", "__pycache__"}
_NOT_NEEDED = ("hypothesispytest", "randomly", "benchmark", "cov")


@dataclass
class Run:
    """What one run of pytest left behind."""

    code: int | str
    output: bytes
    xml: Mapping[str, str | None] = field(default_factory=dict)
    """XML file -> why it can't be read, or None."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Test -> the outcome that JUnit has for it."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What it left in its folder."""

    @property
    def text(self) -> str:
        return self.output.decode("utf-8", "replace")

    def count(self, word: str) -> int:
        """The number before ``word`` in the last line that has one: pytest's own."""
        found = re.findall(rf"(\d+) {word}", self.text)
        return int(found[-1]) if found else 0

    @property
    def tail(self) -> str:
        return " / ".join(self.text.strip().splitlines()[-12:])[:700]

    def lacks(self, texts: Iterable[str]) -> list[str]:
        return [f"the output has {text!r}" for text in texts if text in self.text]


class Project:
    """A folder with a few files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))

    def run(self, *args: str, env: Mapping[str, Any] | None = None, python: Sequence[str] = ()) -> Run:
        """``python -m pytest ARGS`` in the folder, with ``case_adapter`` to import."""
        paths = [str(HARNESS), str(ROOT)]
        given = {name: str(value) for name, value in (env or {}).items()}
        hashes = {"PYTHONHASHSEED": "random"} if "PYTHONHASHSEED" not in given else {}
        command = [sys.executable, *python, "-m", "pytest", "-q"]
        command += [part for name in _NOT_NEEDED for part in ("-p", f"no:{name}")]
        try:
            done = subprocess.run(
                [*command, *args],
                cwd=self.path,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "PYTHONIOENCODING": "utf-8",
                    "COLUMNS": "220",
                    **hashes,
                    **given,
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LIMIT,
                check=False,
            )
            code: int | str = done.returncode
            output = done.stdout
        except subprocess.TimeoutExpired as error:
            code, output = "timeout", error.stdout or b""
        return self.left(code, output)

    def left(self, code: int | str, output: bytes) -> Run:
        """A run that ended so, with the files it left."""
        return Run(code, output, dict(self._xml()), self._kinds(), self.contents())

    def _xml(self) -> Iterator[tuple[str, str | None]]:
        for path in self.path.rglob("*.xml"):
            try:
                ET.parse(path)
                problem = None
            except ET.ParseError as error:
                problem = f"can't be parsed: {error}"
            yield str(path.relative_to(self.path)), problem

    def _kinds(self) -> dict[str, str]:
        """Test -> the package's outcome, from the JUnit file ``j.xml``."""
        try:
            tree = ET.parse(self.path / "j.xml")
        except (OSError, ET.ParseError):
            return {}
        kinds = {}
        for case in tree.iter("testcase"):
            values = {str(item.get("name")): str(item.get("value")) for item in case.iter("property")}
            kinds[str(case.get("name"))] = values.get("ragbench.outcome", "")
        return kinds

    def contents(self) -> dict[str, bytes]:
        """Every file of the folder, as bytes."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not _INSTALLED & set(path.relative_to(self.path).parts)
        }


@contextmanager
def project(files: Mapping[str, str | bytes] | None = None) -> Iterator[Project]:
    """A new folder, outside any other project."""
    with tempfile.TemporaryDirectory(prefix="case-") as folder:
        made = Project(Path(folder))
        made.write({"pytest.ini": _INI, **(files or {})})
        yield made
