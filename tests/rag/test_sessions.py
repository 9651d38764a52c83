"""Conversations: questions in the order of their session, whoever asks first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from pytest_ragbench import building
from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.errors import EndpointError
from pytest_ragbench.model.samples import Question, RagSample, sample_from
from pytest_ragbench.questions import load_questions
from pytest_ragbench.rag import ask_all
from pytest_ragbench.rag.http import http_retriever
from pytest_ragbench.rag.sessions import in_sessions, turns_before
from pytest_ragbench.settings import RagSettings, Settings
from tests.rag.server import Service


def conversation(*turns: tuple[str, str]) -> list[Question]:
    """Questions of (session, text), as a file would give them."""
    questions: list[Question] = []
    for session, text in turns:
        before = [question for question in questions if question.session == session]
        last = before[-1] if before else None
        questions.append(Question(id=text, question=text, session=session, previous=last))
    return questions


TURNS = conversation(("s", "s1"), ("t", "t1"), ("s", "s2"), ("t", "t2"), ("s", "s3"))


class Slow:
    """Answers after a few turns of the loop, and notes when it began and ended."""

    name = "slow"

    def __init__(self, *, shared: bool = False, fails: Sequence[str] = ()) -> None:
        self.shared = shared
        self.fails = fails
        self.seen: list[str] = []

    async def ask(self, question: Question) -> RagSample:
        self.seen.append(f"+{question.id}")
        for _ in range(3):
            await asyncio.sleep(0)
        self.seen.append(f"-{question.id}")
        if question.id in self.fails:
            raise EndpointError("503", code="http_503")
        return sample_from(question, answer=f"to {question.id}")


def test_each_question_waits_for_the_one_before() -> None:
    slow = Slow()
    asked = [TURNS[4], *TURNS]  # the last one first, as look-ahead or another worker may
    samples = asyncio.run(ask_all(in_sessions(slow), asked))
    assert [sample.answer for sample in samples if isinstance(sample, RagSample)][1:] == [
        f"to {question.id}" for question in TURNS
    ]
    for session in "st":
        events = [event for event in slow.seen if session in event]
        turns = len(events) // 2
        assert events == [f"{sign}{session}{turn}" for turn in range(1, turns + 1) for sign in "+-"]
    assert slow.seen[:2] == ["+s1", "+t1"]  # sessions don't wait for each other


def test_what_comes_after_a_lost_turn_is_an_error() -> None:
    slow = Slow(fails=["s2"])
    samples = asyncio.run(ask_all(in_sessions(slow), TURNS))
    assert [isinstance(sample, RagSample) for sample in samples] == [True, True, False, True, False]
    assert "an earlier question of session 's' has no answer (s2): 503" in str(samples[4])
    assert isinstance(samples[4], EndpointError)
    assert samples[4].code == "http_503"
    assert "+s3" not in slow.seen


def test_a_turn_that_failed_can_be_asked_again() -> None:
    async def twice() -> list[Any]:
        slow = Slow(fails=["s1"])
        retriever = in_sessions(slow)
        first = await ask_all(retriever, TURNS[:1])
        slow.fails = ()
        return [first[0], *(await ask_all(retriever, TURNS[:1]))]

    failed, answered = asyncio.run(twice())
    assert isinstance(failed, EndpointError)
    assert isinstance(answered, RagSample)


def test_turns_before() -> None:
    assert [question.id for question in turns_before(TURNS[4])] == ["s1", "s2"]
    assert in_sessions(in_sessions(Slow())).inner.name == "slow"


def test_a_file_says_what_comes_before(tmp_path: Any) -> None:
    file = tmp_path / "q.csv"
    file.write_text("question,session_id\na,1\nb,2\nc,\nd,1\n", encoding="utf-8")
    found = load_questions(file)
    assert [question.previous and question.previous.question for question in found] == [None, None, None, "a"]


def test_a_callable_is_told_the_session(engine: Engine) -> None:
    seen = []

    def bot(question: str, session: str | None = None) -> str:
        seen.append((session, question))
        return "So."

    retriever = building.retriever(bot, engine, Settings())
    for question in (TURNS[2], TURNS[2], Question(id="x", question="x")):
        engine.wait(retriever.ask(question))
    assert seen == [("s", "s1"), ("s", "s2"), (None, "x")]


def test_the_service_is_told_the_session(engine: Engine, service: Service) -> None:
    def ask(question: Question, **settings: Any) -> str:
        made = http_retriever(RagSettings(**{"url": service.url, **settings}), engine, {})
        engine.wait(made.ask(question), timeout=15)
        return service.seen[-1].target

    one = Question(id="x", question="a b", session="чат/1")
    assert ask(one).endswith("?questions=a%20b")
    sent = ask(one, session_parameter="chat_id")
    assert sent.endswith("?questions=a%20b&chat_id=%D1%87%D0%B0%D1%82%2F1-test")  # with the run's id
    assert ask(Question(id="y", question="c"), session_parameter="chat_id").endswith("?questions=c")


def test_a_body_tells_the_session(engine: Engine, service: Service) -> None:
    settings = RagSettings(
        url=service.url, method="POST", body={"q": "{question}", "chat": "c-{session}"}, parameter=None
    )
    made = http_retriever(settings, engine, {})
    for question in (Question(id="x", question="{session}?", session="s"), Question(id="y", question="z")):
        engine.wait(made.ask(question), timeout=15)
    import json

    bodies = [json.loads(request.body) for request in service.seen]
    assert bodies == [{"q": "{session}?", "chat": "c-s-test"}, {"q": "z", "chat": "c-"}]


def test_the_same_question_later_in_a_session_is_another_request(engine: Engine, service: Service) -> None:
    made = in_sessions(http_retriever(RagSettings(url=service.url, session_parameter="chat"), engine, {}))
    again = conversation(("s", "why?"), ("s", "really?"), ("s", "why?"))
    engine.wait(made.ask(again[2]), timeout=15)
    assert [dict(request.query)["questions"] for request in service.seen] == ["why?", "really?", "why?"]
