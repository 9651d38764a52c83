"""Messages between a worker and the process that owns the run: JSON over TCP on the loopback, behind a key.

Both sides prove that they know the key before anything else is said (HMAC-SHA-256 of the other's random bytes),
so that no other user of the machine is served, or taken for the controller. This works on every platform.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import secrets
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
LINK = "ragbench link"
"""The name of tasks that keep a connection: they end after those that use it."""
_LENGTH = struct.Struct("!I")
_NONCE_BYTES = 32
_CLIENT, _SERVER = b"ragbench client", b"ragbench server"
AUTHENTICATION_S = 10.0
"""For the other side to prove itself."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where the owner of a run listens, and the key for it."""

    port: int
    key: bytes


def new_key() -> bytes:
    return secrets.token_bytes(32)


class Refusal(ConnectionError):
    """The other side does not know the key."""


async def connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the owner; both sides have proved themselves.

    Raises
    ------
    OSError
        Nobody listens there, or it is not the owner.
    """
    reader, writer = await asyncio.open_connection(HOST, address.port)
    _send_at_once(writer)
    try:
        async with asyncio.timeout(AUTHENTICATION_S):
            challenge, nonce = await reader.readexactly(_NONCE_BYTES), secrets.token_bytes(_NONCE_BYTES)
            writer.write(_proof(address.key, _CLIENT, challenge) + nonce)
            if not hmac.compare_digest(
                await reader.readexactly(_NONCE_BYTES), _proof(address.key, _SERVER, nonce)
            ):
                raise Refusal("the other side does not know the run's key")
    except BaseException as error:
        writer.close()
        if isinstance(error, asyncio.IncompleteReadError):
            raise Refusal("the run's controller does not accept the key") from None
        raise
    return reader, writer


async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> None:
    """The owner's side of :func:`connect`.

    Raises
    ------
    OSError
        It is no worker of this run.
    """
    _send_at_once(writer)
    challenge = secrets.token_bytes(_NONCE_BYTES)
    writer.write(challenge)
    async with asyncio.timeout(AUTHENTICATION_S):
        try:
            proof = await reader.readexactly(_NONCE_BYTES)
            nonce = await reader.readexactly(_NONCE_BYTES)
        except asyncio.IncompleteReadError:
            raise Refusal("it has left") from None
    if not hmac.compare_digest(proof, _proof(key, _CLIENT, challenge)):
        raise Refusal("it does not know the run's key")
    writer.write(_proof(key, _SERVER, nonce))


def _send_at_once(writer: asyncio.StreamWriter) -> None:
    """Without this a small message waits up to 40 ms for the other side's next one (Nagle's algorithm).

    asyncio does it only for sockets that name their protocol, which those of ``socket.create_server`` don't.
    """
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _proof(key: bytes, side: bytes, nonce: bytes) -> bytes:
    return hmac.digest(key, side + nonce, hashlib.sha256)


def send(writer: asyncio.StreamWriter, message: list[Any]) -> None:
    """Written at once as far as the connection takes it, and the rest by the loop."""
    data = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if not writer.is_closing():
        writer.write(_LENGTH.pack(len(data)) + data)


async def received(reader: asyncio.StreamReader) -> AsyncIterator[list[Any]]:
    """The other side's messages until it has gone."""
    while True:
        try:
            (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
            data = await reader.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            return
        yield json.loads(data.decode("utf-8", "surrogatepass"))
