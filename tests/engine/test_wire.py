"""The connection between a worker and the process that owns the run."""

from __future__ import annotations

import asyncio
import socket

from pytest_ragbench.engine import wire


def test_neither_side_holds_small_messages_back() -> None:
    asyncio.run(_both_sides_send_at_once())


async def _both_sides_send_at_once() -> None:
    key, accepted = wire.new_key(), asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await wire.accept(reader, writer, key)
        accepted.set_result(writer)

    listening = socket.create_server((wire.HOST, 0))
    server = await asyncio.start_server(serve, sock=listening)
    _, writer = await wire.connect(wire.Address(listening.getsockname()[1], key))
    for side in (writer, await accepted):
        assert side.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        side.close()
    server.close()
