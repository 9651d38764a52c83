"""Messages between a worker and the process that owns the run: plain values over TCP on the loopback, behind a key.

Both sides prove that they know the key before anything else is said (HMAC-SHA-256 of the other's random bytes),
so that no other user of the machine is served, or taken for the controller. This works on every platform.

Messages are lists of plain values, written by :mod:`marshal`: a tenth of the time that JSON takes, and unlike pickle
it makes values only. Both sides run the same Python, or one of two whose format 4 is the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import marshal
import secrets
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
LINK = "ragbench link"
"""The name of tasks that keep a connection: they end after those that use it."""
_FORMAT = 4
"""Of :mod:`marshal`: the same from Python 3.4 on."""
_LENGTH = struct.Struct("!I")
_NONCE_BYTES = 32
_CLIENT, _SERVER = b"ragbench client", b"ragbench server"
AUTHENTICATION_S = 10.0
"""For the other side to prove itself."""

Message = list[Any]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the owner of a run listens, and the key for it."""

    port: int
    key: bytes


def new_key() -> bytes:
    return secrets.token_bytes(32)


class Refusal(ConnectionError):
    """The other side does not know the key."""


class Link(asyncio.Protocol):
    """One side of a connection. What is sent within one turn of the loop travels together.

    ``take`` gets each message as it arrives; ``end`` is called once when the connection has ended, however it did.
    """

    def __init__(self, take: Callable[[Message], None], end: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._take = take
        self._end = end
        self.transport: asyncio.Transport | None = None
        self._made: asyncio.Future[None] = self._loop.create_future()
        self._received = bytearray()
        self._waiting: asyncio.Future[None] | None = None
        self._proved = False
        self._out: list[bytes] = []

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        # Without this a small message waits up to 40 ms for the other side's next one (Nagle's algorithm). asyncio
        # does it only for sockets that name their protocol, which those of socket.create_server don't.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._made.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._proved:
            self._deliver()
        elif self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
        self._end()

    # Ours

    def send(self, message: Message) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        data = marshal.dumps(message, _FORMAT)
        self._out += (_LENGTH.pack(len(data)), data)

    def close(self) -> None:
        """Send what is left, and end the connection."""
        self._flush()
        if self.transport is not None:
            self.transport.close()

    async def prove_to_owner(self, key: bytes) -> None:
        challenge, nonce = await self._exactly(_NONCE_BYTES), secrets.token_bytes(_NONCE_BYTES)
        self._write(_proof(key, _CLIENT, challenge) + nonce)
        if not hmac.compare_digest(await self._exactly(_NONCE_BYTES), _proof(key, _SERVER, nonce)):
            raise Refusal("the other side does not know the run's key")
        self._proved = True

    async def prove_to_worker(self, key: bytes) -> None:
        await self._made
        challenge = secrets.token_bytes(_NONCE_BYTES)
        self._write(challenge)
        proof, nonce = await self._exactly(_NONCE_BYTES), await self._exactly(_NONCE_BYTES)
        if not hmac.compare_digest(proof, _proof(key, _CLIENT, challenge)):
            raise Refusal("it does not know the run's key")
        self._write(_proof(key, _SERVER, nonce))
        self._proved = True
        self._deliver()

    async def _exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            if self.transport is None:
                raise Refusal("the other side has left, or does not accept the run's key")
            self._waiting = self._loop.create_future()
            await self._waiting
        data = bytes(self._received[:size])
        del self._received[:size]
        return data

    def _deliver(self) -> None:
        begin, size = 0, len(self._received)
        while size - begin >= _LENGTH.size:
            start = begin + _LENGTH.size
            end = start + _LENGTH.unpack_from(self._received, begin)[0]
            if end > size:
                break
            message = marshal.loads(memoryview(self._received)[start:end])  # noqa: S302 - the other side is proved
            begin = end
            self._take(message)
        del self._received[:begin]

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out:
            self._write(b"".join(out))

    def _write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)


async def connect(address: Address, take: Callable[[Message], None], end: Callable[[], None]) -> Link:
    """A connection to the owner; both sides have proved themselves.

    Raises
    ------
    OSError
        Nobody listens there, or it is not the owner.
    """
    loop = asyncio.get_running_loop()
    _, link = await loop.create_connection(lambda: Link(take, end), HOST, address.port)
    try:
        async with asyncio.timeout(AUTHENTICATION_S):
            await link.prove_to_owner(address.key)
    except BaseException:
        link.close()
        raise
    return link


def _proof(key: bytes, side: bytes, nonce: bytes) -> bytes:
    return hmac.digest(key, side + nonce, hashlib.sha256)
