"""Judges that disagree about a threshold, in whole runs: what decides, and where it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.servers.openai_server import OpenAIServer, Reply, error

TOML = """\
store = "off"
judges = ["honest", "flatterer"]
[providers.honest]
base_url = "{honest}"
model = "m"
api_key_env = "FAKE_KEY"
retry = {{attempts = 1}}
[providers.flatterer]
base_url = "{flatterer}"
model = "m"
api_key_env = "FAKE_KEY"
[panel]
{panel}
"""
TESTS = """\
import pytest_ragbench as rb

SAMPLE = rb.RagSample("How long?", "Thirty days.", ["It takes ten days."], id="q1")

def test_one():
    rb.assert_metric("search_rag", SAMPLE, ">=0.5")

def test_grades():
    rb.assert_search_rag(SAMPLE, groundedness=">=0.5")

def test_set():
    rb.assert_over([SAMPLE], "search_rag", ">=0.5")

def test_without_a_threshold():
    assert rb.score("search_rag", SAMPLE).value == 0.55
"""
SAYS = "the judges disagree about >=0.5 (honest:m 0.10, flatterer:m 1.00); {decides}"


def grading(grade: float) -> Any:
    return {
        "answer_correctness": 1.0,
        "groundedness": grade,
        "error_message": "" if grade > 0.5 else "ten, not 30",
    }


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    monkeypatch.setenv("FAKE_KEY", "k")
    with OpenAIServer([Reply(grading(0.1))]) as honest, OpenAIServer([Reply(grading(1.0))]) as flatterer:
        yield {"honest": honest.url, "flatterer": flatterer.url}


def test_the_stricter_of_two_decides(project: Project, both: list[str], servers: dict[str, str]) -> None:
    project.write(ragbench_toml=TOML.format(panel="", **servers), test_a_py=TESTS)
    result = project.run("--ragbench-json=out.json", "--ragbench-html=out.html", *both)
    result.assert_outcomes(passed=1, failed=3)
    assert result.ret == 1
    says = SAYS.format(decides="the stricter one decides")
    result.stdout.fnmatch_lines_random(
        [
            f"*search_rag 0.10, wanted >=0.5: {says}; ten, not 30",
            "*0.10 honest:m   misses",
            "*1.00 flatterer:m   passes",
            f"*groundedness 0.10, wanted >=0.5: the judges disagree about groundedness {says[26:]}; ten, not 30",
            "*search_rag 0.10, wanted >=0.5: mean of 1 of 1, judges disagree on 1",
            f"*0.10 q1   {says}; ten, not 30",
            "*panel: search_rag: the judges disagree about the threshold on *",
            f"*panel: q1 search_rag 0.10: {says}",
        ]
    )
    report = project.report()
    [one] = [each for each in report["results"] if each["test"].endswith("test_one")]
    [score] = one["scores"]
    assert (score["value"], score["passed"]) == (0.1, False)
    assert (score["details"]["disagreement"], score["details"]["judges_passed"]) == (says, 1)
    assert next(each for each in report["panels"] if each["metric"] == "search_rag")["disagreed"] == 1
    assert "disagree about" in (project.path / "out.html").read_text()


YAML = """\
tests:
  - {name: sample, questions: [{id: q1, question: How long?}], thresholds: {search_rag: ">=0.5"}}
  - {name: set, questions: [{id: q1, question: How long?}], over: {search_rag: ">=0.5"}}
"""
CONFTEST = """\
import pytest
import pytest_ragbench as rb

@pytest.fixture
def retriever():
    return lambda question: rb.RagSample(question, "Thirty days.", ["It takes ten days."])
"""


def test_in_yaml(project: Project, both: list[str], servers: dict[str, str]) -> None:
    project.write(ragbench_toml=TOML.format(panel="", **servers), a_rag_yaml=YAML, conftest_py=CONFTEST)
    (project.path / "a_rag.yaml").rename(project.path / "a.rag.yaml")
    result = project.run(*both)
    result.assert_outcomes(failed=2)
    says = SAYS.format(decides="the stricter one decides")
    result.stdout.fnmatch_lines_random(
        [f"*search_rag 0.10, wanted >=0.5: {says}; ten, not 30", f"*panel: q1 *: {says}"]
    )


@pytest.mark.parametrize(
    ("aggregate", "decides"), [("mean", "their mean counts"), ("max", "the highest score counts")]
)
def test_unless_configured(project: Project, servers: dict[str, str], aggregate: str, decides: str) -> None:
    """Shown all the same."""
    project.write(
        ragbench_toml=TOML.format(panel=f'aggregate = "{aggregate}"', **servers),
        test_a_py=TESTS.partition("def test_set")[0],
    )
    result = project.run()
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines_random([f"*panel: q1 *: {SAYS.format(decides=decides)}"])


def test_a_consensus_of_one_is_a_judge_error(
    project: Project, both: list[str], servers: dict[str, str]
) -> None:
    with OpenAIServer([error(400, "out of order")]) as down:
        toml = TOML.format(panel='aggregate = "consensus"', **{**servers, "honest": down.url})
        project.write(ragbench_toml=toml, test_a_py=TESTS.partition("def test_grades")[0])
        result = project.run(*both)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines_random(
        ["*JudgeError: the panel has no consensus, since only one judge gave a score: flatterer:m 1.00*"]
    )
    assert result.ret not in (0, 1)
