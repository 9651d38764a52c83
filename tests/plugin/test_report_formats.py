"""Report formats: those of this package, and one that an installed package adds."""

from __future__ import annotations

import os

from tests.plugin.conftest import Project

TESTS = """\
import pytest
from pytest_ragbench import RagSample, assert_metric

@pytest.mark.parametrize("n", range(4))
def test_it(n):
    assert_metric("exact_match", RagSample("q?", str(n), reference="1"), ">=1")
"""
FORMAT = '''\
"""A line for each test as it ends, and one for the run."""

from pytest_ragbench import RagbenchError

class Lines:
    def __init__(self, path, context):
        self.path = path
        with path.open("a", encoding="utf-8") as file:  # a second one of the same run would be seen
            file.write(f"{context.run.id}\\n")

    def add(self, result):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{result.outcome} {[score.value for score in result.scores]}\\n")

    def finish(self, run):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"exit code {run.exit_code}, {len(run.results)} results kept\\n")
        return [f"lines: {self.path.name}"]


class Whole(Lines):
    whole_run = True


class Broken(Lines):
    def add(self, result):
        raise ValueError("no room")


class Unfinished(Lines):
    def finish(self, run):
        raise RagbenchError("--ragbench-report unfinished: no more room")


class Refused(Lines):
    def __init__(self, path, context):
        raise RagbenchError("refused: not on this system")
'''


def with_formats(project: Project) -> Project:
    project.write(test_a_py=TESTS, lines_format_py=FORMAT)
    info = project.path / "lines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1.0\n")
    names = ("Lines", "Whole", "Broken", "Unfinished", "Refused")
    points = "".join(f"{name.lower()} = lines_format:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[ragbench.reports]\n{points}")
    project.monkeypatch.setenv("PYTHONPATH", str(project.path), prepend=os.pathsep)
    return project


def test_a_format_of_an_installed_package_is_written(project: Project, both: list[str]) -> None:
    with_formats(project)
    reports = ("lines=sub/lines.txt", "whole=whole.txt", "csv=scores.csv", "markdown=run.md")
    options = [part for report in reports for part in ("--ragbench-report", report)]
    result = project.run("-p", "no:cacheprovider", "--ragbench-json=out.json", *options, *both, fresh=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["lines: lines.txt", "lines: whole.txt", "summary: *run.md"])
    run, *results, end = (project.path / "sub/lines.txt").read_text(encoding="utf-8").splitlines()
    assert run == project.report()["run"]["id"]
    assert sorted(results) == ["failed [0.0]", "failed [0.0]", "failed [0.0]", "passed [1.0]"]
    assert end.startswith("exit code 1, ")
    assert "exit code 1, 4 results kept" in (project.path / "whole.txt").read_text(encoding="utf-8")
    assert len((project.path / "scores.csv").read_text(encoding="utf-8-sig").splitlines()) == 5
    assert "3 failed" in (project.path / "run.md").read_text(encoding="utf-8")


def test_a_format_that_breaks_is_given_up_and_the_rest_goes_on(project: Project) -> None:
    with_formats(project)
    reports = ("broken=b.txt", "unfinished=u.txt", "json=out.json")
    options = [f"--ragbench-report={report}" for report in reports]
    result = project.run(*options, "-W", "error", fresh=True)
    assert result.ret == 1
    text = result.stdout.str()
    assert text.count("--ragbench-report broken: ValueError: no room") == 1
    assert text.count("--ragbench-report unfinished: ") == text.count("unfinished: no more room") == 1
    assert len((project.path / "u.txt").read_text(encoding="utf-8").splitlines()) == 5
    assert (project.report()["complete"], len(project.report()["results"])) == (True, 4)


def test_no_run_is_green_whose_report_could_not_be_written(project: Project) -> None:
    with_formats(project)
    result = project.run("--ragbench-report=broken=b.txt", "-k", "test_it[1]", fresh=True)
    assert result.ret == 3
    result.assert_outcomes(passed=1, warnings=1, deselected=3)
    # What is kept beside a run is no report of it that was asked for.
    kept = project.run("--ragbench-history=test_a.py", "-k", "test_it[1]")
    kept.assert_outcomes(passed=1, warnings=1, deselected=3)
    assert kept.ret == 0


def test_a_format_gets_what_it_asks_for_or_ends_the_run_before_its_tests(project: Project) -> None:
    with_formats(project)
    result = project.run("--ragbench-report=refused=r.txt", fresh=True)
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: refused: not on this system"])
    # Results are kept for those only that want all of them at the end.
    project.run("--ragbench-report=lines=lines.txt", fresh=True)
    *_, end = (project.path / "lines.txt").read_text(encoding="utf-8").splitlines()
    assert end == "exit code 1, 0 results kept"


def test_a_format_can_be_written_twice(project: Project) -> None:
    project.write(test_a_py=TESTS)
    project.run("--ragbench-report=json=one.json", "--ragbench-report=json=two.json")
    assert len(project.report("one.json")["results"]) == len(project.report("two.json")["results"]) == 4


def test_a_format_that_is_not_there_is_refused_before_the_run(project: Project) -> None:
    project.write(test_a_py=TESTS)
    for given, said in (
        ("jsn=x", "no report format 'jsn'; there are: csv, github, history, html, json, markdown"),
        ("json", "--ragbench-report json: NAME=FILE is wanted"),
        ("csv=no/such/", "can't be written: it is a directory"),
        ("csv=test_a.py/scores.csv", "scores.csv: can't be written: "),
    ):
        (project.path / "no/such").mkdir(parents=True, exist_ok=True)
        result = project.run(f"--ragbench-report={given}")
        assert result.ret == 4
        assert said in result.stderr.str()
