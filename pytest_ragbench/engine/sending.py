"""Sending: a call slot, the provider's pace, the run's budget, a time limit, retries, accounting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tenacity

from pytest_ragbench.engine.board import Budget, Numbers
from pytest_ragbench.engine.books import Page
from pytest_ragbench.engine.breaker import Breaker, Down
from pytest_ragbench.engine.pace import Pace
from pytest_ragbench.engine.prices import Price
from pytest_ragbench.engine.requests import Request, Sent, Transient
from pytest_ragbench.engine.slots import Slots
from pytest_ragbench.model.errors import Unscored, UsageError
from pytest_ragbench.model.scores import Usage

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]
_SETTLING = 0.05
"""Seconds between looks at whether the budget has room again."""
_LETTERS = 3
"""Of a token: fewer than in English prose, since other scripts need more tokens."""


@dataclass(frozen=True)
class Limits:
    """What one provider gets. Times in seconds.

    ``timeout`` bounds one attempt. ``attempts`` counts the first one too. The n-th wait is
    ``wait * 2**(n-1)`` plus up to ``wait`` of jitter, or what Retry-After says where that is more;
    no wait is longer than ``max_wait``: a server that asks for more is given up at once. A server that
    says it is busy (429) is no failing one: it is asked again beyond ``attempts`` until ``patience``
    seconds have been waited. ``requests_per_minute`` and ``tokens_per_minute`` hold for the whole run.
    """

    timeout: float = 30.0
    max_concurrency: int = 16
    attempts: int = 4
    wait: float = 0.5
    max_wait: float = 30.0
    patience: float = 0.0
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


class Provider:
    """The limits, the pace and the health of one provider."""

    def __init__(self, name: str, limits: Limits, clock: Clock, board: Numbers) -> None:
        self.name = name
        self.limits = limits
        self.breaker = Breaker(name, clock)
        self.pace = Pace(name, board, clock)
        self._calls = self._tokens = 0

    def expected_tokens(self, key: Mapping[str, Any]) -> float:
        """What a call will probably take: as the calls before it, or else by the length of what is asked."""
        if self._calls:
            return self._tokens / self._calls
        return len(json.dumps(key, ensure_ascii=False)) / _LETTERS

    def learn(self, tokens: int) -> None:
        self._calls += 1
        self._tokens += tokens


class CountingSender:
    """The :class:`~pytest_ragbench.engine.requests.Sender` of one fetch; sums what the fetch took."""

    def __init__(
        self,
        request: Request[Any],
        provider: Provider,
        slots: Slots,
        pages: Sequence[Page],
        budget: Budget,
        price: Callable[[], Price | None],
        *,
        sleep: Sleep,
        clock: Clock,
        urgent: bool = True,
    ) -> None:
        self._request = request
        self._provider = provider
        self._slots = slots
        self._pages = pages
        self._budget = budget
        self._price = price
        self._sleep = sleep
        self._clock = clock
        self._urgent = urgent
        self._waited = 0.0
        self.usage = Usage()
        self.duration = 0.0
        self.out = False
        """A request is out at this moment."""

    async def __call__(self, attempt: Callable[[], Awaitable[Sent]], /) -> Sent:
        """Make one call.

        Raises
        ------
        Unscored
            Of the request's ``failure`` class, where retries are used up, the provider is down or its
            quota is used up; BudgetError where the run's budget does not allow for the call.
        Exception
            Anything but :class:`Transient` that ``attempt`` raises, unchanged.
        """
        limits, breaker, began, tries = self._provider.limits, self._provider.breaker, self._clock(), 0
        pace = self._provider.pace
        failure: Transient | None = None

        async def once() -> Sent:
            nonlocal tries, failure
            at_once = pace.limit(limits.max_concurrency)
            async with self._slots.slot(self._provider.name, at_once, self._urgent):
                needed = await self._turn(limits)
                breaker.enter()
                try:
                    reserved = await self._reserve(needed)
                except BaseException:
                    breaker.abandoned()
                    raise
                tries += 1
                used, cost = 0, 0.0
                try:
                    sent = await self._attempt(attempt, limits, tries)
                    used = sent.prompt_tokens + sent.completion_tokens
                    cost = self._cost(sent) or 0.0
                    self._provider.learn(used)
                    return sent
                except Transient as error:
                    failure = error
                    raise
                finally:
                    self._budget.settle(reserved, used, cost)
                    pace.correct(limits.tokens_per_minute, needed, used)

        try:
            try:
                return await once()
            except Transient as error:
                return await self._retrying(limits)(_beginning_with(error, once))
        except Transient as error:
            reason = _gave_up(error, limits, tries, self._clock() - began)
            breaker.exhausted(str(error))
            raise self._failure(reason, error.code) from None
        except _NoQuota:
            reason = f"{self._provider.name}: the quota is used up; it is not asked again in this run"
            raise self._failure(reason, "insufficient_quota") from None
        except Down as down:
            if failure is None:
                raise self._failure(str(down), "unavailable") from None
            reason = f"{failure} (after {_attempts(tries)}; then {down})"
            raise self._failure(reason, failure.code) from None

    def _retrying(self, limits: Limits) -> tenacity.AsyncRetrying:
        return tenacity.AsyncRetrying(
            stop=lambda state: state.attempt_number >= limits.attempts and not _still_patient(state, limits),
            wait=_Wait(limits),
            retry=tenacity.retry_if_exception(lambda error: _can_heal(error, limits)),
            sleep=self._sleep,
            reraise=True,
        )

    async def _turn(self, limits: Limits) -> float:
        """Wait until the provider may be asked; the tokens that the call will probably take.

        It waits with a slot in hand: whoever got it instead would have to wait just as long.
        """
        pace, needed = self._provider.pace, 0.0
        if limits.tokens_per_minute is not None or self._budget.caps:
            needed = self._provider.expected_tokens(self._request.key)
        rates = limits.requests_per_minute, limits.tokens_per_minute
        while (seconds := await pace.turn(*rates, needed, self._waited)) > 0 and not pace.quota_used_up:
            quiet_until = pace.quiet_until
            await self._sleep(seconds)
            self._waited = quiet_until
        if pace.quota_used_up:
            raise _NoQuota
        return needed

    async def _reserve(self, needed: float) -> tuple[float, float]:
        """Tokens and dollars put aside for one call.

        Where that is more than is left, the calls under way may leave room: the first ones are guessed at by
        the length of what is asked, and guessed too high.
        """
        budget, request = self._budget, self._request
        if not budget.caps:
            return 0.0, 0.0
        what = f"{request.kind} {request.model or request.provider}"
        amounts = self._put_aside(needed)
        if await budget.reserve(what, *amounts, patient=True):
            return amounts
        async with budget.line:
            for _ in range(int(self._provider.limits.timeout / _SETTLING)):
                amounts = self._put_aside(self._provider.expected_tokens(request.key))
                if await budget.reserve(what, *amounts, patient=True):
                    return amounts
                await self._sleep(_SETTLING)
            budget.known = True
            await budget.reserve(what, *amounts)
        return amounts

    def _put_aside(self, needed: float) -> tuple[float, float]:
        request, cost = self._request, 0.0
        if self._budget.caps.cost is not None and request.model is not None:
            price = self._price()
            if price is None:
                raise UsageError(
                    f"max_cost is set, but what {request.model!r} of the provider {request.provider!r} costs is not "
                    f"known; write its price in dollars for a million tokens: "
                    f'[providers.{request.provider}.prices] "{request.model}" = {{input = 0.15, output = 0.60}}'
                )
            cost = price.of(needed, 0)
        return (0.0 if request.kind == "rag" else needed), cost

    def _cost(self, sent: Sent) -> float | None:
        """US dollars, where the model has a price that is known."""
        if self._request.model is None or not (sent.prompt_tokens or sent.completion_tokens):
            return None
        price = self._price()
        return None if price is None else price.of(sent.prompt_tokens, sent.completion_tokens)

    async def _attempt(self, attempt: Callable[[], Awaitable[Sent]], limits: Limits, number: int) -> Sent:
        """One request, timed, counted and reported to breaker and pace."""
        breaker, began = self._provider.breaker, self._clock()
        pace = self._provider.pace
        self._count(calls=1)
        self.out = True
        try:
            sent = await self._bounded(attempt, limits.timeout)
        except Transient as error:
            breaker.failed(began, error.code, str(error), number)
            if error.code == "http_429" or error.retry_after:
                pace.slow_down(began, limits.max_concurrency, min(error.retry_after or 0.0, limits.max_wait))
                self._waited = pace.quiet_until  # that, or longer, is what the retry waits
                self._resize(limits)
            raise
        except asyncio.CancelledError:
            breaker.abandoned()
            raise
        except Exception as error:
            breaker.replied()
            if getattr(error, "code", None) == "insufficient_quota":
                pace.stop()
            raise
        finally:
            self.out = False
        breaker.replied()
        pace.speed_up(limits.max_concurrency)
        self._resize(limits)
        seconds = self._clock() - began
        self.duration += seconds
        self._pages[0].latencies.append(seconds)
        self._count(
            prompt_tokens=sent.prompt_tokens,
            completion_tokens=sent.completion_tokens,
            cost=self._cost(sent),
        )
        return sent

    def _resize(self, limits: Limits) -> None:
        most = limits.max_concurrency
        self._slots.resize(self._provider.name, self._provider.pace.limit(most))

    async def _bounded(self, attempt: Callable[[], Awaitable[Sent]], seconds: float) -> Sent:
        try:
            async with asyncio.timeout(seconds) as scope:
                return await attempt()
        except TimeoutError:
            if not scope.expired():
                raise  # the attempt's own
            message = f"{self._provider.name}: no reply within {seconds:g} s"
            raise Transient(message, code="timeout") from None

    def _count(
        self,
        calls: int = 0,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        cost: float | None = None,
    ) -> None:
        self.usage += Usage(calls, prompt_tokens, completion_tokens, cost)
        for page in self._pages:
            page.calls += calls
            page.prompt_tokens += prompt_tokens
            page.completion_tokens += completion_tokens
            page.cost += cost or 0.0
            if cost is None and self._request.model is not None:
                page.unpriced += prompt_tokens + completion_tokens

    def _failure(self, message: str, code: str) -> Unscored:
        return self._request.failure(message, code=code)


def _beginning_with(error: Transient, once: Callable[[], Awaitable[Sent]]) -> Callable[[], Awaitable[Sent]]:
    """What is retried, its first attempt made already: nearly all calls need no second, and nothing set up for it."""
    failed = [error]

    async def attempt() -> Sent:
        if failed:
            raise failed.pop()
        return await once()

    return attempt


class _NoQuota(Exception):
    """The provider has said that its quota is used up."""


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
