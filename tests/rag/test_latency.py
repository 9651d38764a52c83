"""Latency as a user sees it: time to the first token, and who else was asked at the same time."""

from __future__ import annotations

import asyncio
import time

import pytest

from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.rag import http_retriever, retriever_from
from pytest_ragbench.rag.sse import first_token
from pytest_ragbench.settings import RagSettings
from tests.rag.server import Act, Handler, Seen, Service

TOKENS = [b'data: {"event": "sources", "contexts": ["c"]}\n\n', b'data: {"delta": ""}\n\n',
          b'data: {"delta": "We', b'll"}\r\n\r\n', b'data: {"delta": " done"}\n\n', b"data: [DONE]\n\n"]  # fmt: skip


def streamed(*pieces: bytes, pause: float = 0.0) -> Act:
    def act(handler: Handler, seen: Seen) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Connection", "close")
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(pause)
        handler.close_connection = True

    return act


def ask(engine: Engine, url: str, *texts: str) -> list[RagSample]:
    system = http_retriever(RagSettings.model_validate({"url": url}), engine, {})

    async def asked() -> list[RagSample]:
        return list(await asyncio.gather(*(system.ask(Question(id=text, question=text)) for text in texts)))

    return engine.wait(asked())


def test_the_first_piece_of_the_answer_counts_not_the_first_byte() -> None:
    arrivals = [(len(b"".join(TOKENS[: n + 1])), float(n)) for n in range(len(TOKENS))]
    body = b"".join(TOKENS)
    # Sources, an empty piece, half an event: none of them is something to read.
    assert first_token(body, "text/event-stream", arrivals) == 3.0
    lines = b'{"response": ""}\n{"response": "Yes"}\n{"response": ".", "done": true}\n'
    assert (
        first_token(lines, "application/x-ndjson", [(10, 0.0), (30, 1.0), (40, 2.0), (len(lines), 3.0)])
        == 2.0
    )
    assert first_token(b'data: {"event": "sources"}\n\n', "text/event-stream", [(28, 0.0)]) is None


def test_a_stream_has_two_times_and_the_store_keeps_both(service: Service) -> None:
    service.acts = [streamed(*TOKENS, pause=0.05)]
    engine = Engine(store=None, run_id="1")
    try:
        [first] = ask(engine, service.url, "q")
        [again] = ask(engine, service.url, "q")
    finally:
        engine.close()
    assert first.answer == "Well done"
    assert first.first_token is not None
    assert first.latency is not None
    # Three pauses before the first token is whole, three after it.
    assert 0.1 < first.first_token < first.latency - 0.05
    assert (again.first_token, again.latency, again.cached) == (first.first_token, first.latency, True)


def test_a_whole_answer_has_no_first_token_and_says_how_many_were_asked_at_once(service: Service) -> None:
    engine = Engine(store=None, run_id="1")
    try:
        [alone] = ask(engine, service.url, "q")
        together = ask(engine, service.url, "a", "b", "c")
        function = retriever_from(lambda question: question, engine)
        own = engine.wait(function.ask(Question(id="f", question="f")))
    finally:
        engine.close()
    assert (alone.first_token, alone.at_once, own.at_once) == (None, 1, 1)
    assert max(sample.at_once or 0 for sample in together) == 3


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (RagSample("q", "a", latency=2.0, at_once=1), "took 2.00 s, wanted at most 1 s"),
        (RagSample("q", "a", latency=2.0, at_once=8), r"at most 1 s \(one of 8 questions at a time\)"),
        (RagSample("q", "a", latency=2.0, cached=True), r"at most 1 s \(of a stored answer\)"),
    ],
)
def test_an_assertion_says_how_it_was_measured(sample: RagSample, said: str) -> None:
    from pytest_ragbench import QualityFailure, UsageError, assert_expected

    with pytest.raises(QualityFailure, match=said):
        assert_expected(sample, max_latency=1)
    with pytest.raises(UsageError, match="max_first_token .* needs a streamed answer"):
        assert_expected(sample, max_first_token=1)
    with pytest.raises(QualityFailure, match=r"began after 1\.50 s"):
        assert_expected(sample.with_(first_token=1.5), max_first_token=1)
