"""Replies and claims in a Redis server."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from pytest_ragbench.engine.backend import (
    DAY,
    LEASE,
    RUN_AGE,
    UNUSED,
    Kept,
    Look,
    Ops,
    Reply,
    StoreError,
)
from pytest_ragbench.engine.on_redis.keys import Keys, has_gone, who
from pytest_ragbench.engine.on_redis.link import Call, Link
from pytest_ragbench.engine.owners import Owner
from pytest_ragbench.model.redis_url import Address

if TYPE_CHECKING:
    from pytest_ragbench.engine.writer import Writer

_CLAIM = 3600.0
"""Seconds after which a claim that nobody gave up is forgotten."""
_CHECK = 0.5
"""Seconds between looks at whether those waited for still live."""
_PAGE = 500


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


class RedisOps:
    """What is written: one script each."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def open_op(self) -> Call:
        return Call("open", [])

    def claim_op(self, digest: str, owner: Owner, now: float) -> Call:
        keys = self._keys
        return Call(
            "claim",
            [keys("reply", digest), keys("claim", digest), keys("alive", owner.token)],
            [digest, owner.token, who(owner), _ms(LEASE), _ms(_CLAIM), keys.alive],
            lambda reply: bool(reply) if isinstance(reply, int) else _kept(reply[1:]),
        )

    def put_op(self, reply: Reply, owner: Owner) -> Call:
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
        lasts = _ms(UNUSED if reply.run is None else RUN_AGE)
        return Call(
            "put",
            [keys("reply", digest), keys("claim", digest), keys("changes")],
            [owner.token, lasts, digest, reply.payload, *flat],
        )

    def discard_op(self, digest: str, payload: str) -> Call:
        return Call("discard", [self._keys("reply", digest)], [payload])

    def release_op(self, digest: str, owner: Owner) -> Call:
        return Call("release", [self._keys("claim", digest), self._keys("changes")], [owner.token])

    def renew_op(self, owner: Owner, now: float) -> Call:
        return Call("renew", [self._keys("alive", owner.token)], [who(owner), _ms(LEASE)])

    def used_op(self, digests: Collection[str], now: float) -> Call:
        return Call("used", [self._keys("reply", each) for each in digests], [now, DAY, _ms(UNUSED)])

    def leave_op(self, owner: Owner) -> Call:
        """Its claims hold no longer than it lives."""
        return self.bury_op([owner.token])

    def bury_op(self, tokens: Collection[str]) -> Call:
        return Call("bury", [*(self._keys("alive", token) for token in tokens), self._keys("changes")])

    def look_op(self, digests: Sequence[str], seen: str) -> Call:
        keys = self._keys
        pairs = [key for each in digests for key in (keys("reply", each), keys("claim", each))]
        return Call("look", [keys("changes"), *pairs], [seen, keys.alive])


class RedisStore:
    """As every :class:`~pytest_ragbench.engine.backend.Backend`; what is old goes by Redis' own expiry."""

    poll = 0.02
    quick = False
    renewals = 0

    def __init__(self, address: Address) -> None:
        """Nothing is opened yet."""
        self._keys = Keys(address.prefix)
        self._link = Link(address)
        self._ops = RedisOps(self._keys)

    @property
    def name(self) -> str:
        return self._link.address.shown

    @property
    def ops(self) -> Ops:
        return self._ops

    def write(self, ops: Sequence[Call]) -> list[Any]:
        return self._link.write(ops)

    def find(self, digest: str) -> Kept | None:
        names = ("payload", "prompt_tokens", "completion_tokens", "seconds", "paid_by", "checksum")
        *fields, found = self._link.ask(lambda client: client.hmget(self._keys("reply", digest), names))
        if fields[0] is None or found is None:
            return None
        whole = hashlib.sha1(f"{digest}\n".encode() + fields[0], usedforsecurity=False).hexdigest()
        return _kept(fields) if whole == found.decode() else None

    def claim_now(self, digest: str, owner: Owner, now: float) -> bool:
        return False

    def put_now(self, reply: Reply, owner: Owner) -> bool:
        return False

    def look(self, writer: Writer) -> Look:
        """One number tells whether anything has been written; now and then it is looked at who still lives."""
        seen, checked = "", 0.0

        async def look(digests: Collection[str]) -> set[str] | None:
            nonlocal seen, checked
            wanted, now = list(digests), time.monotonic()
            if now - checked > _CHECK:
                seen, checked = "", now
            changes, *found = await writer.do(self._ops.look_op(wanted, seen))
            seen = changes.decode()
            if not found:
                return None
            held = {
                digest: (holder[0].decode(), holder[1].decode())
                for digest, holder in zip(wanted, found, strict=True)
                if holder != 1
            }
            gone = {token for token, text in set(held.values()) if has_gone(text)}
            if gone:
                await writer.do(self._ops.bury_op(gone))
            return {digest for digest in wanted if digest not in held or held[digest][0] in gone}

        return look

    def mend(self, error: StoreError) -> str | None:
        return None

    def tidy(self, run: str) -> None:
        """Each reply runs out by itself."""

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
        claims = self._link.ask(lambda client: len(list(client.scan_iter(self._keys("claim", "*"), _PAGE))))
        return {
            "replies": len(sizes),
            "bytes": sum(sizes),
            "claims": claims,
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
        max_bytes: int = 500_000_000, now: float | None = None,
    ) -> int:  # fmt: skip
        """As every backend. Runs have no need to: replies expire."""
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
