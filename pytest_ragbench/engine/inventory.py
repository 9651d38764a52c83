"""What is in a store, for people, wherever it is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Protocol

from pytest_ragbench.engine.coordinator import Reply
from pytest_ragbench.model.redis_url import Address

DAY = 86400.0
RUN_AGE = DAY
"""Seconds that a reply for one run alone is kept."""
UNUSED = 90 * DAY
"""Seconds that other replies are kept after their last use."""
MOST_BYTES = 500_000_000


class StoreError(Exception):
    """The store can't be used; the message says why."""


class DamagedError(StoreError):
    """The file's content is damaged: it can be moved aside. ``inode`` says which file that was."""

    inode: int | None = None


class PassingError(StoreError):
    """It can't be written now (there is no room); it can still be read, and later it may be written."""


class LockedError(PassingError):
    """Somebody else has locked it."""


class Inventory(Protocol):
    """Replies, for people: what the command line shows and deletes. Any method may raise :class:`StoreError`."""

    @property
    def name(self) -> str:
        """For messages: file or address, without a password."""
        ...

    def items(self) -> Iterator[Reply]:
        """All replies, the oldest first."""
        ...

    def stats(self) -> dict[str, Any]:
        """Counts: ``replies``, ``bytes`` of payload, and ``by_kind`` and ``by_provider``."""
        ...

    def mean_tokens(self, kind: str, provider: str) -> tuple[float, float] | None:
        """Prompt and completion tokens that a reply took in the mean; None where there are none to tell."""
        ...

    def delete(self, digests: Collection[str] | None = None) -> int:
        """Delete these replies, or all; returns how many there were."""
        ...

    def prune(
        self,
        *,
        run: str | None = None,
        run_age: float = RUN_AGE,
        unused: float = UNUSED,
        max_bytes: int = MOST_BYTES,
        now: float | None = None,
    ) -> int:
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

    def check(self) -> None:
        """Whether it can be used; the error says why not."""
        ...

    def close(self) -> None: ...


def inventory_of(place: Path | str | None) -> Inventory | None:
    """The replies in a file, or on a Redis server (its URL). Nothing is opened yet."""
    if place is None:
        return None
    # Imported here: sqlite3 and redis cost start-up time, and a run uses one of them at most.
    if isinstance(place, Path):
        from pytest_ragbench.engine.store import Store

        return Store(place)
    from pytest_ragbench.engine.on_redis.store import RedisInventory

    return RedisInventory(Address.parse(place))
