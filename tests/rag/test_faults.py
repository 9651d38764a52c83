"""What comes of a service that is late, down, rude or someone else."""

from __future__ import annotations

import gzip
import json
import logging
import threading
import traceback
import zlib
from collections.abc import Callable
from email.utils import formatdate
from types import SimpleNamespace

import pytest

from pytest_ragbench.engine.core import Engine, Limits
from pytest_ragbench.http import retry_after
from pytest_ragbench.model.errors import EndpointError, UsageError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.rag import ask_all, http_retriever
from pytest_ragbench.settings import RagSettings
from tests.rag.conftest import Ask
from tests.rag.server import Act, Handler, Seen, Service, as_json, cut_off, drop, reply

OK = as_json({"answer": "За 7 дней", "chunks": ["Возврат возможен за 7 дней"]})
PAST = formatdate(1_799_999_000, usegmt=True)
SECRET = "sk-test-FAKE-0000-abcd"


@pytest.mark.parametrize(
    "act", [drop, cut_off, *(reply(status=status) for status in (408, 409, 429, 500, 502))]
)
def test_transient_failures_are_retried(ask: Ask, service: Service, act: Act) -> None:
    service.acts = [act, OK]
    sample = ask()
    assert sample.answer == "За 7 дней"
    assert sample.contexts == ("Возврат возможен за 7 дней",)
    assert len(service.seen) == 2


def test_a_kept_connection_that_drops_is_one_call_per_attempt(engine: Engine, service: Service) -> None:
    service.acts = [OK, drop, OK]
    made = http_retriever(RagSettings(url=service.url), engine, {})
    for text in ("one", "two"):  # the second call reuses the first one's connection
        engine.wait(made.ask(Question(id="q", question=text)))
    assert len(service.seen) == 3
    assert engine.usage()["rag"]["calls"] == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 499])
def test_permanent_failures_is_asked_once(ask: Ask, service: Service, status: int) -> None:
    service.acts = [reply('{"detail": "нет\x1b[31m такого"}', status=status), OK]
    with pytest.raises(EndpointError) as caught:
        ask("secret question?")
    assert len(service.seen) == 1
    text = str(caught.value)
    assert f"GET {service.url}/llm/search-rag?questions=... replied {status}" in text
    assert r"нет\x1b[31m такого" in text
    assert "\x1b" not in text
    assert "secret" not in text
    assert caught.value.code == f"http_{status}"


def test_503_for_ever(ask: Ask, service: Service) -> None:
    service.acts = [reply("upstream unavailable", "text/plain", 503)]
    with pytest.raises(EndpointError, match=r"/llm/search-rag.*503.*upstream unavailable.*3 attempts"):
        ask()
    assert len(service.seen) == 3


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("2", 2, 2),
        ("1.5", 1.5, 1.5),
        (formatdate(1_800_000_007, usegmt=True), 7, 7),
        ("soon", 0, 1),
        (PAST, 0, 1),
    ],
)
def test_retry_after_is_obeyed(
    engine: Engine,
    service: Service,
    waits: list[float],
    monkeypatch: pytest.MonkeyPatch,
    header: str,
    least: float,
    most: float,
) -> None:
    monkeypatch.setattr(retry_after, "time", SimpleNamespace(time=lambda: 1_800_000_000.0))
    service.acts = [reply(status=429, Retry_After=header), OK]
    made = http_retriever(RagSettings(url=service.url), engine, {})
    engine.wait(made.ask(Question(id="q", question="?")))
    assert len(waits) == 1
    assert least <= waits[0] <= most


def test_nobody_there(ask: Ask) -> None:
    with pytest.raises(
        EndpointError, match=r"http://127.0.0.1:9/llm/search-rag.*connection failed"
    ) as caught:
        ask(url="http://127.0.0.1:9")
    assert str(caught.value).startswith(
        "no connection to http://127.0.0.1:9 (refused): is the service running? try ragbench doctor"
    )
    assert caught.value.code == "connection"
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("how", ["hang", "drip"])
def test_too_slow(ask: Ask, service: Service, how: str) -> None:
    service.acts = [getattr(service, how)]
    with pytest.raises(
        EndpointError, match=r"^no reply from http.*within 0.15 s.*llm/search-rag.*3 attempts"
    ) as caught:
        ask(timeout=0.15)
    assert caught.value.code == "timeout"


def test_slow_drip_is_bounded_by_the_engine_too(engine: Engine, service: Service) -> None:
    engine.set_limits("rag", Limits(timeout=0.1, attempts=1))
    service.acts = [service.drip]
    made = http_retriever(RagSettings(url=service.url), engine, {})
    with pytest.raises(EndpointError, match=r"0\.1 s"):
        engine.wait(made.ask(Question(id="q", question="?")))


def test_not_http_at_all(ask: Ask, service: Service) -> None:
    def garbage(handler: Handler, seen: Seen) -> None:
        handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        handler.close_connection = True

    service.acts = [garbage]
    with pytest.raises(EndpointError, match="not valid HTTP"):
        ask()
    assert len(service.seen) == 1


def test_tls_where_there_is_none(ask: Ask, service: Service) -> None:
    with pytest.raises(EndpointError, match="https://") as caught:
        ask(url=service.url.replace("http:", "https:"))
    assert caught.value.code in ("tls", "connection")


def test_a_login_page_is_no_answer(ask: Ask, service: Service) -> None:
    page = "<!DOCTYPE html><html><head><title>Вход</title></head><body>Войдите</body></html>"
    for content_type in ("text/html; charset=utf-8", "text/plain", "application/json", None):
        service.acts = [reply(page, content_type)]
        with pytest.raises(
            EndpointError, match=r"replied 200 .*<!DOCTYPE html><html><head><title>Вход"
        ) as caught:
            ask(f"as {content_type}")
        assert (content_type or "no content type").partition(";")[0] in str(caught.value)
        assert caught.value.raw == page
    assert len(service.seen) == 4


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (reply(""), "empty body"),
        (reply("", None, 204), "204.*empty body"),
        (reply("  \n", "text/plain"), "empty body"),
        (reply('{"answer": '), r"not JSON \(line 1, column 12"),
        (reply("[" * 100_000), "not JSON"),
        (reply("null"), "null"),
        (reply("42"), "the number 42"),
        (reply("[]"), "a list of 0"),
        (reply("{}"), "it is empty"),
        (as_json({"answer": None, "chunks": []}), "answer is null"),
        (as_json({"answer": 4}), "answer is the number 4"),
        (as_json({"error": "LLM quota exceeded"}), "reports an error: LLM quota exceeded"),
        (as_json({"answer": None, "error": {"message": "boom"}}), "reports an error: boom"),
        (as_json({"answer": "", "error": "boom"}), "reports an error: boom"),
        (as_json({"status": "error", "message": "Internal failure"}), "Internal failure"),
        (as_json({"success": False, "message": "no"}), "reports an error: no"),
        (as_json({"took": 3, "hits": {"total": 0}}), r"keys: took, hits\.total"),
        (reply(b"\xff\xfe\x00", "image/png"), "image/png"),
        (reply(b"PK\x03\x04\x00", "application/octet-stream"), "neither JSON nor plain text"),
        (reply("<a/>", "application/xml"), "neither JSON nor plain text"),
        (reply("Привет".encode("cp1251"), "text/plain"), "not UTF-8, and names no other charset"),
        (reply("Привет".encode("cp1251"), "text/plain; charset=ascii"), "charset ascii"),
        (reply("Привет".encode("cp1251"), "text/plain; charset=idna"), "charset idna"),
    ],
)
def test_bad_replies(ask: Ask, service: Service, act: Act, says: str) -> None:
    service.acts = [act]
    with pytest.raises(EndpointError, match=says) as caught:
        ask()
    assert "/llm/search-rag" in str(caught.value)
    assert len(service.seen) == 1


def test_the_head_of_the_body_is_one_short_line(ask: Ask, service: Service) -> None:
    service.acts = [reply("\x1b]0;title\x07\u202e oops\r\n" + "x" * 5000, status=400)]
    with pytest.raises(EndpointError) as caught:
        ask()
    text = str(caught.value)
    assert r"\x1b]0;title\x07\u202e oops xxx" in text
    assert len(text) < 400
    assert text.isprintable()


def test_longer_than_max_bytes(ask: Ask, service: Service) -> None:
    service.acts = [as_json({"answer": "x" * 5000})]
    with pytest.raises(EndpointError, match=r"max_bytes \(4000\)"):
        ask(max_bytes=4000)
    bomb = gzip.compress(json.dumps({"answer": "x" * 3_000_000}).encode())
    service.acts = [reply(bomb, Content_Encoding="gzip")]
    with pytest.raises(EndpointError, match="max_bytes"):
        ask("2", max_bytes=100_000)


@pytest.mark.parametrize(("name", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_compressed(ask: Ask, service: Service, name: str, pack: Callable[[bytes], bytes]) -> None:
    service.acts = [reply(pack('{"answer": "返金"}'.encode()), Content_Encoding=name)]
    assert ask().answer == "返金"


def test_credentials_from_a_variable(ask: Ask, service: Service) -> None:
    ask(auth_env="RAG_KEY", environ={"RAG_KEY": f" {SECRET}\n"})
    assert service.seen[0].headers["Authorization"] == f"Bearer {SECRET}"
    ask("2", auth_env="RAG_KEY", auth_header="X-Api-Key", auth_scheme="", environ={"RAG_KEY": SECRET})
    assert service.seen[1].headers["X-Api-Key"] == SECRET
    for environ in ({}, {"RAG_KEY": " "}):
        with pytest.raises(UsageError, match="RAG_KEY"):
            ask("3", auth_env="RAG_KEY", environ=environ)


def test_a_header_that_can_not_be_sent(ask: Ask) -> None:
    with pytest.raises(UsageError, match="X-Note") as caught:
        ask(headers={"X-Note": "a\r\nX-Evil: 1"})
    assert "Evil" not in str(caught.value)


@pytest.mark.parametrize("status", [200, 401, 503])
def test_an_echoed_credential_is_masked_everywhere(
    engine: Engine, service: Service, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    said = f'{{"detail": "Incorrect key: {SECRET}. Bearer {SECRET}"}}'
    service.acts = [reply(said, status=status)]
    settings = RagSettings(url=f"{service.url}?api_key=qwerty12345", auth_env="RAG_KEY")
    with caplog.at_level(logging.DEBUG):
        made = http_retriever(settings, engine, {"RAG_KEY": SECRET})
        with pytest.raises(EndpointError) as caught:
            engine.wait(made.ask(Question(id="q", question="?")))
    assert "Incorrect key: ***" in str(caught.value)
    shown = [str(caught.value), repr(caught.value), str(caught.value.raw), caplog.text, repr(made), made.name]
    for frame, _ in traceback.walk_tb(caught.tb):  # what pytest -l would print
        shown += [repr(value) for value in frame.f_locals.values() if value is not service]
    shown = [text for text in shown if text != repr(said) and text != repr(settings)]
    assert not [text for text in shown if SECRET in text]
    assert not [text for text in shown[:6] if "qwerty12345" in text]


def test_an_echo_inside_a_good_answer_is_masked(ask: Ask, service: Service) -> None:
    service.acts = [as_json({"answer": f"your key is {SECRET}"})]
    assert ask(auth_env="K", environ={"K": SECRET}).answer == "your key is ***"


def test_ask_all_keeps_the_order_and_overlaps(engine: Engine, service: Service) -> None:
    together = threading.Barrier(5, timeout=10)

    def answer(handler: Handler, seen: Seen) -> None:
        together.wait()  # all five are here at once, or the barrier breaks
        text = dict(seen.query)["questions"]
        act = reply(status=404) if text == "2" else as_json({"answer": text})
        act(handler, seen)

    service.acts = [answer]
    made = http_retriever(RagSettings(url=service.url), engine, {})
    questions = [Question(id=str(number), question=str(number)) for number in range(5)]
    found = engine.wait(ask_all(made, questions), timeout=15)
    assert [item.answer if isinstance(item, RagSample) else item.code for item in found] == [
        "0",
        "1",
        "http_404",
        "3",
        "4",
    ]
