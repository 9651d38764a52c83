# mypy: ignore-errors
# A user's tests have no annotations.
"""What a test function is certain to ask, and what it may ask, read from its source."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pytest_ragbench as rb
from pytest_ragbench import assert_faithfulness as faithful
from pytest_ragbench import metric
from pytest_ragbench.plan.model import UNKNOWN, Ask, Plan, Symbol
from pytest_ragbench.plan.reading import PlanReader
from tests.plan import checks
from tests.plan.checks import check as imported

NAMES = ["faithfulness", "answer_relevancy"]
LIMITS = {"faithfulness": ">=0.8", "bleu": ">=20"}
STRICT = True
one_of_two = functools.partial(rb.assert_metric, "faithfulness")


def read(function: Callable[..., Any], **known: Any) -> Plan:
    samples = {"rag_sample": Symbol.SAMPLE, "rag_samples": Symbol.SAMPLES}
    return PlanReader().plan_of(function, {**samples, **known})


def told(asks: Iterator[Ask] | tuple[Ask, ...]) -> list[tuple[str, Any]]:
    return [(name, limit) for ask in asks for name, limit in ask.metrics.items()]


# Helpers, by each way to name them


def own_name(rag_sample):
    faithful(rag_sample, ">=0.8")


def attribute_of_the_module(rag_sample):
    rb.assert_faithfulness(rag_sample, threshold=">=0.8")


def by_metric(rag_sample):
    rb.assert_metric("faithfulness", rag_sample, ">=0.8")


def several(rag_sample):
    rb.assert_quality(rag_sample, {"faithfulness": ">=0.8"})


def several_by_keyword(rag_sample):
    rb.assert_quality(rag_sample, faithfulness=">=0.8")


def asserted_score(rag_sample):
    assert rb.score("faithfulness", rag_sample).value >= 0.8


def function_of_the_module(rag_sample):
    local_check(rag_sample)


def local_check(anything):
    limit = ">=0.8"
    rb.assert_faithfulness(anything, limit)


def function_of_another_module(rag_sample):
    imported(rag_sample)


def function_by_its_module(rag_sample):
    checks.check(least=">=0.8", sample=rag_sample)


def function_made_in_the_test(rag_sample):
    def inner(sample, limit=">=0.8"):
        rb.assert_faithfulness(sample, limit)

    inner(rag_sample)


def a_lambda(rag_sample):
    inner = lambda sample: rb.assert_faithfulness(sample, ">=0.8")  # noqa: E731
    inner(rag_sample)


def another_name_for_the_sample(rag_sample):
    it = rag_sample
    rb.assert_faithfulness(it, ">=0.8")


def a_partial(rag_sample):
    one_of_two(rag_sample, ">=0.8")


def imported_in_the_test(rag_sample):
    from pytest_ragbench import assert_faithfulness

    assert_faithfulness(rag_sample, ">=0.8")


async def awaited(rag_sample):
    await rb.aassert_metric("faithfulness", rag_sample, ">=0.8")


async def gathered(rag_sample):
    await asyncio.gather(
        *(rb.aassert_metric(name, rag_sample, ">=0.8") for name in NAMES[:1] or ["faithfulness"])
    )


async def awaited_function(rag_sample):
    await checks.acheck(rag_sample)


async def in_a_thread(rag_sample):
    await asyncio.to_thread(rb.assert_faithfulness, rag_sample, ">=0.8")


def in_a_with_block(rag_sample):
    with open("x") as file:
        rb.assert_faithfulness(rag_sample, ">=0.8")
        file.close()


def under_a_constant(rag_sample):
    if STRICT:
        rb.assert_faithfulness(rag_sample, ">=0.8")
    else:
        rb.assert_bleu(rag_sample, ">=1")


class OfAClass:
    def test(self, rag_sample):
        self.checked(rag_sample)

    def checked(self, sample):
        self.limited(sample, ">=0.8")

    @staticmethod
    def limited(sample, limit):
        rb.assert_faithfulness(sample, limit)


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@wrapped
def a_wrapped_test(rag_sample):
    rb.assert_faithfulness(rag_sample, ">=0.8")


@pytest.mark.parametrize(
    "function",
    [
        own_name, attribute_of_the_module, by_metric, several, several_by_keyword, function_of_the_module,
        function_of_another_module, function_by_its_module, function_made_in_the_test, a_lambda, a_partial,
        another_name_for_the_sample, imported_in_the_test, awaited, awaited_function, in_a_thread, in_a_with_block,
        under_a_constant, a_wrapped_test,
    ],
)  # fmt: skip
def test_a_helper_is_seen_however_it_is_called(function: Callable[..., Any]) -> None:
    plan = read(function)
    assert told(plan.certain) == [("faithfulness", ">=0.8")]
    assert len(plan.asks) == 1
    assert plan.complete


def test_a_score_has_no_threshold() -> None:
    [ask] = read(asserted_score).certain
    assert (ask.metrics, ask.gated) == ({"faithfulness": None}, False)


def test_methods_of_a_test_class_are_followed() -> None:
    plan = PlanReader().plan_of(OfAClass.test, {"rag_sample": Symbol.SAMPLE}, OfAClass)
    assert told(plan.certain) == [("faithfulness", ">=0.8")]


@metric("plan_brevity", tier="generation", needs="answer")
def plan_brevity(sample):
    """How short the answer is."""
    return 1.0


def metric_of_ones_own(rag_sample):
    rb.assert_plan_brevity(rag_sample, ">=0.5")


def special(rag_sample):
    rb.assert_ndcg(rag_sample, ">=0.5", k=3)
    rb.assert_rouge(rag_sample, ">=0.5", "rouge1")
    rb.assert_aspect(rag_sample, "Is it kind?")
    rb.assert_rubric(rag_sample, {0: "bad", 1: "good"}, ">=0.5")
    rb.assert_search_rag(rag_sample, ">=0.7", groundedness=">=0.9")
    rb.assert_abstains(rag_sample, rag_sample.should_abstain)


def test_helpers_made_on_demand_and_those_with_arguments_of_their_own() -> None:
    assert told(read(metric_of_ones_own).certain) == [("plan_brevity", ">=0.5")]
    asks = read(special).certain
    assert [name for name, _ in told(asks)] == [
        "ndcg@3",
        "rouge1",
        "aspect",
        "rubric",
        "search_rag",
        "abstention",
    ]
    assert asks[2].options == {"definition": "Is it kind?"}
    assert asks[2].metrics["aspect"] is None
    assert asks[4].grades == {"threshold": ">=0.7", "answer_correctness": None, "groundedness": ">=0.9"}


# Values


def by_parameter(rag_sample, metric, limit):
    rb.assert_metric(metric, rag_sample, limit, k=5)


def by_constants(rag_sample):
    rb.assert_metric(NAMES[0], rag_sample, LIMITS["faithfulness"])
    rb.assert_quality(rag_sample, LIMITS)
    rb.assert_metric(f"ndcg@{len('abc') and 3}" if STRICT else "mrr", rag_sample, ">=0.5")


def loops(rag_sample):
    for name, limit in LIMITS.items():
        rb.assert_metric(name, rag_sample, limit)
    for name in NAMES:
        rb.assert_metric(name, rag_sample, ">=0.1")


def only_then(rag_sample, config):
    rb.assert_faithfulness(rag_sample, config["limit"])
    rb.assert_metric("aspect", rag_sample, definition=config["definition"])
    rb.assert_metric(config["metric"], rag_sample)
    rb.assert_answer_relevancy(rag_sample.with_(answer="x"), ">=0.5")
    rb.assert_bleu(rag_sample, ">=1", judge=config["judge"])


def test_parameters_and_constants_are_known() -> None:
    [ask] = read(by_parameter, metric="ndcg", limit=">=0.5").certain
    assert (ask.metrics, ask.options) == ({"ndcg": ">=0.5"}, {"k": 5})
    assert not read(by_parameter).certain
    assert told(read(by_constants).certain)[:3] == [
        ("faithfulness", ">=0.8"), ("faithfulness", ">=0.8"), ("bleu", ">=20"),
    ]  # fmt: skip


def test_loops_over_constants_are_gone_through() -> None:
    assert told(read(loops).certain) == [
        ("faithfulness", ">=0.8"), ("bleu", ">=20"), ("faithfulness", ">=0.1"), ("answer_relevancy", ">=0.1"),
    ]  # fmt: skip


def test_what_only_the_running_test_knows_is_not_certain_but_may_be_asked() -> None:
    plan = read(only_then)
    assert told(plan.certain) == [("faithfulness", UNKNOWN)]
    assert list(plan.metric_names()) == ["faithfulness", "aspect", "answer_relevancy", "bleu"]
    assert not plan.complete  # one metric has no name


# Sets


def whole_set(rag_samples):
    rb.assert_over(rag_samples, "faithfulness", ">=0.8")
    rb.assert_retrieval(rag_samples, "ndcg@10", ">=0.8")
    rb.score_over(list(rag_samples), "bleu")
    rb.assert_silhouette(rag_samples, ">=0")


def each_of_a_set(rag_samples):
    for sample in rag_samples:
        rb.assert_faithfulness(sample, ">=0.8")


def first_of_a_set(rag_samples):
    for sample in rag_samples:
        rb.assert_faithfulness(sample, ">=0.8")
        return


def test_sets() -> None:
    plan = read(whole_set)
    assert told(plan.certain) == [
        ("faithfulness", ">=0.8"), ("ndcg@10", ">=0.8"), ("bleu", None), ("silhouette", ">=0"),
    ]  # fmt: skip
    assert {ask.of for ask in plan.asks} == {"set"}
    assert [(ask.of, ask.certain) for ask in read(each_of_a_set).asks] == [("each", True)]
    assert [(ask.of, ask.certain) for ask in read(first_of_a_set).asks] == [("each", False)]


# What may not happen


def below_an_if(rag_sample):
    if rag_sample.answer:
        rb.assert_faithfulness(rag_sample)


def in_a_condition(rag_sample):
    rag_sample.answer and rb.assert_faithfulness(rag_sample)


def in_an_unknown_loop(rag_sample):
    for _ in rag_sample.contexts:
        rb.assert_faithfulness(rag_sample)


def in_a_loop_with_a_way_out(rag_sample):
    for _ in range(2):
        if rag_sample.answer:
            break
        rb.assert_faithfulness(rag_sample)


def after_a_skip(rag_sample):
    if not rag_sample.answer:
        pytest.skip("nothing to judge")
    rb.assert_faithfulness(rag_sample)


def after_a_return(rag_sample):
    if not rag_sample.answer:
        return
    rb.assert_faithfulness(rag_sample)


def after_a_raise(rag_sample):
    if not rag_sample.answer:
        raise ValueError
    rb.assert_faithfulness(rag_sample)


def with_another_sample(rag_sample):
    rag_sample = rag_sample.with_(answer="x")
    rb.assert_faithfulness(rag_sample)


def in_a_handler(rag_sample):
    try:
        rag_sample.raise_it()
    except AttributeError:
        rb.assert_faithfulness(rag_sample)


def in_a_wrapped_helper(rag_sample):
    wrapped(checks.check)(rag_sample)
    wrapped_check(rag_sample)


wrapped_check = wrapped(checks.check)


def in_a_helper_with_a_way_out(rag_sample):
    checks.check_with_way_out(rag_sample)


def short_circuit(rag_sample):
    assert all(rb.score(name, rag_sample).value > 0.5 for name in ("faithfulness",))


@pytest.mark.parametrize(
    "function",
    [
        below_an_if, in_a_condition, in_an_unknown_loop, in_a_loop_with_a_way_out, after_a_skip, after_a_return,
        after_a_raise, with_another_sample, in_a_handler, in_a_wrapped_helper, in_a_helper_with_a_way_out,
        short_circuit,
    ],
)  # fmt: skip
def test_what_may_not_happen_is_not_certain(function: Callable[..., Any]) -> None:
    plan = read(function)
    assert not plan.certain
    assert set(plan.metric_names()) == {"faithfulness"}


def after_a_helper_that_returns(rag_sample):
    checks.check_with_way_out(rag_sample)
    rb.assert_bleu(rag_sample, ">=1")


def under_raises(rag_sample):
    with pytest.raises(rb.QualityFailure):
        rb.assert_faithfulness(rag_sample, ">=0.8")
        rb.assert_answer_relevancy(rag_sample, ">=0.8")
    rb.assert_bleu(rag_sample, ">=1")


def test_a_return_ends_the_helper_only_and_a_caught_error_the_block_only() -> None:
    assert told(read(after_a_helper_that_returns).certain) == [("bleu", ">=1")]
    assert told(read(under_raises).certain) == [("faithfulness", ">=0.8"), ("bleu", ">=1")]
    assert read(under_raises).asks[0].may_fail


def changed_limits(rag_sample):
    limits = {"faithfulness": ">=0.8", "bleu": ">=1"}
    limits.pop("bleu")
    rb.assert_quality(rag_sample, limits)
    others = {"faithfulness": ">=0.8"}
    others["bleu"] = ">=1"
    rb.assert_quality(rag_sample, others)


def test_what_is_changed_in_place_is_not_known() -> None:
    assert not read(changed_limits).certain


def test_recursion_ends() -> None:
    def test(rag_sample):
        checks.check_again(rag_sample)

    assert told(read(test).certain) == [("faithfulness", ">=0.8")]


def nested(rag_sample):
    checks.check_twice(rag_sample, second=rag_sample)


def test_nested_helpers_and_their_keywords() -> None:
    assert told(read(nested).certain) == [("faithfulness", ">=0.8"), ("faithfulness", ">=0.5")]


def python_map(rag_sample):
    assert list(map(str, [1])) == ["1"]
    print(rag_sample, max(1, 2))


def gives_it_away(rag_sample, service):
    service.judge(rag_sample)


def test_a_builtin_is_no_metric_and_what_can_not_be_followed_is_said() -> None:
    assert read(python_map) == Plan()
    assert read(gives_it_away) == Plan(complete=False)
    assert read(print) == Plan(complete=False)


def test_a_function_is_read_once_a_set_of_parameters() -> None:
    reader = PlanReader()
    known = {"rag_sample": Symbol.SAMPLE, "metric": "bleu", "limit": ">=1"}
    assert reader.plan_of(by_parameter, known) is reader.plan_of(by_parameter, {**known, "other": object()})
    assert reader.plan_of(by_parameter, {**known, "metric": "mrr"}) is not reader.plan_of(by_parameter, known)


MADE = rb.RagSample("When?", "At nine.", ["We open at nine."])


class Odd:
    """A parameter that can't be compared, hashed or shown."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError

    def __bool__(self):
        raise RuntimeError

    __len__ = __iter__ = __bool__


def swapped(rag_sample):
    rb.assert_metric(MADE, "faithfulness")
    rb.score(["faithfulness"], rag_sample)
    rb.assert_quality(rag_sample, {("a", "b"): 1})
    rb.assert_quality(rag_sample, [MADE])


def odd(rag_sample, value):
    if value == 3 or not value:
        rb.assert_metric(value, rag_sample)
    for each in value:
        rb.assert_faithfulness(rag_sample, value[each], **value)
    rb.assert_metric(f"{value}", rag_sample, value + 1)
    assert rb.score(value.name, rag_sample).value >= value


@pytest.mark.parametrize("given", [Odd(), {}, [], MADE, 3, None, type])
def test_what_is_wrong_with_a_test_never_stops_the_reading(given: Any) -> None:
    assert not any(ask.known and not ask.metrics for ask in read(swapped).asks)
    assert isinstance(read(odd, value=given), Plan)
