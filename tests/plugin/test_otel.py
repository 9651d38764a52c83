"""A run sent by OTLP: into a receiver on loopback, and into nothing."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Project
from tests.servers.otlp_server import attributes, otlp_server
from tests.servers.rag_server import RagServer

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

TESTS = """\
import pytest
from pytest_ragbench import assert_faithfulness, assert_metric

def judge(messages):
    usage = {"prompt_tokens": 100, "completion_tokens": 20}
    return {"content": '{"grade": 1.0, "reason": "so"}', "model": "m", "usage": usage}

ASKED = "What do I need to return a product {}, planted-secret-0001?"

@pytest.mark.rag_questions([{"id": f"q{n}", "question": ASKED.format(n)} for n in range(3)])
def test_answer(rag_sample):
    assert_faithfulness(rag_sample, ">=0.8")
    if rag_sample.id == "q1":
        assert_metric("answer_relevancy_holistic", rag_sample, ">=0.5", judge=judge)
    assert rag_sample.id != "q2"
"""


def test_a_run_is_seen_by_a_collector(
    project: Project, rag: RagServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = '[providers.judge.prices]\n"m" = { input = 1.0, output = 2.0 }\n'
    project.write(test_bot_py=TESTS, ragbench_toml=prices)
    monkeypatch.setenv("SHOP_API_KEY", "planted-secret-0001")
    with otlp_server() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
        run = project.run("--rag-url", rag.url, "-n", "2", "--ragbench-otel", "--ragbench-json=out.json")
    run.assert_outcomes(passed=2, failed=1)
    run.stdout.fnmatch_lines([f"otel: {len(receiver.spans)} spans delivered to {receiver.url}/v1/traces"])
    report = project.report()
    samples = {each["samples"][0]["id"]: each["samples"][0] for each in report["results"]}
    questions = receiver.named("ragbench question")
    assert {span.trace_id.hex() for span in questions} == {each["trace_id"] for each in samples.values()}
    retrievals = receiver.named("ragbench retrieval")
    # The service was told this span as its parent.
    assert {span.span_id.hex() for span in retrievals} == {each["span_id"] for each in samples.values()}
    assert {span.parent_span_id for span in retrievals} == {span.span_id for span in questions}
    told = attributes(retrievals[0])
    assert told["openinference.span.kind"] == "RETRIEVER"
    assert told["retrieval.documents.1.document.content"] == "A receipt is needed to return a product."
    assert (told["retrieval.documents.1.document.id"], told["retrieval.documents.1.document.score"]) == (
        "d2",
        0.79,
    )
    scores = [attributes(span) for span in receiver.named("faithfulness")]
    assert [
        (each["gen_ai.evaluation.score.value"], each["gen_ai.evaluation.score.label"]) for each in scores
    ] == [(1.0, "pass")] * 3
    [judged] = [span for span in receiver.spans if attributes(span)["openinference.span.kind"] == "LLM"]
    assert json.loads(attributes(judged)["llm.output_messages.0.message.content"])["grade"] == 1.0
    told = attributes(judged)
    asked = "".join(str(told[name]) for name in told if name.startswith("llm.input_messages."))
    assert "What do I need to return a product 1" in asked
    assert "***" in asked
    sent = [attributes(span) for span in receiver.spans]
    assert {
        each["input.value"][-4:] for each in sent if "retrieval.documents.0.document.content" in each
    } == {"***?"}
    assert "planted-secret-0001" not in json.dumps(sent, default=str)
    assert (told["llm.token_count.prompt"], told["llm.token_count.completion"]) == (100, 20)
    assert told["llm.cost.total"] == pytest.approx(140e-6)
    # Once: backends add up what they find in the spans of a trace.
    [above] = receiver.named("answer_relevancy_holistic")
    assert "llm.token_count.prompt" not in attributes(above)
    [failed] = [span for span in questions if span.status.code == 2]
    assert json.loads(attributes(failed)["metadata"])["question_id"] == "q2"
    [whole] = receiver.named("ragbench run")
    assert json.loads(attributes(whole)["metadata"])["outcomes"] == {"passed": 2, "failed": 1}
    assert receiver.resources[0]["service.name"] == "nightly"
    assert receiver.resources[0]["openinference.project.name"] == "ragbench"


def test_a_collector_that_is_down_costs_no_test(
    project: Project, rag: RagServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(test_bot_py=TESTS.replace('assert rag_sample.id != "q2"', ""))
    with otlp_server(status=400) as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        run = project.run("--rag-url", rag.url, "--ragbench-otel", "--ragbench-phoenix", receiver.url)
    run.assert_outcomes(passed=3)
    assert run.ret == 0
    run.stdout.fnmatch_lines_random(
        [
            "otel: 0 spans delivered to *, * not delivered: *400*",
            "phoenix: 0 of 3 questions and 0 of 4 evaluations (0 of them errors) and 0 of 4 annotations of "
            "spans delivered to *; the rest was not: *",
        ]
    )
