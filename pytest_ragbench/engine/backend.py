"""What a store has to offer to the shelf: replies and claims, whatever they are kept in.

Two do: :class:`~pytest_ragbench.engine.store.Store` (one SQLite file) and
:class:`~pytest_ragbench.engine.on_redis.store.RedisStore` (for several hosts).
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pytest_ragbench.engine.owners import Owner

if TYPE_CHECKING:
    from pytest_ragbench.engine.writer import Writer

Op = Any
"""Something to be written, as the store's own :class:`Ops` makes it and its ``write`` takes it."""
Look = Callable[[Collection[str]], Awaitable[set[str] | None]]
"""Which of these digests need no more waiting; None: nothing has changed since the last look."""

LEASE = 30.0
"""Seconds that a claim lasts unless it is renewed."""
DAY = 86400.0
RUN_AGE = DAY
"""Seconds that a reply for one run alone is kept."""
UNUSED = 90 * DAY
"""Seconds that other replies are kept after their last use."""


class StoreError(Exception):
    """The store can't be used; the message says why."""


class DamagedError(StoreError):
    """The file's content is damaged: it can be moved aside. ``inode`` says which file that was."""

    inode: int | None = None


class PassingError(StoreError):
    """It can't be written now; it can still be read, and later it may be written."""


class FullError(PassingError):
    """There is no room."""


class LockedError(PassingError):
    """Somebody else has locked it: each try waits for that."""


@dataclass(frozen=True)
class Reply:
    """A stored reply. Times are seconds since the epoch; ``run`` is set where it is for one run only."""

    digest: str
    kind: str
    provider: str
    run: str | None
    created: float
    used: float
    payload: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    paid_by: str | None = None


class Kept(NamedTuple):
    """A payload, the tokens and seconds that it took when it was asked for, and the run that asked."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    paid_by: str | None = None


class Ops(Protocol):
    """Makes operations for :meth:`Backend.write`. ``now``: seconds since the epoch."""

    def open_op(self) -> Op:
        """Nothing but a look at whether the store can be used."""
        ...

    def claim_op(self, digest: str, owner: Owner, now: float) -> Op:
        """Claim a digest: the stored reply where there is one, else True (ours) or False (theirs)."""
        ...

    def put_op(self, reply: Reply, owner: Owner) -> Op:
        """Keep a reply, and give up the claim on it."""
        ...

    def discard_op(self, digest: str, payload: str) -> Op:
        """Forget a payload that can't be read, unless it has been replaced."""
        ...

    def release_op(self, digest: str, owner: Owner) -> Op:
        """Give up the claim."""
        ...

    def renew_op(self, owner: Owner, now: float) -> Op:
        """All of the owner's claims hold for another lease."""
        ...

    def used_op(self, digests: Collection[str], now: float) -> Op:
        """Note that these were of use; to the day, so that a run that only reads hardly writes."""
        ...

    def leave_op(self, owner: Owner) -> Op:
        """Give up all of the owner's claims."""
        ...


class Backend(Protocol):
    """Replies and claims. Thread-safe; every method may raise :class:`StoreError`."""

    poll: float
    """Seconds between looks at what other processes have written."""
    quick: bool
    """:meth:`find`, :meth:`claim_now` and :meth:`put_now` are quick enough for an event loop; where they
    aren't, the writer does it all."""

    @property
    def renewals(self) -> int:
        """How often there was another file (or what it is) than before, with nothing in it."""
        ...

    @property
    def name(self) -> str:
        """For messages: file or address, without a password."""
        ...

    @property
    def ops(self) -> Ops: ...

    def write(self, ops: Sequence[Op]) -> list[Any]:
        """Do the operations in order. A result may be an exception: that operation alone failed."""
        ...

    def find(self, digest: str) -> Kept | None:
        """The stored reply, or None where there is none, or only a damaged one."""
        ...

    def claim_now(self, digest: str, owner: Owner, now: float) -> bool:
        """Claim a digest here and now. False: that would take long, or there is a reply or another's claim;
        ``claim_op`` tells.
        """
        ...

    def put_now(self, reply: Reply, owner: Owner) -> bool:
        """Keep a reply here and now. False: that would take long; ``put_op`` does it."""
        ...

    def look(self, writer: Writer) -> Look:
        """For one who waits for others' replies: a function that is awaited again and again."""
        ...

    def mend(self, error: StoreError) -> str | None:
        """Where what is wrong can be set right: what was done. None where it can't."""
        ...

    def tidy(self, run: str) -> None:
        """At the end of a run: delete what is old, where it is time to."""
        ...

    def close(self) -> None: ...

    # For people

    def items(self) -> Iterator[Reply]:
        """All replies, the oldest first."""
        ...

    def stats(self) -> dict[str, Any]:
        """Counts: ``replies``, ``bytes`` of payload, ``claims``, and ``by_kind`` and ``by_provider``."""
        ...

    def mean_tokens(self, kind: str, provider: str) -> tuple[float, float] | None:
        """Prompt and completion tokens that a reply took in the mean; None where there are none to tell."""
        ...

    def delete(self, digests: Collection[str] | None = None) -> int:
        """Delete these replies, or all; returns how many there were."""
        ...

    def prune(
        self, *, run: str | None = None, run_age: float = RUN_AGE, unused: float = UNUSED,
        max_bytes: int = 500_000_000, now: float | None = None,
    ) -> int:  # fmt: skip
        """Delete what is no longer of use; returns the number of replies deleted.

        Parameters
        ----------
        run
            The run under way, whose own replies stay.
        run_age, unused
            Seconds: replies kept for another run go when older than the first, others when not used
            for the second.
        max_bytes
            Above it, those unused for longest go first.
        now
            Seconds since the epoch; default: the clock's.
        """
        ...


def checksum(digest: str, payload: str) -> str:
    """Tells whether a payload is what was put under its digest."""
    return hashlib.blake2b(f"{digest}\n{payload}".encode(), digest_size=8).hexdigest()
