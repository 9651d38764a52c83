from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.tasks import GradeRelevance
from pytest_ragbench.model.errors import JudgeError, Unscored, UsageError

TASK = GradeRelevance(question="返品はできますか。", answer="はい、7日以内です。")
GOOD = {"reason": "ok", "grade": 0.75}
TEXT = json.dumps(GOOD)


class Graded(BaseModel):
    reason: str
    grade: float


def ask(function: Any, engine: Engine | None = None) -> float:
    judge = callable_judge(function, engine=engine)
    answered = asyncio.run(judge.ask(TASK)) if engine is None else engine.wait(judge.ask(TASK))
    return float(answered.reply.grade)


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        GOOD,
        (TEXT, "stop"),
        (GOOD, None),
        Graded(reason="ok", grade=0.75),
        SimpleNamespace(content=TEXT, response_metadata={"finish_reason": "stop"}),
        SimpleNamespace(content=[{"type": "text", "text": TEXT}]),
        {"role": "assistant", "content": TEXT},
        {"choices": [{"message": {"content": TEXT}, "finish_reason": "stop"}]},
    ],
    ids=["text", "fence", "dict", "pair", "dict pair", "model", "message", "parts", "chat", "completion"],
)
def test_what_a_function_may_return(reply: Any) -> None:
    assert ask(lambda messages: reply) == 0.75


def test_async_functions_and_objects() -> None:
    async def judge(messages: list[dict[str, str]]) -> str:
        await asyncio.sleep(0)
        return TEXT

    class Model:
        async def __call__(self, messages: list[dict[str, str]]) -> str:
            return TEXT

    def not_async(messages: list[dict[str, str]]) -> Any:
        return judge(messages)

    assert ask(judge) == ask(Model()) == ask(not_async) == 0.75
    assert callable_judge(judge).name == "judge"
    assert callable_judge(Model()).name == "Model"
    assert callable_judge(judge, "mine").name == "mine"
    assert isinstance(callable_judge(judge), Judge)


def test_the_function_gets_messages_that_are_its_own() -> None:
    seen: list[list[dict[str, str]]] = []

    def judge(messages: list[dict[str, str]]) -> str:
        seen.append([dict(message) for message in messages])
        messages.clear()
        return "?" if len(seen) == 1 else TEXT

    assert ask(judge) == 0.75
    assert [message["role"] for message in seen[1]] == ["system", "user", "assistant", "user"]
    assert "はい、7日以内です。" in seen[0][1]["content"]


def test_a_function_that_blocks_leaves_the_loop_free(engine: Engine) -> None:
    met = threading.Barrier(2, timeout=20)

    def judge(messages: list[dict[str, str]]) -> str:
        met.wait()  # passes only while another call runs too
        return TEXT

    async def both() -> list[Any]:
        judges = [callable_judge(judge, engine=engine) for _ in range(2)]
        return list(await asyncio.gather(*(each.ask(TASK) for each in judges)))

    assert [answered.reply.grade for answered in engine.wait(both())] == [0.75, 0.75]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (None, "empty"),
        ((TEXT, "length"), "truncated"),
        ({"grade": float("nan")}, "non_finite"),
        ({"grade": 5}, "invalid_reply"),
        (SimpleNamespace(content=None, refusal="No."), "refused"),
        (3.5, "judge_raised"),
        ({"grade": object()}, "judge_raised"),
    ],
    ids=["nothing", "cut", "nan", "off-scale", "refusal", "number", "object"],
)
def test_bad_replies(reply: Any, code: str) -> None:
    with pytest.raises(JudgeError) as caught:
        ask(lambda messages: reply)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "error", [ValueError("boom"), AssertionError("boom"), KeyError("boom"), TimeoutError("boom")]
)
@pytest.mark.parametrize("with_engine", [False, True])
def test_errors_of_the_function_are_judge_errors(error: Exception, with_engine: bool, engine: Engine) -> None:
    def my_judge(messages: list[dict[str, str]]) -> str:
        raise error

    with pytest.raises(
        JudgeError, match=rf"the judge my_judge raised {type(error).__name__}: .*boom"
    ) as caught:
        ask(my_judge, engine if with_engine else None)
    assert not isinstance(caught.value, AssertionError)
    assert type(caught.value.__cause__) is type(error)


def test_own_errors_pass() -> None:
    class Budget(Unscored):
        pass

    def judge(messages: list[dict[str, str]]) -> str:
        raise Budget("used up", code="budget")

    with pytest.raises(Budget):
        ask(judge)


def test_replies_are_stored_only_under_a_key(make_engine: Callable[..., Engine]) -> None:
    calls: list[int] = []

    def judge(messages: list[dict[str, str]]) -> str:
        calls.append(1)
        return TEXT

    ask(judge, make_engine())
    ask(judge, make_engine())
    assert len(calls) == 2
    judge.ragbench_key = {"model": "m", "temperature": 0}  # type: ignore[attr-defined]
    ask(judge, make_engine())
    ask(judge, make_engine())
    assert len(calls) == 3
    judge.ragbench_key = {"model": "m2"}  # type: ignore[attr-defined]
    ask(judge, make_engine())
    assert len(calls) == 4


def test_calls_are_counted(engine: Engine) -> None:
    replies = iter(["?", TEXT])
    answered = engine.wait(callable_judge(lambda messages: next(replies), engine=engine).ask(TASK))
    assert answered.usage.calls == 2


def test_a_judge_must_be_callable() -> None:
    with pytest.raises(UsageError, match="callable, got int"):
        callable_judge(5)  # type: ignore[arg-type]
