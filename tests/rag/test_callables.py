from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from typing import Any

import pytest

from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.errors import EndpointError, UsageError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.rag import HttpRetriever, Retriever, retriever_from

QUESTION = Question(id="q", question="返金は?", reference="7日", contexts=("old",), context_ids=("o",))
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")


def asked(engine: Engine, function: Any, question: Question = QUESTION) -> RagSample:
    return engine.wait(retriever_from(function, engine).ask(question), timeout=15)


@pytest.mark.parametrize(
    ("returned", "answer", "contexts", "ids"),
    [
        ("a", "a", ("old",), ("o",)),
        (("a", ["c"]), "a", ("c",), None),
        (("a", ()), "a", (), None),
        (("a", None), "a", ("old",), ("o",)),
        (("a", ({"text": t, "id": 1} for t in "c")), "a", ("c",), ("1",)),
        ({"answer": "a", "chunks": [{"text": "c", "id": 5}]}, "a", ("c",), ("5",)),
        (RagSample(question="other", answer="a", contexts=["c"]), "a", ("c",), None),
    ],
)
def test_what_may_be_returned(
    engine: Engine, returned: Any, answer: str, contexts: tuple[str, ...], ids: tuple[str, ...] | None
) -> None:
    sample = asked(engine, lambda question: returned)
    assert (sample.answer, sample.contexts, sample.context_ids) == (answer, contexts, ids)
    assert (sample.id, sample.question, sample.reference) == ("q", "返金は?", "7日")
    assert sample.latency is not None
    assert not sample.cached


@pytest.mark.parametrize(
    "returned", [None, 3, [], b"x", ("a", ["c"], 1), (3, []), ("a", 3), {"x": 1}, {"answer": 1}]
)
def test_what_may_not(engine: Engine, returned: Any) -> None:
    with pytest.raises(EndpointError, match="test_what_may_not"):
        asked(engine, lambda question: returned)


def test_sync_runs_in_a_thread_with_the_callers_context(engine: Engine) -> None:
    def function(question: str) -> str:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return f"{variable.get()} {threading.current_thread() is not threading.main_thread()}"

    variable.set("mine")
    assert asked(engine, function).answer == "mine True"


def test_async_runs_on_the_engines_loop(engine: Engine) -> None:
    async def function(question: str) -> str:
        assert asyncio.get_running_loop() is engine.loop
        return question

    class Service:
        async def __call__(self, question: str) -> str:
            return await function(question)

        async def method(self, question: str) -> str:
            return await function(question)

    async def wide(prefix: str, question: str) -> str:
        return prefix + await function(question)

    for shape in (function, Service(), Service().method, lambda text: function(text)):  # noqa: PLW0108
        assert asked(engine, shape).answer == "返金は?"
    assert asked(engine, functools.partial(wide, "> ")).answer == "> 返金は?"


def test_sync_callables_overlap(engine: Engine) -> None:
    together = threading.Barrier(10, timeout=10)

    def function(question: str) -> str:
        together.wait()
        return question

    made = retriever_from(function, engine)

    async def all_at_once() -> list[RagSample]:
        return await asyncio.gather(*(made.ask(QUESTION) for _ in range(10)))

    assert len(engine.wait(all_at_once(), timeout=15)) == 10


@pytest.mark.parametrize("error", [ValueError("bad value"), StopIteration(), SystemExit(3), KeyError("k")])
def test_exceptions_name_the_callable(engine: Engine, error: BaseException) -> None:
    def broken(question: str) -> str:
        raise error

    async def broken_too(question: str) -> str:
        raise error

    for function in (broken, broken_too):
        if function is broken_too and isinstance(error, StopIteration):
            continue  # Python itself turns that one into a RuntimeError
        with pytest.raises(EndpointError, match=rf"broken.* raised .*{type(error).__name__}") as caught:
            asked(engine, function)
        assert caught.value.code == "exception"
    assert asked(engine, lambda question: "still alive").answer == "still alive"


def test_own_errors_and_skips_pass_unchanged(engine: Engine) -> None:
    mine = EndpointError("mine", code="mine")

    def broken(question: str) -> str:
        raise mine

    def skipping(question: str) -> str:
        pytest.skip("not today")

    with pytest.raises(EndpointError) as caught:
        asked(engine, broken)
    assert caught.value.code == "mine"
    with pytest.raises(pytest.skip.Exception):
        asked(engine, skipping)


def test_retriever_from(engine: Engine) -> None:
    made = retriever_from("http://h:1", engine)
    assert isinstance(made, HttpRetriever)
    assert made.name == "GET http://h:1/llm/search-rag?questions=..."
    assert retriever_from(made, engine) is made
    assert isinstance(made, Retriever)
    assert retriever_from(len, engine).name == "callable builtins.len"
    for wrong in (None, 3, "no url", "ftp://h", RagSample, "http://me:pw@h"):
        with pytest.raises(UsageError):
            retriever_from(wrong, engine)
