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
from pytest_ragbench.model.errors import RagbenchError


class Server:
    """Serves workers on the engine's loop."""

    def __init__(self, coordinator: Coordinator, key: bytes) -> None:
        self._coordinator = coordinator
        self._key = key
        self._firsts: dict[int, _Worker] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Take connections from a socket that listens already."""
        self._server = await asyncio.start_server(self._accepted, sock=listening)

    async def adopt(self, connection: socket.socket) -> None:
        """Serve a worker that was accepted before the engine was there."""
        reader, writer = await asyncio.open_connection(sock=connection)
        self._take(reader, writer)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for worker in list(self._workers):
            worker.cancel()
        if self._workers:
            await asyncio.wait(self._workers, timeout=5)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._take(reader, writer)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name=wire.LINK)
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        worker = _Worker(self, self._coordinator, writer)
        try:
            await wire.accept(reader, writer, self._key)
            async for message in wire.received(reader):
                worker.take(message)
        except (OSError, TimeoutError):
            return
        finally:
            worker.end()
            writer.close()

    async def claim_tests(self, numbers: Collection[int], worker: _Worker) -> set[int]:
        """Those that no other worker, and no other host, looks ahead to."""
        own = {number for number in numbers if self._firsts.get(number, worker) is worker}
        for number in await self._coordinator.claim_tests(sorted(own)):
            self._firsts.setdefault(number, worker)
        return {number for number in own if self._firsts.get(number) is worker}

    def forget(self, worker: _Worker) -> None:
        self._firsts = {number: one for number, one in self._firsts.items() if one is not worker}


class _Worker:
    """One connection, and what is held by it."""

    def __init__(self, server: Server, coordinator: Coordinator, writer: asyncio.StreamWriter) -> None:
        self._server = server
        self._coordinator = coordinator
        self._writer = writer
        self._claims: set[str] = set()
        self._permits: set[int] = set()
        self._asked: dict[int, asyncio.Task[None]] = {}
        self._gone = False

    def take(self, message: list[Any]) -> None:
        """What the worker says: ``[number, operation, *arguments]``; answered where the number is not 0."""
        number, operation, *arguments = message
        if operation == "cancel":
            if (task := self._asked.get(arguments[0])) is not None:
                task.cancel()
        elif number == 0:
            self._told(operation, arguments)
        else:
            task = asyncio.get_running_loop().create_task(self._answer(number, operation, arguments))
            self._asked[number] = task
            task.add_done_callback(lambda task: self._asked.pop(number, None))

    def end(self) -> None:
        """The worker has gone, however it went."""
        self._gone = True
        for task in list(self._asked.values()):
            task.cancel()
        for number in self._permits:
            asyncio.get_running_loop().create_task(
                _left(self._coordinator, Permit(number), Outcome("cancelled"))
            )
        for digest in self._claims:
            self._coordinator.publish(digest, None)
        self._server.forget(self)

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
            permit, outcome = Permit(arguments[0]), Outcome(*arguments[1])
            asyncio.get_running_loop().create_task(_left(self._coordinator, permit, outcome))

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
        wire.send(self._writer, answer)

    async def _done(self, operation: str, arguments: list[Any]) -> Any:
        coordinator = self._coordinator
        if operation == "claim":
            digest, ahead, unreadable = arguments
            found = await coordinator.claim(digest, ahead=ahead, unreadable=unreadable)
            if found is None:
                if self._gone:
                    coordinator.publish(digest, None)
                self._claims.add(digest)
                return None
            return ["failure" if isinstance(found, Failure) else "kept", found]
        if operation == "enter":
            attempt = Attempt(*arguments[0])
            limits = Limits(*attempt.limits)  # type: ignore[misc]  # as it has travelled: its values
            permit = await coordinator.enter(attempt._replace(limits=limits))
            if self._gone:
                await coordinator.leave(permit, Outcome("cancelled"))
            self._permits.add(permit.number)
            return permit.number
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
