"""A run that runs no test leaves what earlier runs have written as it was."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import MODES, Project
from tests.servers.rag_server import RagServer

TEST = """
import pytest
from pytest_ragbench import assert_metric

@pytest.mark.rag_questions("questions.csv")
def test_answer(rag_sample):
    assert_metric("token_f1", rag_sample, ">=0")
"""
WRITES = {
    "--ragbench-json": "run.json",
    "--ragbench-html": "run.html",
    "--ragbench-csv": "run.csv",
    "--ragbench-history": "runs.db",
    "--ragbench-record": "tape.jsonl",
    "--ragbench-report": "markdown=run.md",
}


@pytest.fixture
def reporting(project: Project, rag: RagServer) -> Project:
    """A project that reports in each format, by its configuration."""
    options = " ".join(f"{option}={file}" for option, file in WRITES.items())
    project.write(
        test_a_py=TEST,
        questions_csv="question,reference\nA?,a\nB?,b\n",
        pytest_ini=f"[pytest]\naddopts = --rag-url {rag.url} {options}\n",
    )
    return project


def written(project: Project) -> dict[str, bytes]:
    """Name -> content of what runs leave in the folder, also beside the files that were asked for."""
    given = ("test_a.py", "test_b.py", "questions.csv", "pytest.ini")
    return {
        file.name: file.read_bytes()
        for file in project.files()
        if file.parent == project.path and file.name not in given and not file.name.startswith("std")
    }


@pytest.mark.parametrize("way", ["none", "n2"])
def test_reports_history_and_recordings_stay(reporting: Project, way: str) -> None:
    assert reporting.run().ret == 0
    before = written(reporting)
    assert set(before) == {"run.json", "run.html", "run.csv", "runs.db", "tape.jsonl", "run.md"}
    nothing = [["--collect-only", "-q"], ["test_a.py::mistyped"], ["-k", "nothing"], ["--setup-only"]]
    if way == "none":
        nothing += [["--setup-plan"], ["--fixtures"], ["--fixtures-per-test"], ["--cache-show"], ["--help"]]
        nothing += [["--ragbench-dry-run"], ["test_a.py::test_answer[mistyped]"], ["nowhere.py"]]
    for options in nothing:
        reporting.run(*options, *MODES[way])
        assert written(reporting) == before, options


def test_nothing_is_made_either(reporting: Project, both: list[str]) -> None:
    for options in (["--collect-only"], ["-k", "nothing"], ["test_a.py::mistyped"]):
        reporting.run(*options, *both)
        assert written(reporting) == {}, options


def test_tests_that_cannot_be_collected_are_no_run(reporting: Project) -> None:
    assert reporting.run().ret == 0
    before = written(reporting)
    reporting.write(test_b_py="import nowhere_to_be_found\n")
    assert reporting.run().ret == pytest.ExitCode.INTERRUPTED
    assert written(reporting) == before
    assert reporting.run("--continue-on-collection-errors").ret == 1
    assert written(reporting) != before
    assert len(json.loads((reporting.path / "run.json").read_text())["results"]) == 2


def test_last_failures_of_which_there_are_none_are_no_lost_results(reporting: Project) -> None:
    """pytest's hook for --lf chooses after all others."""
    result = reporting.run("--lf", "--lfnf=none", "--cache-clear")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert "results lost" not in result.stdout.str()
