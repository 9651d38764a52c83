"""Finds the file that configures a run, wherever it stands: above the tests, or below where pytest was started.

It stands apart from the settings because it looks in every pytest run on a machine, and so must not import pydantic.
"""

from __future__ import annotations

import itertools
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError

FILE = "ragbench.toml"
_YAML_TESTS = ("*.rag.yaml", "*.rag.yml")
_ASKING = (b"rag_", b"ragbench")
"""What stands in the source of a test that asks for metrics: our fixtures, our package."""


@dataclass(frozen=True)
class Tree:
    """Which files hold tests, and which folders pytest does not look into; the defaults are pytest's own."""

    python_files: Sequence[str] = ("test_*.py", "*_test.py")
    norecursedirs: Sequence[str] = (
        "*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}",
    )  # fmt: skip

    def walk(self, top: Path) -> Iterator[tuple[Path, list[str]]]:
        """Each folder with its files, from ``top`` down; links are followed, but not in circles."""
        seen = {os.path.realpath(top)}
        for name, folders, files in os.walk(top, followlinks=True):
            if "pyvenv.cfg" in files:
                folders.clear()
                continue
            folders[:] = sorted(folder for folder in folders if self._enters(name, folder, seen))
            yield Path(name), files

    def _enters(self, parent: str, folder: str, seen: set[str]) -> bool:
        path = os.path.join(parent, folder)
        if folder == "__pycache__" or any(fnmatch(folder, pattern) for pattern in self.norecursedirs):
            return False
        if os.path.islink(path):
            real = os.path.realpath(path)
            if real in seen:
                return False
            seen.add(real)
        return True

    def names(self, word: str, paths: Sequence[Path]) -> bool:
        """Whether a test file or ``conftest.py`` in or above these paths has ``word`` as a string."""
        quoted = [f"{mark}{word}{mark}".encode() for mark in "'\""]
        above = (parent / "conftest.py" for path in paths for parent in path.parents)
        below = (
            folder / name
            for path in paths
            for folder, files in self.walk(path if path.is_dir() else path.parent)
            for name in files
            if name == "conftest.py" or any(fnmatch(name, pattern) for pattern in self.python_files)
        )
        for file in itertools.chain(above, below):
            if file.is_file():
                text = file.read_bytes()
                if any(each in text for each in quoted):
                    return True
        return False

    def test_files(self, path: Path) -> Iterator[Path]:
        """Those below a folder; of a file, itself."""
        if path.is_file():
            yield path
            return
        for folder, files in self.walk(path):
            for name in sorted(files):
                if any(fnmatch(name, pattern) for pattern in (*self.python_files, *_YAML_TESTS)):
                    yield folder / name


def asks_metrics(test_file: Path) -> bool:
    """Whether the text of a test file looks as if it asked for metrics."""
    if any(fnmatch(test_file.name, pattern) for pattern in _YAML_TESTS):
        return True
    try:
        text = test_file.read_bytes()
    except OSError:
        return False
    return any(word in text for word in _ASKING)


def tables_in(directory: Path) -> list[tuple[str, dict[str, Any]]]:
    """The tables of the files in a folder, with their names, later ones winning.

    Raises
    ------
    UsageError
        A file that is not TOML.
    """
    found = []
    pyproject, own = directory / "pyproject.toml", directory / FILE
    if pyproject.is_file() and b"ragbench" in pyproject.read_bytes():
        table = _toml(pyproject).get("tool", {}).get("ragbench")
        if table is not None:
            found.append((f"{pyproject} [tool.ragbench]", table))
    if own.is_file():
        found.append((str(own), _toml(own)))
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: can't be read as TOML: {error}") from None


_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")


def line_of_key(path: Path, key: Sequence[str]) -> int:
    """The 1-based line in which a TOML file gives ``key``, or as much of it as is found; 0 where nothing is.

    ``tomllib`` keeps no lines, so the text is searched for headers and keys.
    """
    table: tuple[str, ...] = ()
    best = deepest = 0
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if header := _HEADER.match(line):
            table = found = _parts(header[1])
        elif written := _KEY.match(line):
            found = (*table, *_parts(written[1]))
        else:
            continue
        found = found[2:] if found[:2] == ("tool", "ragbench") else found
        same = len(found) if found == tuple(key[: len(found)]) else 0
        if same > deepest:
            best, deepest = number, same
    return best


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(r"[\w@-]+|\"[^\"]*\"|'[^']*'", dotted))


class Folders:
    """Which folders configure ragbench; each is looked at once."""

    def __init__(self) -> None:
        self._configures: dict[Path, bool] = {}

    def nearest(self, directory: Path, root: Path | None = None) -> Path | None:
        """The folder that configures ``directory``: itself, or the nearest above it, up to ``root``. Where there is
        none and the way leads through links, the folders above the real place count.
        """
        for start in dict.fromkeys((Path(os.path.abspath(directory)), Path(os.path.realpath(directory)))):
            for folder in (start, *start.parents):
                if folder not in self._configures:
                    self._configures[folder] = (folder / FILE).is_file() or bool(tables_in(folder))
                if self._configures[folder]:
                    return folder
                if folder == root:
                    break
        return None


def find_directory(
    paths: Sequence[Path], *, tops: Sequence[Path] = (), tree: Tree | None = None
) -> Path | None:
    """The folder whose files configure a run over ``paths``; None where none does.

    Parameters
    ----------
    paths
        Test files and folders of tests.
    tops
        Where the run was started. Between them and the file that is found no other may have gates that would
        be left out.
    tree
        What is a test file.

    Raises
    ------
    UsageError
        Two files that configure tests of this run disagree, or one has gates that the other would hide.
    """
    tree = tree or Tree()
    paths, folders = [Path(os.path.abspath(path)) for path in paths], Folders()
    found: dict[str, Path] = {}
    for path in paths:
        has_files = path.is_dir()
        above = folders.nearest(path if has_files else path.parent)
        below = (each for each, files in tree.walk(path) if _configures(each, files)) if has_files else ()
        for each in (above, *below):
            if each is not None:
                found.setdefault(os.path.realpath(each), each)
    if not found:
        return None
    chosen = next(iter(found.values())) if len(found) == 1 else _agreed(found, paths, tree, folders)
    for folder in chosen.parents:
        if any(top == folder or top in folder.parents for top in tops):
            _check_gates(chosen, folder)
    return chosen


def _configures(folder: Path, files: Sequence[str]) -> bool:
    return FILE in files or ("pyproject.toml" in files and bool(tables_in(folder)))


def _agreed(found: Mapping[str, Path], paths: Sequence[Path], tree: Tree, folders: Folders) -> Path:
    """The one that configures the tests, of several."""
    first, *more = found.values()
    if all(agree(first, each) for each in more):
        return first
    asking: set[str] = set()
    others: set[str] = set()
    for file in (file for path in paths for file in tree.test_files(path)):
        if (home := folders.nearest(file.parent)) is not None:
            (asking if asks_metrics(file) else others).add(os.path.realpath(home))
    governing = [each for place, each in found.items() if place in asking]
    governing = governing or [each for place, each in found.items() if place in others] or [first]
    chosen = governing[0]
    for each in governing[1:]:
        if not agree(each, chosen):
            raise UsageError(disagreement(chosen, each))
    for place, each in found.items():
        if each != chosen and (place in others or each in chosen.parents):
            _check_gates(chosen, each)
    return chosen


def disagreement(one: Path, other: Path) -> str:
    """What is said of two that configure tests of one run."""
    return (
        f"{_named(one)} and {_named(other)} both configure tests of this run, and disagree: make one of them, or "
        "start pytest for each alone"
    )


def agree(one: Path, other: Path) -> bool:
    """Whether the files of two folders say the same."""
    return _said(one) == _said(other)


def _check_gates(chosen: Path, other: Path) -> None:
    """Refuse gates that nobody would decide."""
    gates, kept = _said(other).get("gates"), _said(chosen).get("gates")
    if not isinstance(gates, Mapping) or not gates:
        return
    kept = kept if isinstance(kept, Mapping) else {}
    hidden = [name for name, rule in gates.items() if kept.get(name) != rule]
    if hidden:
        raise UsageError(
            f"{_named(other)} has gates that {_named(chosen)}, which is nearer to the tests, leaves out: "
            f"{', '.join(map(str, hidden))}; write the gates of a run into one of them"
        )


def _said(folder: Path) -> dict[str, Any]:
    """The tables of a folder, put together."""
    return merged(*(table for _, table in tables_in(folder)))


def merged(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables put together, later ones winning key by key."""
    result: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            old = result.get(key)
            both = isinstance(old, Mapping) and isinstance(value, Mapping)
            result[key] = merged(old, value) if both and isinstance(old, Mapping) else value
    return result


def _named(folder: Path) -> str:
    return " and ".join(name for name, _ in tables_in(folder)) or str(folder)
