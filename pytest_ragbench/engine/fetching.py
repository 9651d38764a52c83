"""Fetching: what is at hand, what is under way, or what has to be asked; and whose test it counts for."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from pytest_ragbench.engine.calls import Call, Fetched, Sender
from pytest_ragbench.engine.coordinator import Event, Failure, Kept, Lost, Reply
from pytest_ragbench.engine.keys import digest_of_text, identity_of, payload_text
from pytest_ragbench.engine.limits import Limits
from pytest_ragbench.engine.lookahead import Guessed, Obtained, Receipt, for_own_test, looking_ahead, receipts
from pytest_ragbench.engine.permits import Clock, Sleep
from pytest_ragbench.engine.prices import Price, Prices
from pytest_ragbench.engine.recording import Recorder
from pytest_ragbench.engine.running import Running
from pytest_ragbench.engine.sending import CountingSender, UnderWay
from pytest_ragbench.model.errors import Unscored
from pytest_ragbench.model.scores import Usage

T = TypeVar("T")
Read = Callable[[Any], T]
Send = Callable[[Sender], Awaitable[Any]]

_WARM = 300
"""After so many stored replies in a row, the next are expected to be stored, too."""
_DEFAULT_LIMITS = Limits()


class Fetcher:
    """Fetches for one running engine, on its loop. ``limits`` may change meanwhile."""

    def __init__(
        self,
        running: Running,
        run_id: str,
        limits: Mapping[str, Limits],
        prices: Prices,
        recorder: Recorder | None,
        sleep: Sleep,
        clock: Clock,
    ) -> None:
        self._running = running
        self._coordinator = running.coordinator
        self._run_id = run_id
        self._limits = limits
        self._prices = prices
        self._recorder = recorder
        self._sleep = sleep
        self._clock = clock
        self._stored_in_a_row = _WARM
        self._under_way = UnderWay()

    @property
    def is_warm(self) -> bool:
        """The replies are stored, all of late: the next are expected to be stored, too."""
        return self._stored_in_a_row >= _WARM

    async def fetch(self, call: Call, read: Read[T], send: Send) -> Fetched[T]:
        """See :meth:`pytest_ragbench.engine.core.Engine.fetch`; on the engine's loop."""
        if call.scope == "none":
            return await self._fetch_unshared(call, read, send)
        running, coordinator, ahead = self._running, self._coordinator, looking_ahead.get()
        if ahead and running.draining:
            raise asyncio.CancelledError
        identity = identity_of(call, self._run_id)
        digest = digest_of_text(identity)
        guessed = None if ahead else await self._prefetched(digest)
        got = guessed.got if guessed is not None else None
        flight, launched, was_guess = running.flights.get(digest), False, False
        # Two who share a reply must not share a value: either may change it in place. The first has the one that was
        # read for it; who comes later reads the text again.
        is_first = False
        # Most fetches of a second run end here: no task, no flight, no claim.
        if got is None and flight is None and (kept := coordinator.stored(digest)) is not None:
            got, is_first = (
                self._read(read, kept),
                True,
            )  # without the detour of a flight that others could join
        if got is None:
            if flight is None or flight.abandoned:
                is_first = launched = True
                flight = running.launch(
                    digest, self._obtain(call, read, send, identity, digest, guess=ahead), ahead
                )
            was_guess = flight.ahead and not ahead
            if not ahead:
                flight.ahead = False  # what it takes is this test's from now on
            got = await flight.join()
        # Of all workers' tests, what a guess took is put down to the first that comes for it.
        first = ahead or launched
        if not first and (guessed is not None or was_guess):
            first = not coordinator.shared or await self._take(digest)
        value = got.value if is_first else read(json.loads(got.text))
        found: Fetched[T] | None = None
        if first and (launched or was_guess) and not got.cached:
            found = Fetched(value, got.usage, got.duration)
        elif first and guessed is not None:
            found = Fetched(value, guessed.usage, guessed.duration)
        elif first and got.paid_in_run and coordinator.shared and not ahead:
            found = Fetched(value, self._handed_over(call, got.usage), got.duration)
        note = partial(self._note_taken, call, got, stored=found is None)
        if not ahead:
            note()
        elif (kept_for := receipts.get()) is not None:  # a test may take over what the guess makes of this
            silent = found is not None and self._recorder is None
            elsewhere = found is None and got.paid_in_run
            kept_for.append(Receipt(digest, found is not None, None if silent else note, elsewhere))
        return found or Fetched(value, cached=True, took=got.duration)

    def take_over(self, taken: Sequence[Receipt]) -> bool:
        """See :meth:`pytest_ragbench.engine.core.Engine.take_over`; from any thread."""
        prefetched = self._running.prefetched
        if self._coordinator.shared:
            paid = {str(receipt.digest) for receipt in taken if receipt.paid}
            if any(receipt.elsewhere for receipt in taken):
                return False
            if not all(prefetched.first_takers.get(digest) for digest in paid):
                return False
        if not prefetched.take_all(taken):
            return False
        # Counted on the loop: usage is written by that thread alone.
        for receipt in taken:
            prefetched.first_takers.pop(str(receipt.digest), None)
            if receipt.note is not None:
                self._running.thread.loop.call_soon_threadsafe(receipt.note)
        return True

    def unsettled(self, taken: Sequence[Receipt]) -> list[str]:
        """Of what guesses paid: that of which only the coordinator can say whether a test is the first to take it."""
        if not self._coordinator.shared or any(receipt.elsewhere for receipt in taken):
            return []
        known = self._running.prefetched.first_takers
        paid = (receipt.digest for receipt in taken if receipt.paid)
        return [digest for digest in paid if digest is not None and digest not in known]

    async def settle(self, digests: Sequence[str]) -> None:
        """Ask the coordinator for all at once: one wait for everything that a test takes over."""
        taken = await asyncio.gather(*map(self._coordinator.take, digests))
        self._running.prefetched.first_takers.update(zip(digests, taken, strict=True))

    async def _take(self, digest: str) -> bool:
        first = self._running.prefetched.first_takers.pop(digest, None)
        return await self._coordinator.take(digest) if first is None else first

    def _note_taken(self, call: Call, got: Obtained[Any], *, stored: bool) -> None:
        """Record and count a reply that a test has got."""
        if self._recorder is not None:
            self._recorder.note(call, got.text, self._coordinator.note)
        if stored:
            saved = got.usage.prompt_tokens, got.usage.completion_tokens
            self._coordinator.note(Event("stored", call.kind, call.provider, call.model, saved))

    async def _prefetched(self, digest: str) -> Guessed | None:
        try:
            return self._running.prefetched.take(digest)
        except Exception:
            if self._coordinator.shared:  # others have been told, too: a rerun is to ask anew
                await self._coordinator.take(digest)
            raise

    async def _obtain(
        self, call: Call, read: Read[T], send: Send, identity: str, digest: str, *, guess: bool
    ) -> Obtained[T]:
        """The reply that is kept, or that somebody fetches; or fetch it."""
        running, coordinator, unreadable = self._running, self._coordinator, None
        flight = running.flights[digest]
        # A test may join before this begins, and asks then itself whether it is the first: a claim made for it by now
        # would be the answer "no".
        own = guess and for_own_test.get()
        while True:
            try:
                found = await coordinator.claim(digest, ahead=guess, own=own, unreadable=unreadable)
            except Lost as lost:
                raise call.failure(str(lost), code="cancelled") from None
            if found is None:
                break
            if isinstance(found, Failure):
                failure = call.failure(found.message, code=found.code, raw=found.raw)
                failure.trace_id = found.trace_id
                raise failure
            if (got := self._read(read, found)) is not None:
                return got
            unreadable = found.text
        # Set only now: before the claim there is nothing to hand back.
        flight.give_up = lambda: coordinator.publish(digest, None)
        self._stored_in_a_row = 0
        if own:
            running.prefetched.first_takers[digest] = True
        sender = self._sender(call, len(identity))
        running.sending[digest] = sender
        outcome: Reply | Failure | None = None
        try:
            # The value is read from the text that is stored, so that a first run and a second see the same.
            text = payload_text(await send(sender), f"reply to a request ({call.kind})")
            value = read(json.loads(text))
            outcome = self._reply(call, digest, text, sender)
        except BaseException as error:
            # A test that joined meanwhile meets the error itself; only a guess leaves it for others.
            if flight.ahead and isinstance(error, Unscored) and _used_up(error):
                outcome = Failure(str(error), error.code, error.trace_id, error.raw)
            if isinstance(error, Exception):
                coordinator.note(Event("failed", call.kind))
            running.prefetched.first_takers.pop(digest, None)
            raise
        finally:
            running.sending.pop(digest, None)
            # An abandoned flight has given its claim up already, and somebody else may hold it.
            if outcome is not None or not flight.abandoned:
                coordinator.publish(digest, outcome)
        return Obtained(text, value, sender.usage, sender.duration)

    def _reply(self, call: Call, digest: str, text: str, sender: CountingSender) -> Reply:
        run = self._run_id if call.scope == "run" else None
        now, used = time.time(), sender.usage
        tokens = used.prompt_tokens, used.completion_tokens
        return Reply(
            digest,
            call.kind,
            call.provider,
            run,
            now,
            now,
            text,
            *tokens,
            sender.duration,
            self._run_id,
        )

    def _read(self, read: Read[T], kept: Kept) -> Obtained[T] | None:
        """None where the payload can't be read: whatever it is that it lacks, it is as good as absent."""
        try:
            value = read(json.loads(kept.text))
        except Exception:
            return None
        self._stored_in_a_row += 1
        usage = Usage(0, kept.prompt_tokens, kept.completion_tokens)
        return Obtained(kept.text, value, usage, kept.seconds, cached=True, paid_in_run=kept.yours)

    async def _fetch_unshared(self, call: Call, read: Read[T], send: Send) -> Fetched[T]:
        sender = self._sender(call, len(repr(call.key)))
        try:
            payload = await send(sender)
            value = read(payload)
        except Exception:
            self._coordinator.note(Event("failed", call.kind))
            raise
        if (kept := receipts.get()) is not None:
            kept.append(Receipt(None, paid=True))  # it can't be taken over
        if self._recorder is not None and not looking_ahead.get():
            text = payload_text(payload, f"reply to a request ({call.kind})")
            self._recorder.note(call, text, self._coordinator.note)
        return Fetched(value, sender.usage, sender.duration)

    def _sender(self, call: Call, size: int) -> CountingSender:
        return CountingSender(
            call,
            self._coordinator,
            self._limits_of(call.provider),
            partial(self._price, call.provider),
            size=size,
            sleep=self._sleep,
            clock=self._clock,
            urgent=not looking_ahead.get(),
            under_way=self._under_way,
        )

    def _limits_of(self, provider: str) -> Limits:
        """Its own, or, of one of several (``rag:small``), those of their kind."""
        of_kind = self._limits.get(provider.partition(":")[0], _DEFAULT_LIMITS)
        return self._limits.get(provider, of_kind)

    def _handed_over(self, call: Call, usage: Usage) -> Usage:
        """What another worker's guess took, put down to the test that it was made for; the run's sums have
        counted it, and the calls were more than one only where one had to be asked again.
        """
        price = self._price(call.provider, call.model) if usage.tokens else None
        cost = None if price is None else price.of(usage.prompt_tokens, usage.completion_tokens)
        return Usage(1, usage.prompt_tokens, usage.completion_tokens, cost)

    def _price(self, provider: str, model: str | None) -> Price | None:
        return None if model is None else self._prices(provider, model)


def _used_up(error: BaseException) -> bool:
    """Whether asking again would take as many attempts, and most likely be as useless."""
    # Asking again costs nothing there: no request is sent, or the budget decides.
    quick = ("unavailable", "cancelled", "budget", "insufficient_quota")
    return isinstance(error, Unscored) and error.code not in quick
