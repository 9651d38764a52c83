from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import jsonschema
import pytest

from pytest_ragbench.report.schema import report_schema
from tests.servers.forking import ForkedRun, ForkServer, fork_server
from tests.servers.rag_server import RagServer, rag_server

MODES: dict[str, list[str]] = {
    "none": [],
    "n0": ["-n", "0"],
    "n2": ["-n", "2"],
    "no-xdist": ["-p", "no:xdist"],
}


# Start-up time of every inner run.
_NOT_NEEDED = ("hypothesispytest", "anyio", "randomly", "benchmark", "cov", "langsmith_plugin", "timeout")
_NEEDED_WITH = {
    "--alluredir": ("allure_pytest",),
    "--html": ("html", "html_fixtures", "metadata"),
    "--reruns": ("rerunfailures",),
}


def forked(
    server: ForkServer, command: Sequence[str], *, stdout: IO[str], stderr: IO[str], **_: Any
) -> ForkedRun:
    """In the place of ``Pytester.popen``, and with its PYTHONPATH; ``command``: ``python -mpytest ...``."""
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    return server.start(
        command[2:],
        cwd=Path.cwd(),
        env={**os.environ, "PYTHONPATH": path},
        stdout=stdout.fileno(),
        stderr=stderr.fileno(),
    )


class Project:
    """A small project of a user, run by pytest in a process of its own."""

    def __init__(
        self,
        pytester: pytest.Pytester,
        monkeypatch: pytest.MonkeyPatch,
        coverage: Mapping[str, str],
        every_run: bool,
    ) -> None:
        self.pytester = pytester
        self.monkeypatch = monkeypatch
        self.path = pytester.path
        self._coverage = coverage
        """Variables that have a process measured."""
        self._every_run = every_run

    def write(self, **files: str) -> None:
        """``test_a_py="..."`` writes test_a.py."""
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            file = self.path / f"{stem}.{suffix}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")

    def run(self, *args: str, fresh: bool = False, measured: bool = True) -> pytest.RunResult:
        """``pytest ARGS``; ``fresh``: by a Python that has imported nothing yet.

        Coverage sees ``measured`` runs, unless they name a way to run: all of them would take minutes. Of a
        test's parameters the first stands for all.
        """
        given = {arg.partition("=")[0] for arg in args}
        idle = [name for option, names in _NEEDED_WITH.items() if option not in given for name in names]
        if not any("asyncio" in test.read_text("utf-8", "replace") for test in self.path.glob("test_*.py")):
            idle.append("asyncio")
        plugins = [part for name in (*_NOT_NEEDED, *idle) for part in ("-p", f"no:{name}")]
        plugins += ["-W", "ignore::pytest.PytestDeprecationWarning"]
        with self.monkeypatch.context() as patch:
            if self._every_run or (measured and not {"-n", "no:xdist"} & set(args)):
                for name, value in self._coverage.items():
                    patch.setenv(name, value)
            server = None if fresh else fork_server()
            if server is not None and server.serves(os.environ):
                plugins += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is in memory already
                patch.setattr(self.pytester, "popen", partial(forked, server))
            return self.pytester.runpytest_subprocess(*plugins, *args, timeout=240)

    def report(self, name: str = "out.json") -> dict[str, Any]:
        """The JSON report; each is held against the schema, and may have no field that is not in it."""
        loaded: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        wrong = jsonschema.Draft202012Validator(report_schema(closed=True)).iter_errors(loaded)
        assert [f"{error.json_path}: {error.message}" for error in wrong] == []
        return loaded

    def files(self) -> Sequence[Path]:
        return [path for path in self.path.rglob("*") if path.is_file()]


@pytest.fixture
def project(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    outer_environment: Mapping[str, str],
    request: pytest.FixtureRequest,
) -> Project:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # or each inner run compiles everything
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    coverage = {name: value for name, value in outer_environment.items() if name.startswith("COVERAGE_")}
    parameters = getattr(request.node, "callspec", None)
    # Asked which test reaches what: all of its runs, under its name (``benchmarks/mutants.py contexts``).
    by_test = bool(request.config.getoption("cov_context", None))
    if by_test and "COVERAGE_PROCESS_CONFIG" in coverage:
        told = json.loads(base64.b64decode(coverage["COVERAGE_PROCESS_CONFIG"]))
        told["context"] = f"{request.node.nodeid}|run"
        coverage["COVERAGE_PROCESS_CONFIG"] = base64.b64encode(json.dumps(told).encode()).decode()
    elif parameters is not None and any(parameters.indices.values()):
        coverage = {}
    return Project(pytester, monkeypatch, coverage, by_test)


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> list[str]:
    """Each way to run pytest: without xdist's options, -n 0, -n 2, and without xdist."""
    return MODES[request.param]


@pytest.fixture(params=["none", "n2"])
def both(request: pytest.FixtureRequest) -> list[str]:
    """In one process and in two, where the other ways to run pytest add nothing."""
    return MODES[request.param]


@pytest.fixture
def rag() -> Iterator[RagServer]:
    with rag_server() as server:
        yield server
