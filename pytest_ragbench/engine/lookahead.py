"""Look-ahead, the engine's part: fetches made for tests that have not begun.

A guess runs the same code as the test will, with :data:`looking_ahead` set, and its result is thrown
away: the replies stay in the store (or in memory), and a fetch under way is joined by the test.
What a guess paid is put down to the test that comes for it; see :class:`Prefetched`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pytest_ragbench.model.scores import Usage

T = TypeVar("T")

looking_ahead: ContextVar[bool] = ContextVar("ragbench_looking_ahead", default=False)
"""Set in everything that runs for a guess."""
for_own_test: ContextVar[bool] = ContextVar("ragbench_for_own_test", default=False)
"""Set where the guess is for a test that this process will run."""

_AT_HAND = 2000
"""Replies of guesses that are kept for their tests; more than a window of 400 tests asks for."""


@dataclass(frozen=True)
class Receipt:
    """One fetch of a guess, for the test that takes over what was made of it.

    Parameters
    ----------
    digest
        Of the request; None where nothing was asked and nothing stored.
    paid
        Whether it was this guess that paid.
    note
        What the fetch of a test would have counted and recorded; on the engine's loop. None: nothing.
    elsewhere
        A guess of another process paid: which test that counts for, only the coordinator can say.
    """

    digest: str | None
    paid: bool = False
    note: Callable[[], None] | None = None
    elsewhere: bool = False


receipts: ContextVar[list[Receipt] | None] = ContextVar("ragbench_receipts", default=None)
"""Where the fetches of a guess leave theirs."""


@dataclass(frozen=True)
class Obtained(Generic[T]):
    """What one fetch brought, for all who wait for it: the reply as it is kept, and the first one's value."""

    text: str
    value: T
    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0
    cached: bool = False
    paid_in_run: bool = False
    """Stored, but asked for by this very run: by a guess of another worker, as a rule."""


@dataclass(frozen=True)
class Guessed:
    """What a guess's fetch ended in: what it took, or its error."""

    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0
    error: Exception | None = None
    got: Obtained[Any] | None = None
    """The reply itself, of the latest ones: its test need not read it from the store."""


class Prefetched:
    """By digest, what guesses of this process have paid for and no test has come for yet.

    An error is handed to the test that would have met it: the retries are used up, and it does not ask
    all over again. It is handed out once, so that a rerun asks anew.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Guessed] = {}
        self._latest: deque[str] = deque()
        self.first_takers: dict[str, bool] = {}
        """What the coordinator has said already of a test to come: whether it is the first to take a reply."""

    def note(self, digest: str, task: asyncio.Task[Any]) -> None:
        """Keep the outcome of a finished fetch, unless it was cancelled or nobody was asked."""
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            got = task.result()
            if not got.cached:
                self._kept[digest] = Guessed(got.usage, got.duration, got=got)
                self._latest.append(digest)
                # Replies can be long: usage and duration are kept for all guesses, the text for the latest only.
                if len(self._latest) > _AT_HAND:
                    self._forget(self._latest.popleft())
        # The breaker was open, or the run is ending: the test may have better luck, and asks itself.
        elif isinstance(error, Exception) and getattr(error, "code", "") not in ("unavailable", "cancelled"):
            self._kept[digest] = Guessed(error=error)

    def take(self, digest: str) -> Guessed | None:
        """What was paid for this request, once. Its error, if that is what it ended in, is raised."""
        kept = self._kept.pop(digest, None)
        if kept is not None and kept.error is not None:
            raise kept.error.with_traceback(None)
        return kept

    def take_all(self, receipts: Sequence[Receipt]) -> bool:
        """What guesses paid, for the test that takes over what was made of it; from any thread.

        False, and nothing taken, where another test has come for a part of it, or will.
        """
        paid = {receipt.digest for receipt in receipts if receipt.paid}
        if any(receipt.digest in self._kept for receipt in receipts if receipt.digest not in paid):
            return False
        taken: dict[str, Guessed] = {}
        for digest in paid:
            kept = self._kept.pop(digest or "", None)
            # All or nothing: a test that took a part of it would pay for the rest again.
            if kept is None or kept.error is not None:
                self._kept.update(taken if kept is None else {**taken, str(digest): kept})
                return False
            taken[str(digest)] = kept
        return True

    def _forget(self, digest: str) -> None:
        """The tests of other workers come for the reply elsewhere."""
        if digest in self._kept:
            self._kept[digest] = replace(self._kept[digest], got=None)
