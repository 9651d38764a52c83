"""Look-ahead: while a test waits, the calls of the tests to come are under way.

What a test will ask is its question, and what its plan is certain to ask. Guessed at is only what comes out the
same whenever it is asked: a retriever and a judge that are known now, whose replies are kept and shared, and no
fixture of the user's own that may change something before the test.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench import building
from pytest_ragbench.garbage import uncollected
from pytest_ragbench.metrics.registry import find
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.plan.forecast import fitted_metric
from pytest_ragbench.plan.model import Ask
from pytest_ragbench.plan.prefetch import (
    Absent,
    Ahead,
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
    wrong_with,
)
from pytest_ragbench.plugin.xdist import queued_tests
from pytest_ragbench.scoring.context import Context

if TYPE_CHECKING:
    from pytest_ragbench.model.scores import Score
    from pytest_ragbench.plugin.state import RunState
    from pytest_ragbench.scoring import Prepared
    from pytest_ragbench.settings import Settings

LANDING_S = 10.0
"""For so long a worker waits for calls that are out when its own tests are done."""
OTHERS_LIVE_S = 1.0
"""For so long it is believed that another worker still does what it has taken up."""
TOP_UPS_IN_WINDOW = 20
"""The window moves on in so many steps while no test has to wait."""
_JUDGED_RUN = (
    "aiohttp",
    "pytest_ragbench.judge.openai",
    "pytest_ragbench.report.records",
    "pytest_ragbench.report.summary",
)


@dataclass
class _Upcoming:
    """What is known of one test to come."""

    item: pytest.Item
    ahead: Ahead = field(default_factory=Ahead)
    retriever: Any = None
    """Whom its questions were asked; None: nobody yet."""
    asked: bool = False
    """Its questions are under way, or need not be asked."""
    done: bool = False
    """Nothing is left to guess."""


class LookAhead:
    """One per process. Used in the threads that run tests, under the state's lock."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._settings = state.settings
        self._engine = state.engine
        self._shared_run = not state.is_controller
        self._window = Window(self._settings)
        self._guesses = Guesses(self._engine)
        self._tests: dict[int, _Upcoming] = {}
        self._open: dict[int, _Upcoming] = {}
        """Those with something left to guess."""
        self._reach = 0
        self._forgotten = 0
        self._next_top_up = 0
        self._others: set[int] = set()
        """Tests that other workers look ahead to."""
        self._forget_others_at = 0.0
        self._positions: dict[int, int] = {}
        self._last_dealt = 0
        """The last test that this worker has been given."""
        self._judging = False
        self._warm = False

    def top_up(self, item: pytest.Item, *, asked: bool, waits: bool = True, long: bool = False) -> None:
        """Guess for the tests after ``item``. What goes wrong here must not touch the test.

        Where the test does not wait (``waits``), since what it needs is at hand, not after every one: starting
        a few guesses at once takes the engine's loop once. Where it waits ``long``, the service is slow, and tests that
        nobody has been dealt yet are looked ahead to as well: another worker may get them, and read the replies again.
        """
        session = item.session
        if not self._window.size or session.shouldstop or session.shouldfail:
            return
        if long and not self._shared_run:
            return  # all tests are this process's own, and have been looked at
        position = self._positions.get(id(item), 0)
        self._forget_until(position)
        if not waits and position < self._next_top_up:
            return
        self._judging = self._judging or asked
        try:
            guesses = self._new_guesses(item, undealt=long)
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
        self._tests.clear()

    def _new_guesses(self, item: pytest.Item, *, undealt: bool) -> list[Guess]:
        items = item.session.items
        if not self._positions:
            self._positions = {id(each): number for number, each in enumerate(items)}
        position = self._positions.get(id(item))
        if position is None:
            return []
        self._next_top_up = position + 1 + self._window.size // TOP_UPS_IN_WINDOW
        guesses = self._rest_of(item, position)
        for number, is_own in self._taken_up(position, items, undealt=undealt):
            self._tests[number] = self._open[number] = _Upcoming(items[number], Ahead(own=is_own))
        for number, test in list(self._open.items()):
            if number > position:
                guesses += self._advance(test, item)
            # What is not guessed by now is asked by the test itself.
            if test.done or number <= position:
                del self._open[number]
        return guesses

    def _forget_until(self, position: int) -> None:
        """Keep no more than is needed: samples can be large."""
        for number in range(self._forgotten, position):
            if number in self._tests:
                self._tests[number].ahead = Ahead()
        self._forgotten = max(self._forgotten, position)

    def take_sample(self, item: pytest.Item, retriever: Any, question: Question) -> RagSample | None:
        """The test's sample, where it has been asked for ahead and is there by now; once."""
        test = self._tests.get(self._positions.get(id(item), -1))
        if test is None or test.retriever is not retriever or test.ahead.questions[:1] != [question]:
            return None
        return test.ahead.take_sample(self._engine)

    def take_score(self, item: pytest.Item, prepared: Prepared) -> Score | None:
        """The score that has been computed ahead, the same way; once."""
        test = self._tests.get(self._positions.get(id(item), -1))
        return None if test is None else test.ahead.take_score(prepared, self._engine)

    def _taken_up(
        self, position: int, items: Sequence[pytest.Item], *, undealt: bool
    ) -> Iterable[tuple[int, bool]]:
        """Tests that nobody has looked ahead to, and whether this process is certain to run them."""
        if not self._shared_run:
            coming = self._window.first(range(position + 1, len(items)), items)
            new = [number for number in coming if number >= self._reach]
            self._reach = max(self._reach, position + 1 + len(coming))
            return [(number, True) for number in new]
        now = time.monotonic()
        if now >= self._forget_others_at:  # what was another worker's is free where that worker has died
            self._others.clear()
            self._forget_others_at = now + OTHERS_LIVE_S
        own, others = self._dealt(position, items)
        window = [*own, *others] if undealt else [*own]
        free = [number for number in window if number not in self._tests and number not in self._others]
        # The test waits for the answer: not for each number that comes into the window alone.
        few = len(free) < max(1, len(window) // TOP_UPS_IN_WINDOW)
        if not free or (few and window[-1] < len(items) - 1):
            return []
        taken = self._engine.claim_tests(free)
        self._others.update(number for number in free if number not in taken)
        # A test that may be taken away is not promised what is asked ahead for it.
        stay = own if self._state.keeps_its_tests else ()
        return [(number, number in stay) for number in free if number in taken]

    def _dealt(self, position: int, items: Sequence[pytest.Item]) -> tuple[Sequence[int], Sequence[int]]:
        """The worker's own tests to come, and its share of those that nobody has been given yet.

        Tests are dealt out in their order, so what lies before one of this worker's is another's. What a worker
        has asked ahead for its own tests costs it no second look at the reply, so these come first.
        """
        queue = queued_tests(self._state.config)
        if queue is None:
            return (), self._window.first(range(position + 1, len(items)), items)
        workers = self._state.n_workers
        own = self._window.first([number for number in queue if number > position], items)
        self._last_dealt = max(self._last_dealt, position, *queue)
        # Every n-th, each worker another one: nobody waits to hear what the others take.
        start = self._last_dealt + 1 + (self._state.worker_number - self._last_dealt - 1) % workers
        # All workers together fill the call slots: each looks as far as its part of them.
        share = self._window.size // workers - self._window.costs(own, items)
        return own, self._window.first(range(start, len(items), workers), items, share)

    def _rest_of(self, item: pytest.Item, position: int) -> list[Guess]:
        """The metrics of the running test that come after the one it waits for: of a test that nobody
        looked ahead to, such as the first.
        """
        sample = getattr(item, "funcargs", {}).get("rag_sample")
        if not self._judging or position in self._tests or not _asks_more(item):
            return []
        if not isinstance(sample, RagSample) or sample_fixture(item) != "rag_sample":
            return []
        if self._shared_run and not self._engine.claim_tests([position]):
            return []
        test = self._tests[position] = _Upcoming(item, Ahead(own=True, sample=sample), asked=True)
        return self._metrics(test)

    def _needs_client(self, item: pytest.Item) -> bool:
        if not plan_of(item).certain or fixture_value(item, "judge") is not None:
            return False
        try:
            return building.judge_name(self._settings) != "local"
        except RagbenchError:
            return False

    def _advance(self, test: _Upcoming, current: pytest.Item) -> list[Guess]:
        """What can be guessed of this test now and was not before."""
        guesses: list[Guess] = []
        if not test.asked:
            what = sample_fixture(test.item)
            ready = is_ready(test.item, what, current) if what is not None else EVER
            if ready is YET:
                return []
            if ready is EVER or is_skipped(test.item) or wrong_with(test.item):
                test.done = True
                return []
            test.ahead.sample = given_sample(test.item)
            retriever: Any = None if test.ahead.sample else self._known(test.item, "retriever")
            if retriever is YET:
                return []
            if getattr(retriever, "shared", False) is True:
                # Compared by identity when the test takes its sample: a fixture may have returned another one since.
                test.retriever = retriever
                test.ahead.questions = questions_of(test.item, str(what))
                guesses += test.ahead.asked(retriever)
            if not guesses and test.ahead.sample is None:
                test.done = True
                return []
            test.asked = True
        if self._judging:
            guesses += self._metrics(test)
        return guesses

    def _metrics(self, test: _Upcoming) -> list[Guess]:
        asks: list[Ask] = []
        tools: dict[str, Any] = {}
        for ask in plan_of(test.item).certain:
            try:
                metrics = [fitted_metric(name, ask, test.ahead.example) for name in ask.metrics]
            except RagbenchError:
                break  # the test ends here, too
            needed = {"judge": any(metric.tasks for metric in metrics)}
            needed["embedder"] = any(metric.embedder for metric in metrics)
            for kind in [kind for kind, wanted in needed.items() if wanted and kind not in tools]:
                tools[kind] = self._known(test.item, kind)
                if tools[kind] is YET:
                    return []
            main = "judge" if needed["judge"] else "embedder"
            if needed[main] and main in shared_tools(tools):
                asks.append(ask)
        test.done = True
        if not asks:
            return []
        shared, absent = shared_tools(tools), Absent()
        context = Context(  # nothing here may take the state's lock, whose holder may wait for this loop
            settings=lambda: self._settings,
            engine=lambda: self._engine,
            judge=lambda: shared.get("judge") or absent,
            embedder=lambda: shared.get("embedder") or absent,
        )
        return [partial(score_ahead, context, asks, test.ahead)]

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

    def first(
        self, numbers: Sequence[int], items: Sequence[pytest.Item], size: int | None = None
    ) -> Sequence[int]:
        """As many as ``size`` has room for; without it as many as the window has, and one at least."""
        left, count = self.size if size is None else size, 0
        for number in numbers:
            if left <= 0 and (count or size is not None):
                break
            left -= self._cost(number, items)
            count += 1
        return numbers[:count]

    def costs(self, numbers: Sequence[int], items: Sequence[pytest.Item]) -> int:
        """How much of the window they take."""
        return sum(self._cost(number, items) for number in numbers)

    def _cost(self, number: int, items: Sequence[pytest.Item]) -> int:
        if not self._by_calls:
            return 1
        if number not in self._costs:
            self._costs[number] = self._calls(items[number])
        return self._costs[number]

    def _calls(self, item: pytest.Item) -> int:
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
    with uncollected():
        for module in _JUDGED_RUN:
            import_module(module)
    with suppress(RagbenchError):  # the test that names it says so
        for name in metrics:
            find(name)
