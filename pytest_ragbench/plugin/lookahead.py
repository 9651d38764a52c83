"""Look-ahead: while a test waits, the calls of the tests to come are under way.

What a test will ask is its question, and the metrics that its function is certain to name. Guessed at is
only what comes out the same whenever it is asked: a retriever and a judge that are known now, whose
replies are kept and shared, and no fixture of the user's own that may change something before the test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.engine.lookahead import Guess, Guesses
from pytest_ragbench.garbage import uncollected
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.plan.model import UNKNOWN, Ask
from pytest_ragbench.plugin.upcoming import (
    EVER,
    YET,
    fixture_value,
    is_ready,
    is_skipped,
    plan_of,
    questions_of,
    sample_fixture,
)

if TYPE_CHECKING:
    from pytest_ragbench.plugin.state import RunState
    from pytest_ragbench.settings import Settings

_LANDING = 10.0
"""Seconds that a worker waits for calls that are out when its own tests are done."""
_OTHERS_LIVE = 1.0
"""Seconds for which it is believed that another worker still does what it has taken up."""
_JUDGED_RUN = (
    "aiohttp",
    "pytest_ragbench.judge.openai",
    "pytest_ragbench.report.records",
    "pytest_ragbench.report.summary",
)


@dataclass
class _Plan:
    """What is known of one test to come."""

    item: pytest.Item
    samples: list[asyncio.Task[RagSample] | RagSample] = field(default_factory=list)
    asked: bool = False
    """Its question is under way."""
    done: bool = False
    """Nothing is left to guess."""


class LookAhead:
    """One per process. Used in the threads that run tests, under the state's lock."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._settings = state.settings
        self._engine = state.engine
        self._shared_run = not state.is_controller
        self._window = window_of(self._settings)
        self._guesses = Guesses(self._engine)
        self._plans: dict[int, _Plan] = {}
        self._open: dict[int, _Plan] = {}
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
        if not self._window or session.shouldstop or session.shouldfail:
            return
        self._judging = self._judging or asked
        try:
            guesses = self._new_guesses(item)
            # After the questions are out: the test waits, the interpreter is free. A worker whose tests
            # others look ahead to may never need the client.
            if guesses and not self._warm:
                self._warm = True
                guesses += [partial(_warm_up, _metric_names(item))] if self._needs_client(item) else []
            self._guesses.launch(guesses)
        except Exception as error:
            self._window = 0
            self._state.warn(f"look-ahead is switched off: {type(error).__name__}: {error}")

    def end(self, *, early: bool) -> None:
        """Guess no more. Other workers may wait for what is out: let that come back, unless all end."""
        self._window = 0
        if self._shared_run and not early:
            self._engine.land(_LANDING)
        self._guesses.stop()

    def _new_guesses(self, item: pytest.Item) -> list[Guess]:
        items = item.session.items
        if not self._positions:
            self._positions = {id(each): number for number, each in enumerate(items)}
        position = self._positions.get(id(item))
        if position is None:
            return []
        guesses = self._rest_of(item, position)
        window = range(position + 1, min(position + 1 + self._window, len(items)))
        for number in self._own(window):
            self._plans[number] = self._open[number] = _Plan(items[number])
        for number, plan in list(self._open.items()):
            if number in window:
                guesses += self._advance(plan, item)
            if number <= position:  # what is not guessed by now is asked by the test itself
                plan.done, plan.samples = True, []
            if plan.done:
                del self._open[number]
        return guesses

    def _own(self, window: range) -> Collection[int]:
        """Tests of the window that nobody has looked ahead to."""
        if not self._shared_run:
            start, self._reach = max(window.start, self._reach), max(window.stop, self._reach)
            return range(start, window.stop)
        now = time.monotonic()
        if now >= self._forget_others_at:  # what was another worker's is nobody's where that worker has died
            self._others.clear()
            self._forget_others_at = now + _OTHERS_LIVE
        free = [number for number in window if number not in self._plans and number not in self._others]
        own = self._engine.firsts(free)
        self._others.update(number for number in free if number not in own)
        return sorted(own)

    def _rest_of(self, item: pytest.Item, position: int) -> list[Guess]:
        """The metrics of the running test that come after the one it waits for: of a test that nobody
        looked ahead to, such as the first.
        """
        sample = getattr(item, "funcargs", {}).get("rag_sample")
        if not self._judging or position in self._plans or len(_asks_of(item)) < 2:
            return []
        if not isinstance(sample, RagSample) or sample_fixture(item) != "rag_sample":
            return []
        if self._shared_run and not self._engine.firsts([position]):
            return []
        plan = self._plans[position] = _Plan(item, [sample], asked=True)
        return self._metrics(plan)

    def _needs_client(self, item: pytest.Item) -> bool:
        from pytest_ragbench import building

        if not _asks_of(item) or fixture_value(item, "judge") is not None:
            return False
        try:
            return building.judge_name(self._settings) != "local"
        except RagbenchError:
            return False

    def _advance(self, plan: _Plan, current: pytest.Item) -> list[Guess]:
        """What can be guessed of this test now and was not before."""
        guesses: list[Guess] = []
        if not plan.asked:
            what = sample_fixture(plan.item)
            ready = is_ready(plan.item, what, current) if what is not None else EVER
            if ready is YET:
                return []
            if ready is EVER or is_skipped(plan.item):
                plan.done = True
                return []
            retriever = self._known(plan.item, "retriever")
            if retriever is YET:
                return []
            questions = questions_of(plan.item, str(what)) if _is_shared(retriever) else []
            if not questions:
                plan.done = True
                return []
            plan.asked = True
            guesses += [partial(_ask, retriever, question, plan.samples) for question in questions]
            if what != "rag_sample":
                plan.done = True
        if self._judging and not plan.done:
            guesses += self._metrics(plan)
        return guesses

    def _metrics(self, plan: _Plan) -> list[Guess]:
        from pytest_ragbench.metrics.registry import find

        asks: list[Ask] = []
        tools: dict[str, Any] = {}
        for ask in _asks_of(plan.item):
            try:
                metrics = [find(name) for name in ask.metrics]
            except RagbenchError:
                break  # the test ends here, too
            needed = {"judge": any(metric.tasks for metric in metrics)}
            needed["embedder"] = any(metric.embedder for metric in metrics)
            for kind in [kind for kind, wanted in needed.items() if wanted and kind not in tools]:
                tools[kind] = self._known(plan.item, kind)
                if tools[kind] is YET:
                    return []
            main = "judge" if needed["judge"] else "embedder"
            if needed[main] and _is_shared(tools[main]):
                asks.append(ask)
        plan.done = True
        samples, plan.samples = plan.samples, []  # kept no longer than they are needed
        if not asks:
            return []
        shared = {kind: tool for kind, tool in tools.items() if _is_shared(tool)}
        return [partial(self._score, samples, asks, shared)]

    def _known(self, item: pytest.Item, kind: str) -> Any:
        """The retriever, judge or embedder that the test will see, where that is certain now."""
        value = fixture_value(item, kind)
        if value is YET or value is EVER:
            return value
        try:
            return self._state.coerce(kind, value)
        except RagbenchError:
            return EVER

    # On the engine's loop

    async def _score(
        self,
        samples: Sequence[asyncio.Task[RagSample] | RagSample],
        asks: Sequence[Ask],
        tools: Mapping[str, Any],
    ) -> None:
        [asked] = samples
        sample = asked if isinstance(asked, RagSample) else await asyncio.shield(asked)
        await self._score_asks(sample, asks, tools)

    async def _score_asks(self, sample: RagSample, asks: Sequence[Ask], tools: Mapping[str, Any]) -> None:
        """Those that come before the first that is wrong with the test."""
        from pytest_ragbench.scoring import Context, Prepared, ScoreRequest, prepare, score_all

        absent = _Absent()
        here = Context(  # nothing here may take the state's lock, whose holder may wait for this loop
            settings=lambda: self._settings,
            engine=lambda: self._engine,
            judge=lambda: tools.get("judge") or absent,
            embedder=lambda: tools.get("embedder") or absent,
        )
        found: list[Prepared] = []
        for ask in asks:
            try:
                _check_grades(ask)
                found += [
                    prepare(
                        here,
                        ScoreRequest(
                            metric=name, sample=sample, options=ask.options,
                            threshold=None if limit is UNKNOWN else limit,
                            asserted=ask.gated and limit is not UNKNOWN,
                        ),
                    )
                    for name, limit in ask.metrics.items()
                ]  # fmt: skip
            except RagbenchError:
                break
        await score_all(found)


def window_of(settings: Settings) -> int:
    """For how many tests calls may be under way: as configured, else one for each call slot."""
    if settings.lookahead is not None:
        return settings.lookahead
    slots = [provider.max_concurrency for provider in settings.providers.values()]
    return settings.rag.max_concurrency + max(slots, default=16)


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


def _asks_of(item: pytest.Item) -> list[Ask]:
    return [ask for ask in plan_of(item).certain if ask.of == "sample"]


def _metric_names(item: pytest.Item) -> list[str]:
    return [name for ask in _asks_of(item) for name in ask.metrics]


async def _ask(
    retriever: Any, question: Question, samples: list[asyncio.Task[RagSample] | RagSample]
) -> None:
    task = asyncio.ensure_future(retriever.ask(question))
    samples.append(task)
    await task


class _Absent:
    """Stands for a judge or embedder that is not asked ahead; a guess ends where it would be."""

    name = "absent"
    tasks = None

    async def ask(self, task: Any) -> Any:
        raise RagbenchError("not asked ahead of the test")

    async def embed(self, texts: Any) -> Any:
        raise RagbenchError("not asked ahead of the test")


def _is_shared(value: Any) -> bool:
    return getattr(value, "shared", False) is True


def _check_grades(ask: Ask) -> None:
    from pytest_ragbench.model.thresholds import parse_threshold

    for limit in ask.grades:
        if limit is not None and limit is not UNKNOWN:
            parse_threshold(limit)
