"""Requests to a make-believe service, and a clock that tests turn by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pytest_ragbench.engine.calls import Call, Fetched, Kind, Scope, Sender, Sent, Transient
from pytest_ragbench.engine.core import Engine

T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """A call, with what sends it and reads its reply in this process."""

    kind: Kind
    provider: str
    key: Mapping[str, Any]
    send: Callable[[Sender], Awaitable[Any]]
    read: Callable[[Any], Any]
    scope: Scope = "store"

    @property
    def call(self) -> Call:
        return Call(self.kind, self.provider, "none", None, None, self.key, self.scope)


async def fetched(engine: Engine, asked: Asked) -> Fetched[Any]:
    return await engine.fetch(asked.call, asked.read, send=asked.send)


class Service:
    """Answers ``{"echo": key}``; each call first meets the next of ``troubles`` (None: no trouble)."""

    def __init__(self, troubles: Sequence[Exception | None] = ()) -> None:
        self.troubles = list(troubles)
        self.calls = 0
        self.under_way = 0
        self.peak = 0
        self.open = asyncio.Event()
        self.open.set()

    def ask(
        self,
        key: Any = "q",
        *,
        scope: Scope = "store",
        provider: str = "p",
        read: Callable[[Any], Any] = lambda payload: payload["echo"],
    ) -> Asked:
        async def fetch(send: Sender) -> Any:
            async def attempt() -> Sent:
                self.calls += 1
                self.under_way += 1
                self.peak = max(self.peak, self.under_way)
                try:
                    await asyncio.sleep(0)
                    await self.open.wait()
                    if self.troubles and (trouble := self.troubles.pop(0)) is not None:
                        raise trouble
                    return Sent({"echo": key}, prompt_tokens=10, completion_tokens=2)
                finally:
                    self.under_way -= 1

            return (await send(attempt)).payload

        return Asked("judge", provider, {"input": key}, fetch, read, scope)


class Clock:
    """Seconds that pass only in :meth:`sleep`; remembers all sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that has nothing to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits for something")


def unavailable(status: int = 503, retry_after: float | None = None) -> Transient:
    return Transient(
        f"GET http://service/llm/search-rag: status {status}", code=f"http_{status}", retry_after=retry_after
    )


def logging_request(log: Path, key: str, seconds: float = 0.02, provider: str = "p") -> Asked:
    """A call that takes ``seconds`` and leaves a line ``+key`` at its start, ``-key`` at its end."""

    async def fetch(send: Sender) -> Any:
        async def attempt() -> Sent:
            note(log, f"+{key}")
            await asyncio.sleep(seconds)
            note(log, f"-{key}")
            return Sent({"echo": key})

        return (await send(attempt)).payload

    return Asked("rag", provider, {"question": key}, fetch, lambda payload: payload["echo"])


def note(log: Path, line: str) -> None:
    with log.open("a") as file:  # one short append is atomic
        file.write(f"{line}\n")


def lines(log: Path, start: str) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith(start)] if log.exists() else []
