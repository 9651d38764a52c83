"""Calls as data: sent by an adapter found by name, in whatever process."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pytest_ragbench.engine import Call, Engine, Sender, Sent
from pytest_ragbench.model.errors import JudgeError

ECHO = f"{__name__}:Echo"


class Echo:
    """Answers with what it is sent, in capitals."""

    def __init__(self, engine: Any) -> None:
        self.closed = False
        engine.on_close(self.close)

    async def fetch(self, call: Call, sender: Sender) -> Any:
        async def attempt() -> Sent:
            if call.body == "refuse":
                raise JudgeError("refused")
            return Sent(f"{call.config['before']}{call.body}", 3, 1)

        return (await sender(attempt)).payload

    async def close(self) -> None:
        self.closed = True


def call(body: Any = "hi", *, adapter: str = ECHO) -> Call:
    return Call("judge", "p", adapter, {"before": "> "}, body, {"model": "m", "body": body})


def test_a_call_is_sent_by_its_adapter_and_stored(engine: Engine) -> None:
    asked = pickle.loads(pickle.dumps(call()))
    first = engine.wait(engine.fetch(asked, str.upper))
    again = engine.wait(engine.fetch(asked, str.upper))
    assert (first.value, first.usage.calls, first.cached) == ("> HI", 1, False)
    assert (again.value, again.usage.calls, again.cached) == ("> HI", 0, True)


def test_turns_follow_from_what_came(engine: Engine) -> None:
    def following(payloads: Any) -> Any:
        return "why?" if len(payloads) == 1 else None

    for cached in (False, True):
        got = engine.wait(engine.fetch(call("turns"), list, following=following))
        assert (got.value, got.cached) == (["> turns", "> why?"], cached)


def test_a_function_sends_in_the_place_of_the_adapter(engine: Engine) -> None:
    async def send(sender: Sender) -> Any:
        async def attempt() -> Sent:
            return Sent("own")

        return (await sender(attempt)).payload

    assert engine.wait(engine.fetch(call(adapter="nobody"), str, send=send)).value == "own"


def test_a_refusal_is_not_kept(engine: Engine) -> None:
    for _ in range(2):
        with pytest.raises(JudgeError, match="refused"):
            engine.wait(engine.fetch(call("refuse"), str))


def test_an_unknown_adapter_is_named(engine: Engine) -> None:
    with pytest.raises(LookupError, match="unknown adapter 'nobody'"):
        engine.wait(engine.fetch(call(adapter="nobody"), str))
