"""Look-ahead: while a test waits, the calls of the tests to come are under way.

What a test will ask is its question, and the metrics that its function is certain to name. Guessed at is
only what comes out the same whenever it is asked: a retriever and a judge that are known now, whose
replies are kept and shared, and no fixture of the user's own that may change something before the test.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sysconfig
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

from pytest_ragbench.engine.lookahead import Guess, Guesses
from pytest_ragbench.garbage import uncollected
from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.plugin.asks import UNKNOWN, Ask, asks_of

if TYPE_CHECKING:
    from pytest_ragbench.plugin.state import RunState
    from pytest_ragbench.settings import Settings

_LATER = object()
"""Can't be known yet."""
_NEVER = object()
"""Can't be known before the test runs."""

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
_SAMPLES = ("rag_sample", "rag_samples", "rag_conversation")


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
        if not self._judging or position in self._plans or len(asks_of(item)) < 2:
            return []
        if not isinstance(sample, RagSample) or _wanted(item) != "rag_sample":
            return []
        if self._shared_run and not self._engine.firsts([position]):
            return []
        plan = self._plans[position] = _Plan(item, [sample], asked=True)
        return self._metrics(plan)

    def _needs_client(self, item: pytest.Item) -> bool:
        from pytest_ragbench import building

        if not asks_of(item) or _fixture_value(item, "judge") is not None:
            return False
        try:
            return building.judge_name(self._settings) != "local"
        except RagbenchError:
            return False

    def _advance(self, plan: _Plan, current: pytest.Item) -> list[Guess]:
        """What can be guessed of this test now and was not before."""
        guesses: list[Guess] = []
        if not plan.asked:
            what = _wanted(plan.item)
            ready = _ready(plan.item, what, current) if what is not None else _NEVER
            if ready is _LATER:
                return []
            if ready is _NEVER or _is_skipped(plan.item):
                plan.done = True
                return []
            retriever = self._known(plan.item, "retriever")
            if retriever is _LATER:
                return []
            questions = _questions(plan.item, str(what)) if _is_shared(retriever) else []
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
        for ask in asks_of(plan.item):
            try:
                metrics = [find(name) for name in ask.limits]
            except RagbenchError:
                break  # the test ends here, too
            needed = {"judge": any(metric.tasks for metric in metrics)}
            needed["embedder"] = any(metric.embedder for metric in metrics)
            for kind in [kind for kind, wanted in needed.items() if wanted and kind not in tools]:
                tools[kind] = self._known(plan.item, kind)
                if tools[kind] is _LATER:
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
        value = _fixture_value(item, kind)
        if value is _LATER or value is _NEVER:
            return value
        try:
            return self._state.coerce(kind, value)
        except RagbenchError:
            return _NEVER

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
                    for name, limit in ask.limits.items()
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


def _metric_names(item: pytest.Item) -> list[str]:
    return [name for ask in asks_of(item) for name in ask.limits]


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


# What pytest knows of a test that has not begun


def _wanted(item: pytest.Item) -> str | None:
    """``"rag_sample"``, ``"rag_samples"`` or ``"rag_conversation"``, where the test has it from us."""
    names = getattr(item, "fixturenames", ())
    wanted = [name for name in _SAMPLES if name in names]
    if len(wanted) != 1 or _is_users(item, wanted[0], _definition(item, wanted[0])):
        return None
    return wanted[0]


def _questions(item: pytest.Item, what: str) -> list[Question]:
    from pytest_ragbench.plugin.asking import as_question
    from pytest_ragbench.plugin.collecting import questions_for

    try:
        if what == "rag_samples":
            return list(questions_for(item, item.config) or [])
        params = getattr(getattr(item, "callspec", None), "params", {})
        if what == "rag_conversation":
            return list(params.get("rag_session", ()))
        value = params.get("rag_question")
        return [] if value is None or "rag_sample" in params else [as_question(value, item)]
    except RagbenchError:
        return []


def _is_skipped(item: pytest.Item) -> bool:
    try:
        if evaluate_skip_marks(item) is not None:
            return True
        expected = evaluate_xfail_marks(item)
    except (Exception, pytest.fail.Exception):  # a condition that can't be evaluated
        return True
    return expected is not None and not expected.run and not item.config.option.runxfail


def _ready(item: pytest.Item, what: str, current: pytest.Item) -> object:
    """True, or :data:`_LATER`, or :data:`_NEVER`: could a fixture of the user's change what is asked?

    Wider ones must be set up: they may start the service. One for each test, before the sample, may do
    anything.
    """
    names = list(getattr(item, "fixturenames", ()))
    ready: object = True
    for name in names[: names.index(what)]:
        definition = _definition(item, name)
        if not _is_users(item, name, definition) or _is_parameter(item, name, definition):
            continue
        if definition.scope == "function":
            if not _needs(item, definition, what):
                return _NEVER
        elif not _is_set_up(item, definition, current):
            ready = _LATER
    return ready


def _is_set_up(item: pytest.Item, definition: Any, current: pytest.Item) -> bool:
    result = definition.cached_result
    if result is None or result[2] is not None:
        return False
    # The instance that is set up is that of the current test's module or class.
    return definition.scope == "session" or (
        item.path == current.path and getattr(item, "cls", None) is getattr(current, "cls", None)
    )


def _fixture_value(item: pytest.Item, kind: str) -> Any:
    """What the fixture returns to this test; None for our own, which is made from the settings."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    definition = _definition(item, kind)
    if definition is None:
        return _NEVER
    if _is_parameter(item, kind, definition):
        return params[kind]
    if not _is_users(item, kind, definition):
        return None
    if definition.scope != "session" or definition.params:
        return _NEVER
    result = definition.cached_result
    if result is None:
        return _LATER
    return _NEVER if result[2] is not None else result[0]


def _definition(item: pytest.Item, name: str) -> Any:
    """The fixture's definition that the test sees; None for names that are no fixtures."""
    info = getattr(item, "_fixtureinfo", None)
    found = info.name2fixturedefs.get(name) if info is not None else None
    if not found:
        found = item.session._fixturemanager.getfixturedefs(name, item)
    return found[-1] if found else None


_HARMLESS = ("_pytest.", "pytest_ragbench.", "pytest_asyncio.", "anyio.")
_INSTALLED = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib")})


def _is_users(item: pytest.Item, name: str, definition: Any) -> bool:
    """Whether it may change what a service says: the user's own, or one of an installed plugin's that the
    test asks for by name (a mock, say).
    """
    if definition is None:
        return False
    function = inspect.unwrap(definition.func)
    if f"{getattr(function, '__module__', '')}.".startswith(_HARMLESS):
        return False
    code = getattr(function, "__code__", None)
    by_name = name in item._fixtureinfo.argnames  # type: ignore[attr-defined]
    return by_name or code is None or not code.co_filename.startswith(_INSTALLED)


def _is_parameter(item: pytest.Item, name: str, definition: Any) -> bool:
    """A value of ``parametrize``, which pytest dresses as a fixture."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return name in params and definition.func.__name__ == "get_direct_param_fixture_func"


def _needs(item: pytest.Item, definition: Any, what: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether the fixture is made from the sample, and so comes after it."""
    for name in definition.argnames:
        if name == what:
            return True
        inner = _definition(item, name) if name not in seen else None
        if inner is not None and inner is not definition and _needs(item, inner, what, seen | {name}):
            return True
    return False
