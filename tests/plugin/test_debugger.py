"""``--pdb`` stops in the test, also where the error was raised within the package."""

from __future__ import annotations

import sys

from tests.plugin.conftest import Project

TEST = """
import pytest
from pytest_ragbench import RagSample, assert_metric

@pytest.fixture
def judge():
    def down(messages):
        raise RuntimeError("down")
    return down

def ask(sample):
    here = "in the helper"
    assert_metric("faithfulness", sample, ">=0.5")

def test_it(judge):
    ask(RagSample(question="q", answer="It costs 5 euros.", contexts=["It costs 5 euros."]))
"""


def test_a_judge_error_stops_where_the_sample_is_in_scope(project: Project) -> None:
    project.write(test_a_py=TEST)
    command = [sys.executable, "-m", "pytest", "--pdb", "-p", "no:cacheprovider"]
    result = project.pytester.run(*command, stdin=b"p here, sample.answer\nc\n")
    result.stdout.fnmatch_lines(["*('in the helper', 'It costs 5 euros.')"])
    assert result.ret == 8
