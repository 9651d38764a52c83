"""Gates for metrics that a conftest.py below the start of the run registers."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import MODES, Project

CONFTEST = """\
from pytest_ragbench import metric

@metric("slips", tier="generation", needs="answer", direction="lower")
def slips(sample):
    \"""The number that the answer is.\"""
    return float(sample.answer)
"""
TESTS = """\
import pytest
from pytest_ragbench import RagSample, assert_slips

@pytest.mark.parametrize("place", range(30))
def test_it(place):
    assert_slips(RagSample(f"What is {place}?", "0.5", ["a chunk"], id=f"q{place}"), "<=1")
"""


def written(project: Project, gates: str) -> Project:
    configured = f'store = "off"\n[gates]\n{gates}\n'
    files = {"conftest_py": CONFTEST, "test_slips_py": TESTS, "ragbench_toml": configured}
    project.write(pyproject_toml="", **{f"tests/rag/{name}": text for name, text in files.items()})
    return project


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_they_are_decided_wherever_pytest_starts(project: Project, mode: str) -> None:
    written(project, 'slips = "<= 0.2"')
    for start in ([], ["tests"], ["tests/rag"]):
        result = project.run(*start, *MODES[mode])
        result.stdout.fnmatch_lines(["FAIL       slips <= 0.2   mean 0.50 over 30 questions*"])
        assert result.ret == 1


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ('slips = ">= 0.2"', "*slips >= 0.2*lower is better*"),
        ('slipps = "<= 0.2"', "*unknown metric 'slipps'*"),
    ],
)
@pytest.mark.parametrize("mode", ["none", "n2"])
def test_a_wrong_one_is_refused_before_anything_is_scored(
    project: Project, gate: str, said: str, mode: str
) -> None:
    result = written(project, gate).run(*MODES[mode])
    assert result.ret == 4
    assert "passed" not in result.stdout.str()
    (result.stderr if mode == "none" or "slipps" in gate else result.stdout).fnmatch_lines([said])
