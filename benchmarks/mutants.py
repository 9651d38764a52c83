"""Mutation testing: does a test fail when a line of the package is changed?

    python benchmarks/mutants.py contexts tests/metrics tests/formulas    # which test covers which line; once
    python benchmarks/mutants.py run pytest_ragbench/metrics --sample 40 --seed 1 --jobs 2
    python benchmarks/mutants.py run pytest_ragbench/judge/replies.py --at 63
    python benchmarks/mutants.py run pytest_ragbench/plugin/stream.py --tests tests/plugin/test_outcomes.py
    python benchmarks/mutants.py named    # those of mutants.toml, against the tests that stand there

A mutant changes one place of one file, in a copy of the checkout. It is run against the tests that cover its line
(``contexts`` writes them to ``.mutants/coverage``; runs of pytest that a test starts count as the test's own), those
that reach the fewest lines first and one of each function's parameters before the next, or against ``--tests``. A line
that runs on import is given the tests of its file's functions. A line that no test covers counts as survived.

Each mutant is tried in a fork of a process that has imported all libraries already, and nothing of the package.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / ".mutants" / "coverage"
TIMEOUT_S = 240
"""So long without the end of a test, the mutant hangs. How long all of its tests take says nothing."""
MOST_TESTS = 400
"""A helper that all tests call is covered by thousands; what so many don't see is shown as survived."""
LIBRARIES = (
    "aiohttp.test_utils", "bm25s", "genai_prices", "hypothesis.strategies", "jinja2", "jmespath", "jsonschema", "numpy",
    "openai", "openpyxl", "pydantic_settings", "pytrec_eval", "rouge_score.rouge_scorer", "sacrebleu", "scipy.optimize",
    "scipy.stats", "sklearn.metrics", "starlette.applications", "statsmodels.api", "statsmodels.stats.multitest",
    "tenacity", "trustme", "uvicorn", "yaml",
)  # fmt: skip

COMPARED = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
SIGNS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.In: "in",
    ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
}  # fmt: skip
COMPUTED = {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
CALLED = {"min": "max", "max": "min", "all": "any", "any": "all", "sorted": "list"}


@dataclass(frozen=True)
class Mutant:
    """``text`` in the place of ``[start, end)``; offsets are of the file's characters."""

    path: Path
    line: int
    start: int
    end: int
    old: str
    text: str
    on_import: bool = False

    def __str__(self) -> str:
        old, new = (" ".join(part.split())[:60] for part in (self.old, self.text))
        return f"{self.path.relative_to(ROOT)}:{self.line}: {old!r} -> {new!r}"

    def source(self) -> str:
        whole = self.path.read_text(encoding="utf-8")
        return whole[: self.start] + self.text + whole[self.end :]


class Places(ast.NodeVisitor):
    """All mutants of one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = self.text.splitlines()
        self.found: list[Mutant] = []
        self.functions = 0
        self.visit(ast.parse(self.text))

    def offset(self, line: int, column: int) -> int:
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.AST) -> tuple[int, int]:
        start = self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return start, self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def add(self, node: ast.AST, text: str, span: tuple[int, int] | None = None) -> None:
        start, end = span or self.span(node)
        line = self.text.count("\n", 0, start) + 1
        self.found.append(Mutant(self.path, line, start, end, self.text[start:end], text, not self.functions))

    def sign(self, left: ast.AST, right: ast.AST, old: str, new: str) -> None:
        """The operator between two operands; it is not in a string or a comment there."""
        start, end = self.span(left)[1], self.span(right)[0]
        at = self.text.find(old, start, end)
        if at >= 0:
            self.add(left, new, (at, at + len(old)))

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            self.sign(left, right, SIGNS[type(operator)], COMPARED[type(operator)])
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in COMPUTED and not _is_text(node.left) and not _is_text(node.right):
            self.sign(node.left, node.right, SIGNS[type(node.op)], COMPUTED[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self.sign(node.values[0], node.values[1], old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub)):
            self.add(node, f"({ast.get_source_segment(self.text, node.operand)})")
        self.generic_visit(node)

    def visit_If(self, node: ast.If | ast.IfExp) -> None:
        # The opposite of "not x" comes with the operator itself.
        if not _is_type_checking(node.test) and not isinstance(node.test, ast.UnaryOp):
            self.add(node, f"not ({ast.get_source_segment(self.text, node.test)})", self.span(node.test))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.visit_If(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Without what decorates it: no run tells a frozen dataclass from one that isn't."""
        for statement in node.body:
            self.visit(statement)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add(node, str(not node.value))
        elif isinstance(node.value, (int, float)):
            self.add(node, repr(node.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in CALLED:
            self.add(node, CALLED[node.func.id], self.span(node.func))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self.add(node, "return None")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, (ast.Call, ast.Await)):  # not a docstring
            self.add(node, "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self.add(node, "pass")
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self.functions += 1
        for statement in node.body:
            self.visit(statement)
        self.functions -= 1

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Messages: positions inside are not kept by Python 3.11."""


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"


def mutants(targets: Sequence[Path]) -> Iterator[Mutant]:
    for target in targets:
        for path in [target] if target.is_file() else sorted(target.rglob("*.py")):
            yield from Places(path).found


def measure(tests: Sequence[str]) -> int:
    """Which test runs which line; added to what is known already."""
    DATA.parent.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--cov",
         "--cov-context=test", "--cov-report=", "--cov-fail-under=0", "--cov-append", *tests],
        cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(DATA)}, check=False,
    ).returncode  # fmt: skip


class Covering:
    """Test ids by file and line."""

    def __init__(self) -> None:
        from coverage import CoverageData

        data = CoverageData(str(DATA))
        data.read()
        self.lines: dict[Path, dict[int, set[str]]] = {}
        self.reach: dict[str, int] = {}
        for name in data.measured_files():
            found = self.lines[Path(name)] = {
                line: {context.rpartition("|")[0] for context in contexts if "|" in context}
                for line, contexts in data.contexts_by_lineno(name).items()
            }
            for test in (test for tests in found.values() for test in tests):
                self.reach[test] = self.reach.get(test, 0) + 1

    def tests(self, mutant: Mutant) -> list[str]:
        lines = self.lines.get(mutant.path, {})
        # What a test imports for the first time is no more its own than of those that come after it.
        known = set().union(*lines.values()) if mutant.on_import else lines.get(mutant.line, set())
        turns: dict[str, int] = {}
        order = []
        for test in sorted(known, key=lambda test: (self.reach[test], test)):
            function = test.partition("[")[0]
            turns[function] = turns.get(function, -1) + 1
            order.append((turns[function], test))
        return [test for _, test in sorted(order, key=lambda one: one[0])]


_SEEN = {"killed", "hangs"}


@dataclass(frozen=True)
class Result:
    mutant: Mutant
    end: str
    """``killed``, ``hangs`` (which kills it too), ``survived`` or ``no test``."""
    by: str | None = None
    """The test that failed."""


class Fork:
    """The tests of one mutant, in a process of their own that works in ``folder``."""

    def __init__(self, mutant: Mutant, tests: Sequence[str], folder: Path) -> None:
        self.mutant, self.folder = mutant, folder
        self.place = folder / mutant.path.relative_to(ROOT)
        self.kept = self.place.read_bytes()
        self.place.write_text(mutant.source(), encoding="utf-8")
        # Compiled code is told by second and size of its source, which a mutant may share.
        for compiled in (self.place.parent / "__pycache__").glob(f"{self.place.stem}.*.pyc"):
            compiled.unlink()
        self.progress = folder.with_suffix(".progress")
        self.progress.write_text("")
        self.pid = os.fork()
        if not self.pid:
            sys.dont_write_bytecode = True
            os._exit(_tested(tests, folder, os.devnull, Progress(self.progress)))

    def ended(self) -> Result | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        late = not pid and time.time() > self.progress.stat().st_mtime + TIMEOUT_S
        if not pid and not late:
            return None
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # also what its tests left behind
        if late:
            os.waitpid(self.pid, 0)
        self.place.write_bytes(self.kept)
        end = {0: "survived", 5: "no test"}.get(os.waitstatus_to_exitcode(status), "killed")
        return Result(self.mutant, "hangs" if late else end, self.progress.read_text("utf-8") or None)


class Progress:
    """A plugin that says to a file when a test has ended, and which one failed."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.file.write_text(report.nodeid, encoding="utf-8")

    def pytest_runtest_logfinish(self) -> None:
        self.file.touch()


def _tested(tests: Sequence[str], folder: Path, output: str, *plugins: object) -> int:
    os.setsid()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)
    if sys.dont_write_bytecode:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    written = os.open(output, os.O_RDWR | os.O_CREAT, 0o600)
    for stream in range(3):
        os.dup2(written, stream)
    try:
        import pytest

        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:cov", "--tb=short"]
        return int(pytest.main([*options, *tests], list(plugins)))
    except BaseException:  # a mutant may end the run in any way
        return 1


def unchanged(tests: Sequence[str], folder: Path) -> None:
    """Tests that fail without a mutant would seem to kill all."""
    output = folder.with_suffix(".txt")
    pid = os.fork()
    if not pid:
        os._exit(_tested(tests, folder, str(output)))
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        raise SystemExit(f"Without any mutant:\n{output.read_text(encoding='utf-8')[-4000:]}")


def run(given: argparse.Namespace) -> int:
    targets = [(ROOT / target).resolve() for target in given.targets]
    found = [mutant for mutant in mutants(targets) if not given.at or mutant.line in given.at]
    chosen = random.Random(given.seed).sample(found, min(given.sample or len(found), len(found)))
    covering = None if given.tests else Covering()
    tests = [given.tests or covering.tests(mutant)[: given.most] for mutant in chosen]  # type: ignore[union-attr]
    print(f"{len(chosen)} of {len(found)} mutants", flush=True)
    return judged(list(zip(chosen, tests, strict=True)), given)


def named(given: argparse.Namespace) -> int:
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["mutant"]
    chosen = []
    for one in listed:
        path = ROOT / one["file"]
        text = path.read_text(encoding="utf-8")
        if text.count(one["old"]) != 1:
            raise SystemExit(
                f"{one['name']}: {one['file']} holds {text.count(one['old'])} times {one['old']!r}"
            )
        start = text.index(one["old"])
        line = text.count("\n", 0, start) + 1
        chosen.append(
            (Mutant(path, line, start, start + len(one["old"]), one["old"], one["new"]), one["tests"])
        )
    return judged(chosen, given)


def judged(chosen: Sequence[tuple[Mutant, Sequence[str]]], given: argparse.Namespace) -> int:
    totals: dict[str, int] = {}
    failed: set[str] = set()
    with tempfile.TemporaryDirectory(prefix="mutants-") as work:
        first, *others = (Path(work) / str(number) for number in range(given.jobs))
        _copy(first)
        compileall.compile_dir(first / "pytest_ragbench", quiet=2)  # no fork has to
        _import_libraries()
        for folder in others:
            shutil.copytree(first, folder)
        for result in _results(chosen, [first, *others]):
            totals[result.end] = totals.get(result.end, 0) + 1
            if result.by:
                failed.add(result.by)
            if result.end not in _SEEN or given.verbose:
                print(f"{result.end}: {result.mutant} {result.by or ''}", flush=True)
        if failed:
            unchanged(sorted(failed), first)
    print(f"{len(chosen)}: {', '.join(f'{number} {end}' for end, number in sorted(totals.items()))}")
    return int(not set(totals) <= _SEEN)


def _results(chosen: Sequence[tuple[Mutant, Sequence[str]]], free: list[Path]) -> Iterator[Result]:
    waiting, running = list(reversed(chosen)), list[Fork]()
    while waiting or running:
        while waiting and free:
            mutant, tests = waiting.pop()
            if tests:
                running.append(Fork(mutant, tests, free.pop()))
            else:
                yield Result(mutant, "no test")
        time.sleep(0.02)
        for fork in list(running):
            if result := fork.ended():
                running.remove(fork)
                free.append(fork.folder)
                yield result


def _import_libraries() -> None:
    for plugin in entry_points(group="pytest11"):
        if plugin.name != "ragbench":
            plugin.load()
    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    if any(name.partition(".")[0] == "pytest_ragbench" for name in sys.modules):
        raise SystemExit("the package itself is imported already: its mutants would not be seen")


def _copy(folder: Path) -> None:
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, files.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    contexts = commands.add_parser("contexts")
    contexts.add_argument("tests", nargs="+")
    running = commands.add_parser("run")
    running.add_argument("targets", nargs="+", help="files or folders of the package")
    running.add_argument("--sample", type=int, help="so many, drawn with --seed; else all")
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--at", type=int, nargs="+", help="lines; else all")
    running.add_argument("--most", type=int, default=MOST_TESTS, help="tests for one mutant; default: 400")
    running.add_argument("--tests", nargs="+", help="run these instead of those that cover the line")
    for each in (running, commands.add_parser("named")):
        each.add_argument("--jobs", type=int, default=1)
        each.add_argument("--verbose", action="store_true", help="show the killed ones too")
    given = parser.parse_args()
    if given.command == "contexts":
        return measure(given.tests)
    return named(given) if given.command == "named" else run(given)


if __name__ == "__main__":
    sys.exit(main())
