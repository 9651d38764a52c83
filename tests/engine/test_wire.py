"""The connection between a worker and the process that owns the run."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pytest_ragbench.engine import wire


@asynccontextmanager
async def both_ends(taken: list[wire.Message]) -> AsyncIterator[tuple[wire.Link, wire.Link]]:
    """A worker's end of a connection, and its owner's, which puts what it gets into ``taken``."""
    key, owners = wire.new_key(), []

    def accepted() -> wire.Link:
        owners.append(wire.Link(taken.append, lambda: taken.append(["end"])))
        asyncio.ensure_future(owners[0].prove_to_worker(key))  # noqa: RUF006 - the worker waits for it
        return owners[0]

    listening = socket.create_server((wire.HOST, 0))
    server = await asyncio.get_running_loop().create_server(accepted, sock=listening)
    address = wire.Address(listening.getsockname()[1], key)
    worker = await wire.connect(address, lambda message: None, lambda: None)
    yield worker, owners[0]
    for each in (worker, owners[0]):
        each.close()
    server.close()


async def until_last(taken: list[wire.Message], last: object) -> None:
    async with asyncio.timeout(20):
        while not taken or taken[-1] != [last]:
            await asyncio.sleep(0.001)


def test_neither_side_holds_small_messages_back() -> None:
    async def scene() -> None:
        async with both_ends([]) as ends:
            for each in ends:
                assert each.transport is not None
                sock = each.transport.get_extra_info("socket")
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

    asyncio.run(scene())


def test_messages_arrive_whole_and_in_order_whatever_their_size() -> None:
    sent: list[wire.Message] = [
        [1, "claim", "д" * 3, True, None, 0.5],
        [0, "publish", "x" * 3_000_000, ("a\ud800", 2**40, None)],
        *([number] for number in range(1000)),
        ["last"],
    ]

    async def scene() -> list[wire.Message]:
        taken: list[wire.Message] = []
        async with both_ends(taken) as (worker, _):
            for message in sent[:-1]:
                worker.send(message)
            await asyncio.sleep(0)
            worker.send(sent[-1])
            await until_last(taken, "last")
        return taken

    assert asyncio.run(scene()) == [*sent, ["end"]]


def test_what_was_sent_before_the_end_arrives() -> None:
    async def scene() -> list[wire.Message]:
        taken: list[wire.Message] = []
        async with both_ends(taken) as (worker, _):
            worker.send(["said"])
            worker.close()
            await until_last(taken, "end")
        return taken

    assert asyncio.run(scene()) == [["said"], ["end"]]


def test_who_sends_rubbish_for_a_proof_is_told_nothing() -> None:
    async def scene() -> list[wire.Message]:
        taken: list[wire.Message] = []
        owner = wire.Link(taken.append, lambda: None)
        listening = socket.create_server((wire.HOST, 0))
        server = await asyncio.get_running_loop().create_server(lambda: owner, sock=listening)
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(bytes(64) + b"\0\0\0\5xxxxx")
        with pytest.raises(wire.Refusal):
            await owner.prove_to_worker(wire.new_key())
        owner.close()
        assert len(await reader.read()) == 32  # the challenge alone
        writer.close()
        server.close()
        return taken

    assert asyncio.run(scene()) == []
