"""The coordinator as a worker sees it: the controller's, over a local connection."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from pytest_ragbench.engine import wire
from pytest_ragbench.engine.coordinator import (
    Attempt,
    Event,
    Failure,
    Kept,
    Lost,
    Outcome,
    Permit,
    Refused,
    Reply,
)
from pytest_ragbench.engine.limits import Limits
from pytest_ragbench.model.errors import UsageError

_CLOSING_S = 5.0


class RemoteCoordinator:
    """As every :class:`~pytest_ragbench.engine.coordinator.Coordinator`; connects on first use."""

    shared = True

    def __init__(self, address: wire.Address, loop: asyncio.AbstractEventLoop) -> None:
        self._address = address
        self._loop = loop
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._link: wire.Link | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._lost: str | None = None

    def stored(self, digest: str) -> Kept | None:
        # What the controller has in memory costs a round trip either way, and the claim makes it.
        return None

    async def claim(
        self, digest: str, *, ahead: bool, own: bool = False, unreadable: str | None = None
    ) -> Kept | Failure | None:
        found = await self._ask("claim", digest, ahead, own, unreadable)
        if found is None:
            return None
        what, values = found
        return Failure(*values) if what == "failure" else Kept(*values)

    def publish(self, digest: str, outcome: Reply | Failure | None) -> None:
        if isinstance(outcome, Reply):
            self._tell("publish", digest, "reply", tuple(outcome))
        elif outcome is not None:
            self._tell("publish", digest, "failure", tuple(outcome))
        else:
            self._tell("publish", digest, None, None)

    async def enter(self, attempt: Attempt) -> Permit:
        return Permit(*await self._ask("enter", _portable(attempt)))

    async def leave(self, permit: Permit, outcome: Outcome) -> float:
        if outcome.heals and not outcome.last:  # only a retry needs to know
            waited: float = await self._ask("leave", permit.number, tuple(outcome))
            return waited
        self._tell("leave", permit.number, tuple(outcome))
        return 0.0

    async def take(self, digest: str) -> bool:
        try:
            return bool(await self._ask("take", digest))
        except Lost:
            return True

    async def claim_tests(self, numbers: Collection[int]) -> set[int]:
        try:
            return set(await self._ask("claim_tests", sorted(numbers)))
        except Lost:
            return set()

    def note(self, event: Event) -> None:
        self._tell("note", tuple(event))

    async def host(self, name: str, arguments: list[Any]) -> Any:
        return await self._ask("host", name, arguments)

    async def close(self) -> None:
        """Wait until the controller has taken all that was told."""
        with suppress(Lost, TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await self.settle()
        if self._link is not None:
            self._link.close()

    async def settle(self) -> None:
        """Wait until the controller has taken all that was told."""
        if self._connecting is not None:
            await self._ask("flush")

    # The connection

    async def _ask(self, operation: str, *arguments: Any) -> Any:
        if self._link is None:
            await self._connected()
        number = next(self._numbers)
        answer = self._answers[number] = self._loop.create_future()
        self._send([number, operation, *arguments])
        try:
            return await answer
        except asyncio.CancelledError:
            if not answer.done() or answer.cancelled():
                self._tell("cancel", number)
                if operation in ("claim", "enter"):  # it may have been granted meanwhile
                    answer = self._answers[number] = self._loop.create_future()
                    answer.add_done_callback(lambda done: self._give_back(operation, arguments, done))
            raise
        finally:
            if self._answers.get(number) is answer and answer.done():
                del self._answers[number]

    def _tell(self, operation: str, *arguments: Any) -> None:
        self._send([0, operation, *arguments])

    def _send(self, message: list[Any]) -> None:
        if self._lost is not None:
            if message[0]:
                raise Lost(self._lost)
            return
        if self._link is not None:
            self._link.send(message)
        else:  # told before anything was asked
            self._loop.create_task(self._send_later(message))

    async def _send_later(self, message: list[Any]) -> None:
        with suppress(Lost):
            await self._connected()
            self._send(message)

    def _give_back(self, operation: str, arguments: tuple[Any, ...], done: asyncio.Future[Any]) -> None:
        """A claim or permit that was granted after the asker had left."""
        if done.cancelled() or done.exception() is not None:
            return
        if operation == "enter":
            self._tell("leave", done.result()[0], tuple(Outcome("cancelled")))
        elif done.result() is None:
            self.publish(arguments[0], None)

    async def _connected(self) -> None:
        if self._lost is not None:
            raise Lost(self._lost)
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect(), name=wire.LINK)
        await asyncio.shield(self._connecting)

    async def _connect(self) -> None:
        try:
            self._link = await wire.connect(self._address, self._take, self._end)
        except (OSError, TimeoutError) as error:
            self._lost = f"the run's controller can't be reached: {error or type(error).__name__}"
            # Not tried again: a controller that can't be reached on the loopback has ended.
            raise Lost(self._lost) from None

    def _take(self, message: wire.Message) -> None:
        number, status, value = message
        answer = self._answers.pop(number, None)
        if answer is None or answer.done():
            return
        if status == "ok":
            answer.set_result(value)
        elif status == "refused":
            answer.set_exception(Refused(*value))
        elif status == "error":
            answer.set_exception(UsageError(value))
        elif status == "cancelled":
            answer.cancel()
        else:
            answer.set_exception(Lost(value))

    def _end(self) -> None:
        # All that wait for an answer are told, or they would wait for ever.
        self._lost = self._lost or "the run's controller has gone"
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(Lost(self._lost))
        self._answers.clear()


def _portable(attempt: Attempt) -> list[Any]:
    """In plain values; the limits as a tuple of theirs."""
    return [tuple(vars(each).values()) if isinstance(each, Limits) else each for each in attempt]
