"""No reply of a service crashes the reading; what is no answer is an error."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragbench import UsageError
from pytest_ragbench.http.bodies import WrongCharset, decoded, decoded_leniently
from pytest_ragbench.http.retry_after import parse_retry_after
from pytest_ragbench.rag.decoding import read_reply
from pytest_ragbench.rag.mapping import BadReply, ReplyReader
from pytest_ragbench.rag.target import target_of
from pytest_ragbench.settings import RagSettings, ReplyMapping
from tests.fuzz import strategies as fuzz
from tests.fuzz.conftest import FUZZ, says_why

TYPES = st.sampled_from(
    ["application/json", "text/plain", "text/html", "text/event-stream", "application/x-ndjson", "", "image/png",
     "application/problem+json", "text/markdown"]
)  # fmt: skip
KEYS = st.sampled_from(
    ["answer", "response", "result", "data", "chunks", "contexts", "sources", "text", "id", "score", "error",
     "choices", "message", "content", "delta", "metadata", "output"]
)  # fmt: skip
replies = st.recursive(
    fuzz.scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=10,
)
READERS = [
    ReplyReader(),
    ReplyReader(ReplyMapping(answer="result.answer", contexts="result.chunks")),
    ReplyReader(ReplyMapping(answer="choices.0.message.content", context_ids="sources[].id")),
]


def check(content_type: str, text: str) -> None:
    for reader in READERS:
        try:
            found = read_reply({"content_type": content_type, "text": text, "status": 200}, reader)
        except BadReply as error:
            says_why(error)
            continue
        assert isinstance(found.answer, str)
        assert found.contexts is None or all(isinstance(chunk, str) for chunk in found.contexts)
        for column in (found.context_ids, found.context_scores):
            assert column is None or found.contexts is None or len(column) == len(found.contexts)


@FUZZ
@given(TYPES, replies)
def test_any_json(content_type: str, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    check(content_type, text)
    check("text/event-stream", f"event: token\ndata: {text}\n\ndata: [DONE]\n\n")


@FUZZ
@given(TYPES, st.one_of(fuzz.texts, fuzz.replies()))
@example("application/json", "[" * 100_000)
@example("text/event-stream", "data: {\n\ndata:\n\n:\n\n\r\rdata: x")
def test_any_text(content_type: str, text: str) -> None:
    check(content_type, text)


@FUZZ
@given(
    st.binary(max_size=60),
    TYPES,
    st.sampled_from(
        [
            None,
            "utf-8",
            "cp1251",
            "utf-16",
            "no-such",
            "hex",
            "idna",
            "zip",
            "undefined",
            "unicode_escape",
            "punycode",
        ]
    ),
)
def test_any_bytes(body: bytes, content_type: str, charset: str | None) -> None:
    with suppress(WrongCharset):
        assert isinstance(decoded(body, content_type, charset), str)
    assert isinstance(decoded_leniently(body, content_type, charset), str)


@FUZZ
@given(
    st.one_of(fuzz.texts, st.sampled_from(["Mon, 32 Sep 2026 10:00:00 GMT", "-1", "1e9999", "٣", "0x10"])),
    st.floats(0, 4e9),
)
def test_retry_after(value: str, now: float) -> None:
    seconds = parse_retry_after(value, now)
    assert seconds is None or 0 <= seconds <= 1e9


@FUZZ
@given(st.one_of(fuzz.texts, st.text()))
def test_a_question_is_one_parameter(question: str) -> None:
    from urllib.parse import parse_qsl, urlsplit

    target = target_of(RagSettings(url="http://127.0.0.1:1"))
    try:
        url = target.url(question)
    except UsageError:  # half of a surrogate pair
        return
    assert url.isascii()
    assert parse_qsl(urlsplit(url).query, keep_blank_values=True) == [("questions", question)]
