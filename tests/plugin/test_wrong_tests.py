"""What is wrong with a test is said before the service, or a judge, is asked for it."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project
from tests.servers.rag_server import RagServer

TESTS = """
import pytest
import pytest_ragbench as rb
from pytest_ragbench import assert_expected, assert_faithfulness, assert_metric, assert_retrieval, assert_search_rag

pytestmark = pytest.mark.rag_questions("questions.csv")

def test_direction(rag_sample):
    assert_faithfulness(rag_sample, "<=0.8")

def test_grade(rag_sample):
    assert_search_rag(rag_sample, groundedness="<=0.5")

def test_metric(rag_sample):
    assert_metric("faithfullness", rag_sample, ">=0.8")

def test_helper(rag_sample):
    rb.assert_answer_relevency(rag_sample, ">=0.8")

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
    result.assert_outcomes(errors=28)
    text = result.stdout.str()
    for said in (
        "'<=0.8' for faithfulness points the wrong way",
        "'<=0.5' for groundedness points the wrong way",
        "unknown metric 'faithfullness'; did you mean 'faithfulness'",
        "unknown metric 'answer_relevency'; did you mean 'answer_relevancy'",
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


def marked(mark: str, body: str = "pass", fixture: str = "rag_question") -> str:
    return f"import pytest\n\n@pytest.mark.{mark}\ndef test_it({fixture}):\n    {body}\n"


def test_a_mark_that_can_not_be_meant_says_what_can(project: Project) -> None:
    project.write(
        questions_csv="id,question,tags\na,A?,x\nb,B?,y\nc,C?,\n",
        untagged_csv="question\nA?\n",
        reserved_csv="question,tags\nA?,xdist_group\n",
        private_csv="question,tags\nA?,_x\n",
        spaced_csv="question,tags\nA?,what is it\n",
        limits_csv="question,threshold_faithfulness\nA?,=>0.8\n",
        talks_csv="question\nA?\n",
        test_01_py=marked("rag_questions('a.csv', 'b.csv')"),
        test_02_py=marked("rag_questions"),
        test_03_py=marked("rag_questions('questions.csv', tags='z')"),
        test_04_py=marked("rag_questions('untagged.csv', tags=['z', 'a'])"),
        test_05_py=marked("rag_questions('questions.csv', sheet=3)"),
        test_06_py=marked("rag_questions('reserved.csv')"),
        test_07_py=marked("rag_questions('private.csv')"),
        test_08_py=marked("rag_questions('spaced.csv')"),
        test_09_py=marked("rag_questions('limits.csv')"),
        test_10_py=marked("rag_questions('talks.csv')", fixture="rag_session"),
        test_11_py=marked("rag_questions([{'question': 'A?', 'tags': 'flaky'}])"),
    )
    result = project.run("--ragbench-json=out.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = " ".join(result.stdout.str().split())
    for said in (
        "test_01.py::test_it: rag_questions takes one path, got ('a.csv', 'b.csv'); use a directory or a pattern",
        "test_02.py::test_it: the rag_questions mark names no file, and ragbench_questions is not set",
        "questions.csv:2: no question here has a tag of ['z']; tags: x, y",
        "untagged.csv:2: no question here has a tag of ['a', 'z']; tags: none",
        "test_05.py::test_it: rag_questions('",
        "unexpected keyword argument 'sheet'",
        "reserved.csv:2: tag 'xdist_group' can't become a mark",
        "private.csv:2: tag '_x' can't become a mark",
        "spaced.csv:2: tag 'what is it' can't become a mark",
        "limits.csv:2: threshold of faithfulness: ",
        "talks.csv:2: rag_conversation needs a session for every question",
        "tag 'flaky' can't become a mark",
    ):
        assert said in text, said
    # An error of the author's own beside them is no usage error of ours.
    project.write(test_12_py="import nowhere_to_be_found\n")
    assert project.run().ret == pytest.ExitCode.INTERRUPTED


def test_tags_choose_and_a_test_may_bring_its_own_questions(project: Project) -> None:
    def own(values: str) -> str:
        return (
            f"import pytest\n\n@pytest.mark.parametrize(**{values})\n"
            "def test_it(rag_question, rag_sample):\n    assert rag_sample.answer == rag_sample.question + '!'\n"
        )

    project.write(
        conftest_py="import pytest\n\n@pytest.fixture\ndef retriever():\n"
        "    return lambda question: {'answer': question + '!', 'contexts': ['c']}\n",
        questions_csv='id,question,tags\na,A?,"x,long-name"\nb,B?,y\nc,C?,\n',
        test_1_py=marked("rag_questions('questions.csv', tags='x')"),
        test_2_py=marked("rag_questions(path='questions.csv', tags=['y', 'x'])"),
        test_3_py=own(
            "{'argnames': 'rag_question', 'argvalues': ['Text?', {'question': 'Mapping?', 'id': 'own'}]}"
        ),
        test_4_py=own("{'argnames': 'rag_question', 'argvalues': [3]}"),
        test_5_py=marked(
            "parametrize(argnames='other, rag_question', argvalues=[(1, 'A?')])",
            fixture="other, rag_question",
        ),
    )
    # Neither the questions of the configuration nor those of a mark come on top of what a test brings itself.
    result = project.run(
        "-v", "--strict-markers", "--ragbench-json=out.json", "--ragbench-questions=questions.csv"
    )
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    ends = [line.split()[:2] for line in result.stdout.lines if line.startswith("test_") and "::" in line]
    assert [f"{name.replace('::test_it', '')} {end}" for name, end in ends] == [
        "test_1.py[a] PASSED",
        "test_2.py[a] PASSED",
        "test_2.py[b] PASSED",
        "test_3.py[Text?] PASSED",
        "test_3.py[rag_question1] PASSED",
        "test_4.py[3] ERROR",
        "test_5.py[1-A?] PASSED",
    ]
    assert {record["question_id"] for record in project.report()["results"]} >= {"Text?", "own"}
    result.stdout.fnmatch_lines(
        ["*rag_question must be a string, a mapping of columns or a Question, got int*"]
    )
    project.run("-m", "long-name or y", "-q").assert_outcomes(passed=3, deselected=4)
