"""Where models of files run: in the process that owns the run (xdist's controller). One server a model.

The engine asks for it there (:meth:`~pytest_ragbench.engine.core.Engine.host`): the first question starts the model,
and all are told where it is. It is within that process: when that ends, however it ends, nothing stays behind.
"""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from dataclasses import astuple, dataclass
from typing import Any

from pytest_ragbench.model.errors import UsageError


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


def address_of(model: Model) -> Address:
    """Where ``model`` answers; it is started where it is not running yet.

    Raises
    ------
    UsageError
        llama.cpp can't run it: a damaged file, an unknown architecture, not enough memory.
    """
    with _lock:
        if model not in _servers:
            _servers[model] = _start(model)
        return _servers[model][0]


def told_address(path: str, n_ctx: int, parallel: int, threads: int | None) -> list[str]:
    """As :func:`address_of`, in builtin types: URL and key."""
    return list(astuple(address_of(Model(path, n_ctx, parallel, threads))))


def _start(model: Model) -> tuple[Address, Any]:
    import xllamacpp

    key = secrets.token_hex(16)
    # In a container fewer cores may be ours than the machine has.
    threads = (
        model.threads or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else model.threads
    )
    params = xllamacpp.CommonParams()
    params.model.path = model.path
    params.n_ctx = model.n_ctx * model.parallel  # each of them has the whole context
    params.n_parallel = model.parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads or os.cpu_count() or 1
    params.warmup = False  # the first question warms it up
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
