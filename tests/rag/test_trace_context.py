"""Each question carries a W3C trace context; what answers it can be found again by its trace id."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import traceparent
from pytest_ragbench.engine.core import Engine
from pytest_ragbench.engine.recording import Recorder, Replay, merge
from pytest_ragbench.model.errors import EndpointError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.rag import http_retriever, retriever_from
from pytest_ragbench.rag.asgi import asgi_retriever
from pytest_ragbench.settings import RagSettings
from tests.rag.server import Seen, Service, as_json, reply

QUESTION = Question(id="q", question="How long?")


def ask(engine: Engine, url: str, **more: object) -> RagSample:
    settings = RagSettings.model_validate({"url": url, "retry": {"wait": 0}, **more})
    return engine.wait(http_retriever(settings, engine, {}).ask(QUESTION))


def ids(header: str) -> tuple[str, str]:
    found = re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", header)
    assert found
    return found[1], found[2]


def sent(seen: Seen) -> tuple[str, str]:
    return ids(seen.headers["Traceparent"])


def test_a_question_has_a_trace_and_the_store_keeps_it(service: Service, tmp_path: Path) -> None:
    samples = []
    for run in ("1", "2"):
        engine = Engine(store=tmp_path / "s", run_id=run)
        samples.append(ask(engine, service.url, reuse_answers=True))
        engine.close()
    [seen] = service.seen  # the header is no part of what a reply is stored by
    first, second = samples
    assert (first.trace_id, first.span_id) == (second.trace_id, second.span_id) == sent(seen)
    assert (second.asked, second.cached) == (first.asked, True)


def test_a_retry_has_a_trace_of_its_own_and_an_error_tells_its(service: Service) -> None:
    service.acts = [reply(status=503), as_json({"answer": "a"}), reply(status=400)]
    engine = Engine(store=None, run_id="1")
    sample = ask(engine, service.url)
    with pytest.raises(EndpointError) as caught:
        engine.wait(
            http_retriever(RagSettings(url=service.url), engine, {}).ask(Question(id="b", question="b"))
        )
    engine.close()
    traces = [sent(seen)[0] for seen in service.seen]
    assert len(set(traces)) == 3
    assert (sample.trace_id, caught.value.trace_id) == (traces[1], traces[2])


def test_a_header_of_the_users_stays(service: Service) -> None:
    engine = Engine(store=None, run_id="1")
    sample = ask(engine, service.url, headers={"traceparent": "00-own"})
    engine.close()
    assert [seen.headers["Traceparent"] for seen in service.seen] == ["00-own"]
    assert sample.trace_id is None


def test_functions_stacks_commands_and_apps_are_told(tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text("import os; print(os.environ['TRACEPARENT'])")

    async def later(question: str) -> str:
        return traceparent() or ""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            told = dict(scope["headers"])[b"traceparent"].decode()
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps({"answer": told}).encode()})

    engine = Engine(store=None, run_id="1")
    asked = [
        retriever_from(lambda question: traceparent(), engine),
        retriever_from(later, engine),
        retriever_from(f"command:{sys.executable} {script}", engine),
        asgi_retriever(app, RagSettings(), engine, "app"),
    ]
    samples = [engine.wait(each.ask(QUESTION)) for each in asked]
    engine.close()
    for sample in samples:
        assert (sample.trace_id, sample.span_id) == ids(sample.answer or "")
    assert traceparent() is None


def test_spans_of_opentelemetry_are_parts_of_the_trace() -> None:
    otel = pytest.importorskip("opentelemetry.trace")
    engine = Engine(store=None, run_id="1")

    def inside(question: str) -> str:
        return format(otel.get_current_span().get_span_context().trace_id, "032x")

    sample = engine.wait(retriever_from(inside, engine).ask(QUESTION))
    engine.close()
    assert sample.answer == sample.trace_id
    assert not otel.get_current_span().get_span_context().is_valid


def test_a_recording_keeps_the_trace_and_a_new_one_is_no_change(service: Service, tmp_path: Path) -> None:
    tape, changes = tmp_path / "t.jsonl", []
    for run in ("1", "2"):
        engine = Engine(store=None, run_id=run, recorder=Recorder(tape))
        ask(engine, service.url)
        engine.close()
        changes.append(merge(tape).changed)
    assert changes == [0, 0]
    engine = Engine(store=None, run_id="3", replay=Replay(tape))
    sample = ask(engine, service.url)
    engine.close()
    assert len(service.seen) == 2
    assert sample.trace_id == sent(service.seen[0])[0]
