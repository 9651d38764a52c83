from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_ragbench.engine import Engine, Limits
from pytest_ragbench.engine.budget import Caps
from pytest_ragbench.engine.prices import prices_of
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.choose import judge_from
from pytest_ragbench.judge.tasks import GradeRelevance
from pytest_ragbench.model.errors import BudgetError, JudgeError, Unscored, UsageError
from pytest_ragbench.settings import PriceSettings, ProviderSettings, RetrySettings, Settings

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
    "error", [ValueError("boom"), AssertionError("boom"), KeyError("boom"), OSError(429, "boom")]
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


# Errors that say what they are


class Failed(Exception):
    """As client libraries raise it: with the status, and the reply that had it."""

    def __init__(self, status: int, message: str = "it is so", **headers: str) -> None:
        super().__init__(message)
        self.status_code = status
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = SimpleNamespace(status_code=status, headers=named, text=message)


class Aws(Exception):
    """As botocore raises it."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"An error occurred ({code})")
        self.response = {
            "Error": {"Code": code, "Message": "slow down"},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {"retry-after": "0"}},
        }


class APITimeoutError(Exception):
    pass


class ConnectError(Exception):
    pass


def wrapped(inner: Exception) -> Exception:
    error = RuntimeError("the framework failed")
    error.__cause__ = inner
    return error


@pytest.fixture
def quick(make_engine: Callable[..., Engine]) -> Engine:
    return make_engine(limits={"judge:my_judge": Limits(attempts=3, wait=0.0, max_wait=5.0)})


@pytest.mark.parametrize(
    ("error", "code", "calls"),
    [
        (Failed(429, Retry_After="0"), "http_429", 3),
        (Failed(429, retry_after="3600"), "http_429", 1),
        (Failed(503), "http_503", 3),
        (Failed(401), "http_401", 1),
        (Failed(400), "http_400", 1),
        (Failed(429, '{"error": {"code": "insufficient_quota"}}'), "insufficient_quota", 1),
        (wrapped(Failed(502)), "http_502", 3),
        (wrapped(Failed(404)), "http_404", 1),
        (Aws(429, "ThrottlingException"), "http_429", 3),
        (Aws(403, "AccessDeniedException"), "http_403", 1),
        (TimeoutError("boom"), "timeout", 3),
        (APITimeoutError("boom"), "timeout", 3),
        (wrapped(ConnectError("boom")), "connection", 3),
        (ConnectionResetError("boom"), "connection", 3),
    ],
)
def test_errors_are_sorted_by_what_they_carry(quick: Engine, error: Exception, code: str, calls: int) -> None:
    asked: list[int] = []

    def my_judge(messages: list[dict[str, str]]) -> str:
        asked.append(1)
        raise error

    with pytest.raises(JudgeError, match="the judge my_judge") as caught:
        ask(my_judge, quick)
    assert (caught.value.code, len(asked)) == (code, calls)
    with pytest.raises(JudgeError) as caught:
        ask(my_judge)  # without an engine there is nobody to try again
    assert (caught.value.code, len(asked)) == (code, calls + 1)


def test_a_function_that_heals(quick: Engine) -> None:
    replies: list[Any] = [Failed(429, Retry_After="0"), TimeoutError("late"), TEXT]

    def my_judge(messages: list[dict[str, str]]) -> str:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return str(reply)

    assert ask(my_judge, quick) == 0.75


# What it took

MINE = ProviderSettings(
    prices={"m-2": PriceSettings(input=1.0, output=2.0), "m-3": PriceSettings(input=10.0, output=20.0)},
    retry=RetrySettings(attempts=2, wait=0),
    timeout=7,
)
USAGE = {"prompt_tokens": 100, "completion_tokens": 20}
TOLD = {"content": TEXT, "usage": USAGE, "model": "m-2"}


def engine_of(make_engine: Callable[..., Engine], cost: float | None = None, **providers: Any) -> Engine:
    return make_engine(caps=Caps(cost=cost), prices=prices_of(providers))


@pytest.mark.parametrize(
    "reply",
    [
        TOLD,
        {**TOLD, "content": GOOD},
        {**TOLD, "usage": {"input_tokens": 100, "output_tokens": 20}},
        {**TOLD, "usage": SimpleNamespace(**USAGE)},
        (TOLD, "stop"),
        {"choices": [{"message": {"content": TEXT}}], "usage": USAGE, "model": "m-2"},
        SimpleNamespace(content=TEXT, usage=SimpleNamespace(**USAGE), model="m-2"),
        SimpleNamespace(
            content=TEXT,
            usage_metadata={"input_tokens": 100, "output_tokens": 20},
            response_metadata={"model_name": "m-2"},
        ),
    ],
    ids=["dict", "verdict", "anthropic's", "object", "pair", "completion", "message", "langchain"],
)
def test_tokens_and_model_that_a_function_tells(reply: Any, make_engine: Callable[..., Engine]) -> None:
    engine = engine_of(make_engine, mine=MINE)

    def mine(messages: list[dict[str, str]]) -> Any:
        return reply

    answered = engine.wait(callable_judge(mine, engine=engine).ask(TASK))
    usage = answered.usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, 100, 20)
    assert usage.cost == pytest.approx(140e-6)
    sums = engine.usage()
    assert (sums["judge"]["prompt_tokens"], sums["judge"]["calls"]) == (100, 1)
    assert sums["judge judge:mine:m-2"]["cost"] == pytest.approx(140e-6)
    assert sums["judge judge:mine:m-2"]["calls"] == 1


def named(messages: list[dict[str, str]]) -> Any:
    return {"content": TEXT, "usage": USAGE, "model": named.told}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("told", "counted"), [("m-2-2026-01-01", "m-2"), ("m-3", "m-3"), (None, "m-2")])
def test_a_model_that_is_named_beforehand(
    told: str | None, counted: str, make_engine: Callable[..., Engine]
) -> None:
    """A service may reply under a dated name; what counts is the name with a price."""
    named.ragbench_key = {"model": "m-2"}  # type: ignore[attr-defined]
    named.told = told  # type: ignore[attr-defined]
    engine = engine_of(make_engine, cost=1.0, named=MINE)
    engine.wait(callable_judge(named, engine=engine).ask(TASK))
    models = {key: sums["calls"] for key, sums in engine.usage().items() if sums["calls"]}
    assert models == {"judge": 1, f"judge judge:named:{counted}": 1}


def many(engine: Engine, judge: Any, n: int) -> list[Any]:
    async def each() -> list[Any]:
        found = []
        for number in range(n):
            task = GradeRelevance(question=f"Question {number}?", answer="Yes.")
            found.append((await asyncio.gather(judge.ask(task), return_exceptions=True))[0])
        return found

    return engine.wait(each())


def test_a_budget_in_dollars_holds_for_a_function(make_engine: Callable[..., Engine]) -> None:
    calls: list[int] = []

    def mine(messages: list[dict[str, str]]) -> Any:
        calls.append(1)
        return {**TOLD, "usage": {"prompt_tokens": 2000, "completion_tokens": 0}}

    engine = engine_of(make_engine, cost=0.05, mine=MINE)
    found = many(engine, callable_judge(mine, engine=engine), 30)
    errors = [each for each in found if isinstance(each, BudgetError)]
    # $0.002 each; the next is put aside at the dearest price that is configured, ten times as much.
    assert len(calls) == 30 - len(errors) == 16
    assert "max_cost $0.05" in str(errors[0])


@pytest.mark.parametrize("reply", [TOLD, TEXT], ids=["with usage", "without"])
def test_a_function_without_a_price_is_not_asked_where_dollars_are_limited(
    reply: Any, make_engine: Callable[..., Engine]
) -> None:
    calls: list[int] = []

    def mine(messages: list[dict[str, str]]) -> Any:
        calls.append(1)
        return reply

    engine = engine_of(make_engine, cost=5.0)
    with pytest.raises(
        UsageError, match=r"max_cost is set, but what 'mine' costs .*\[providers.mine.prices\]"
    ):
        ask(mine, engine)
    assert calls == []


def test_a_reply_that_names_a_model_without_a_price(make_engine: Callable[..., Engine]) -> None:
    """It could not be known before the first call; it is before the second."""

    def mine(messages: list[dict[str, str]]) -> Any:
        return {**TOLD, "model": "m-9"}

    engine = engine_of(make_engine, cost=5.0, mine=MINE)
    found = many(engine, callable_judge(mine, engine=engine), 3)
    assert [type(each).__name__ for each in found] == ["Answered", "UsageError", "UsageError"]
    assert '"m-9" = ' in str(found[1])


def test_a_reply_that_does_not_say_what_it_took_is_not_free(make_engine: Callable[..., Engine]) -> None:
    engine = make_engine(caps=Caps(tokens=5000))
    found = many(engine, callable_judge(lambda messages: TEXT, engine=engine), 40)
    assert any(isinstance(each, BudgetError) for each in found)


def test_limits_of_a_function_are_those_of_its_section(engine: Engine) -> None:
    begun = threading.Event()

    def mine(messages: list[dict[str, str]]) -> str:
        begun.wait(20)
        return TEXT

    own = ProviderSettings(timeout=0.2, retry=RetrySettings(attempts=1))
    judge = judge_from(mine, engine, Settings(providers={"mine": own}), environ={})
    with pytest.raises(JudgeError, match=r"no reply within 0\.2 s") as caught:
        engine.wait(judge.ask(TASK))
    begun.set()
    assert caught.value.code == "timeout"


def test_a_judge_must_be_callable() -> None:
    with pytest.raises(UsageError, match="callable, got int"):
        callable_judge(5)  # type: ignore[arg-type]
