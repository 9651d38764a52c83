"""A gate is found wherever it is written and however pytest is started, or refused aloud."""

from __future__ import annotations

import os
import sys

import pytest

from tests.plugin.conftest import MODES, Project

TEST = """\
import pytest
from pytest_ragbench import RagSample, assert_metric

@pytest.mark.parametrize("place", range(3))
def test_it(place):
    assert_metric("exact_match", RagSample(f"{place}?", "a", reference="a"), 1)

def test_other():
    assert_metric("exact_match", RagSample("Other?", "a", reference="a"), 1)
"""
GATE = 'store = "off"\n[gates]\nexact_match = "mean >= 0.9"\n'


@pytest.fixture
def nested(project: Project) -> Project:
    rag, unit = project.path / "tests" / "rag", project.path / "tests" / "unit"
    for folder in (rag, unit):
        folder.mkdir(parents=True)
    (rag / "test_rag.py").write_text(TEST)
    (rag / "ragbench.toml").write_text(GATE)
    (unit / "test_unit.py").write_text("def test_unit(): ...\n")
    return project


PASS = "PASS       exact_match mean >= 0.9*over 4 questions*"


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_the_whole_is_gated_however_it_is_started(nested: Project, mode: str) -> None:
    how = MODES[mode]
    starts = {
        "none": [[], ["tests"], ["tests/rag", "tests/unit"], ["tests/rag/test_rag.py"], ["--rootdir=tests/unit", "."]],
        "n2": [[], ["tests/rag", "tests/unit"]],
        "no-xdist": [["-c", "tests/unit/other.ini"]],
    }[mode]  # fmt: skip
    (nested.path / "tests" / "unit" / "other.ini").write_text("[pytest]\n")
    for args in starts:
        result = nested.run(*args, *how)
        assert result.ret == 0, args
        result.stdout.fnmatch_lines([PASS])


def test_a_file_above_the_rootdir_and_a_run_from_elsewhere(nested: Project) -> None:
    (nested.path / "tests" / "rag" / "ragbench.toml").rename(nested.path / "ragbench.toml")
    (nested.path / "tests" / "pytest.ini").write_text("[pytest]\n")
    nested.run("tests").stdout.fnmatch_lines(["rootdir: */tests", PASS])
    elsewhere = nested.path / "elsewhere"
    elsewhere.mkdir()
    nested.monkeypatch.chdir(elsewhere)
    nested.run("../tests/rag", "-n", "2").stdout.fnmatch_lines([PASS])


def test_a_part_by_its_paths_is_partial(nested: Project) -> None:
    (nested.path / "tests" / "rag" / "test_more.py").write_text(TEST)
    for args in (["tests/rag/test_rag.py"], ["tests", "--ignore=tests/rag/test_more.py"]):
        result = nested.run(*args, "--ragbench-json=out.json")
        assert result.ret == 9
        said = "UNDECIDED  exact_match mean >= 0.9   the run is partial (not chosen: tests/rag/test_more.py)*"
        result.stdout.fnmatch_lines([said])
    assert nested.report()["not_chosen"] == ["tests/rag/test_more.py"]
    nested.run("tests/rag/test_more.py", "--ragbench-json=more.json", "--ragbench-no-gates")
    merged = [sys.executable, "-m", "pytest_ragbench.cli", "merge", "out.json", "more.json"]
    nested.monkeypatch.chdir(nested.path / "tests")
    result = nested.pytester.run(*merged[:4], "../out.json", "../more.json")
    assert result.ret == 0
    result.stdout.fnmatch_lines([PASS])


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=["none", "n2"])
def test_a_file_that_skips_itself_is_not_run(nested: Project, how: list[str]) -> None:
    skipping = "import pytest\npytest.importorskip('nowhere')\n"
    (nested.path / "tests" / "rag" / "test_more.py").write_text(skipping + TEST)
    result = nested.run(*how)
    assert result.ret == 9
    said = "UNDECIDED  exact_match mean >= 0.9   the run is partial (not chosen: tests/rag/test_more.py)*"
    result.stdout.fnmatch_lines(["this run is partial: not run: tests/rag/test_more.py", said])
    if not how:  # three of them are named
        for name, end in (("test_mo", ""), ("test_most", " ...")):
            (nested.path / "tests" / "rag" / f"{name}.py").write_text(skipping + TEST)
            (nested.path / "tests" / "rag" / "test_m.py").write_text(skipping + TEST)
            named = [f"tests/rag/{each}.py" for each in ("test_m", "test_mo", "test_more")]
            nested.run().stdout.fnmatch_lines([f"this run is partial: not run: {', '.join(named)}{end}"])


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=["none", "n2"])
def test_last_failed_is_partial(nested: Project, how: list[str]) -> None:
    test = nested.path / "tests" / "rag" / "test_rag.py"
    (nested.path / "tests" / "rag" / "test_more.py").write_text(TEST)
    test.write_text(TEST.replace('"Other?", "a"', '"Other?", "b"'))
    nested.run()
    test.write_text(TEST)
    result = nested.run("--lf", *how)
    assert result.ret == 9
    result.stdout.fnmatch_lines(
        ["UNDECIDED  exact_match mean >= 0.9   * of * questions have no score (* deselected)*"]
    )


def test_the_worker_that_tells_what_was_collected_may_be_dealt_no_test(nested: Project) -> None:
    """The first worker tells; here the second one is there first and takes the only test."""
    late = "import os, time\nif os.environ.get('PYTEST_XDIST_WORKER') == 'gw0':\n    time.sleep(1)\n"
    (nested.path / "conftest.py").write_text(late)
    result = nested.run("-n", "2", "-k", "test_other")
    assert result.ret == 9
    result.stdout.fnmatch_lines(["UNDECIDED*3 of 4 questions have no score (3 deselected)*"])


def test_two_that_disagree_are_a_usage_error(nested: Project) -> None:
    unit = nested.path / "tests" / "unit"
    (unit / "ragbench.toml").write_text('judge = "local"\n')
    (unit / "test_unit.py").write_text(TEST)
    for how in ([], ["-n", "2"]):
        result = nested.run(*how)
        assert result.ret == 4
        assert "rag/ragbench.toml and " in result.stderr.str()
        assert "unit/ragbench.toml both configure tests of this run, and disagree" in result.stderr.str()
    assert nested.run("tests/rag").ret == 0
    doctor = nested.pytester.run(sys.executable, "-m", "pytest_ragbench.cli", "doctor", "--offline")
    assert doctor.ret == 4
    (unit / "ragbench.toml").unlink()
    doctor = nested.pytester.run(sys.executable, "-m", "pytest_ragbench.cli", "doctor", "--offline")
    doctor.stdout.fnmatch_lines(["*configuration*tests/rag/ragbench.toml"])


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=["none", "n2"])
def test_a_file_that_only_the_collection_finds_is_refused(nested: Project, how: list[str]) -> None:
    """By the name of a package, pytest finds tests that no path leads to."""
    package = nested.path / "lib" / "shipped"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "test_shipped.py").write_text(TEST)
    (package / "ragbench.toml").write_text('[gates]\nexact_match = "mean >= 0.5"\n')
    nested.monkeypatch.setenv("PYTHONPATH", str(package.parent), prepend=os.pathsep)
    nested.monkeypatch.chdir(nested.path / "tests")
    result = nested.run("--pyargs", "shipped", *how)
    assert result.ret == 4
    assert "both configure tests of this run, and disagree" in result.stdout.str() + result.stderr.str()
    result.assert_outcomes(errors=4 if how else 0)  # a worker can't end the run: each test says it
