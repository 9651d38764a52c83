"""Tests without Python, as a user runs them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from tests.plugin.conftest import Project
from tests.servers.rag_server import RagServer, default_answer, rag_server

SUITE = """\
defaults:
  tags: [smoke]
tests:
  - name: answers
    thresholds:
      faithfulness: ">=0.8"
    expect:
      not_contains: passport
    questions:
      - question: What do I need to return a product?
        id: receipt
        tags: [returns]
        expect:
          contains: receipt
          cites: d2
      - Что нужно для возврата?
    over:
      answer_relevancy_holistic: 0.3
  - name: from a file
    questions: questions.csv
    thresholds: [faithfulness]
"""

FILES = {
    "questions_csv": "id,question,threshold_faithfulness\nq1,Is a receipt needed?,>=0.5\n"
    "返金,返品には何が必要ですか?,\n",
    "ragbench_toml": '[thresholds]\nfaithfulness = ">=0.9"\n',
}


def citing(question: str) -> dict[str, Any]:
    return {**default_answer(question), "answer": "A receipt is needed to return a product [2]."}


def write(project: Project, suite: str = SUITE, **files: str) -> None:
    (project.path / "support.rag.yaml").write_text(suite, encoding="utf-8")
    project.write(**files)


def test_a_directory_of_them_needs_nothing_but_pytest(project: Project, both: list[str]) -> None:
    write(project, **FILES)
    with rag_server(citing) as server:
        result = project.run(
            "--rag-url", server.url, "--ragbench-json", "out.json", "--junitxml", "j.xml", *both
        )
    result.assert_outcomes(passed=5)
    assert len(server.questions) == len(set(server.questions)) == 4, "each question is asked once"
    report = project.report()
    assert {record["test"] for record in report["results"]} == {
        "support.rag.yaml::answers[receipt]",
        "support.rag.yaml::answers[Что-нужно-для-возврата]",
        "support.rag.yaml::answers-over",
        "support.rag.yaml::from-a-file[q1]",
        "support.rag.yaml::from-a-file[返金]",
    }
    cases = ET.parse(project.path / "j.xml").getroot().iter("testcase")
    assert {case.get("name") for case in cases} >= {"answers[receipt]", "from-a-file[返金]"}


def test_a_miss_is_said_like_that_of_a_python_test(project: Project, rag: RagServer) -> None:
    write(project, **FILES)
    result = project.run("--rag-url", rag.url, "-k", "receipt", "--ragbench-json", "out.json")
    assert result.ret == 1
    text = result.stdout.str()
    assert "E   the answer does not cite 'd2'" in text
    assert "(support.rag.yaml:10)" in text
    assert "hidden" not in text
    assert "yaml_files.py" not in text
    [record] = project.report()["results"]
    assert (record["outcome"], record["kind"]) == ("failed", "quality")
    assert record["scores"][0]["metric"] == "faithfulness"


def test_marks_ids_and_tiers_select(project: Project) -> None:
    write(project, **FILES)
    with rag_server(citing) as server:
        url = ["--rag-url", server.url]
        by_id = ["support.rag.yaml::answers[receipt]", "support.rag.yaml::from-a-file[返金]"]
        project.run(*url, "-m", "returns", *by_id).assert_outcomes(passed=1, deselected=1)
        project.run(*url, "--ragbench-tier", "retrieval").assert_outcomes(deselected=5)


def test_an_outage_is_an_error(project: Project) -> None:
    write(project, **FILES)
    with rag_server(lambda question: (500, "text/plain", "down")) as server:
        result = project.run("--rag-url", server.url, "-k", "receipt", "--ragbench-json", "out.json")
    assert result.ret == 8
    assert [record["kind"] for record in project.report()["results"]] == ["endpoint"]


def test_what_is_wrong_is_said_with_its_line(project: Project) -> None:
    write(project, SUITE.replace("thresholds:", "thresolds:").replace("cites: d2", "sites: d2"), **FILES)
    result = project.run("--rag-url", "http://127.0.0.1:9")
    assert result.ret == 4
    result.stdout.fnmatch_lines(["support.rag.yaml:5: unknown key 'thresolds'; did you mean 'thresholds'?*"])


PARAMETRISED = """\
retrievers:
  good: bots:good
  bad: bots:bad
judges:
  strict: bots:strict
questions: [How long?]
thresholds: {search_rag: 0.5}
expect: {retrieves: d1}
"""

BOTS = """\
def good(question):
    return {"answer": "30 days.", "contexts": [{"id": "d1", "text": "30 days."}]}

def bad(question):
    return {"answer": "I don't know.", "contexts": [{"id": "d9", "text": "Nothing."}]}
"""


def test_each_retriever_is_a_parameter(project: Project) -> None:
    write(
        project,
        PARAMETRISED.replace("judges:\n  strict: bots:strict", "judges: {local: local}"),
        bots_py=BOTS,
    )
    result = project.run("-v", "--ragbench-lookahead", "4", "-n", "2")
    result.assert_outcomes(passed=1, failed=1)
    assert "support.rag.yaml::support[How-long-good-local]" in result.stdout.str()
    assert "'d1' is not among the retrieved chunks" in result.stdout.str()


def test_fixtures_of_the_project_are_used_and_skip_and_xfail(project: Project) -> None:
    write(
        project,
        """\
tests:
  - {questions: [How long?], thresholds: {search_rag: 0.9}, fixtures: noted}
  - {questions: [a], expect: {contains: thirty}, skip: not ready}
  - {questions: [b], expect: {contains: zebra}, xfail: known}
""",
        conftest_py="""\
import pytest

@pytest.fixture
def noted():
    print("noted was set up")

@pytest.fixture
def judge():
    return lambda messages: '{"answer_correctness": 1, "groundedness": 1, "error_message": ""}'

@pytest.fixture
def retriever():
    return lambda question: ("It takes thirty days.", ["It takes thirty days."])
""",
    )
    result = project.run("-s", "--ragbench-json", "out.json")
    result.assert_outcomes(passed=1, skipped=1, xfailed=1)
    assert result.stdout.str().count("noted was set up") == 1
    [score] = project.report()["results"][0]["scores"]
    assert score["judge"] == "judge function"


ABSTAINING = """\
questions:
  - {question: How long?, id: long, relevant_urls: ["http://w/1"], reference: It takes thirty days.}
  - {question: On Mars?, id: mars, should_abstain: true}
  - {question: Invented?, id: invented, should_abstain: true}
thresholds: {faithfulness: 0.5}
over: {faithfulness: 0.5, url_mrr: 0.5, "url_hit_rate@5": 0.5}
"""

ANSWERS = """\
import pytest

@pytest.fixture
def retriever():
    chunk = {"id": "d1", "text": "It takes thirty days.", "url": "http://w/1"}
    declined = {"answer": "I don't know.", "contexts": []}
    answered = {"answer": "It takes thirty days.", "contexts": [chunk]}
    return lambda question: answered if question in ("How long?", "Invented?") else declined
"""


def test_a_right_refusal_passes_without_a_word_and_is_left_out_of_means(
    project: Project, both: list[str]
) -> None:
    write(project, ABSTAINING,
          conftest_py=ANSWERS)  # fmt: skip
    result = project.run("--ragbench-json", "out.json", *both)
    result.assert_outcomes(passed=3, failed=1)
    text = result.stdout.str()
    assert "E   the answer does not decline to answer" in text
    assert "faithfulness over a set leaves out 1 right refusal" in text
    assert text.count("without relevant urls") == 1
    assert "url_mrr, url_hit_rate@5 over a set leave out 2 questions without relevant urls" in text
    [over] = [each for each in project.report()["results"] if each["test"].endswith("::support-over")]
    details = {score["metric"]: score["details"] for score in over["scores"]}
    assert (details["faithfulness"]["n_total"], details["faithfulness"]["n_right_refusals"]) == (2, 1)
    assert (details["url_mrr"]["n_total"], details["url_mrr"]["n_without_relevant_urls"]) == (1, 2)


def test_abstains_beside_a_metric_of_answers_is_no_error(project: Project) -> None:
    write(project, "questions: [On Mars?]\nexpect: {abstains: true}\nthresholds: {faithfulness: 0.5}\n",
          conftest_py=ANSWERS)  # fmt: skip
    project.run().assert_outcomes(passed=1)


def test_a_file_without_rag_in_its_name_is_told_so(project: Project) -> None:
    (project.path / "tests.yaml").write_text("questions: [q]\nthresholds: {rouge1: 0.5}\n")
    (project.path / "support.yaml").write_text("tests:\n  - {questions: [q], expect: {contains: a}}\n")
    (project.path / "test_data.yaml").write_text(
        "questions:\n  - question: q\n    thresholds: {rouge1: 0.5}\n"
    )
    named = project.run("support.yaml", "--junitxml", "j.xml")
    assert named.ret == 4
    assert "rename it to support.rag.yaml" in named.stdout.str()
    found = project.run()
    assert "rename it to tests.rag.yaml" in found.stdout.str()
    assert "test_data" not in found.stdout.str(), "a question file"
