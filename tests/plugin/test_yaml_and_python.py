"""One suite in Python and in YAML: the same outcomes, counts and messages."""

from __future__ import annotations

from typing import Any

from tests.plugin.conftest import Project

QUESTIONS = """\
{"id": "a", "question": "How long?", "reference": "30 days.", "relevant_urls": ["http://w/1"], "relevant_ids": ["d1"]}
{"id": "b", "question": "What else?", "reference": "A receipt.", "relevant_urls": null}
{"question": "Who?", "reference": "A bot.", "relevant_urls": ["http://w/2"], "relevant_ids": ["d2"]}
"""

CONFTEST = """\
import pytest

@pytest.fixture
def retriever():
    chunk = {"id": "d1", "text": "You have 30 days.", "url": "http://w/1"}
    return lambda question: {"answer": "30 days.", "contexts": [chunk]}
"""

PYTHON = """\
import pytest
from pytest_ragbench import assert_expected, assert_over, assert_quality, assert_retrieval, assert_rougeL

pytestmark = pytest.mark.rag_questions("q.jsonl")

@pytest.mark.parametrize("metric", ["url_mrr", "hit_rate@3"])
def test_by_retrieval(rag_samples, metric):
    assert_retrieval(rag_samples, metric)

@pytest.mark.parametrize("metric", ["url_mrr", "hit_rate@3"])
def test_by_over(rag_samples, metric):
    assert_over(rag_samples, metric)

def test_answer(rag_sample):
    assert_rougeL(rag_sample, 0.5, part="recall")

def test_words(rag_sample):
    assert_expected(rag_sample, contains="30", max_latency=60)
"""

YAML = """\
tests:
  - {name: set-a, questions: q.jsonl, over: [url_mrr]}
  - {name: set-b, questions: q.jsonl, over: [hit_rate@3]}
  - {name: answer, questions: q.jsonl, thresholds: {rougeL: {threshold: 0.5, part: recall}}}
  - {name: words, questions: q.jsonl, expect: {contains: "30", max_latency: 60}}
"""


def told(result: dict[str, Any]) -> tuple[str, str, str, str]:
    """All that a report says of a test, but for its name and how long it took."""
    scores = [
        {name: value for name, value in each.items() if name not in ("duration", "usage", "cached")}
        for each in result["scores"]
    ]
    message = (result.get("message") or "").partition("trace")[0]
    return result["outcome"], str(result.get("kind")), message, str(scores)


def test_one_set_through_three_doors_and_one_suite_in_two_languages(project: Project) -> None:
    limits = '[thresholds]\nurl_mrr = ">=0.6"\n"hit_rate@3" = ">=0.4"\n'
    project.write(test_a_py=PYTHON, conftest_py=CONFTEST, q_jsonl=QUESTIONS, ragbench_toml=limits)
    (project.path / "s.rag.yaml").write_text(YAML)
    project.run("--ragbench-json", "out.json")
    found: dict[str, list[tuple[str, str, str, str]]] = {
        "retrieval": [],
        "over": [],
        "python": [],
        "yaml": [],
    }
    for result in project.report()["results"]:
        test = result["test"]
        door = "retrieval" if "by_retrieval" in test else "over" if "by_over" in test else "python"
        door = door if ".py" in test else "over yaml" if "set-" in test else "yaml"
        found.setdefault(door, []).append(told(result))
    assert [len(found[door]) for door in ("retrieval", "over", "over yaml", "python", "yaml")] == [
        2,
        2,
        2,
        6,
        6,
    ]
    assert sorted(found["retrieval"]) == sorted(found["over"]) == sorted(found["over yaml"])
    assert sorted(found["python"]) == sorted(found["yaml"])
    assert (
        {outcome for outcome, *_ in found["over"]}
        == {outcome for outcome, *_ in found["yaml"]}
        == {"passed", "failed"}
    )
    assert all("n_without_relevant" in scores for *_, scores in found["over"])
