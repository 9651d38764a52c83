"""``--ragbench-dry-run``: what a run would ask and cost, with nothing asked and no test run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ragbench import building
from pytest_ragbench.clean import counted
from pytest_ragbench.engine.inventory import StoreError, inventory_of
from pytest_ragbench.engine.prices import prices_of
from pytest_ragbench.judge.openai import DEFAULT_OPENAI_MODEL
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.money import dollars
from pytest_ragbench.plan.forecast import Forecast, Judges, UpcomingTest
from pytest_ragbench.plugin.preflight import expected_calls
from pytest_ragbench.plugin.upcoming import fixture_value, is_skipped, plan_of, questions_of, sample_fixture
from pytest_ragbench.scoring.requests import votes_for

if TYPE_CHECKING:
    from pytest_ragbench.engine.prices import Price
    from pytest_ragbench.plugin.state import RunState


OWN = "a judge of the project's own"
_GUESS = (1500.0, 150.0)
"""Prompt and completion tokens of a judge's call, where the store has none of this judge to tell."""


class DryRun:
    """Registered on the controller where the option is given: runs nothing, and tells at the end."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._lines: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None  # what could not be collected is pytest's to tell
        try:
            forecast = self._planned(session.items)
            judges = self._configured_judges()
            if forecast.judged and (calls := expected_calls(session.config, self._state)):
                for judge in (*judges.asked, *judges.perhaps):
                    forecast.judged[judge, "preflight"] += calls
            self._lines = list(self._told(forecast))
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("RAG dry run: nothing was asked")
        for line in self._lines:
            terminalreporter.line(line)

    # The forecast

    def _planned(self, items: list[pytest.Item]) -> Forecast:
        forecast = Forecast()
        configured = self._configured_judges()
        for item in items:
            what = sample_fixture(item)
            if what is None or is_skipped(item):
                continue
            questions = questions_of(item, what)
            retriever = fixture_value(item, "retriever")
            forecast.add(
                UpcomingTest(
                    item.nodeid,
                    plan_of(item),
                    questions,
                    self._judges_of(item, configured),
                    None if retriever is None else id(retriever),
                    [votes_for(self._state.settings, question) for question in questions],
                )
            )
        return forecast

    def _judges_of(self, item: pytest.Item, configured: Judges) -> Judges:
        own = fixture_value(item, "judge")
        if own is None:
            return configured
        return Judges((self._full_name(own),)) if isinstance(own, str) else Judges((OWN,))

    def _configured_judges(self) -> Judges:
        """``provider:model``, or ``local``; no key is needed for that."""
        settings = self._state.settings
        if settings.judges:
            return Judges(tuple(map(self._full_name, settings.judges)))
        first = self._full_name(building.judge_name(settings))
        if settings.judge_dual:
            return Judges((first, self._full_name(settings.judge_dual)))
        second = settings.judge_confirm or settings.judge_cascade
        return Judges((first,), (self._full_name(second),) if second else ())

    def _full_name(self, name: str) -> str:
        settings = self._state.settings
        provider, _, model = name.partition(":")
        if provider == "local" and "local" not in settings.providers:
            return "local"
        configured = settings.providers.get(provider)
        model = model or (configured.model if configured is not None else None) or ""
        return f"{provider}:{model or DEFAULT_OPENAI_MODEL}"

    # In words

    def _told(self, forecast: Forecast) -> Iterator[str]:
        calls = len(forecast.answers)
        yield f"rag: {counted(calls, 'call')}"
        tokens, cost, unpriced = 0.0, 0.0, False
        for judge in dict.fromkeys(judge for judge, _ in forecast.judged):
            metrics = {name: count for (asked, name), count in forecast.judged.items() if asked == judge}
            if judge == "local":
                yield f"judge local: {', '.join(sorted(metrics))}: computed here, no calls"
                continue
            count = sum(metrics.values())
            calls += count
            (prompt, completion), source = self._tokens_of(judge)
            tokens += count * (prompt + completion)
            price = self._price(judge)
            told = f"judge {judge}: {counted(count, 'call')}, "
            told += f"about {count * (prompt + completion):,.0f} tokens ({source})"
            if price is not None:
                spent = count * price.of(prompt, completion)
                cost += spent
                told += f", about {dollars(spent)}"
            else:
                unpriced = True
                told += ", price not known"
            yield told
            for name, asked in sorted(metrics.items()):
                yield f"  {name}: {counted(asked, 'call')}"
        if forecast.embedded:
            embedder = self._state.settings.embedder or "local"
            yield f"embedder {embedder}: {', '.join(sorted(forecast.embedded))}" + (
                ": computed here, no calls" if embedder == "local" else ", in batches"
            )
        yield f"in all: {counted(calls, 'call')}, about {tokens:,.0f} tokens, about {dollars(cost)}" + (
            " and what has no known price" if unpriced else ""
        )
        if forecast.perhaps:
            yield f"up to {counted(forecast.perhaps, 'call')} more of judges, as replies turn out"
        yield "what the store has is not asked again, and a second try after a useless reply comes on top"
        if forecast.unknown:
            yield (
                f"not known before they run: the metrics of {counted(len(forecast.unknown), 'test')}, "
                f"such as {forecast.unknown[0]}"
            )
        yield from self._over(calls, tokens, cost)

    def _over(self, calls: int, tokens: float, cost: float) -> Iterator[str]:
        budget = self._state.settings.budget
        for name, cap, needed, shown in (
            ("max_calls", budget.max_calls, calls, f"{budget.max_calls:,}" if budget.max_calls else "0"),
            ("max_tokens", budget.max_tokens, tokens, f"{budget.max_tokens:,}" if budget.max_tokens else "0"),
            ("max_cost", budget.max_cost, cost, dollars(budget.max_cost)),
        ):
            if cap is not None and needed > cap:
                yield f"that is more than the budget allows: {name} is {shown}"

    def _tokens_of(self, judge: str) -> tuple[tuple[float, float], str]:
        """Prompt and completion tokens of a call, and where that is from."""
        place = building.store_place(self._state.settings, self._state.cache())
        store = None if isinstance(place, Path) and not place.is_file() else inventory_of(place)
        if store is not None:
            try:
                mean = store.mean_tokens("judge", judge.partition(":")[0])
            except StoreError:
                mean = None
            finally:
                store.close()
            if mean is not None:
                return mean, "as the calls in the store"
        return _GUESS, f"guessed at {sum(_GUESS):,.0f} a call: the store has none to tell"

    def _price(self, judge: str) -> Price | None:
        provider, _, model = judge.partition(":")
        prices = prices_of(self._state.settings.providers, os.environ.get("OPENAI_BASE_URL"))
        return prices(provider, model)
