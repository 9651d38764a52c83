"""Where models of files run: in this process, or, for xdist's workers, in their controller's. One server a model.

The controller's :class:`Host` waits for workers that need a model, starts it for the first and tells the others where
it is. All of it is within its process: when that ends, however it ends, nothing stays behind.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


@dataclass(frozen=True, slots=True)
class Model:
    """A model file (absolute path), and how it is run. ``threads``: None for one a core."""

    path: str
    n_ctx: int
    parallel: int
    threads: int | None


@dataclass(frozen=True, slots=True)
class Address:
    """Of a server: URL without ``/v1``, and the key that it wants."""

    url: str
    key: str


_lock = threading.Lock()
_servers: dict[Model, tuple[Address, Any]] = {}
_host: list[tuple[int, bytes]] = []


def address_of(model: Model) -> Address:
    """Where ``model`` answers; it is started where it is not running yet.

    Raises
    ------
    UsageError
        llama.cpp can't run it: a damaged file, an unknown architecture, not enough memory.
    """
    for port, secret in _host:
        if (told := _asked(port, secret, model)) is not None:
            return told
    with _lock:
        if model not in _servers:
            _servers[model] = _start(model)
        return _servers[model][0]


def _start(model: Model) -> tuple[Address, Any]:
    import xllamacpp

    key = secrets.token_hex(16)
    threads = (
        model.threads or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else model.threads
    )
    params = xllamacpp.CommonParams()
    params.model.path = model.path
    params.n_ctx = model.n_ctx * model.parallel  # each of them has the whole context
    params.n_parallel = model.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or os.cpu_count() or 1
    params.warmup = False
    params.verbosity = -1
    params.api_keys = [key]
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        raise UsageError(
            f"llama.cpp can't run {model.path!r} with n_ctx {model.n_ctx} times {model.parallel}: {error} "
            "It may be damaged, newer than xllamacpp, or too large for the memory: set gguf.n_ctx or "
            "gguf.parallel lower"
        ) from None
    return Address(str(server.listening_address), key), server


@atexit.register
def stop() -> None:
    """End all servers of this process."""
    with _lock:
        _servers.clear()


class Host:
    """On the controller: starts models for workers. ``port`` and ``secret`` are for them alone."""

    def __init__(self) -> None:
        from multiprocessing.connection import Listener

        self.secret = secrets.token_bytes(16)
        self._listener = Listener(("127.0.0.1", 0), authkey=self.secret)
        self.port = int(self._listener.address[1])
        threading.Thread(target=self._serve, name="ragbench-gguf", daemon=True).start()

    def close(self) -> None:
        """Take no more questions, and end the servers."""
        self._listener.close()
        stop()

    def _serve(self) -> None:
        from multiprocessing import AuthenticationError

        while True:
            try:
                connection = self._listener.accept()
            except (AuthenticationError, EOFError, ConnectionError):
                continue
            except OSError:  # closed
                return
            with connection, suppress(OSError, EOFError):
                self._answer(connection)

    def _answer(self, connection: Connection[Any, Any]) -> None:
        try:
            address = address_of(Model(*connection.recv()))
        except UsageError as error:
            connection.send(("error", str(error)))
        else:
            connection.send(("address", *astuple(address)))


def use_host(port: int, secret: bytes) -> None:
    """In a worker: models run in the controller's process."""
    _host[:] = [(port, secret)]


def _asked(port: int, secret: bytes, model: Model) -> Address | None:
    """What the host says; None where there is none, as for workers on other machines."""
    from multiprocessing import AuthenticationError
    from multiprocessing.connection import Client

    try:
        with Client(("127.0.0.1", port), authkey=secret) as connection:
            connection.send(astuple(model))
            kind, *told = connection.recv()
    except (OSError, EOFError, AuthenticationError):
        return None
    if kind == "error":
        raise UsageError(told[0])
    return Address(*told)
