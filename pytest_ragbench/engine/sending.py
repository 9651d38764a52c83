"""Sending: one request after the other, each with a permit, a time limit, and retries of what can heal."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable

import tenacity

from pytest_ragbench.engine.calls import Call, Sent, Transient
from pytest_ragbench.engine.coordinator import Attempt, Coordinator, Lost, Outcome, Permit, Refused
from pytest_ragbench.engine.limits import Limits
from pytest_ragbench.engine.permits import Clock, Sleep
from pytest_ragbench.engine.prices import Price
from pytest_ragbench.model.errors import BudgetError, Unscored, UsageError, cause_of
from pytest_ragbench.model.scores import Usage


class UnderWay:
    """How many requests of one process are out at a time, by provider: each learns the most that it was one of."""

    def __init__(self) -> None:
        self._providers: dict[str, _Level] = {}

    def enter(self, provider: str) -> int:
        """One more is out; its number, for :meth:`most_since`."""
        return self._providers.setdefault(provider, _Level()).rise()

    def leave(self, provider: str) -> None:
        self._providers[provider].out -= 1

    def most_since(self, provider: str, number: int) -> int:
        """The most that were out at a time since the request of that number went out, it included."""
        return self._providers[provider].most_since(number)


class _Level:
    """A count that rises and falls, and the highest that it has been since any of its rises.

    Kept of a rise is only what no later one has reached: nothing has to go through all that are out.
    """

    def __init__(self) -> None:
        self.out = 0
        self._number = 0
        self._numbers: list[int] = []
        self._levels: list[int] = []

    def rise(self) -> int:
        self.out += 1
        self._number += 1
        while self._levels and self._levels[-1] <= self.out:
            self._levels.pop()
            self._numbers.pop()
        self._levels.append(self.out)
        self._numbers.append(self._number)
        return self._number

    def most_since(self, number: int) -> int:
        return self._levels[bisect_left(self._numbers, number)]


class CountingSender:
    """The :class:`~pytest_ragbench.engine.calls.Sender` of one fetch; sums what the fetch took."""

    def __init__(
        self,
        call: Call,
        coordinator: Coordinator,
        limits: Limits,
        price: Callable[[str | None], Price | None],
        *,
        size: int,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        urgent: bool = True,
        under_way: UnderWay | None = None,
    ) -> None:
        self._call = call
        self._coordinator = coordinator
        self._limits = limits
        self._price = price
        self._size = size
        self._sleep = sleep
        self._clock = clock
        self._urgent = urgent
        self._under_way = under_way or UnderWay()
        self._at_once = 1
        self._went_out: int | None = None
        self.usage = Usage()
        self.duration = 0.0
        self.out = False
        """A request is out at this moment."""

    @property
    def at_once(self) -> int:
        """The most requests that the provider was seen to have at a time during the last attempt, it included."""
        if self._went_out is None:
            return self._at_once
        return max(self._at_once, self._under_way.most_since(self._call.provider, self._went_out))

    def goes_out(self, permit: Permit) -> None:
        self.out = True
        self._at_once = permit.at_once
        self._went_out = self._under_way.enter(self._call.provider)

    def came_back(self) -> None:
        # What it has been one of is settled now, before others go out that it never met.
        self.out, self._at_once, self._went_out = False, self.at_once, None
        self._under_way.leave(self._call.provider)

    async def __call__(self, attempt: Callable[[], Awaitable[Sent]], /) -> Sent:
        """Make one call.

        Raises
        ------
        Unscored
            Of the call's ``failure`` class, where retries are used up, the provider is down or its
            quota is used up; BudgetError where the run's budget does not allow for the call.
        Exception
            Anything but :class:`Transient` that ``attempt`` raises, unchanged.
        """
        sending = _Retried(self, attempt)
        try:
            return await sending.run()
        except Transient as error:
            # From None: the traceback of retries says nothing to whoever reads the test's error.
            raise self._failed(sending.gave_up(error), error.code) from None
        except Refused as refused:
            raise self._refused(refused, sending) from None
        except Lost as lost:
            raise self._failed(str(lost), "cancelled") from None

    def _refused(self, refused: Refused, sending: _Retried) -> Exception:
        if refused.why == "budget":
            return BudgetError(refused.message, code="budget")
        if refused.why == "usage":
            return UsageError(refused.message)
        if refused.why == "quota":
            return self._failed(refused.message, "insufficient_quota")
        if sending.failure is None:
            return self._failed(refused.message, "unavailable")
        # Why it was not asked again, without the cause, which is said already.
        then = refused.message.removeprefix(f"{cause_of(str(sending.failure))}; ")
        reason = f"{sending.failure} (after {_attempts(sending.tries)}; then {then})"
        return self._failed(reason, sending.failure.code)

    def _failed(self, message: str, code: str) -> Unscored:
        return self._call.failure(message, code=code)

    def _attempt(self, number: int, waited: float) -> Attempt:
        call = self._call
        return Attempt(
            call.kind,
            call.provider,
            call.model,
            self._size,
            self._urgent,
            self._limits,
            number,
            waited,
        )

    def _count(self, sent: Sent, seconds: float) -> None:
        price = None
        if sent.prompt_tokens or sent.completion_tokens:
            price = self._price(sent.model) or self._price(self._call.model)
        cost = None if price is None else price.of(sent.prompt_tokens, sent.completion_tokens)
        self.usage += Usage(0, sent.prompt_tokens, sent.completion_tokens, cost)
        self.duration += seconds


class _Retried:
    """One call: its attempts, each with a permit of its own."""

    def __init__(self, sender: CountingSender, attempt: Callable[[], Awaitable[Sent]]) -> None:
        self._sender = sender
        self._attempt = attempt
        self._limits = sender._limits
        self._began = sender._clock()
        self._waited = 0.0
        self._slept = 0.0
        self.tries = 0
        self.failure: Transient | None = None

    async def run(self) -> Sent:
        try:
            return await self._once()
        except Transient as error:
            # Nearly all calls need no second attempt, and so nothing that is set up for one.
            return await self._retrying()(_beginning_with(error, self._once))

    def _retrying(self) -> tenacity.AsyncRetrying:
        return tenacity.AsyncRetrying(
            stop=lambda state: self._is_last(_error_in(state)),
            wait=self._pause,
            retry=tenacity.retry_if_exception_type(Transient),
            sleep=self._sleep,
            reraise=True,
        )

    async def _sleep(self, seconds: float) -> None:
        self._slept += seconds
        await self._sender._sleep(seconds)

    async def _once(self) -> Sent:
        sender = self._sender
        # A permit for each attempt: a retry that waits holds no slot.
        permit = await sender._coordinator.enter(sender._attempt(self.tries + 1, self._waited))
        self.tries += 1
        sender.usage += Usage(1)
        sender.goes_out(permit)
        began = sender._clock()
        try:
            sent = await self._bounded()
        except Transient as error:
            self.failure = error
            await self._left(permit, error)
            raise
        except BaseException as error:
            code = (
                "cancelled" if isinstance(error, asyncio.CancelledError) else getattr(error, "code", "error")
            )
            await sender._coordinator.leave(permit, Outcome(str(code)))
            raise
        finally:
            sender.came_back()
        # Without the wait for a slot: latency is the service's.
        seconds = sender._clock() - began
        tokens = sent.prompt_tokens, sent.completion_tokens
        outcome = Outcome(None, "", False, False, None, *tokens, seconds, sent.model)
        await sender._coordinator.leave(permit, outcome)
        sender._count(sent, seconds)
        return sent

    async def _left(self, permit: Permit, error: Transient) -> None:
        last = self._is_last(error)
        outcome = Outcome(error.code, str(error), heals=True, last=last, retry_after=error.retry_after)
        self._waited = await self._sender._coordinator.leave(permit, outcome)

    async def _bounded(self) -> Sent:
        try:
            async with asyncio.timeout(self._limits.timeout) as scope:
                return await self._attempt()
        except TimeoutError:
            if not scope.expired():
                raise  # the attempt's own
            waited = f"no reply within {self._limits.timeout:g} s"
            message = f"{self._sender._call.provider}: {waited}: is it overloaded, or its timeout too short?"
            raise Transient(message, code="timeout") from None

    def _is_last(self, error: Transient) -> bool:
        """Whether to give up. Waits are added up, not clock time: a slow server does not use up the patience
        for a busy one.
        """
        limits = self._limits
        # Longer than a run should hang on one call; the message says what the server asked for.
        if (error.retry_after or 0.0) > limits.max_wait:
            return True
        # A busy server is not a failing one: it says itself that it will answer.
        patient = error.code == "http_429" and self._slept < limits.patience
        return self.tries >= limits.attempts and not patient

    def _pause(self, state: tenacity.RetryCallState) -> float:
        """Jittered exponential backoff, or Retry-After where that is longer."""
        wait = self._limits.wait
        # With jitter: calls that failed together must not come back together.
        backoff = tenacity.wait_exponential(multiplier=wait) + tenacity.wait_random(0, wait)
        return max(min(backoff(state), self._limits.max_wait), _error_in(state).retry_after or 0.0)

    def gave_up(self, error: Transient) -> str:
        limits = self._limits
        spent = f"after {_attempts(self.tries)} in {self._sender._clock() - self._began:.1f} s"
        if error.retry_after is not None and error.retry_after > limits.max_wait:
            return (
                f"{error} ({spent}; it asks to wait {error.retry_after:g} s by Retry-After, "
                f"and max_wait is {limits.max_wait:g} s)"
            )
        return f"{error} ({spent})"


def _attempts(tries: int) -> str:
    return f"{tries} attempt{'s' if tries != 1 else ''}"


def _error_in(state: tenacity.RetryCallState) -> Transient:
    error = state.outcome.exception() if state.outcome is not None else None
    assert isinstance(error, Transient)
    return error


def _beginning_with(error: Transient, once: Callable[[], Awaitable[Sent]]) -> Callable[[], Awaitable[Sent]]:
    """Attempts of which the first has failed already."""
    failed = [error]

    async def attempt() -> Sent:
        if failed:
            raise failed.pop()
        return await once()

    return attempt
