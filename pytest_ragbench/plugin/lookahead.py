"""Look-ahead: while a test waits, the calls of the tests to come are under way.

What a test will ask is its question, and what its plan is certain to ask. Guessed at is only what comes out the
same whenever it is asked: a retriever and a judge that are known now, whose replies are kept and shared, and no
fixture of the user's own that may change something before the test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.garbage import uncollected
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.plan.forecast import fitted_metric
from pytest_ragbench.plan.model import Ask
from pytest_ragbench.plan.prefetch import (
    Absent,
    Answers,
    Guess,
    Guesses,
    calls_at_once,
    score_ahead,
    shared_tools,
)
from pytest_ragbench.plugin.upcoming import (
    EVER,
    YET,
    fixture_value,
    given_sample,
    is_ready,
    is_skipped,
    plan_of,
    questions_of,
    sample_fixture,
)

if TYPE_CHECKING:
    from pytest_ragbench.plugin.state import RunState
    from pytest_ragbench.settings import Settings

LANDING_S = 10.0
"""For so long a worker waits for calls that are out when its own tests are done."""
OTHERS_LIVE_S = 1.0
"""For so long it is believed that another worker still does what it has taken up."""
_JUDGED_RUN = (
    "aiohttp",
    "pytest_ragbench.judge.openai",
    "pytest_ragbench.report.records",
    "pytest_ragbench.report.summary",
)


@dataclass
class _Ahead:
    """What is known of one test to come."""

    item: pytest.Item
    answers: Answers = field(default_factory=Answers)
    asked: bool = False
    """Its question is under way."""
    done: bool = False
    """Nothing is left to guess."""

    def end(self) -> None:
        """Keep no more than is needed: samples can be large."""
        self.done, self.answers = True, Answers()


class LookAhead:
    """One per process. Used in the threads that run tests, under the state's lock."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._settings = state.settings
        self._engine = state.engine
        self._shared_run = not state.is_controller
        self._window = Window(self._settings)
        self._guesses = Guesses(self._engine)
        self._ahead: dict[int, _Ahead] = {}
        self._open: dict[int, _Ahead] = {}
        """Those with something left to guess."""
        self._reach = 0
        self._others: set[int] = set()
        """Tests that other workers look ahead to."""
        self._forget_others_at = 0.0
        self._positions: dict[int, int] = {}
        self._judging = False
        self._warm = False

    def top_up(self, item: pytest.Item, *, asked: bool) -> None:
        """Guess for the tests after ``item``. What goes wrong here must not touch the test."""
        session = item.session
        if not self._window.size or session.shouldstop or session.shouldfail:
            return
        self._judging = self._judging or asked
        try:
            guesses = self._new_guesses(item)
            # After the questions are out: the test waits, the interpreter is free. A worker whose tests
            # others look ahead to may never need the client.
            if guesses and not self._warm:
                self._warm = True
                names = list(plan_of(item).metric_names())
                guesses += [partial(_warm_up, names)] if self._needs_client(item) else []
            self._guesses.launch(guesses)
        except Exception as error:
            self._window.size = 0
            self._state.warn(f"look-ahead is switched off: {type(error).__name__}: {error}")

    def end(self, *, early: bool) -> None:
        """Guess no more. Other workers may wait for what is out: let that come back, unless all end."""
        self._window.size = 0
        if self._shared_run and not early:
            self._engine.drain(LANDING_S)
        self._guesses.stop()

    def _new_guesses(self, item: pytest.Item) -> list[Guess]:
        items = item.session.items
        if not self._positions:
            self._positions = {id(each): number for number, each in enumerate(items)}
        position = self._positions.get(id(item))
        if position is None:
            return []
        guesses = self._rest_of(item, position)
        window = self._window.after(position, items)
        for number in self._own(window):
            self._ahead[number] = self._open[number] = _Ahead(items[number])
        for number, ahead in list(self._open.items()):
            if number in window:
                guesses += self._advance(ahead, item)
            if number <= position:  # what is not guessed by now is asked by the test itself
                ahead.end()
            if ahead.done:
                del self._open[number]
        return guesses

    def _own(self, window: range) -> Collection[int]:
        """Tests of the window that nobody has looked ahead to."""
        if not self._shared_run:
            start, self._reach = max(window.start, self._reach), max(window.stop, self._reach)
            return range(start, window.stop)
        now = time.monotonic()
        if now >= self._forget_others_at:  # what was another worker's is free where that worker has died
            self._others.clear()
            self._forget_others_at = now + OTHERS_LIVE_S
        free = [number for number in window if number not in self._ahead and number not in self._others]
        own = self._engine.claim_tests(free)
        self._others.update(number for number in free if number not in own)
        return sorted(own)

    def _rest_of(self, item: pytest.Item, position: int) -> list[Guess]:
        """The metrics of the running test that come after the one it waits for: of a test that nobody
        looked ahead to, such as the first.
        """
        sample = getattr(item, "funcargs", {}).get("rag_sample")
        if not self._judging or position in self._ahead or not _asks_more(item):
            return []
        if not isinstance(sample, RagSample) or sample_fixture(item) != "rag_sample":
            return []
        if self._shared_run and not self._engine.claim_tests([position]):
            return []
        ahead = self._ahead[position] = _Ahead(item, Answers(sample=sample), asked=True)
        return self._metrics(ahead)

    def _needs_client(self, item: pytest.Item) -> bool:
        from pytest_ragbench import building

        if not plan_of(item).certain or fixture_value(item, "judge") is not None:
            return False
        try:
            return building.judge_name(self._settings) != "local"
        except RagbenchError:
            return False

    def _advance(self, ahead: _Ahead, current: pytest.Item) -> list[Guess]:
        """What can be guessed of this test now and was not before."""
        guesses: list[Guess] = []
        if not ahead.asked:
            what = sample_fixture(ahead.item)
            ready = is_ready(ahead.item, what, current) if what is not None else EVER
            if ready is YET:
                return []
            if ready is EVER or is_skipped(ahead.item):
                ahead.end()
                return []
            ahead.answers.sample = given_sample(ahead.item)
            retriever: Any = None if ahead.answers.sample else self._known(ahead.item, "retriever")
            if retriever is YET:
                return []
            if getattr(retriever, "shared", False) is True:
                ahead.answers.questions = questions_of(ahead.item, str(what))
                guesses += ahead.answers.asked(retriever)
            if not guesses and ahead.answers.sample is None:
                ahead.end()
                return []
            ahead.asked = True
        if self._judging and not ahead.done:
            guesses += self._metrics(ahead)
        return guesses

    def _metrics(self, ahead: _Ahead) -> list[Guess]:
        from pytest_ragbench.scoring import Context

        asks: list[Ask] = []
        tools: dict[str, Any] = {}
        for ask in plan_of(ahead.item).certain:
            try:
                metrics = [fitted_metric(name, ask, ahead.answers.example) for name in ask.metrics]
            except RagbenchError:
                break  # the test ends here, too
            needed = {"judge": any(metric.tasks for metric in metrics)}
            needed["embedder"] = any(metric.embedder for metric in metrics)
            for kind in [kind for kind, wanted in needed.items() if wanted and kind not in tools]:
                tools[kind] = self._known(ahead.item, kind)
                if tools[kind] is YET:
                    return []
            main = "judge" if needed["judge"] else "embedder"
            if needed[main] and main in shared_tools(tools):
                asks.append(ask)
        answers = ahead.answers
        ahead.end()
        if not asks:
            return []
        shared, absent = shared_tools(tools), Absent()
        context = Context(  # nothing here may take the state's lock, whose holder may wait for this loop
            settings=lambda: self._settings,
            engine=lambda: self._engine,
            judge=lambda: shared.get("judge") or absent,
            embedder=lambda: shared.get("embedder") or absent,
        )
        return [partial(score_ahead, context, asks, answers)]

    def _known(self, item: pytest.Item, kind: str) -> Any:
        """The retriever, judge or embedder that the test will see, where that is certain now."""
        value = fixture_value(item, kind)
        if value is YET or value is EVER:
            return value
        try:
            return self._state.coerce(kind, value)
        except RagbenchError:
            return EVER


class Window:
    """Which tests are looked ahead to.

    As many as are configured; by default as many as keep all call slots busy, so fewer where each has
    several calls under way at a time: votes, panels, means over a set.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._by_calls = settings.lookahead is None
        slots = [provider.max_concurrency for provider in settings.providers.values()]
        default = settings.rag.max_concurrency + max(slots, default=16)
        self.size = default if settings.lookahead is None else settings.lookahead
        """In calls at a time, or in tests where it is configured; 0: there is no look-ahead."""
        self._costs: dict[int, int] = {}
        self._used = 0
        self._stop = 0

    def after(self, position: int, items: Sequence[pytest.Item]) -> range:
        """The positions that follow, as far as the window goes: one at least."""
        if not self._by_calls:
            return range(position + 1, min(position + 1 + self.size, len(items)))
        for number in [number for number in self._costs if number <= position]:
            self._used -= self._costs.pop(number)
        self._stop = max(self._stop, position + 1)
        while self._stop < len(items) and (not self._costs or self._used < self.size):
            self._costs[self._stop] = cost = self._cost(items[self._stop])
            self._used += cost
            self._stop += 1
        return range(position + 1, self._stop)

    def _cost(self, item: pytest.Item) -> int:
        what = sample_fixture(item)
        if what is None:
            return 1
        questions = 1 if what == "rag_sample" else max(1, len(questions_of(item, what)))
        judges = len(self._settings.judges) or 1 + bool(self._settings.judge_dual)
        return calls_at_once(plan_of(item).certain, questions, self._settings.votes, judges)


def _asks_more(item: pytest.Item) -> bool:
    return sum(len(ask.metrics) for ask in plan_of(item).certain if ask.of == "sample") > 1


async def _warm_up(metrics: Sequence[str]) -> None:
    """Half a second of imports that the first judged test would wait for."""
    await asyncio.sleep(0)  # let the calls go out first
    await asyncio.to_thread(_import_all, metrics)


def _import_all(metrics: Sequence[str]) -> None:
    from pytest_ragbench.metrics.registry import find

    with uncollected():
        for module in _JUDGED_RUN:
            import_module(module)
    with suppress(RagbenchError):  # the test that names it says so
        for name in metrics:
            find(name)
