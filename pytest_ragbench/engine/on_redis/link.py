"""One connection to a Redis server: operations go out together, and what goes wrong is a :class:`StoreError`."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any, TypeVar

import redis
from redis.backoff import ConstantBackoff
from redis.exceptions import NoScriptError, OutOfMemoryError, RedisError
from redis.retry import Retry

from pytest_ragbench.engine.counters import Change
from pytest_ragbench.engine.inventory import PassingError, StoreError
from pytest_ragbench.engine.on_redis import scripts
from pytest_ragbench.model.redis_url import Address

TIMEOUT_S = 3.0
"""Seconds for a connection and for a reply; a server that is slower counts as gone."""
PATIENCE_S = 5.0
"""Seconds for a server that has answered before and refuses connections now: it may be on its way back."""
_AGAIN = 0.2
"""Seconds until the next try of a connection that broke."""
_NUMBERS = struct.Struct("=7d")
_ZERO = bytes(_NUMBERS.size)
_TRIES = 1000
"""Of changing a row that others change all the time; each try fails only where another one succeeded."""

T = TypeVar("T")
Value = str | bytes | int | float


@dataclass(frozen=True)
class Script:
    """A script of :mod:`~pytest_ragbench.engine.on_redis.scripts`, what to run it on, and how to read its reply."""

    script: str
    keys: Sequence[str]
    values: Sequence[Value] = ()
    read: Callable[[Any], Any] = lambda reply: reply


@dataclass(frozen=True)
class RowChange:
    """A change of a row of seven numbers; the result is what ``work`` returned, and the row."""

    key: str
    work: Change[Any]
    lasts: float
    """Seconds that the row is kept after its last change."""


class Link:
    """Thread-safe. Every method may raise :class:`StoreError`."""

    def __init__(self, address: Address) -> None:
        """Nothing is opened yet."""
        self.address = address
        self._lock = RLock()
        self._client: redis.Redis | None = None
        self._digests: Mapping[str, str] = {}
        self._rows: dict[str, bytes] = {}
        self._has_answered = False

    def write(self, ops: Sequence[Script | RowChange]) -> list[Any]:
        """Do them in order, but changes of rows after the scripts."""

        def do() -> list[Any]:
            results: list[Any] = [None] * len(ops)
            self._run([(n, op) for n, op in enumerate(ops) if isinstance(op, Script)], results)
            for key in {op.key: None for op in ops if isinstance(op, RowChange)}:
                own = [(n, op) for n, op in enumerate(ops) if isinstance(op, RowChange) and op.key == key]
                self._change(own, results)
            return results

        return self._patiently(do)

    def ask(self, work: Callable[[redis.Redis], Any]) -> Any:
        """What ``work`` finds out with the client."""
        return self._patiently(lambda: work(self._connected()))

    def _patiently(self, work: Callable[[], T]) -> T:
        """What may be done again as a whole, where the server goes away and comes back (a restart, a failover)."""
        with self._lock:
            deadline = time.monotonic() + PATIENCE_S
            while True:
                try:
                    result = work()
                except (RedisError, OSError) as error:
                    away = isinstance(error, redis.ConnectionError) and not isinstance(
                        error, redis.AuthenticationError
                    )
                    if not (away and self._has_answered) or time.monotonic() > deadline:
                        raise self._explained(error) from None
                    time.sleep(_AGAIN)
                else:
                    self._has_answered = True
                    return result

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    def _connected(self) -> redis.Redis:
        if self._client is None:
            client = redis.Redis.from_url(
                self.address.url,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                retry=Retry(ConstantBackoff(_AGAIN), 1),
                client_name="pytest-ragbench",
            )
            self._load(client)
            self._client = client
        return self._client

    def _load(self, client: redis.Redis) -> None:
        self._digests = {name: str(client.script_load(text)) for name, text in scripts.ALL.items()}

    def _run(self, calls: list[tuple[int, Script]], results: list[Any]) -> None:
        if not calls:
            return
        client = self._connected()
        missing = self._send(client, calls, results)
        if missing:  # the server has been started anew
            self._load(client)
            if self._send(client, missing, results):
                raise StoreError("it forgets scripts as soon as they are loaded")

    def _send(
        self, client: redis.Redis, calls: list[tuple[int, Script]], results: list[Any]
    ) -> list[tuple[int, Script]]:
        """Those whose script the server does not know are handed back."""
        pipe = client.pipeline(transaction=False)
        for _, call in calls:
            pipe.evalsha(self._digests[call.script], len(call.keys), *call.keys, *call.values)
        missing = []
        for (number, call), reply in zip(calls, pipe.execute(raise_on_error=False), strict=True):
            if isinstance(reply, NoScriptError):
                missing.append((number, call))
            elif isinstance(reply, OutOfMemoryError):
                results[number] = self._explained(reply)
            elif isinstance(reply, Exception):
                raise reply
            else:
                results[number] = call.read(reply)
        return missing

    def _change(self, changes: list[tuple[int, RowChange]], results: list[Any]) -> None:
        """Compare and set: what others have changed meanwhile is never overwritten."""
        key, lasts = changes[0][1].key, int(changes[0][1].lasts * 1000)
        before = known = self._rows.get(key, _ZERO)
        for _ in range(_TRIES):
            row = list(_NUMBERS.unpack(known))
            for number, change in changes:
                results[number] = change.work(row), row
            after = _NUMBERS.pack(*row)
            found: list[Any] = [None]
            self._run([(0, Script("compare_and_set", [key], [before, after, lasts]))], found)
            if isinstance(found[0], Exception):
                raise found[0]
            if found[0] == 1:
                self._rows[key] = after
                return
            there = isinstance(found[0], bytes) and len(found[0]) == len(_ZERO)
            if there or before == _ZERO:
                before = known = found[0] if there else _ZERO
            else:  # the server has been started anew, empty: what was known here last goes on
                before = _ZERO
        raise StoreError(f"{key} is changed by others all the time")

    def _explained(self, error: Exception) -> StoreError:
        text = self.address.without_password(str(error)) or type(error).__name__
        return (PassingError if isinstance(error, OutOfMemoryError) else StoreError)(text)


def row_of(packed: bytes | None) -> list[float]:
    """A row's seven numbers; zeros for one that has never been changed."""
    return list(_NUMBERS.unpack(packed if packed is not None and len(packed) == _NUMBERS.size else _ZERO))
