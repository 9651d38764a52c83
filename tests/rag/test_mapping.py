"""Answer and chunks out of the replies that services send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import EndpointError, UsageError
from pytest_ragbench.rag.decoding import read_reply
from pytest_ragbench.rag.mapping import BadReply, Reply, ReplyReader, compile_path
from pytest_ragbench.settings import ReplyMapping
from tests.rag.conftest import Ask
from tests.rag.server import Service, as_json, reply

CHUNK = "Возврат за 7 дней"


def read(value: Any, **paths: str) -> Reply:
    return ReplyReader(ReplyMapping(**paths)).read(value)


@pytest.mark.parametrize(
    ("value", "answer", "contexts"),
    [
        ({"answer": "a", "chunks": ["c", "d"]}, "a", ("c", "d")),
        ({"answer": "a"}, "a", None),
        ({"answer": "a", "contexts": []}, "a", ()),
        ({"answer": "a", "contexts": None}, "a", None),
        ({"answer": "", "contexts": [""]}, "", ("",)),
        ({"answer": "a", "context": "one text"}, "a", ("one text",)),
        ("just a text", "just a text", None),
        ({"response": "a", "retrieved_contexts": [{"content": "c"}]}, "a", ("c",)),
        ({"result": "a", "source_documents": [{"page_content": "c", "metadata": {"id": 3}}]}, "a", ("c",)),
        ({"result": {"data": {"answer": "a", "sources": [{"text": "c"}]}}}, "a", ("c",)),
        ({"data": {"answer": "a"}, "chunks": [{"body": "c"}]}, "a", ("c",)),
        ({"message": "success", "data": {"answer": "a"}}, "a", None),
        ({"answer": {"text": "a"}, "docs": [{"chunk": {"text": "c"}}]}, "a", ("c",)),
        ({"output": "a", "documents": [{"document": {"page_content": "c"}}]}, "a", ("c",)),
        ({"response": "a", "source_nodes": [{"node": {"text": "c", "id_": "n"}, "score": 0.5}]}, "a", ("c",)),
        ({"choices": [{"message": {"role": "assistant", "content": "a"}}]}, "a", None),
        ({"message": {"role": "assistant", "content": [{"type": "text", "text": "a"}]}}, "a", None),
        (
            {"messages": [{"role": "assistant", "content": "a"}, {"role": "tool", "content": "t"}]},
            "a",
            None,
        ),
        ({"Answer": "a", "retrievedContexts": [{"pageContent": "c"}]}, "a", ("c",)),
        ({"answer": "a", "sources": ["https://x.org/1", "guide.pdf"]}, "a", None),
        (
            {"answer": "a", "sources": [{"title": "t", "url": "https://x.org/1"}], "passages": ["c"]},
            "a",
            ("c",),
        ),
        ({"answer": "a", "citations": [1, 2]}, "a", None),
        (
            {"answer": "a", "error": None, "status": "ok", "chunks": [{"text": "c", "score": None}]},
            "a",
            ("c",),
        ),
    ],
)
def test_usual_names(value: Any, answer: str, contexts: tuple[str, ...] | None) -> None:
    found = read(value)
    assert (found.answer, found.contexts) == (answer, contexts)


def test_ids_and_scores_ride_along() -> None:
    chunks = [
        {"text": "c", "doc_id": 7, "score": 0.9},
        {"text": "d", "metadata": {"source": "b.md"}, "similarity": "0.5"},
    ]
    found = read({"answer": "a", "chunks": chunks})
    assert found.context_ids == ("7", "b.md")
    assert found.context_scores == (0.9, 0.5)
    found = read({"answer": "a", "chunks": [*chunks, {"text": "e"}]})
    assert (found.context_ids, found.context_scores) == (None, None)
    found = read({"answer": "a", "sources": [{"title": "t", "url": "u1"}, {"title": "t", "url": "u2"}]})
    assert (found.contexts, found.context_ids) == (None, ("u1", "u2"))


NESTED = {
    "result": {
        "data": {
            "answer": "За 7 дней",
            "sources": [{"text": CHUNK, "score": 0.91, "metadata": {"doc": "a.md"}}],
        }
    }
}
MESSAGES = {
    "choices": [
        {
            "messages": [
                {"role": "tool", "content": '{"citations": []}'},
                {"role": "assistant", "content": "За 7 дней"},
            ]
        }
    ]
}


def test_paths() -> None:
    found = read(
        NESTED,
        answer="result.data.answer",
        contexts="result.data.sources",
        context_ids="result.data.sources[].metadata.doc",
        context_scores="result.data.sources[*].score",
        metadata="result.data.sources[0].metadata",
    )
    assert found == Reply("За 7 дней", (CHUNK,), ("a.md",), (0.91,), {"doc": "a.md"})


@pytest.mark.parametrize(
    "path",
    [
        "choices.0.messages.-1.content",
        "choices[0].messages[-1].content",
        "$.choices.0.messages.-1.content",
        "choices.0.messages[-1].content",
        "choices[0].messages[?role=='assistant'] | [0].content",
    ],
)
def test_path_forms(path: str) -> None:
    assert read(MESSAGES, answer=path).answer == "За 7 дней"


def test_names_that_jmespath_would_refuse() -> None:
    assert read({"search-result": {"ответ": ["a"]}}, answer="search-result.ответ.0").answer == "a"
    assert read([{"x": "a"}], answer="0.x").answer == "a"


@pytest.mark.parametrize("path", ["a[", "a..b", "", "a b", "a.{", "foo(", "[?x", "'"])
def test_bad_syntax_is_a_usage_error_naming_the_key(path: str) -> None:
    with pytest.raises(UsageError, match=r"rag\.reply\.contexts"):
        ReplyReader(ReplyMapping(contexts=path))


def test_unknown_function_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"rag\.reply\.answer.*frobnicate"):
        read({}, answer="frobnicate(@)")


@given(
    st.lists(st.from_regex(r"[A-Za-zа-я_][\w-]{0,8}|-?[0-9]{1,3}", fullmatch=True), min_size=1, max_size=5)
)
def test_any_dotted_path_finds_what_it_names(parts: list[str]) -> None:
    value: Any = "here"
    for part in reversed(parts):
        if part.lstrip("-").isdecimal():
            index = int(part)
            row: list[Any] = [None] * (index + 1 if index >= 0 else -index)
            row[index] = value
            value = row
        else:
            value = {part: value}
    assert compile_path(".".join(parts), "key").search(value) == "here"


@pytest.mark.parametrize(
    ("value", "paths", "says"),
    [
        ({"result": {"text": "x"}}, {"answer": "result.answer"}, r"result\.answer.*keys: result\.text"),
        ({"answer": {"a": 1}}, {"answer": "answer"}, r"finds an object, not a string; its keys: answer\.a"),
        ({"answer": 3}, {"answer": "answer"}, "the number 3"),
        ({"answer": "a"}, {"contexts": "chunks"}, "rag.reply.contexts = 'chunks' finds nothing"),
        ({"error": "boom"}, {"answer": "x.y"}, "error: boom"),
        ({"answer": "a", "n": 1}, {"contexts": "n"}, r"contexts\[0\] has no text: it is the number 1"),
        ({"answer": "a", "c": ["x", None]}, {"contexts": "c"}, r"contexts\[1\] has no text: it is null"),
        ({"answer": "a", "c": [{"t": "x"}]}, {"contexts": "c"}, r"contexts\[0\] has no text: its keys: t"),
        ({"answer": "a", "chunks": ["x", {"k": 1}]}, {}, r"contexts\[1\]"),
        ({"answer": "a", "chunks": ["x", "y"], "i": [1]}, {"context_ids": "i"}, "1 entries for 2 contexts"),
        ({"answer": "a", "i": [None]}, {"context_ids": "i"}, r"context_ids\[0\] is null"),
        ({"answer": "a", "i": "x"}, {"context_ids": "i"}, "a string, not a list"),
        ({"answer": "a", "s": ["x"]}, {"context_scores": "s"}, "not a list of finite numbers"),
        ({"answer": "a"}, {"answer": "length(missing)"}, "can't be applied"),
        ([{"answer": "a"}], {}, "a list of 1, not an object"),
        ({"answer": True}, {}, "the boolean true"),
        ({"result": {"rows": [1]}}, {}, r"no answer under a usual name; its keys: result\.rows"),
    ],
)
def test_bad_replies(value: Any, paths: dict[str, str], says: str) -> None:
    with pytest.raises(BadReply, match=says):
        read(value, **paths)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["answer", "result", "chunks", "text", "id", "score", "error", "message", "choices"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_reply_or_a_bad_one(value: Any) -> None:
    try:
        found = read(value)
    except BadReply:
        return
    assert isinstance(found.answer, str)
    texts = json.dumps(value, ensure_ascii=False)
    assert json.dumps(found.answer, ensure_ascii=False)[1:-1] in texts  # nothing made up, no str(dict)
    for column in (found.context_ids, found.context_scores):
        assert column is None or found.contexts is None or len(column) == len(found.contexts)


def body(text: str, content_type: str, **paths: str) -> Reply:
    payload = {"status": 200, "content_type": content_type, "text": text}
    return read_reply(payload, ReplyReader(ReplyMapping(**paths)))


@pytest.mark.parametrize(
    ("text", "content_type", "answer"),
    [
        ("За 7 дней\n", "text/plain", "За 7 дней"),
        ("**За 7** дней", "text/markdown", "**За 7** дней"),
        ("42", "text/plain", "42"),
        ("[1]", "text/plain", "[1]"),
        ('"quoted"', "text/plain", '"quoted"'),
        ('"quoted"', "application/json", "quoted"),
        ('""', "application/json", ""),
        ('{"answer": "a"}', "text/plain", "a"),
        ('{"answer": "a"}', "text/html", "a"),
        ('{"answer": "a"}', "", "a"),
        ('{"answer": "a", "chunks": [{"text": "t", "score": NaN}]}', "application/problem+json", "a"),
        ("words", "", "words"),
    ],
)
def test_content_types(text: str, content_type: str, answer: str) -> None:
    assert body(text, content_type).answer == answer


def test_plain_text_where_a_path_is_configured() -> None:
    with pytest.raises(BadReply, match=r"reply\.answer is set, but the reply is not JSON"):
        body("words", "text/plain", answer="a.b")
    assert body('["x"]', "text/plain", answer="0").answer == "x"


SSE = 'event: retrieval_done\ndata: {"chunks": ["Возврат за 7 дней"]}\n\n: ping\n\n'


@pytest.mark.parametrize(
    ("stream", "answer", "contexts"),
    [
        (
            SSE + 'event: token\ndata: {"delta": "За "}\n\n'
            'event: token\ndata: {"delta": "7 дней"}\n\ndata: [DONE]\n\n',
            "За 7 дней",
            (CHUNK,),
        ),
        (
            'data: {"choices":[{"delta":{"role":"assistant"}}]}\r\n\r\n'
            'data: {"choices":[{"delta":{"content":"a"}}]}\r\n\r\n'
            'data: {"choices":[{"delta":{"content":" b"}}]}\r\n\r\n'
            'data: {"choices":[],"usage":{}}\r\n\r\ndata: [DONE]',
            "a b",
            None,
        ),
        ("data: Hel\n\ndata: lo\n\ndata:  7\n\n", "Hello 7", None),
        ('data: {"answer": "a"}\n\ndata: {"answer": "a b"}\n\n', "a b", None),
        (
            'data: {"event":"message","answer":"a"}\n\ndata: {"event":"message","answer":" b"}\n\n',
            "a b",
            None,
        ),
        (
            'data: {"token": "a"}\n\ndata: {"token": "b"}\n\ndata: {"answer": "a b", "contexts": ["c"]}\n\n',
            "a b",
            ("c",),
        ),
        ('data: {"type":"status","text":"Searching"}\n\ndata: {"type":"token","text":"a"}\n\n', "a", None),
        ('data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}\n\n', "a", None),
        ('event: sources\ndata: [{"text": "c"}]\n\ndata: "a"\n\n', "a", ("c",)),
        ("data: a\u2028b\ndata: c\n\n", "a\u2028b\nc", None),
    ],
)
def test_streams(stream: str, answer: str, contexts: tuple[str, ...] | None) -> None:
    found = body(stream, "text/event-stream")
    assert (found.answer, found.contexts) == (answer, contexts)


def test_lines_of_json() -> None:
    lines = '{"message":{"content":"a"},"done":false}\n{"message":{"content":"b"},"done":true}\n'
    assert body(lines, "application/x-ndjson").answer == "ab"


def test_streams_that_hold_no_answer(ask: Ask, service: Service) -> None:
    half = "data: За\n\nevent: error\ndata: upstream died\n\n"
    for stream in (half, ": ping\n\n", SSE, "data: [DONE]\n\n", 'event: error\ndata: {"error": "boom"}\n\n'):
        service.acts = [reply(stream, "text/event-stream; charset=utf-8")]
        with pytest.raises(EndpointError, match="text/event-stream"):
            ask(stream)


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        ("Возврат".encode("cp1251"), "text/plain; charset=windows-1251"),
        ("Возврат".encode("koi8-r"), 'text/plain; charset="KOI8-R"'),
        ("Возврат".encode("utf-8-sig"), "text/plain"),
        ("Возврат".encode("utf-16"), "text/plain; charset=utf-8"),
        ("Возврат".encode(), "text/plain; charset=no-such-charset"),
        (json.dumps("Возврат", ensure_ascii=False).encode("utf-8-sig"), "application/json"),
    ],
)
def test_charsets(ask: Ask, service: Service, data: bytes, content_type: str) -> None:
    service.acts = [reply(data, content_type)]
    assert ask().answer == "Возврат"


def test_the_charset_that_html_names(ask: Ask, service: Service) -> None:
    page = '<html><meta charset="windows-1251"><body>Вход</body></html>'.encode("cp1251")
    service.acts = [reply(page, "text/html")]
    with pytest.raises(EndpointError, match="Вход"):
        ask()


def test_without_chunks_the_contexts_are_none(ask: Ask, service: Service) -> None:
    service.acts = [as_json({"answer": "a"})]
    assert ask().contexts is None


@pytest.mark.parametrize(
    ("chunks", "urls"),
    [
        ([{"text": "a", "url": "https://w/1"}, {"text": "b", "metadata": {"source": "https://w/2"}}], ("https://w/1", "https://w/2")),
        ([{"text": "a", "link": "/wiki/1"}, {"text": "b"}], ("/wiki/1", "")),
        ([{"text": "a", "id": "7", "source": "faq.md"}], None),
        (["https://w/1", "https://w/2"], ("https://w/1", "https://w/2")),
        ([], ()),
    ],
)  # fmt: skip
def test_urls_of_chunks(chunks: list[Any], urls: tuple[str, ...] | None) -> None:
    assert read({"answer": "a", "chunks": chunks}).context_urls == urls


def test_urls_by_a_path_of_their_own() -> None:
    found = read({"answer": "a", "chunks": ["c", "d"], "pages": ["https://w/1", None]}, context_urls="pages")
    assert found.context_urls == ("https://w/1", "")
    with pytest.raises(BadReply, match="context_urls finds 1 entries for 2 contexts"):
        read({"answer": "a", "chunks": ["c", "d"], "pages": ["https://w/1"]}, context_urls="pages")


def test_a_null_is_no_chunk() -> None:
    with pytest.raises(BadReply, match=r"its chunks\[0\] is null, not a chunk"):
        read({"answer": "a", "chunks": [None]})
