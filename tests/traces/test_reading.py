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


def phoenix_otlp(trace: str, span: str, question: str) -> dict[str, Any]:
    """As ``GET /v1/projects/NAME/spans/otlpv1`` of Phoenix 20.26 replies: every type of a value, one not null."""

    def text(key: str, value: str) -> dict[str, Any]:
        kinds = ("array", "bool", "bytes", "double", "int", "kvlist")
        return {"key": key, "value": {**{f"{kind}_value": None for kind in kinds}, "string_value": value}}

    told = {"input.value": question, "output.value": "A", "retrieval.documents.0.document.content": "C"}
    return {"trace_id": trace, "span_id": span, "parent_span_id": None, "kind": "SPAN_KIND_INTERNAL",
            "attributes": [text(*each) for each in told.items()]}  # fmt: skip


def observed(of: str, question: str, **names: str) -> list[dict[str, Any]]:
    """Rows of Langfuse's observations, with inputs as JSON text."""
    parent, own = names["parent"], names["trace"]
    top = {"id": f"o-{of}", own: of, parent: None, "type": "CHAIN", "name": "ask",
           "input": json.dumps({"question": question}), "output": json.dumps({"answer": "A"})}  # fmt: skip
    found = {"id": f"r-{of}", own: of, parent: f"o-{of}", "type": "RETRIEVER", "name": "find",
             "input": question, "output": json.dumps({"documents": [{"page_content": "C"}]})}  # fmt: skip
    return [found, top]


SNAKE = {"trace": "trace_id", "parent": "parent_observation_id", "text": "string_value"}
CAMEL = {"trace": "traceId", "parent": "parentObservationId", "text": "stringValue"}


@pytest.mark.parametrize(
    ("feedback", "spans"),
    [
        (
            {
                "data": [
                    {"span_id": "s1", "name": "feedback", "result": {"label": "thumbs_down", "score": None}}
                ]
            },
            {"data": [phoenix_otlp("t1", "s1", "Why?"), phoenix_otlp("t2", "s2", "How?")]},
        ),
        *(
            (
                [
                    {
                        "id": "1",
                        each["trace"]: "t1",
                        "name": "user",
                        "value": None,
                        each["text"]: "incorrect",
                    },
                    {"id": "2", each["trace"]: "t2", "name": "user", "value": 1, each["text"]: None},
                ],
                observed("t1", "Why?", **each) + observed("t2", "How?", **each),
            )
            for each in (SNAKE, CAMEL)
        ),
    ],
)
def test_feedback_in_a_file_of_its_own(tmp_path: Path, feedback: Any, spans: Any) -> None:
    files = [tmp_path / "feedback.json", tmp_path / "spans.json"]
    for file, told in zip(files, (feedback, spans), strict=True):
        file.write_text(json.dumps(told), encoding="utf-8")
    for order in (files, files[::-1]):
        [found] = questions_from_traces(*order)
        assert (found.question, found.metadata["answer_then"]) == ("Why?", "A")
        assert (found.metadata["trace_id"], found.metadata["contexts_then"]) == ("t1", ["C"])
    with pytest.raises(UsageError, match=r"feedback\.json: no traces, only what was said of them"):
        questions_from_traces(files[0])


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
