"""How metrics are named, found, banded and computed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragbench import RagSample, UsageError, score
from pytest_ragbench.metrics.registry import (
    DEFAULT_BANDS,
    RESERVED_OPTIONS,
    Metric,
    Registry,
    all_metrics,
    find,
    known_metric,
    metric,
    named,
)
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.scores import Score
from tests.scoring.asking import score_one

SAMPLE = RagSample("How long?", "30 days.", id="q1")


async def half(sample: RagSample, tools: Tools) -> Score:
    return tools.score(sample, 0.5)


def made(**more: Any) -> Metric:
    return Metric("made", half, tier="generation", needs=(), **more)


def test_float_noise_below_a_limit_costs_no_band() -> None:
    higher, lower = made(), made(direction="lower", bands={"excellent": 0.1, "good": 0.3})
    assert [higher.band(value) for value in (0.9, 0.9 - 5e-10, 0.9 - 2e-9, 0.7, 0.7 - 2e-9)] == [
        "excellent", "excellent", "good", "good", "attention",
    ]  # fmt: skip
    assert [lower.band(value) for value in (0.1, 0.1 + 5e-10, 0.1 + 2e-9, 0.3, 0.3 + 2e-9)] == [
        "excellent", "excellent", "good", "good", "attention",
    ]  # fmt: skip
    assert made(bands={}).band(0.9) is None


@pytest.mark.parametrize(
    ("low", "high", "has_bands"),
    [(0, 1, True), (-1, 1, True), (0.5, 1, False), (0, 100, False), (-1, 2, False)],
)
def test_bands_by_default_are_for_ranges_that_end_at_one(low: float, high: float, has_bands: bool) -> None:
    name = f"test_range_{low}_{high}".replace("-", "minus_").replace(".", "_")

    @metric(name, tier="generation", low=low, high=high)
    def formula(sample: RagSample) -> float:
        """Nothing."""
        return high

    assert dict(find(name).bands) == (dict(DEFAULT_BANDS) if has_bands else {})


def test_the_worst_value_is_the_end_that_is_not_wanted() -> None:
    assert made(low=-1.0, high=2.0).worst == -1.0
    assert made(low=-1.0, high=2.0, direction="lower").worst == 2.0


def test_the_same_direction_changes_nothing() -> None:
    one = made()
    assert one.turned("higher") is one
    assert one.adapted(SAMPLE, {}) is one


def test_a_cut_off_is_part_of_the_name() -> None:
    found = find("ndcg@10")
    assert (found.name, found.options) == ("ndcg@10", {"k": 10})
    assert find("ndcg").options == {}
    with pytest.raises(UsageError, match="'hit_rate' needs a cut-off: write 'hit_rate@10'"):
        find("hit_rate")
    known = known_metric("hit_rate")
    assert known is not None
    assert known.name == "hit_rate"
    assert known_metric("hit_rat") is None


@pytest.mark.parametrize("cut", ["0", "-1", "1.5", "x", "", "³", "１"])
def test_a_cut_off_is_a_whole_number(cut: str) -> None:
    with pytest.raises(UsageError, match="the cut-off after @ must be a whole number above 0"):
        find(f"ndcg@{cut}")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("faithfullness", "unknown metric 'faithfullness'; did you mean 'faithfulness'"),
        ("zzzz", "unknown metric 'zzzz'; known: abstention, answer_accuracy"),
        ("faithfulness@3", "unknown metric 'faithfulness@3'; did you mean 'faithfulness'"),
        (5, "a metric is named by a string, got 5"),
    ],
)
def test_what_is_no_metric(name: Any, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        find(name)
    assert str(caught.value).startswith(said)


def test_metrics_are_listed_by_name() -> None:
    names = list(all_metrics())
    assert names == sorted(names)
    assert {"faithfulness", "ndcg", "bleu", "silhouette", "judge_latency"} <= set(names)


def test_a_name_for_options_of_a_metric() -> None:
    utilization = find("context_utilization")
    assert utilization.options == {"target": "response"}
    assert utilization.needs == ("question", "contexts", "answer")
    assert utilization.summary.startswith("Whether chunks that the answer makes use of come first")
    assert utilization.doc.splitlines()[1:] == find("context_precision").doc.splitlines()[1:]
    named("test_utilization", "context_precision", target="response")
    named("test_utilization", "context_precision", target="response")  # a conftest.py imported twice
    with pytest.raises(UsageError, match="'test_utilization' is registered already; choose another name"):
        named("test_utilization", "context_precision", target="auto")
    with pytest.raises(UsageError, match="'faithfulness' is registered already"):
        named("faithfulness", "context_precision")
    with pytest.raises(UsageError, match="lower-case identifier"):
        named("Not a name", "context_precision")


def test_families_may_be_imported_again() -> None:
    """As after a run of pytester's in one process, which takes what it imported out of sys.modules again."""
    script = (
        "import sys\n"
        "from pytest_ragbench.metrics.registry import all_metrics\n"
        "before = set(sys.modules)\n"
        "known = set(all_metrics())\n"
        "again = [name for name in sys.modules if name not in before and name.startswith('pytest_ragbench.metrics.')]\n"
        "assert 'pytest_ragbench.metrics.context' in again\n"
        "for name in again:\n"
        "    del sys.modules[name]\n"
        "for name in again:\n"
        "    __import__(name)\n"
        "assert set(all_metrics()) == known\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_name_for_the_other_direction() -> None:
    named("test_unfaithful", "faithfulness", {"direction": "lower"})
    found = find("test_unfaithful")
    assert found.direction == "lower"
    assert found.bands == pytest.approx({"excellent": 0.1, "good": 0.3})


@pytest.mark.parametrize("option", sorted(RESERVED_OPTIONS))
def test_arguments_of_all_helpers_are_no_options(option: str) -> None:
    namespace: dict[str, Any] = {}
    exec(f"def formula(sample, *, {option}=None): return 1.0", namespace)
    with pytest.raises(UsageError, match=f"'test_reserved': '{option}' is an argument of the helpers"):
        metric("test_reserved", tier="generation")(namespace["formula"])


def test_the_forms_of_a_formula() -> None:
    @metric("test_form_class", tier="generation", needs="answer")
    class Said:
        """A class is made once, and called."""

        made = 0

        def __init__(self) -> None:
            type(self).made += 1

        def __call__(self, sample: RagSample) -> tuple[float, str]:
            return 0.25, "by an object"

    @metric("test_form_async", tier="generation", needs="answer")
    async def waits(sample: RagSample, tools: Tools) -> float:
        """With tools."""
        return 0.5 if tools.metric == "test_form_async" else 0.0

    @metric("test_form_score", tier="generation", needs="answer")
    def whole(sample: RagSample) -> Score:
        """A score under another name."""
        return Score(metric="other", value=0.75, reason="as it is")

    found = [score(f"test_form_{form}", SAMPLE) for form in ("class", "async", "score") for _ in range(2)]
    assert [each.value for each in found] == [0.25, 0.25, 0.5, 0.5, 0.75, 0.75]
    assert (Said.made, found[0].reason, found[4].reason) == (1, "by an object", "as it is")
    assert {each.metric for each in found} == {"test_form_class", "test_form_async", "test_form_score"}
    assert {each.sample_id for each in found} == {"q1"}

    class Silent:
        """Can't be called."""

    with pytest.raises(UsageError, match="a class must be made without arguments and be callable"):
        metric("test_form_silent", tier="generation")(Silent)


@pytest.mark.parametrize("value", [(0.5, "why", "more"), (0.5,), "0,5", {}])
def test_what_a_formula_can_not_return(value: Any) -> None:
    async def wrong(sample: RagSample, tools: Tools) -> Any:
        return value

    known = Registry()
    known.add(made())
    with pytest.raises(UsageError, match="'made' is registered already, at .*test_registry.py:"):
        known.add(replace(made(), compute=wrong))

    def formula(sample: RagSample) -> Any:
        return value

    metric("test_wrong_return", tier="generation")(formula)
    with pytest.raises(UsageError, match="'test_wrong_return' returned .*; return a number, "):
        score_one("test_wrong_return", SAMPLE)
