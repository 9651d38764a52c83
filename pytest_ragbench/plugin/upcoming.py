"""What pytest knows of a test that has not begun: its plan, its questions, what its fixtures will return."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import pytest
from _pytest.skipping import evaluate_skip_marks, evaluate_xfail_marks

from pytest_ragbench.model.errors import RagbenchError, UsageError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.plan.checking import check_plan
from pytest_ragbench.plan.model import Plan, Symbol
from pytest_ragbench.plan.reading import PlanReader
from pytest_ragbench.plan.values import is_installed
from pytest_ragbench.plugin.collecting import as_question, questions_for
from pytest_ragbench.plugin.state import state_of


class NotKnown(Enum):
    """Why a value can't be told now."""

    YET = "it will be known before the test begins"
    EVER = "only the running test knows it"


YET, EVER = NotKnown.YET, NotKnown.EVER

_SAMPLES = {"rag_sample": Symbol.SAMPLE, "rag_samples": Symbol.SAMPLES, "rag_conversation": Symbol.SAMPLES}
_QUESTIONS = frozenset({"rag_question", "rag_session"})
_READER = pytest.StashKey[PlanReader]()
_PLAN = pytest.StashKey[Plan]()
_WRONG = pytest.StashKey[str]()


def plan_of(item: pytest.Item) -> Plan:
    """What the test will ask."""
    plan = item.stash.get(_PLAN, None)
    if plan is None:
        plan = item.stash[_PLAN] = _plan_of(item)
    return plan


def wrong_with(item: pytest.Item) -> str:
    """What is wrong with a test that has questions of ours, as far as its source tells; empty: nothing."""
    told = item.stash.get(_WRONG, None)
    if told is None:
        told = item.stash[_WRONG] = _wrong_with(item)
    return told


def _wrong_with(item: pytest.Item) -> str:
    what = sample_fixture(item)
    if what is None:
        return ""
    try:
        questions = questions_of(item, what)
        check_plan(state_of(item.config).settings, plan_of(item), [each.thresholds for each in questions])
    except UsageError as error:
        return str(error)
    return ""


def _plan_of(item: pytest.Item) -> Plan:
    function = getattr(item, "function", None)
    # A test in YAML has its plan as data.
    written: Callable[[Any], Plan] | None = getattr(function, "ragbench_plan", None)
    if written is not None:
        return written(_params(item).get("rag_question"))
    if function is None:
        return Plan()
    reader = item.config.stash.setdefault(_READER, PlanReader())
    return reader.plan_of(function, _arguments(item), getattr(item, "cls", None))


def _arguments(item: pytest.Item) -> dict[str, Any]:
    """What is known of the function's arguments."""
    known = {
        name: value
        for name, value in _params(item).items()
        if name not in _QUESTIONS and _is_parameter(item, name, definition_of(item, name))
    }
    sample = sample_fixture(item)
    return known if sample is None else {**known, sample: _SAMPLES[sample]}


def _params(item: pytest.Item) -> Mapping[str, Any]:
    found: Mapping[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return found


def sample_fixture(item: pytest.Item) -> str | None:
    """``"rag_sample"``, ``"rag_samples"`` or ``"rag_conversation"``, where the test has it from us."""
    names = getattr(item, "fixturenames", ())
    wanted = [name for name in _SAMPLES if name in names]
    if len(wanted) != 1 or _is_users(item, wanted[0], definition_of(item, wanted[0])):
        return None
    return wanted[0]


def questions_of(item: pytest.Item, what: str) -> list[Question]:
    try:
        if what == "rag_samples":
            return list(questions_for(item, item.config) or [])
        params = _params(item)
        if what == "rag_conversation":
            return list(params.get("rag_session", ()))
        value = params.get("rag_question")
        return [] if value is None or "rag_sample" in params else [as_question(value, item)]
    except RagbenchError:
        return []


def given_sample(item: pytest.Item) -> RagSample | None:
    """The sample itself, where the test is parametrised with it."""
    value = _params(item).get("rag_sample")
    return value if isinstance(value, RagSample) else None


def is_skipped(item: pytest.Item) -> bool:
    try:
        if evaluate_skip_marks(item) is not None:
            return True
        expected = evaluate_xfail_marks(item)
    except (Exception, pytest.fail.Exception):  # a condition that can't be evaluated
        return True
    return expected is not None and not expected.run and not item.config.option.runxfail


def is_ready(item: pytest.Item, what: str, current: pytest.Item) -> object:
    """True, or :data:`YET`, or :data:`EVER`: could a fixture of the user's change what is asked?

    Wider ones must be set up: they may start the service. One for each test, before the sample, may do
    anything.
    """
    names = list(getattr(item, "fixturenames", ()))
    ready: object = True
    for name in names[: names.index(what)]:
        definition = definition_of(item, name)
        if not _is_users(item, name, definition) or _is_parameter(item, name, definition):
            continue
        if definition.scope == "function":
            if not _needs(item, definition, what):
                return EVER
        elif not _is_set_up(item, definition, current):
            ready = YET
    return ready


def _is_set_up(item: pytest.Item, definition: Any, current: pytest.Item) -> bool:
    result = definition.cached_result
    if result is None or result[2] is not None:
        return False
    # What is made from the retriever is made anew for the next system, which it may start.
    other = _params(item).get("retriever") is not _params(current).get("retriever")
    if other and _needs(item, definition, "retriever"):
        return False
    # The instance that is set up is that of the current test's module or class.
    return definition.scope == "session" or (
        item.path == current.path and getattr(item, "cls", None) is getattr(current, "cls", None)
    )


def fixture_value(item: pytest.Item, kind: str) -> Any:
    """What the fixture returns to this test, or, for our own, what it is made from; None: from the settings."""
    params = _params(item)
    definition = definition_of(item, kind)
    if definition is None:
        return EVER
    if _is_parameter(item, kind, definition):
        return params[kind]
    if not _is_users(item, kind, definition):
        return params.get(kind) if kind == "retriever" else None  # one of the run's systems
    if definition.scope != "session" or definition.params:
        return EVER
    result = definition.cached_result
    if result is None:
        return YET
    return EVER if result[2] is not None else result[0]


def definition_of(item: pytest.Item, name: str) -> Any:
    """The fixture's definition that the test sees; None for other names."""
    info = getattr(item, "_fixtureinfo", None)
    found = info.name2fixturedefs.get(name) if info is not None else None
    if not found:
        found = item.session._fixturemanager.getfixturedefs(name, item)
    return found[-1] if found else None


_HARMLESS = ("_pytest.", "pytest_ragbench.", "pytest_asyncio.", "anyio.")


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
    return by_name or code is None or not is_installed(code.co_filename)


def _is_parameter(item: pytest.Item, name: str, definition: Any) -> bool:
    """A value of ``parametrize``, which pytest dresses as a fixture."""
    params = _params(item)
    return name in params and definition.func.__name__ == "get_direct_param_fixture_func"


def _needs(item: pytest.Item, definition: Any, what: str, seen: frozenset[str] = frozenset()) -> bool:
    """Whether the fixture is made from the sample, and so comes after it."""
    for name in definition.argnames:
        if name == what:
            return True
        inner = definition_of(item, name) if name not in seen else None
        if inner is not None and inner is not definition and _needs(item, inner, what, seen | {name}):
            return True
    return False
