"""Results and question sets as RAGAS, DeepEval, LangSmith and promptfoo write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import Question, load_questions


def load(path: Path, name: str, content: Any) -> list[Question]:
    file = path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return load_questions(file)


def promptfoo_result(prompt: int, output: Any) -> dict[str, Any]:
    return {
        "promptIdx": prompt,
        "testIdx": 0,
        "vars": {"question": "How long?", "context": ["30 days."], "reference": "30 days"},
        "response": {"output": output, "tokenUsage": {"total": 3}},
        "success": True,
        "latencyMs": 12,
    }


def promptfoo(*results: dict[str, Any]) -> dict[str, Any]:
    return {
        "evalId": "eval-1",
        "results": {"version": 3, "results": list(results), "stats": {}},
        "config": {},
    }


def test_promptfoo_results(tmp_path: Path) -> None:
    [one] = load(tmp_path, "p.json", promptfoo(promptfoo_result(0, "It is 30 days.")))
    assert (one.question, one.answer, one.reference, one.contexts) == (
        "How long?", "It is 30 days.", "30 days", ("30 days.",),
    )  # fmt: skip
    first, second = load(tmp_path, "q.json", promptfoo(promptfoo_result(0, "A"), promptfoo_result(1, "B")))
    assert [(each.id, each.answer) for each in (first, second)] == [("0-0", "A"), ("0-1", "B")]


def test_promptfoo_results_of_a_provider_that_returns_an_object(tmp_path: Path) -> None:
    result = promptfoo_result(0, {"answer": "It is 30 days."})
    [one] = load(tmp_path, "p.json", promptfoo(result))
    assert one.answer == "It is 30 days."


@pytest.mark.parametrize("wrapped", [True, False])
def test_deepeval_test_runs(tmp_path: Path, wrapped: bool) -> None:
    run = {
        "testFile": "test_bot.py",
        "testCases": [
            {
                "name": "test_case_0", "input": "How long?", "actualOutput": "30 days.", "expectedOutput": "30 days",
                "context": ["ideal"], "retrievalContext": ["found"], "success": True, "metricsData": [],
            }
        ],
        "metricsScores": [],
    }  # fmt: skip
    [one] = load(tmp_path, "d.json", {"testRunData": run} if wrapped else run)
    assert (one.answer, one.reference) == ("30 days.", "30 days")
    assert (one.contexts, one.reference_contexts) == (("found",), ("ideal",))


def test_deepeval_datasets(tmp_path: Path) -> None:
    golden = {"input": "How long?", "actual_output": None, "expected_output": "30 days", "context": ["ideal"],
              "retrieval_context": None, "source_file": "a.md", "comments": None}  # fmt: skip
    [one] = load(tmp_path, "d.json", [golden])
    assert (one.reference, one.reference_contexts, one.answer, one.contexts) == (
        "30 days",
        ("ideal",),
        None,
        None,
    )


def test_langsmith_csv_has_objects_in_its_cells(tmp_path: Path) -> None:
    text = (
        "id,inputs,outputs,reference_outputs\n"
        '1,"{""question"": ""How long?""}","{""answer"": ""A month."", ""documents"": [""c""]}",'
        '"{""answer"": ""30 days""}"\n'
    )
    [one] = load(tmp_path, "l.csv", text)
    assert (one.question, one.answer, one.reference) == ("How long?", "A month.", "30 days")
    assert one.contexts == ("c",)


def test_langsmith_examples(tmp_path: Path) -> None:
    [one] = load(tmp_path, "l.jsonl", {"inputs": {"question": "How long?"}, "outputs": {"answer": "30 days"}})
    assert (one.reference, one.answer) == ("30 days", None)


@pytest.mark.parametrize(
    "cell", ["\"['30 days.', 'two']\"", "\"['30 days.'\n 'two']\"", '"[""30 days."", ""two""]"']
)
def test_ragas_tables_with_lists_written_as_text(tmp_path: Path, cell: str) -> None:
    text = f"user_input,retrieved_contexts,response,reference,faithfulness\nHow long?,{cell},A month.,30 days,1.0\n"
    [one] = load(tmp_path, "r.csv", text)
    assert one.contexts == ("30 days.", "two")
    assert one.metadata["faithfulness"] == "1.0"
