"""``[metrics.NAME]`` is held against what the run has registered, before anything is asked."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import MODES, Project
from tests.plugin.test_gates_of_own_metrics import CONFTEST
from tests.servers.rag_server import RagServer

OWN = CONFTEST.replace("def slips(sample):", "def slips(sample, *, times=1.0):").replace(
    "float(sample.answer)", "float(sample.answer) * times"
)
SLIPS = """\
import pytest
from pytest_ragbench import RagSample, assert_slips

def test_it():
    assert_slips(RagSample("What?", "0.5", ["a chunk"]), "0.9..1")
"""
OTHER = """\
from pytest_ragbench import RagSample, assert_metric

def test_other():
    assert_metric("exact_match", RagSample("A?", "a", ["c"], reference="a"), ">=1")
"""


@pytest.mark.parametrize("mode", ["none", "n2"])
def test_a_metric_of_another_folder_s_conftest_is_no_error(project: Project, mode: str) -> None:
    project.write(
        pyproject_toml="",
        ragbench_toml='store = "off"\n[metrics.slips]\ntimes = 2.0\n',
        **{"tests/own/conftest_py": OWN.replace('"lower"', '"higher"'), "tests/own/test_slips_py": SLIPS},
        **{"tests/other/test_other_py": OTHER},
    )
    for folder in ("tests/other", "tests/own", "tests"):
        result = project.run(folder, *MODES[mode])
        assert result.ret == 0, folder
        assert "slips'" not in result.stdout.str()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            "[metrics.faithfullness]\nvotes = 3\n",
            "*ragbench.toml:1: metrics.faithfullness: unknown metric 'faithfullness'; did you mean 'faithfulness'*",
        ),
        (
            "[metrics.context_recall]\n\nunitz = 'claims'\n",
            "*ragbench.toml:3: metrics.context_recall.unitz: context_recall has no option 'unitz'*'units'?*",
        ),
    ],
)
@pytest.mark.parametrize("mode", ["none", "n2"])
def test_a_typo_costs_no_call(project: Project, rag: RagServer, table: str, said: str, mode: str) -> None:
    # A test that asks for no other metric: no request of its would come upon the table.
    test = "def test_it(rag_sample):\n    assert rag_sample.answer\n"
    project.write(ragbench_toml=table, questions_csv="question\nA?\nB?\n", test_it_py=test)
    result = project.run("--rag-url", rag.url, "--ragbench-questions", "questions.csv", *MODES[mode])
    assert result.ret == 4
    assert rag.questions == []
    (result.stderr if mode == "none" else result.stdout).fnmatch_lines([said])


def test_a_metric_that_nobody_registers_is_a_warning(project: Project, rag: RagServer) -> None:
    test = "def test_it(rag_sample):\n    assert rag_sample.answer\n"
    project.write(
        ragbench_toml="[metrics.politeness_of_ours]\na = 1\n", questions_csv="question\nA?\n", test_it_py=test
    )
    result = project.run("--rag-url", rag.url, "--ragbench-questions", "questions.csv")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*ragbench.toml:1: metrics.politeness_of_ours: nothing has registered*'politeness_of_ours'*"]
    )
