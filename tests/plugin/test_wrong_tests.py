"""What is wrong with a test is said before the service, or a judge, is asked for it."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project
from tests.servers.rag_server import RagServer

TESTS = """
import pytest
from pytest_ragbench import assert_expected, assert_faithfulness, assert_metric, assert_retrieval, assert_search_rag

pytestmark = pytest.mark.rag_questions("questions.csv")

def test_direction(rag_sample):
    assert_faithfulness(rag_sample, "<=0.8")

def test_grade(rag_sample):
    assert_search_rag(rag_sample, groundedness="<=0.5")

def test_metric(rag_sample):
    assert_metric("faithfullness", rag_sample, ">=0.8")

def test_threshold(rag_sample):
    assert_faithfulness(rag_sample, ">=0,,8")

def test_option(rag_sample):
    assert_metric("token_f1", rag_sample, ">=0")
    assert_faithfulness(rag_sample, ">=0.8", strictnes=3)

def test_argument(rag_sample):
    assert_faithfulness(rag_sample, treshold=">=0.8")

def test_expected(rag_sample):
    assert_expected(rag_sample, contains="A", json_schema="schemas/answr.json")

def test_expectation(rag_sample):
    assert_expected(rag_sample, contians="A", equals=rag_sample.question)

def test_set(rag_samples):
    assert_retrieval(rag_samples, "mrrr", ">=0.4")

def test_refused_on_purpose(rag_sample):
    with pytest.raises(pytest.UsageError):
        raise pytest.UsageError
    if rag_sample.answer == "never":
        assert_metric("faithfullness", rag_sample, ">=0.8")
"""


@pytest.mark.parametrize("options", [[], ["--ragbench-lookahead=0", "-n", "2"]], ids=["one", "n2"])
def test_typos_cost_no_call(project: Project, rag: RagServer, options: list[str]) -> None:
    project.write(test_a_py=TESTS, questions_csv="question\nA?\nB?\nC?\n")
    result = project.run("--rag-url", rag.url, "-k", "not purpose", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.assert_outcomes(errors=25)
    text = result.stdout.str()
    for said in (
        "'<=0.8' for faithfulness points the wrong way",
        "'<=0.5' for groundedness points the wrong way",
        "unknown metric 'faithfullness'; did you mean 'faithfulness'",
        "unreadable threshold '>=0,,8'",
        "faithfulness has no option 'strictnes'",
        "faithfulness has no option 'treshold'",
        "assert_expected: json_schema: schemas/answr.json: no such file",
        "assert_expected: unknown expectation 'contians'; did you mean 'contains'",
        "unknown metric 'mrrr'; did you mean 'mrr'",
    ):
        assert said in text, said
    assert rag.questions == []


def test_what_may_not_be_reached_is_for_the_test_to_complain_of(project: Project, rag: RagServer) -> None:
    project.write(test_a_py=TESTS, questions_csv="question\nA?\n")
    result = project.run("--rag-url", rag.url, "-k", "purpose")
    result.assert_outcomes(passed=1)
