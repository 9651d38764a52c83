"""Sending: a call slot, a time limit, retries of what can heal, accounting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import tenacity

from pytest_ragbench.engine.books import Page
from pytest_ragbench.engine.breaker import Breaker, Down
from pytest_ragbench.engine.requests import Request, Sent, Transient
from pytest_ragbench.engine.slots import Slots
from pytest_ragbench.errors import Unscored
from pytest_ragbench.scores import Usage

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]


@dataclass(frozen=True)
class Limits:
    """What one provider gets. Times in seconds.

    ``timeout`` bounds one attempt. ``attempts`` counts the first one too. The n-th wait is
    ``wait * 2**(n-1)`` plus up to ``wait`` of jitter, or what Retry-After says where that is more;
    no wait is longer than ``max_wait``: a server that asks for more is given up at once. A server that
    says it is busy (429) is no failing one: it is asked again beyond ``attempts`` until ``patience``
    seconds have been waited.
    """

    timeout: float = 30.0
    max_concurrency: int = 16
    attempts: int = 4
    wait: float = 0.5
    max_wait: float = 30.0
    patience: float = 0.0


class Provider:
    """The limits and the health of one provider."""

    def __init__(self, name: str, limits: Limits, clock: Clock) -> None:
        self.name = name
        self.limits = limits
        self.breaker = Breaker(name, clock)


class CountingSender:
    """The :class:`~pytest_ragbench.engine.requests.Sender` of one fetch; sums what the fetch took."""

    def __init__(
        self,
        request: Request[Any],
        provider: Provider,
        slots: Slots,
        page: Page,
        *,
        sleep: Sleep,
        clock: Clock,
        urgent: bool = True,
    ) -> None:
        self._request = request
        self._provider = provider
        self._slots = slots
        self._page = page
        self._sleep = sleep
        self._clock = clock
        self._urgent = urgent
        self.usage = Usage()
        self.duration = 0.0
        self.out = False
        """A request is out at this moment."""

    async def __call__(self, attempt: Callable[[], Awaitable[Sent]], /) -> Sent:
        """Make one call.

        Raises
        ------
        Unscored
            Of the request's ``failure`` class, where retries are used up or the provider is down.
        Exception
            Anything but :class:`Transient` that ``attempt`` raises, unchanged.
        """
        limits, breaker, began, tries = self._provider.limits, self._provider.breaker, self._clock(), 0
        failure: Transient | None = None

        async def once() -> Sent:
            nonlocal tries, failure
            async with self._slots.slot(self._provider.name, limits.max_concurrency, self._urgent):
                breaker.enter()
                tries += 1
                try:
                    return await self._attempt(attempt, limits)
                except Transient as error:
                    failure = error
                    raise

        retrying = tenacity.AsyncRetrying(
            stop=lambda state: state.attempt_number >= limits.attempts and not _still_patient(state, limits),
            wait=_Wait(limits),
            retry=tenacity.retry_if_exception(lambda error: _can_heal(error, limits)),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return await retrying(once)
        except Transient as error:
            reason = _gave_up(error, limits, tries, self._clock() - began)
            breaker.exhausted(str(error))
            raise self._failure(reason, error.code) from None
        except Down as down:
            if failure is None:
                raise self._failure(str(down), "unavailable") from None
            reason = f"{failure} (after {_attempts(tries)}; then {down})"
            raise self._failure(reason, failure.code) from None

    async def _attempt(self, attempt: Callable[[], Awaitable[Sent]], limits: Limits) -> Sent:
        """One request, timed, counted and reported to the breaker."""
        breaker, began = self._provider.breaker, self._clock()
        self._count(calls=1)
        self.out = True
        try:
            sent = await self._bounded(attempt, limits.timeout)
        except Transient as error:
            breaker.failed(began, error.code, str(error))
            raise
        except asyncio.CancelledError:
            breaker.abandoned()
            raise
        except Exception:
            breaker.replied()
            raise
        finally:
            self.out = False
        breaker.replied()
        seconds = self._clock() - began
        self.duration += seconds
        self._page.latencies.append(seconds)
        self._count(prompt_tokens=sent.prompt_tokens, completion_tokens=sent.completion_tokens)
        return sent

    async def _bounded(self, attempt: Callable[[], Awaitable[Sent]], seconds: float) -> Sent:
        try:
            async with asyncio.timeout(seconds) as scope:
                return await attempt()
        except TimeoutError:
            if not scope.expired():
                raise  # the attempt's own
            message = f"{self._provider.name}: no reply within {seconds:g} s"
            raise Transient(message, code="timeout") from None

    def _count(self, calls: int = 0, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self.usage += Usage(calls, prompt_tokens, completion_tokens)
        self._page.calls += calls
        self._page.prompt_tokens += prompt_tokens
        self._page.completion_tokens += completion_tokens

    def _failure(self, message: str, code: str) -> Unscored:
        return self._request.failure(message, code=code)


class _Wait(tenacity.wait.wait_base):
    """Jittered exponential backoff, or Retry-After where that is longer."""

    def __init__(self, limits: Limits) -> None:
        self._backoff = tenacity.wait_exponential(multiplier=limits.wait) + tenacity.wait_random(
            0, limits.wait
        )
        self._longest = limits.max_wait

    def __call__(self, retry_state: tenacity.RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after if isinstance(error, Transient) else None
        return max(min(self._backoff(retry_state), self._longest), asked or 0.0)


def _can_heal(error: BaseException, limits: Limits) -> bool:
    return isinstance(error, Transient) and (error.retry_after or 0.0) <= limits.max_wait


def _still_patient(state: tenacity.RetryCallState, limits: Limits) -> bool:
    """Waits are added up, not clock time: a slow server does not use up the patience for a busy one."""
    error = state.outcome.exception() if state.outcome else None
    return isinstance(error, Transient) and error.code == "http_429" and state.idle_for < limits.patience


def _gave_up(error: Transient, limits: Limits, tries: int, seconds: float) -> str:
    spent = f"after {_attempts(tries)} in {seconds:.1f} s"
    if error.retry_after is not None and not _can_heal(error, limits):
        return (
            f"{error} ({spent}; it asks to wait {error.retry_after:g} s by Retry-After, "
            f"and max_wait is {limits.max_wait:g} s)"
        )
    return f"{error} ({spent})"


def _attempts(tries: int) -> str:
    return f"{tries} attempt{'s' if tries != 1 else ''}"
