"""Replies with status 200 that are no answers, and chunks in unusual shapes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import EndpointError
from pytest_ragbench.rag.decoding import read_reply
from pytest_ragbench.rag.mapping import BadReply, ReplyReader, found_in
from pytest_ragbench.settings import ReplyMapping
from tests.rag.conftest import Ask
from tests.rag.server import Service, as_json, reply


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"code": 500, "message": "LLM provider returned 401"}, "LLM provider returned 401"),
        ({"code": "503", "msg": "перегружен"}, "перегружен"),
        ({"code": 40001, "message": "配额已用完"}, "配额已用完"),
        ({"code": "INTERNAL_ERROR", "message": "boom"}, "boom"),
        ({"code": -1, "message": "no index"}, "no index"),
        ({"success": "false", "message": "quota"}, "quota"),
        ({"Success": "False", "detail": "quota"}, "quota"),
        ({"ok": 0, "description": "quota"}, "quota"),
        ({"is_error": True, "result": "Something broke"}, "is_error is true"),
        ({"text": "Internal Server Error", "status_code": 500}, "Internal Server Error"),
        ({"statusCode": 502, "content": "Bad gateway"}, "statusCode|status_code"),
        ({"error_code": 401, "error_msg": "no", "result": ""}, "no"),
        ({"errcode": "E17", "errmsg": "down", "answer": ""}, "down"),
        ({"data": None, "message": "Model not loaded"}, "Model not loaded"),
        ({"result": {}, "message": "Нет доступа"}, "Нет доступа"),
        ({"code": 200, "message": "ok"}, "only the message 'ok'"),
        ({"status": "FAILED", "answer": "Sorry, something went wrong."}, "reports an error"),
        ({"status": "error: timeout", "result": "x"}, "reports an error"),
        ({"success": False, "answer": "Ошибка сервера"}, "reports an error"),
        ({"code": 500, "data": {"answer": ""}, "message": "e"}, "reports an error: e"),
        ({"data": {"code": 500, "message": "inner"}}, "inner"),
        ({"result": {"success": "false", "message": "inner"}}, "inner"),
        ({"type": "error", "message": "overloaded"}, "overloaded"),
        ({"event": "error", "status": 400, "code": "invalid_param", "message": "bad"}, "bad"),
        ({"code": "unauthorized", "message": "log in"}, "log in"),
        ({"error": {"code": 1, "msg": "boom"}}, "boom"),
        ({"errors": [{"message": "field missing"}], "data": None}, "field missing"),
    ],
)
def test_a_reply_that_says_itself_that_it_failed(value: Any, says: str) -> None:
    with pytest.raises(BadReply, match=says):
        ReplyReader().read(value)


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"code": 0, "message": "ok", "data": {"answer": "a"}}, "a"),
        ({"code": 200, "message": "ok", "answer": "a"}, "a"),
        ({"code": "200", "msg": "success", "result": "a"}, "a"),
        ({"code": "00000", "message": "成功", "data": {"answer": "a"}}, "a"),
        ({"code": 0, "message": "ok", "data": "a"}, "a"),
        ({"success": "true", "answer": "a"}, "a"),
        ({"success": True, "message": "a"}, "a"),
        ({"status": "completed", "answer": "a", "error": None}, "a"),
        ({"status": 200, "error": "", "answer": "a"}, "a"),
        ({"error": "none", "text": "a"}, "a"),
        ({"error": {"code": 0, "message": ""}, "text": "a"}, "a"),
        ({"error_code": 0, "result": "a"}, "a"),
        ({"error_code": None, "errors": [], "result": "a"}, "a"),
        ({"status": "not_found", "answer": "Nothing is known about that."}, "Nothing is known about that."),
        ({"answer": "a", "error": "the reranker timed out"}, "a"),
        ({"answer": "a", "data": {"status": "failed"}}, "a"),
        (
            {"answer": "Error 500 means that the server failed.", "code": 12},
            "Error 500 means that the server failed.",
        ),
        ({"message": "a"}, "a"),
        ({"data": None, "answer": "a"}, "a"),
    ],
)
def test_a_right_reply_stays_right(value: Any, answer: str) -> None:
    assert ReplyReader().read(value).answer == answer


def test_a_configured_path_does_not_hide_a_failure() -> None:
    reader = ReplyReader(ReplyMapping(answer="data.text"))
    assert reader.read({"code": 0, "data": {"text": "a"}}).answer == "a"
    with pytest.raises(BadReply, match="reports an error: e"):
        reader.read({"code": 500, "message": "e", "data": {"text": "Sorry"}})


def test_an_event_that_fails_ends_the_stream() -> None:
    stream = 'data: {"token": "a"}\n\ndata: {"event": "error", "status": 503, "message": "gone"}\n\n'
    with pytest.raises(BadReply, match="gone"):
        read_reply({"content_type": "text/event-stream", "text": stream}, ReplyReader())


@given(
    st.sampled_from(["code", "status_code", "statusCode", "http_status"]),
    st.integers(400, 599),
    st.booleans(),
    st.sampled_from(["answer", "result", "text", "message"]),
    st.text(),
)
def test_any_status_of_failure_under_any_name(
    name: str, status: int, as_text: bool, key: str, text: str
) -> None:
    with pytest.raises(BadReply):
        ReplyReader().read({name: str(status) if as_text else status, key: text})


@pytest.mark.parametrize(
    ("chunks", "texts", "ids", "scores"),
    [
        ([["C1", 0.8], ["C2", 0.7]], ("C1", "C2"), None, (0.8, 0.7)),
        ([[0.8, "C1"], [0.7, "C2"]], ("C1", "C2"), None, (0.8, 0.7)),
        ([[{"text": "C1", "id": "d1"}, 0.8]], ("C1",), ("d1",), (0.8,)),
        ([["C1", "C2"]], ("C1", "C2"), None, None),
        ({"d1": {"text": "C1"}}, ("C1",), ("d1",), None),
        ({"d1": {"content": "C1", "score": 0.5}, "d2": {"content": "C2", "score": 0.4}}, ("C1", "C2"), ("d1", "d2"),
         (0.5, 0.4)),
        ({"d1": "Возврат за 7 дней", "d2": "C2"}, ("Возврат за 7 дней", "C2"), ("d1", "d2"), None),
        ('["C1", "C2"]', ("C1", "C2"), None, None),
        ("['C1', 'C2']", ("C1", "C2"), None, None),
        ('[{"page_content": "返品は30日", "id": 7}]', ("返品は30日",), ("7",), None),
        ('{"d1": {"text": "C1"}}', ("C1",), ("d1",), None),
        ({"results": [["C1", 0.5]], "hits": [["C1", 0.5]]}, ("C1",), None, (0.5,)),
        ("[1] Returns take 30 days", ("[1] Returns take 30 days",), None, None),
        ("[1, 2]", ("[1, 2]",), None, None),
        ({"text": "C1", "title": "t"}, ("C1",), None, None),
        (["[x]", "{y}"], ("[x]", "{y}"), None, None),
        ([], (), None, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["chunks", "contexts"])
def test_chunks_in_other_shapes(name: str, chunks: Any, texts: Any, ids: Any, scores: Any) -> None:
    for reader, path in ((ReplyReader(), False), (ReplyReader(ReplyMapping(contexts=name)), True)):
        if path and isinstance(chunks, dict) and "results" in chunks:
            continue  # a path finds the list itself
        found = reader.read({"answer": "a", name: chunks})
        assert (found.contexts, found.context_ids, found.context_scores) == (texts, ids, scores)
        assert found_in(found)["contexts"] == texts


@pytest.mark.parametrize(
    ("chunks", "shape"),
    [
        ([[1, 2], [3, 4]], "a list of 2, the first a list of 2, the first the number 1"),
        ([1, 2, 3], "a list of 3, the first the number 1"),
        ({"texts": ["C1"], "vectors": [[0.1]]}, "an object, its keys: texts, vectors"),
        ([["a", "b"], ["c", "d"]], "a list of 2, the first a list of 2, the first a string"),
        ([{"body_html": 3}], "a list of 1, the first an object, its keys: body_html"),
    ],
)
def test_other_shapes_are_named_with_their_field(chunks: Any, shape: str) -> None:
    with pytest.raises(BadReply, match="its chunks can't be read as chunks") as caught:
        ReplyReader().read({"answer": "a", "chunks": chunks})
    assert shape in str(caught.value)


@pytest.mark.parametrize("name", ["chunks", "contexts", "documents", "retrievedChunks"])
@pytest.mark.parametrize(
    ("found", "shape"),
    [
        (7, "the number 7"),
        (0, "the number 0"),
        (0.8, "the number 0.8"),
        (True, "the boolean true"),
        (False, "the boolean false"),
    ],
)
def test_a_scalar_in_the_place_of_chunks_is_named(name: str, found: Any, shape: str) -> None:
    field = "retrieved_chunks" if name == "retrievedChunks" else name
    for reply_ in (
        {"answer": "a", name: found},
        {"data": {"answer": "a", name: found}},
        {"choices": [{"message": {"content": "a", name: found}}]},
    ):
        with pytest.raises(BadReply, match=f"its {field} can't be read as chunks: {shape}; set rag"):
            ReplyReader().read(reply_)
    # Beside chunks, or their ids by a path of the configuration, it is a count.
    beside = {"answer": "a", name: found, "passages": ["C"], "ids": ["d1"]}
    assert ReplyReader().read(beside).contexts == ("C",)
    by_id = ReplyReader(ReplyMapping(context_ids="ids")).read({"answer": "a", name: found, "ids": ["d1"]})
    assert (by_id.contexts, by_id.context_ids) == (None, ("d1",))
    assert ReplyReader(ReplyMapping(contexts="`[]`")).read({"answer": "a", name: found}).contexts == ()


@pytest.mark.parametrize(
    "reply_",
    [{"citations": [1, 2]}, {"documents": {"total": 3}}, {"context": {"session": "s"}}, {"sources": {}}],
)
def test_what_is_hardly_meant_as_chunks_is_left(reply_: dict[str, Any]) -> None:
    assert ReplyReader().read({"answer": "a", **reply_}).contexts is None


def test_of_a_service(ask: Ask, service: Service) -> None:
    service.acts = [as_json({"code": 500, "message": "LLM provider returned 401"})]
    with pytest.raises(EndpointError, match="reports an error: LLM provider returned 401"):
        ask("one")
    service.acts = [as_json({"answer": "a", "chunks": [["C1", 0.8]]})]
    assert ask("two").contexts == ("C1",)
    body = json.dumps({"answer": "返品は30日以内です。", "chunks": ["Возврат"]}, ensure_ascii=False)
    for mark in ("utf-8", "utf-8-sig"):
        service.acts = [reply(body.encode(mark), "application/json; charset=windows-1252")]
        sample = ask(f"in {mark}")
        assert (sample.answer, sample.contexts) == ("返品は30日以内です。", ("Возврат",))
    service.acts = [reply(body.encode("cp932", "replace"), "application/json; charset=shift_jis")]
    with pytest.raises(EndpointError, match="not UTF-8, as application/json is"):
        ask("broken")
