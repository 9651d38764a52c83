"""The controller's side of the connection to its workers: what they ask goes to the coordinator of this process.

What a worker holds when it goes (claims, permits, tests that it looks ahead to) is given up for it.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from pytest_ragbench.engine import wire
from pytest_ragbench.engine.coordinator import (
    Attempt,
    Coordinator,
    Event,
    Failure,
    Lost,
    Outcome,
    Permit,
    Refused,
    Reply,
)
from pytest_ragbench.engine.limits import Limits
from pytest_ragbench.engine.loop import begin
from pytest_ragbench.model.errors import RagbenchError


class Server:
    """Serves workers on the engine's loop."""

    def __init__(self, coordinator: Coordinator, key: bytes) -> None:
        self.coordinator = coordinator
        self._key = key
        self._ahead: dict[int, _Worker] = {}
        """By number of a test: who looks ahead to it."""
        self._workers: set[_Worker] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Take connections from a socket that listens already."""
        self._server = await asyncio.get_running_loop().create_server(self._accepted, sock=listening)

    async def adopt(self, connection: socket.socket) -> None:
        """Serve a worker that was accepted before the engine was there."""
        await asyncio.get_running_loop().connect_accepted_socket(self._accepted, connection)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for worker in list(self._workers):
            worker.link.close()
            worker.end()

    async def claim_tests(self, numbers: Collection[int], worker: _Worker) -> set[int]:
        """Those that no other worker, and no other host, looks ahead to."""
        # Workers first, then other hosts: the second question may be a round trip to Redis.
        own = {number for number in numbers if self._ahead.get(number, worker) is worker}
        for number in await self.coordinator.claim_tests(sorted(own)):
            self._ahead.setdefault(number, worker)
        return {number for number in own if self._ahead.get(number) is worker}

    def forget(self, worker: _Worker) -> None:
        self._workers.discard(worker)
        self._ahead = {number: one for number, one in self._ahead.items() if one is not worker}

    def _accepted(self) -> wire.Link:
        worker = _Worker(self)
        self._workers.add(worker)
        worker.greeting = asyncio.get_running_loop().create_task(self._greet(worker), name=wire.LINK)
        return worker.link

    async def _greet(self, worker: _Worker) -> None:
        try:
            async with asyncio.timeout(wire.AUTHENTICATION_S):
                await worker.link.prove_to_worker(self._key)
        except (OSError, TimeoutError):
            worker.link.close()


class _Worker:
    """One connection, and what is held by it."""

    def __init__(self, server: Server) -> None:
        self.link = wire.Link(self._take, self.end)
        self.greeting: asyncio.Task[None] | None = None
        self._server = server
        self._coordinator = server.coordinator
        self._claims: set[str] = set()
        self._permits: set[int] = set()
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._gone = False

    def end(self) -> None:
        """The worker has gone, however it went."""
        if self._gone:
            return
        self._gone = True
        for task in list(self._asked.values()):
            task.cancel()
        # Slots and budget that a killed worker held would be missing for the rest of the run.
        for number in self._permits:
            self._leave(number, Outcome("cancelled"))
        # Whoever waits for them makes the calls now.
        for digest in self._claims:
            self._coordinator.publish(digest, None)
        self._server.forget(self)

    def _take(self, message: wire.Message) -> None:
        """What the worker says: ``[number, operation, *arguments]``; answered where the number is not 0."""
        number, operation, *arguments = message
        if operation == "cancel":
            if (task := self._asked.get(arguments[0])) is not None:
                task.cancel()
        elif number == 0:
            self._told(operation, arguments)
        # Most answers are known at once; only what has to wait becomes a task.
        elif (waiting := begin(self._answer(number, operation, arguments))) is not None:
            self._asked[number] = waiting
            waiting.add_done_callback(lambda task: self._asked.pop(number, None))

    def _told(self, operation: str, arguments: list[Any]) -> None:
        if operation == "publish":
            digest, what, values = arguments
            self._claims.discard(digest)
            outcome = {"reply": Reply, "failure": Failure}[what](*values) if what else None
            self._coordinator.publish(digest, outcome)
        elif operation == "note":
            self._coordinator.note(Event(*arguments[0]))
        elif operation == "leave":
            self._permits.discard(arguments[0])
            self._leave(arguments[0], Outcome(*arguments[1]))

    def _leave(self, number: int, outcome: Outcome) -> None:
        begin(_left(self._coordinator, Permit(number), outcome))

    async def _answer(self, number: int, operation: str, arguments: list[Any]) -> None:
        answer: list[Any]
        try:
            answer = [number, "ok", await self._done(operation, arguments)]
        except Refused as refused:
            answer = [number, "refused", [refused.why, refused.message]]
        except RagbenchError as error:
            answer = [number, "error", str(error)]
        except asyncio.CancelledError:
            answer = [number, "cancelled", None]
        except Lost as lost:
            answer = [number, "lost", str(lost)]
        except Exception as error:
            answer = [number, "lost", f"{type(error).__name__}: {error}"]
        self.link.send(answer)

    async def _done(self, operation: str, arguments: list[Any]) -> Any:
        coordinator = self._coordinator
        if operation == "claim":
            digest, ahead, own, unreadable = arguments
            found = await coordinator.claim(digest, ahead=ahead, own=own, unreadable=unreadable)
            if found is None:
                if self._gone:
                    coordinator.publish(digest, None)
                self._claims.add(digest)
                return None
            return ["failure" if isinstance(found, Failure) else "kept", tuple(found)]
        if operation == "enter":
            attempt = Attempt(*arguments[0])
            limits = Limits(*attempt.limits)  # type: ignore[misc]  # as it has travelled: its values
            permit = await coordinator.enter(attempt._replace(limits=limits))
            if self._gone:
                await coordinator.leave(permit, Outcome("cancelled"))
            self._permits.add(permit.number)
            return tuple(permit)
        if operation == "leave":
            self._permits.discard(arguments[0])
            return await coordinator.leave(Permit(arguments[0]), Outcome(*arguments[1]))
        if operation == "claim_tests":
            return sorted(await self._server.claim_tests(arguments[0], self))
        if operation == "take":
            return await coordinator.take(arguments[0])
        if operation == "host":
            return await coordinator.host(*arguments)
        return True  # "flush": all that was said before has been taken


async def _left(coordinator: Coordinator, permit: Permit, outcome: Outcome) -> None:
    with suppress(Lost, KeyError):
        await coordinator.leave(permit, outcome)
