"""Permits: who may send a request now. Slots, pace, budget, the circuit breaker, and the counting of what is sent.

Used by whoever owns these: the only process of a run, its controller, or each host's beside Redis.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pytest_ragbench.engine.breaker import Breaker, Down
from pytest_ragbench.engine.budget import Budget
from pytest_ragbench.engine.coordinator import Attempt, Outcome, Permit, Refused
from pytest_ragbench.engine.counters import Counters
from pytest_ragbench.engine.limits import Limits
from pytest_ragbench.engine.pace import Pace
from pytest_ragbench.engine.prices import FUNCTION, Price, Prices
from pytest_ragbench.engine.slots import Slots
from pytest_ragbench.engine.usage import UsageSums
from pytest_ragbench.model.errors import BudgetError

Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]

_SETTLING_S = 0.05
"""Between looks at whether the budget has room again."""
_LETTERS_PER_TOKEN = 3
"""Fewer than in English prose, since other scripts need more tokens."""


class Provider:
    """The pace and the health of one provider, and what its calls take."""

    def __init__(self, name: str, clock: Clock, counters: Counters) -> None:
        self.name = name
        self.breaker = Breaker(name, clock)
        self.pace = Pace(name, counters, clock)
        self.unpriced = ""
        """A model that a reply named and whose price is not known."""
        self.out = 0
        """Requests that are under way."""
        self._calls = self._tokens = 0

    def expected_tokens(self, size: int) -> float:
        """What a call will probably take: as the calls before it, or else by the length of what is asked."""
        return self._tokens / self._calls if self._calls else size / _LETTERS_PER_TOKEN

    def learn(self, tokens: int) -> None:
        self._calls += 1
        self._tokens += tokens


@dataclass
class _Sending:
    """A request that is under way."""

    attempt: Attempt
    provider: Provider
    began: float
    expected: float
    reserved: tuple[float, float]


class Permits:
    """Gives permits, and learns from what became of the requests."""

    def __init__(
        self,
        slots: Slots,
        counters: Counters,
        budget: Budget,
        prices: Prices,
        usage: UsageSums,
        *,
        sleep: Sleep,
        clock: Clock,
    ) -> None:
        self.budget = budget
        self._slots = slots
        self._counters = counters
        self._prices = prices
        self._usage = usage
        self._sleep = sleep
        self._clock = clock
        self._numbers = itertools.count(1)
        self._providers: dict[str, Provider] = {}
        self._sending: dict[int, _Sending] = {}

    @property
    def under_way(self) -> int:
        """Requests that are out now."""
        return len(self._sending)

    def provider(self, name: str) -> Provider:
        if name not in self._providers:
            self._providers[name] = Provider(name, self._clock, self._counters)
        return self._providers[name]

    def limit(self, provider: str, limits: Limits) -> None:
        """Other limits from now on; those who wait for a slot feel them at once."""
        self._slots.resize(provider, self.provider(provider).pace.limit(limits.max_concurrency))

    async def enter(self, attempt: Attempt) -> Permit:
        """As every :class:`~pytest_ragbench.engine.coordinator.Coordinator`."""
        provider = self.provider(attempt.provider)
        most = provider.pace.limit(attempt.limits.max_concurrency)
        await self._slots.enter(provider.name, most, attempt.urgent)
        try:
            # It waits with a slot in hand: whoever got it instead would have to wait just as long.
            expected = await self._turn(provider, attempt)
            provider.breaker.enter()
            try:
                reserved = await self._reserve(provider, attempt, expected)
            except BaseException:
                provider.breaker.abandoned()
                raise
        except BaseException as error:
            self._slots.leave(provider.name)
            if isinstance(error, Down):
                raise Refused("down", str(error)) from None
            raise
        # Counted when it is sent, not when it returns: a budget of calls holds for those under way, too.
        for sums in self._usage.where(attempt.kind, attempt.provider, attempt.model):
            sums.calls += 1
        number = next(self._numbers)
        self._sending[number] = _Sending(attempt, provider, self._clock(), expected, reserved)
        provider.out += 1
        return Permit(number, provider.out)

    def leave(self, permit: Permit, outcome: Outcome) -> float:
        """As every coordinator, at once."""
        sent = self._sending.pop(permit.number)
        attempt, provider = self._by_model(sent.attempt, outcome.model), sent.provider
        provider.out -= 1
        tokens = outcome.prompt_tokens + outcome.completion_tokens
        cost = self._cost(attempt, outcome)
        told = bool(tokens) or outcome.code is not None or attempt.kind == "rag"
        # A reply that does not say what it took has not been free: the estimate stands.
        used = (tokens, cost or 0.0) if told else sent.reserved
        if tokens and cost is None and sent.attempt.model is None:
            used = tokens, self._most(attempt.provider, outcome)
        self.budget.settle(sent.reserved, *used)
        provider.pace.correct(
            attempt.limits.tokens_per_minute, sent.expected, tokens if told else sent.expected
        )
        if outcome.code is None:
            if told:
                provider.learn(tokens)
            provider.breaker.replied()
            provider.pace.speed_up(attempt.limits.max_concurrency)
            self._count(attempt, outcome, cost)
        else:
            self._failed(sent, outcome)
        # Before the slot is given back: who waits must not get one that the new limit takes away.
        self._slots.resize(provider.name, provider.pace.limit(attempt.limits.max_concurrency))
        self._slots.leave(provider.name)
        return provider.pace.quiet_until

    def _failed(self, sent: _Sending, outcome: Outcome) -> None:
        breaker, pace, limits = sent.provider.breaker, sent.provider.pace, sent.attempt.limits
        code = outcome.code or ""
        if outcome.heals:
            breaker.failed(sent.began, code, outcome.message, sent.attempt.number)
            # A 503 may carry Retry-After as well.
            if code == "http_429" or outcome.retry_after:
                quiet = min(outcome.retry_after or 0.0, limits.max_wait)
                pace.slow_down(sent.began, limits.max_concurrency, quiet)
            if outcome.last:
                breaker.exhausted(outcome.message)
        # It says nothing of the provider's health.
        elif code == "cancelled":
            breaker.abandoned()
        else:
            breaker.replied()
            if code == "insufficient_quota":
                pace.stop()

    def _count(self, attempt: Attempt, outcome: Outcome, cost: float | None) -> None:
        places = self._usage.where(attempt.kind, attempt.provider, attempt.model)
        # By kind only: the same list for each model would double the memory of a long run.
        places[0].latencies.append(outcome.seconds)
        for sums in places:
            sums.prompt_tokens += outcome.prompt_tokens
            sums.completion_tokens += outcome.completion_tokens
            sums.cost += cost or 0.0
            if cost is None and attempt.model is not None:
                sums.unpriced += outcome.prompt_tokens + outcome.completion_tokens

    async def _turn(self, provider: Provider, attempt: Attempt) -> float:
        """Wait until the provider may be asked; the tokens that the call will probably take."""
        pace, limits, expected, waited = provider.pace, attempt.limits, 0.0, attempt.waited
        # An estimate that nobody uses is not made.
        if limits.tokens_per_minute is not None or self.budget.caps:
            expected = provider.expected_tokens(attempt.size)
        rates = limits.requests_per_minute, limits.tokens_per_minute
        while (seconds := await pace.turn(*rates, expected, waited)) > 0 and not pace.quota_used_up:
            quiet_until = pace.quiet_until
            await self._sleep(seconds)
            waited = quiet_until
        # Looked at after the wait: another worker may have been told meanwhile.
        if pace.quota_used_up:
            raise Refused(
                "quota", f"{provider.name}: the quota is used up; it is not asked again in this run"
            )
        return expected

    async def _reserve(self, provider: Provider, attempt: Attempt, expected: float) -> tuple[float, float]:
        """Tokens and dollars put aside for one call.

        Where that is more than is left, the calls under way may leave room: the first ones are guessed at by
        the length of what is asked, and guessed too high.
        """
        budget = self.budget
        if not budget.caps:
            return 0.0, 0.0
        what = f"{attempt.kind} {attempt.model or attempt.provider}"
        amounts = self._put_aside(attempt, expected)
        try:
            if await budget.reserve(what, *amounts, patient=True):
                return amounts
            # One after the other, or all who wait would look at the counters every 50 ms.
            async with budget.queue:
                for _ in range(int(attempt.limits.timeout / _SETTLING_S)):
                    amounts = self._put_aside(attempt, provider.expected_tokens(attempt.size))
                    if await budget.reserve(what, *amounts, patient=True):
                        return amounts
                    await self._sleep(_SETTLING_S)
                budget.known = True
                await budget.reserve(what, *amounts)
        except BudgetError as error:
            raise Refused("budget", str(error)) from None
        return amounts

    def _put_aside(self, attempt: Attempt, expected: float) -> tuple[float, float]:
        cost = 0.0
        if self.budget.caps.cost is not None and attempt.kind != "rag":
            unpriced = self.provider(attempt.provider).unpriced
            price = None if unpriced else self._prices(attempt.provider, attempt.model)
            # Asking without knowing the price could spend any amount.
            if price is None:
                model, provider = attempt.model or unpriced, attempt.provider.removeprefix(FUNCTION)
                what = f"{model!r} of the provider {provider!r} costs" if model else f"{provider!r} costs"
                table = provider if re.fullmatch(r"[\w-]+", provider, re.ASCII) else f'"{provider}"'
                raise Refused(
                    "usage",
                    f"max_cost is set, but what {what} is not known; write its price in dollars for a million "
                    f'tokens: [providers.{table}.prices] "{model or "MODEL"}" = {{input = 0.15, output = 0.60}}',
                )
            cost = price.of(expected, 0)
        return (0.0 if attempt.kind == "rag" else expected), cost

    def _by_model(self, attempt: Attempt, told: str | None) -> Attempt:
        """The attempt as one of the model that its reply names: where none was named before, or this one's price is
        known. (A service may tell a dated name of the model that was asked.)
        """
        if told is None or told == attempt.model:
            return attempt
        price = self._prices(attempt.provider, told)
        if attempt.model is not None and price is None:
            return attempt
        if price is None:
            self.provider(attempt.provider).unpriced = told
        # It was counted with its kind, and with the model asked, when it was sent.
        before = self._usage.where(attempt.kind, attempt.provider, attempt.model)[1:]
        renamed = attempt._replace(model=told)
        for sums in before:
            sums.calls -= 1
        for sums in self._usage.where(attempt.kind, attempt.provider, told)[1:]:
            sums.calls += 1
        return renamed

    def _most(self, provider: str, outcome: Outcome) -> float:
        price = self._prices(provider, None)
        return 0.0 if price is None else price.of(outcome.prompt_tokens, outcome.completion_tokens)

    def _cost(self, attempt: Attempt, outcome: Outcome) -> float | None:
        """US dollars, where the model has a price that is known."""
        price = self.price(attempt.provider, attempt.model)
        if price is None or not (outcome.prompt_tokens or outcome.completion_tokens):
            return None
        return price.of(outcome.prompt_tokens, outcome.completion_tokens)

    def price(self, provider: str, model: str | None) -> Price | None:
        return None if model is None else self._prices(provider, model)
