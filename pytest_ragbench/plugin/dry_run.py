"""``--ragbench-dry-run``: what a run would ask and cost, with nothing asked and no test run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.asks import asks_of
from pytest_ragbench.plugin.lookahead import _fixture_value, _is_skipped, _questions, _wanted

if TYPE_CHECKING:
    from pytest_ragbench.engine.prices import Price
    from pytest_ragbench.model.samples import Question
    from pytest_ragbench.plugin.state import RunState

OWN = "a judge of the project's own"
_GUESS = (1500.0, 150.0)
"""Prompt and completion tokens of a judge's call, where the store has none of this judge to tell."""


@dataclass
class Plan:
    """What the tests will ask, as far as it can be known before they run."""

    questions: set[str] = field(default_factory=set)
    """Each is asked once a run."""
    judged: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Calls by judge and metric."""
    embedded: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    """Tests that ask the service, and what they check can't be told from their source."""


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
            self._lines = list(self._told(self._planned(session.items)))
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("RAG dry run: nothing was asked")
        for line in self._lines:
            terminalreporter.line(line)

    # The plan

    def _planned(self, items: list[pytest.Item]) -> Plan:
        plan = Plan()
        judge = self._judge()
        for item in items:
            what = _wanted(item)
            if what is None or _is_skipped(item):
                continue
            questions = _questions(item, what)
            plan.questions |= {question.question for question in questions}
            self._add_metrics(plan, item, questions, judge)
        return plan

    def _add_metrics(self, plan: Plan, item: pytest.Item, questions: list[Question], judge: str) -> None:
        from pytest_ragbench.metrics.registry import find

        asks = asks_of(item)
        if not asks and questions:
            plan.unknown.append(item.nodeid)
        own = _fixture_value(item, "judge") is not None
        for ask in asks:
            for name in ask.limits:
                try:
                    metric = find(name)
                except RagbenchError:
                    continue  # the test will say so
                if metric.tasks:
                    calls = len(metric.tasks) * len(questions)
                    plan.judged[OWN if own else judge, metric.name] += calls
                if metric.embedder:
                    plan.embedded[metric.name] += len(questions)

    def _judge(self) -> str:
        """``provider:model``, or ``local``; no key is needed for that."""
        from pytest_ragbench import building
        from pytest_ragbench.judge.choose import DEFAULT_OPENAI_MODEL

        settings = self._state.settings
        provider, _, model = building.judge_name(settings).partition(":")
        if provider == "local" and "local" not in settings.providers:
            return "local"
        configured = settings.providers.get(provider)
        model = model or (configured.model if configured is not None else None) or ""
        return f"{provider}:{model or DEFAULT_OPENAI_MODEL}"

    # In words

    def _told(self, plan: Plan) -> Iterator[str]:
        calls = len(plan.questions)
        yield f"rag: {_counted(calls, 'call')}"
        tokens, cost, unpriced = 0.0, 0.0, False
        for judge in dict.fromkeys(judge for judge, _ in plan.judged):
            metrics = {name: count for (asked, name), count in plan.judged.items() if asked == judge}
            if judge == "local":
                yield f"judge local: {', '.join(sorted(metrics))}: computed here, no calls"
                continue
            count = sum(metrics.values())
            calls += count
            (prompt, completion), source = self._tokens_of(judge)
            tokens += count * (prompt + completion)
            price = self._price(judge)
            told = f"judge {judge}: {_counted(count, 'call')}, "
            told += f"about {count * (prompt + completion):,.0f} tokens ({source})"
            if price is not None:
                spent = count * price.of(prompt, completion)
                cost += spent
                told += f", about ${spent:.4f}"
            else:
                unpriced = True
                told += ", price not known"
            yield told
            for name, asked in sorted(metrics.items()):
                yield f"  {name}: {_counted(asked, 'call')}"
        if plan.embedded:
            embedder = self._state.settings.embedder or "local"
            yield f"embedder {embedder}: {', '.join(sorted(plan.embedded))}" + (
                ": computed here, no calls" if embedder == "local" else ", in batches"
            )
        yield f"in all: {_counted(calls, 'call')}, about {tokens:,.0f} tokens, about ${cost:.4f}" + (
            " and what has no known price" if unpriced else ""
        )
        yield "what the store has is not asked again, and a second try after a useless reply comes on top"
        if plan.unknown:
            yield (
                f"not known before they run: the metrics of {_counted(len(plan.unknown), 'test')}, "
                f"such as {plan.unknown[0]}"
            )
        yield from self._over(calls, tokens, cost)

    def _over(self, calls: int, tokens: float, cost: float) -> Iterator[str]:
        budget = self._state.settings.budget
        for name, cap, needed in (
            ("max_calls", budget.max_calls, calls),
            ("max_tokens", budget.max_tokens, tokens),
            ("max_cost", budget.max_cost, cost),
        ):
            if cap is not None and needed > cap:
                yield f"that is more than the budget allows: {name} is {cap:,}"

    def _tokens_of(self, judge: str) -> tuple[tuple[float, float], str]:
        """Prompt and completion tokens of a call, and where that is from."""
        from pathlib import Path

        from pytest_ragbench import building
        from pytest_ragbench.engine.backend import StoreError
        from pytest_ragbench.engine.places import backend_of

        place = building.store_place(self._state.settings, self._state._cache())
        store = None if isinstance(place, Path) and not place.is_file() else backend_of(place)
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
        import os

        from pytest_ragbench.engine.prices import prices_of

        provider, _, model = judge.partition(":")
        prices = prices_of(self._state.settings.providers, os.environ.get("OPENAI_BASE_URL"))
        return prices(provider, model)


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'s' * (count != 1)}"
