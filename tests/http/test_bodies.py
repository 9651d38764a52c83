"""Which text the bytes of a reply are."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.engine import Engine
from pytest_ragbench.http.bodies import WrongCharset, decoded, decoded_leniently
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.tasks import SplitClaims
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.settings import ProviderSettings

CLAIMS = ["Возврат за 30 дней.", "返品は30日以内。", "Zurück für 5 €."]
JSON = json.dumps({"claims": CLAIMS}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "text"),
    [
        (JSON.encode(), "application/json", "ISO-8859-1", JSON),
        (JSON.encode(), "application/json", "windows-1251", JSON),
        (JSON.encode(), "application/json", "shift_jis", JSON),
        (JSON.encode(), "application/vnd.api+json", "us-ascii", JSON),
        (JSON.encode("utf-8-sig"), "application/json", "koi8-r", JSON),
        (JSON.encode("utf-16"), "application/json", None, JSON),
        (JSON.encode(), "text/plain", "iso-8859-1", JSON),
        ("data: Да".encode(), "text/event-stream", "windows-1251", "data: Да"),
        (JSON.encode(), "application/x-ndjson", "cp1252", JSON),
        ("Возврат".encode("cp1251"), "text/plain", "windows-1251", "Возврат"),
        ("Größe: 5 €".encode("cp1252"), "text/plain", "windows-1252", "Größe: 5 €"),
        ("返品".encode("shift_jis"), "text/plain", "Shift_JIS", "返品"),
        ("返品".encode("euc_jp"), "text/markdown", "EUC-JP", "返品"),
        ("Да".encode("utf-8-sig"), "text/plain", "windows-1251", "Да"),
        ("Да".encode(), "text/plain", "no-such-charset", "Да"),
    ],
)
def test_the_text_of_a_body(body: bytes, content_type: str, charset: str | None, text: str) -> None:
    assert decoded(body, content_type, charset) == text


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "told"),
    [
        (
            JSON[:30].encode("cp1251", "replace"),
            "application/json",
            "windows-1251",
            "not UTF-8.*charset windows-1251",
        ),
        (b'{"answer": "caf\xe9"}', "application/json", None, "not UTF-8"),
        (b"data: caf\xe9", "text/event-stream", "iso-8859-1", "not UTF-8"),
        ("Возврат".encode(), "text/plain", "windows-1252", "declared charset windows-1252"),
        ("返品は30日".encode(), "text/plain", "ISO-8859-1", "UTF-8, and not its declared charset"),
        ("Да".encode(), "text/plain", "us-ascii", "declared charset us-ascii"),
        ("Возврат".encode("cp1251"), "text/plain", None, "names no other charset"),
        ("Возврат".encode("cp1251"), "text/plain", "no-such-charset", "not UTF-8"),
    ],
)
def test_what_can_not_be_is_an_error(body: bytes, content_type: str, charset: str | None, told: str) -> None:
    with pytest.raises(WrongCharset, match=told):
        decoded(body, content_type, charset)
    assert decoded_leniently(body, content_type, charset)


@given(
    st.text(),
    st.sampled_from(["iso-8859-1", "windows-1251", "shift_jis", "utf-16", "hex", None]),
    st.booleans(),
)
def test_json_is_utf_8_whatever_is_declared(text: str, charset: str | None, mark: bool) -> None:
    body = json.dumps([text], ensure_ascii=False).encode("utf-8-sig" if mark else "utf-8", "replace")
    assert isinstance(json.loads(decoded(body, "application/json", charset)), list)
    if text.isprintable():
        assert json.loads(decoded(body, "application/json", charset)) == [text]


@contextmanager
def judge_sending(body: bytes, content_type: str) -> Iterator[str]:
    class Requests(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Requests) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


COMPLETION = json.dumps(
    {"choices": [{"message": {"content": JSON}, "finish_reason": "stop"}]}, ensure_ascii=False
)


def claims(url: str) -> list[str]:
    engine = Engine(store=None, run_id="run")
    try:
        judge = openai_judge("lab", ProviderSettings(base_url=url), "m", engine, environ={})
        return engine.wait(judge.ask(SplitClaims("an answer"))).reply.claims
    finally:
        engine.close()


@pytest.mark.parametrize("mark", ["utf-8", "utf-8-sig"])
def test_the_judge_is_read_as_utf_8(mark: str) -> None:
    with judge_sending(COMPLETION.encode(mark), "application/json; charset=ISO-8859-1") as url:
        assert claims(url) == CLAIMS


def test_a_judge_whose_bytes_are_not_utf_8_is_an_error() -> None:
    with judge_sending(
        COMPLETION.encode("cp1251", "replace"), "application/json; charset=windows-1251"
    ) as url:
        with pytest.raises(JudgeError, match="not UTF-8") as caught:
            claims(url)
    assert caught.value.code == "bad_charset"
