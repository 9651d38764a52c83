"""What is written to the SQLite file: each function makes some statements for one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection
from typing import Any

from pytest_ragbench.engine.backend import DAY, LEASE, Kept, Reply, checksum
from pytest_ragbench.engine.owners import Owner, is_gone

Op = Callable[[sqlite3.Connection], Any]
"""Some statements inside a transaction of the writer; what it returns is handed back."""


PUT = "INSERT OR REPLACE INTO replies VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""A :func:`row_of` a reply."""
CLAIM = (
    "INSERT INTO claims SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE NOT EXISTS "
    "(SELECT 1 FROM replies WHERE digest=?1) ON CONFLICT(digest) DO NOTHING"
)
"""Where there is neither a reply nor a claim."""


def row_of(reply: Reply) -> tuple[Any, ...]:
    return (
        *(reply.digest, reply.kind, reply.provider, reply.run, reply.created, reply.used),
        *(len(reply.payload.encode()), checksum(reply.digest, reply.payload), reply.payload),
        *(reply.prompt_tokens, reply.completion_tokens, reply.seconds, reply.paid_by),
    )


def kept_in(db: sqlite3.Connection, digest: str) -> Kept | None:
    """The reply, where there is one and it is what was put there."""
    row = db.execute(
        "SELECT checksum, payload, prompt_tokens, completion_tokens, seconds, paid_by FROM replies "
        "WHERE digest=?",
        (digest,),
    ).fetchone()
    return Kept(*row[1:]) if row and row[0] == checksum(digest, row[1]) else None


def open_op() -> Op:
    return lambda db: None


def claim_op(digest: str, owner: Owner, now: float) -> Op:
    """Claim a digest: the stored payload where there is one, else True (ours) or False (theirs)."""

    def op(db: sqlite3.Connection) -> Kept | bool:
        if (kept := kept_in(db, digest)) is not None:
            return kept
        held = db.execute(
            "SELECT token, host, pid, started, expires FROM claims WHERE digest=?", (digest,)
        ).fetchone()
        if held and held[0] != owner.token and held[4] > now and not is_gone(*held[1:4]):
            return False
        db.execute(
            "INSERT OR REPLACE INTO claims VALUES(?, ?, ?, ?, ?, ?)",
            (digest, owner.token, owner.host, owner.pid, owner.started, now + LEASE),
        )
        return True

    return op


def put_op(reply: Reply, owner: Owner) -> Op:
    """Keep a reply, and give up the claim on it."""

    def op(db: sqlite3.Connection) -> None:
        db.execute(PUT, row_of(reply))
        db.execute("DELETE FROM claims WHERE digest=? AND token=?", (reply.digest, owner.token))

    return op


def discard_op(digest: str, payload: str) -> Op:
    """Forget a payload that can't be read, unless it has been replaced."""
    return lambda db: (
        db.execute("DELETE FROM replies WHERE digest=? AND payload=?", (digest, payload)).rowcount
    )


def release_op(digest: str, owner: Owner) -> Op:
    return lambda db: (
        db.execute("DELETE FROM claims WHERE digest=? AND token=?", (digest, owner.token)).rowcount
    )


def renew_op(owner: Owner, now: float) -> Op:
    """The note makes it a change in any case: SQLite takes its log into the file after one."""

    def op(db: sqlite3.Connection) -> None:
        db.execute("UPDATE claims SET expires=? WHERE token=?", (now + LEASE, owner.token))
        db.execute("INSERT OR REPLACE INTO meta VALUES('renewed', ?)", (now,))

    return op


def used_op(digests: Collection[str], now: float) -> Op:
    """Note that these were of use; to the day, so that a run that only reads hardly writes."""

    def op(db: sqlite3.Connection) -> None:
        rows = [(now, digest, now - DAY) for digest in digests]
        db.executemany("UPDATE replies SET used=? WHERE digest=? AND used<?", rows)

    return op


def leave_op(owner: Owner) -> Op:
    return lambda db: db.execute("DELETE FROM claims WHERE token=?", (owner.token,)).rowcount


def prune_op(run: str | None, run_before: float, unused_before: float, max_bytes: int, now: float) -> Op:
    def op(db: sqlite3.Connection) -> int:
        deleted = db.execute(
            "DELETE FROM replies WHERE scope_run IS NOT NULL AND scope_run IS NOT ? AND created < ?",
            (run, run_before),
        ).rowcount
        deleted += db.execute(
            "DELETE FROM replies WHERE scope_run IS NULL AND used < ?", (unused_before,)
        ).rowcount
        deleted += db.execute(
            "DELETE FROM replies WHERE digest IN (SELECT digest FROM (SELECT digest, SUM(size) OVER "
            "(ORDER BY used DESC, digest ROWS UNBOUNDED PRECEDING) AS total FROM replies) WHERE total > ?)",
            (max_bytes,),
        ).rowcount
        db.execute("DELETE FROM claims WHERE expires < ?", (now - DAY,))
        db.execute("INSERT OR REPLACE INTO meta VALUES('pruned', ?)", (now,))
        return deleted

    return op
