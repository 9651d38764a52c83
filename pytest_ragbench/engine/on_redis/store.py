"""Replies and claims in a Redis server."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from operator import methodcaller
from typing import Any

from pytest_ragbench.engine.coordinator import Kept, Reply
from pytest_ragbench.engine.inventory import DAY, MOST_BYTES, RUN_AGE, UNUSED
from pytest_ragbench.engine.on_redis.keys import Keys
from pytest_ragbench.engine.on_redis.link import Link, Script
from pytest_ragbench.model.redis_url import Address

LEASE_S = 15.0
"""That what a process holds lasts unless it is renewed."""
_CLAIM_S = 3600.0
"""After which a claim that was never given up is forgotten."""
_PAGE = 500


def ms(seconds: float) -> int:
    return int(seconds * 1000)


class ReplyScripts:
    """What is done with replies and claims in one piece, for one process (``token``)."""

    def __init__(self, keys: Keys, token: str) -> None:
        self._keys = keys
        self._token = token

    def claim(self, digest: str) -> Script:
        """The stored reply where there is one, else True (ours) or False (somebody else is on it)."""
        keys = self._keys
        return Script(
            "claim",
            [keys("reply", digest), keys("claim", digest), keys("alive", self._token)],
            [digest, self._token, ms(LEASE_S), ms(_CLAIM_S), keys.alive],
            lambda reply: bool(reply) if isinstance(reply, int) else _kept(reply[1:]),
        )

    def put(self, reply: Reply) -> Script:
        """Keep a reply, and give up the claim on it."""
        keys, digest = self._keys, reply.digest
        fields: dict[str, str | int | float | None] = {
            "kind": reply.kind,
            "provider": reply.provider,
            "run": reply.run,
            "created": reply.created,
            "used": reply.used,
            "size": len(reply.payload.encode()),
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "seconds": reply.seconds,
            "paid_by": reply.paid_by,
        }
        flat = [part for name, value in fields.items() if value is not None for part in (name, value)]
        lasts = ms(UNUSED if reply.run is None else RUN_AGE)
        return Script(
            "put",
            [keys("reply", digest), keys("claim", digest), keys("changes")],
            [self._token, lasts, digest, reply.payload, *flat],
        )

    def discard(self, digest: str, payload: str) -> Script:
        return Script("discard", [self._keys("reply", digest)], [payload])

    def release(self, digest: str) -> Script:
        return Script("release", [self._keys("claim", digest), self._keys("changes")], [self._token])

    def used(self, digests: Collection[str], now: float) -> Script:
        """Note that these were of use; to the day."""
        return Script("used", [self._keys("reply", each) for each in digests], [now, DAY, ms(UNUSED)])

    def look(self, digests: Sequence[str], seen: str) -> Script:
        """Which of these need no more waiting, where anything has changed since ``seen``."""
        keys = self._keys
        pairs = [key for each in digests for key in (keys("reply", each), keys("claim", each))]
        return Script("look", [keys("changes"), *pairs], [seen, keys.alive])


class RedisInventory:
    """As every :class:`~pytest_ragbench.engine.store.Inventory`; what is old goes by Redis' own expiry."""

    def __init__(self, address: Address) -> None:
        """Nothing is opened yet."""
        self._keys = Keys(address.prefix)
        self._link = Link(address)

    @property
    def name(self) -> str:
        return self._link.address.shown

    def check(self) -> None:
        """Whether it can be used; StoreError says why not."""
        self._link.write([Script("open", [])])

    def find(self, digest: str) -> Kept | None:
        names = ("payload", "prompt_tokens", "completion_tokens", "seconds", "paid_by", "checksum")
        *fields, found = self._link.ask(lambda client: client.hmget(self._keys("reply", digest), names))
        if fields[0] is None or found is None:
            return None
        # SHA-1, because Redis' scripts have no other; it guards against damage, not against an attacker.
        whole = hashlib.sha1(f"{digest}\n".encode() + fields[0], usedforsecurity=False).hexdigest()
        return _kept(fields) if whole == found.decode() else None

    def close(self) -> None:
        self._link.close()

    # For people

    def items(self) -> Iterator[Reply]:
        found = [_reply(digest, fields) for digest, fields in self._replies()]
        return iter(sorted(found, key=lambda reply: (reply.created, reply.digest)))

    def stats(self) -> dict[str, Any]:
        sizes: list[int] = []
        by_kind: Counter[str] = Counter()
        by_provider: Counter[str] = Counter()
        for reply in self.items():
            sizes.append(len(reply.payload.encode()))
            by_kind[reply.kind] += 1
            by_provider[reply.provider] += 1
        return {
            "replies": len(sizes),
            "bytes": sum(sizes),
            "by_kind": dict(sorted(by_kind.items())),
            "by_provider": dict(sorted(by_provider.items())),
        }

    def mean_tokens(self, kind: str, provider: str) -> tuple[float, float] | None:
        told = [
            (reply.prompt_tokens, reply.completion_tokens)
            for reply in self.items()
            if (reply.kind, reply.provider) == (kind, provider) and reply.prompt_tokens > 0
        ]
        if not told:
            return None
        return sum(each[0] for each in told) / len(told), sum(each[1] for each in told) / len(told)

    def delete(self, digests: Collection[str] | None = None) -> int:
        chosen = [reply.digest for reply in self.items()] if digests is None else list(digests)
        deleted = 0
        for start in range(0, len(chosen), _PAGE):
            part = [self._keys("reply", digest) for digest in chosen[start : start + _PAGE]]
            deleted += self._link.ask(methodcaller("delete", *part))
        return deleted

    def prune(
        self, *, run: str | None = None, run_age: float = RUN_AGE, unused: float = UNUSED,
        max_bytes: int = MOST_BYTES, now: float | None = None,
    ) -> int:  # fmt: skip
        """Runs have no need to: replies expire."""
        moment = time.time() if now is None else now
        old: list[str] = []
        total = 0
        for reply in sorted(self.items(), key=lambda each: -each.used):
            if reply.run is not None:
                over = reply.run != run and reply.created < moment - run_age
            else:
                over = reply.used < moment - unused
            total += len(reply.payload.encode())
            if over or total > max_bytes:
                old.append(reply.digest)
        return self.delete(old)

    def _replies(self) -> Iterator[tuple[str, dict[bytes, bytes]]]:
        start = self._keys("reply", "")
        names: list[bytes] = self._link.ask(lambda client: list(client.scan_iter(f"{start}*", _PAGE)))
        # SCAN may return a key twice.
        names = sorted(set(names))
        for first in range(0, len(names), _PAGE):
            part = names[first : first + _PAGE]

            def read(client: Any, part: list[bytes] = part) -> list[dict[bytes, bytes]]:
                pipe = client.pipeline(transaction=False)
                for name in part:
                    pipe.hgetall(name)
                found: list[dict[bytes, bytes]] = pipe.execute()
                return found

            for name, fields in zip(part, self._link.ask(read), strict=True):
                if fields:
                    yield name.decode().removeprefix(start), fields


def _kept(fields: Sequence[bytes | None]) -> Kept:
    payload, prompt, completion, seconds, paid_by = fields
    return Kept(
        (payload or b"").decode(),
        int(prompt or 0),
        int(completion or 0),
        float(seconds or 0),
        paid_by.decode() if paid_by is not None else None,
    )


def _reply(digest: str, fields: dict[bytes, bytes]) -> Reply:
    text = {name.decode(): value.decode() for name, value in fields.items()}
    return Reply(
        digest,
        text["kind"],
        text["provider"],
        text.get("run"),
        float(text["created"]),
        float(text["used"]),
        text["payload"],
        int(text.get("prompt_tokens", 0)),
        int(text.get("completion_tokens", 0)),
        float(text.get("seconds", 0)),
        text.get("paid_by"),
    )
