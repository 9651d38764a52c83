"""The coordinator of the process that owns the run: plain objects on one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from pytest_ragbench.engine.budget import Budget, Caps
from pytest_ragbench.engine.coordinator import Attempt, Event, Failure, Kept, Outcome, Permit, Reply
from pytest_ragbench.engine.counters import LocalCounters
from pytest_ragbench.engine.permits import Clock, Permits, Sleep
from pytest_ragbench.engine.prices import Prices
from pytest_ragbench.engine.recording import Recorder
from pytest_ragbench.engine.replies import Replies
from pytest_ragbench.engine.slots import LocalSlots
from pytest_ragbench.engine.store import Store
from pytest_ragbench.engine.usage import UsageSums

HOSTED = {"model": "pytest_ragbench.judge.gguf_server:told_address"}
"""What :meth:`LocalCoordinator.host` does: name -> ``module:function``, run in a thread."""


async def hosted(name: str, arguments: list[Any]) -> Any:
    """Do in this process what is asked for by :meth:`~pytest_ragbench.engine.coordinator.Coordinator.host`."""
    module, _, function = HOSTED[name].partition(":")
    return await asyncio.to_thread(getattr(import_module(module), function), *arguments)


def count(event: Event, usage: UsageSums, prices: Prices, recorder: Recorder | None) -> None:
    """What :meth:`~pytest_ragbench.engine.coordinator.Coordinator.note` does where all comes together."""
    if event.what == "stored":
        model = event.model
        usage.add_stored(
            event.kind,
            event.provider,
            model,
            event.saved,
            lambda: None if model is None else prices(event.provider, model),
        )
    elif event.what == "failed":
        usage.of(event.kind).failed += 1
    elif recorder is not None:
        recorder.write(event.identity, event.line)


class LocalCoordinator:
    """As every :class:`~pytest_ragbench.engine.coordinator.Coordinator`.

    Parameters
    ----------
    store
        Where replies are kept; None: in memory.
    """

    def __init__(
        self,
        store: Store | None,
        run_id: str,
        loop: asyncio.AbstractEventLoop,
        *,
        caps: Caps,
        prices: Prices,
        usage: UsageSums,
        recorder: Recorder | None,
        warn: Callable[[str], None],
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        self.shared = False
        self.counters = LocalCounters()
        budget = Budget(caps, self.counters)
        self.permits = Permits(LocalSlots(), self.counters, budget, prices, usage, sleep=sleep, clock=clock)
        self._run = run_id
        self._loop = loop
        self._replies = Replies(store, run_id, loop, warn)
        self._claims: dict[str, list[asyncio.Future[None]]] = {}
        """Calls that somebody makes, and who waits for what comes of them."""
        self._failures: dict[str, Failure] = {}
        self._taken: set[str] = set()
        self._prices = prices
        self._usage = usage
        self._recorder = recorder

    def stored(self, digest: str) -> Kept | None:
        return self._replies.get(digest)

    async def claim(
        self, digest: str, *, ahead: bool, own: bool = False, unreadable: str | None = None
    ) -> Kept | Failure | None:
        # The file is opened in a thread, so that a store which is locked holds up this claim and no other work.
        await self._replies.ready()
        if unreadable is not None:
            self._replies.discard(digest, unreadable)
        # After a wait everything may have changed: the reply is there, or somebody else claimed first.
        while True:
            if (kept := self._replies.get(digest)) is not None:
                return self._first_taken(digest, kept, ahead)
            waiting = self._claims.get(digest)
            if waiting is None:
                break
            waiting.append(self._loop.create_future())
            await waiting[-1]
        if (failure := self._failures.get(digest)) is not None:
            if not ahead:
                del self._failures[digest]
            return failure
        self._claims[digest] = []
        if own or not ahead:
            self._taken.add(digest)
        return None

    def publish(self, digest: str, outcome: Reply | Failure | None) -> None:
        waiting = self._claims.pop(digest, ())
        if isinstance(outcome, Reply):
            self._replies.put(outcome)
        else:
            # Nothing was paid, so whoever asks next is the first again.
            self._taken.discard(digest)
            # In a run of one process the guess hands its error over itself.
            if isinstance(outcome, Failure) and self.shared:
                self._failures[digest] = outcome
        for change in waiting:
            # Who has left meanwhile has cancelled it.
            if not change.done():
                change.set_result(None)

    async def enter(self, attempt: Attempt) -> Permit:
        return await self.permits.enter(attempt)

    async def leave(self, permit: Permit, outcome: Outcome) -> float:
        return self.permits.leave(permit, outcome)

    async def take(self, digest: str) -> bool:
        self._failures.pop(digest, None)
        if digest in self._taken:
            return False
        self._taken.add(digest)
        return True

    async def claim_tests(self, numbers: Collection[int]) -> set[int]:
        return set(numbers)

    def note(self, event: Event) -> None:
        count(event, self._usage, self._prices, self._recorder)

    async def host(self, name: str, arguments: list[Any]) -> Any:
        return await hosted(name, arguments)

    async def close(self) -> None:
        self._replies.close()

    def _first_taken(self, digest: str, kept: Kept, ahead: bool) -> Kept:
        # A reply of an earlier run is not paid for in this one.
        if kept.paid_by != self._run or digest in self._taken:
            return kept
        if not ahead:
            self._taken.add(digest)
        return kept._replace(yours=True)
