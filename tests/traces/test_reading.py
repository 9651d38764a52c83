"""Questions out of traces, in the forms of three backends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.traces.reading import questions_from_traces


def otlp(trace: str, question: str, score: float) -> dict[str, Any]:
    def text(key: str, value: str) -> dict[str, Any]:
        return {"key": key, "value": {"stringValue": value}}

    top = {
        "traceId": trace,
        "spanId": "1",
        "attributes": [text("input.value", question), text("output.value", "A")],
    }
    documents = [
        text("openinference.span.kind", "RETRIEVER"),
        text("retrieval.documents.0.document.content", "C"),
    ]
    judged = [
        text("gen_ai.evaluation.name", "faithfulness"),
        {"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": score}},
    ]
    parts = [{"traceId": trace, "parentSpanId": "1", "attributes": each} for each in (documents, judged)]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [*parts, top]}]}]}


def phoenix(trace: str, question: str, label: str) -> dict[str, Any]:
    told = {"input": {"value": json.dumps({"question": question})}, "output": {"value": "A"}}
    documents = {"retrieval": {"documents": [{"document": {"content": "C"}}]}}
    note = {"name": "feedback", "result": {"label": label}}
    return {"context": {"trace_id": trace}, "attributes": {**told, **documents}, "annotations": [note]}


def langfuse(trace: str, question: str, value: float) -> dict[str, Any]:
    messages = {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": question}]}
    observed = [{"type": "RETRIEVER", "output": [{"page_content": "C"}]}]
    return {"id": trace, "input": messages, "output": {"answer": "A"}, "scores": [{"name": "user", "value": value}],
            "observations": observed}  # fmt: skip


@pytest.mark.parametrize(
    "entries",
    [
        [otlp("t1", "Why?", 0.2), otlp("t2", "How?", 0.9), otlp("t3", " why? ", 0.1)],
        [phoenix("t1", "Why?", "thumbs_down"), phoenix("t2", "How?", "good")],
        [langfuse("t1", "Why?", 0), langfuse("t2", "How?", 1)],
    ],
)
def test_bad_answers_become_questions_each_once(tmp_path: Path, entries: list[Any]) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    [found] = questions_from_traces(file)
    assert (found.question, found.tags) == ("Why?", ("regression",))
    assert (found.metadata["answer_then"], found.metadata["contexts_then"]) == ("A", ["C"])
    assert found.metadata["trace_id"] == "t1"
    assert len(questions_from_traces(file, every=True)) == 2


def test_secrets_do_not_come_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "planted-secret-0001")
    file = tmp_path / "traces.json"
    text = "key planted-secret-0001 or sk-test-FAKE-0000-abcd?"
    file.write_text(json.dumps([langfuse("t", text, 0)]), encoding="utf-8")
    [found] = questions_from_traces(file)
    assert "planted" not in found.question
    assert "FAKE" not in found.question


@pytest.mark.parametrize("text", ["no", '[{"a": 1}]', "[1]"])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.json"):
        questions_from_traces(file)
