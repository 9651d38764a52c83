"""``*.rag.yaml`` files are collected as modules are: each of their tests becomes a test function.

So they have what Python tests have: parametrisation, marks, fixtures and their overrides, look-ahead,
outcomes and the report.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.retrievers import NamedRetriever
from pytest_ragbench.model.samples import Question
from pytest_ragbench.plan.model import Ask, Plan
from pytest_ragbench.plugin.collecting import check_mark
from pytest_ragbench.plugin.state import state_of
from pytest_ragbench.questions import test_id

if TYPE_CHECKING:
    from pytest_ragbench.specs.loading import Case


SUFFIXES = (".rag.yaml", ".rag.yml")
_SPECS = pytest.StashKey[dict[tuple[str, str, str], Any]]()


class RagYamlFile(pytest.Module):
    """A module whose functions are written in YAML."""

    def _getobj(self) -> types.ModuleType:
        from pytest_ragbench.specs.loading import load_suite

        module = types.ModuleType(self.path.name)
        try:
            cases = load_suite(self.path)
            functions = [each for case in cases for each in _functions(case, self.path, self.config)]
        except RagbenchError as error:
            state_of(self.config).collect_error = True
            raise self.CollectError(str(error)) from None
        vars(module).update(functions)
        return module

    def funcnamefilter(self, name: str) -> bool:
        """Every function is a test, whatever ``python_functions`` says."""
        return not name.startswith("__")

    def classnamefilter(self, name: str) -> bool:
        return False


def _functions(case: Case, path: Path, config: pytest.Config) -> Iterable[tuple[str, Callable[..., None]]]:
    name = test_id(case.name)
    each = case.test.thresholds or case.test.expect or case.expected or case.limits
    own = any(question.thresholds for question in case.questions or ())
    if each or own or not case.test.over:
        yield name, _made(_one_answer(case), name, case, path, config)
    if case.test.over:
        name = f"{name}-over" if each or own else name
        yield name, _made(_all_answers(case), name, case, path, config)


def _one_answer(case: Case) -> Callable[..., None]:
    def check(rag_sample: Any, judge: Any = None) -> None:
        __tracebackhide__ = True
        from pytest_ragbench.specs.running import check_sample

        check_sample(case, rag_sample)

    check.ragbench_plan = partial(_plan_of, case)  # type: ignore[attr-defined]
    check.ragbench_timed = case.asserts_latency  # type: ignore[attr-defined]
    return check


def _plan_of(case: Case, question: Any) -> Plan:
    """What the test asks of the answer to one question."""
    wanted = case.wanted(question) if isinstance(question, Question) else []
    plain = {each.metric: each.threshold for each in wanted if not each.options}
    asks = [Ask({each.metric: each.threshold}, each.options) for each in wanted if each.options]
    return Plan((*([Ask(plain)] if plain else []), *asks))


def _all_answers(case: Case) -> Callable[..., None]:
    def check(rag_samples: Any, judge: Any = None) -> None:
        __tracebackhide__ = True
        from pytest_ragbench.specs.running import check_samples

        check_samples(case, rag_samples)

    plan = Plan(tuple(Ask({each.metric: each.threshold}, each.options, of="set") for each in case.test.over))
    check.ragbench_plan = lambda question: plan  # type: ignore[attr-defined]
    return check


def _made(
    function: Callable[..., None], name: str, case: Case, path: Path, config: pytest.Config
) -> Callable[..., None]:
    """The function under its own name, at its place in the file, with its marks."""
    code = function.__code__.replace(
        co_filename=str(path), co_firstlineno=max(case.line, 1), co_name=name, co_qualname=name
    )
    if not case.judges:  # asks for the fixture only where it is a parameter
        code = code.replace(co_argcount=1)
    made = types.FunctionType(code, function.__globals__, name, None, function.__closure__)
    vars(made).update(vars(function))
    made.pytestmark = list(_marks(case, config))  # type: ignore[attr-defined]
    return made


def _marks(case: Case, config: pytest.Config) -> Iterable[pytest.Mark]:
    test = case.test
    mark = pytest.mark
    if case.questions is not None:
        yield mark.rag_questions(list(case.questions)).mark
    for kind, specs in (("retriever", case.retrievers), ("judge", case.judges)):
        if specs:
            # The same object for the same spec, so that it is made into a retriever once.
            known = config.stash.setdefault(_SPECS, {})
            values = [
                known.setdefault((kind, name, repr(spec)), _named(kind, name, spec, config))
                for name, spec in specs.items()
            ]
            yield mark.parametrize(kind, values, ids=[name or kind for name in specs]).mark
    for tag in test.tags:
        yield check_mark(tag, f"{case.name}", config).mark
    if test.fixtures:
        yield mark.usefixtures(*test.fixtures).mark
    if test.skip is not None:
        yield mark.skip(reason=test.skip).mark
    if test.xfail is not None:
        yield mark.xfail(reason=test.xfail).mark


def _named(kind: str, name: str, spec: Any, config: pytest.Config) -> Any:
    """A retriever with its name, by which reports tell several apart."""
    if kind != "retriever":
        return spec
    if not name and isinstance(spec, str) and spec in state_of(config).settings.retrievers:
        name = spec
    return NamedRetriever(name, spec)
