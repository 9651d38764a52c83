"""The helpers that are made from the registry, and what they say of themselves."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

import pytest_ragbench as rb
from pytest_ragbench.assertions.stub import is_built_in
from pytest_ragbench.metrics.registry import all_metrics, metric, option_parameters
from pytest_ragbench.scoring.helper_spec import spec_of
from tests.metrics.scripted import Scripted

SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], reference="30 days", id="q1")


def test_the_stub_is_what_the_registry_makes() -> None:
    # In a process of its own: other tests register metrics in this one.
    ran = subprocess.run(
        [sys.executable, "-m", "pytest_ragbench.assertions.stub", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "")


def test_every_public_name_is_in_the_stub() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import pytest_ragbench as rb; print(' '.join(rb.__all__))"],
        capture_output=True,
        text=True,
        check=True,
    )
    stub = (rb.__file__ or "") + "i"
    with open(stub, encoding="utf-8") as file:
        listed = file.read().partition("__all__ = [")[2].partition("]")[0]
    assert ran.stdout.split() == [line.strip(' ",') for line in listed.split()]


@pytest.mark.parametrize("name", sorted(name for name, known in all_metrics().items() if is_built_in(known)))
def test_a_helper_says_what_it_takes(name: str) -> None:
    if name == "search_rag":  # written out: it asserts two grades
        return
    helper, known = getattr(rb, f"assert_{name}"), all_metrics()[name]
    parameters = inspect.signature(helper).parameters
    assert helper.__name__ == f"assert_{name}"
    assert known.summary in str(helper.__doc__)
    assert next(iter(parameters)) == ("items" if known.of == "set" else "sample")
    assert set(option_parameters(known)) | {"threshold", "judge", "embedder"} <= set(parameters)
    assert ("coverage" in parameters) == (known.of == "set")
    spec = spec_of(helper)
    assert spec is not None
    assert (spec.metric, spec.over, spec.asserted) == (name, known.of == "set", True)


@pytest.mark.parametrize(
    "name",
    [
        "aassert_metric", "aassert_quality", "ascore", "assert_abstains", "assert_expected", "assert_metric",
        "assert_over", "assert_quality", "assert_retrieval", "assert_rouge", "assert_same_meaning",
        "assert_search_rag", "score", "score_over",
    ],
)  # fmt: skip
def test_the_other_helpers_carry_a_spec_too(name: str) -> None:
    helper = getattr(rb, name)
    spec = spec_of(helper)
    assert spec is not None
    # These have a threshold of their own, or none.
    unasserted = {"score", "ascore", "score_over", "assert_abstains", "assert_search_rag", "assert_expected"}
    assert spec.asserted == (name not in unasserted)
    assert spec.over == (name in {"assert_over", "assert_retrieval", "score_over"})
    assert spec.makes_sample == (name == "assert_same_meaning")
    named = {spec.given_in, spec.metric_from, spec.threshold_from, spec.cutoff_from, *spec.many_from}
    assert named - {None} <= set(inspect.signature(helper).parameters)


@pytest.mark.parametrize(
    ("name", "arguments", "metrics", "options"),
    [
        ("assert_faithfulness", {"sample": 1, "threshold": ">=0.8"}, {"faithfulness": ">=0.8"}, {}),
        ("assert_ndcg", {"sample": 1, "k": 10, "gain": "linear"}, {"ndcg@10": None}, {"gain": "linear"}),
        ("assert_mrr", {"sample": 1}, {"mrr": None}, {}),
        ("assert_aspect", {"sample": 1, "definition": "x"}, {"aspect": None}, {"definition": "x"}),
        ("assert_rouge", {"sample": 1, "kind": "rouge1"}, {"rouge1": None}, {}),
        ("assert_rouge", {"sample": 1}, {"rougeL": None}, {}),
        ("assert_metric", {"name": "bleu", "sample": 1, "threshold": 5}, {"bleu": 5}, {}),
        ("assert_quality", {"wanted": {"ndcg@10": 1}, "faithfulness": 2}, {"ndcg@10": 1, "faithfulness": 2}, {}),
        ("assert_over", {"items": [], "name": "bleu", "coverage": 1}, {"bleu": None}, {}),
        ("assert_retrieval", {"samples": [], "metric": "mrr", "threshold": 1}, {"mrr": 1}, {}),
        ("assert_same_meaning", {"variant": 1}, {"semantic_similarity": None}, {}),
        ("assert_expected", {"sample": 1, "contains": "x"}, {}, {"contains": "x"}),
        ("assert_expected", {"sample": 1, "contains": "x", "judge": "a"}, {}, {"contains": "x"}),
        ("assert_aspect", {"sample": 1, "judge": "a", "embedder": "b", "votes": 2}, {"aspect": None}, {"votes": 2}),
        ("assert_over", {"items": [], "name": "bleu", "coverage": 1, "judge": "a"}, {"bleu": None}, {}),
        ("assert_abstains", {"sample": 1, "expected": False}, {"abstention": None}, {}),
        ("assert_quality", {"wanted": {"bleu": 1}, "thresholds": {"mrr": 2}}, {"bleu": 1, "mrr": 2}, {}),
        ("assert_quality", {"wanted": ["bleu"], "faithfulness": 2}, {"faithfulness": 2}, {}),
    ],
)  # fmt: skip
def test_a_call_as_data(
    name: str, arguments: dict[str, Any], metrics: dict[str, Any], options: dict[str, Any]
) -> None:
    spec = spec_of(getattr(rb, name))
    assert spec is not None
    asked = spec.asked(arguments)
    assert asked.metrics == metrics
    assert asked.options == options


@pytest.mark.parametrize(
    ("arguments", "grades"),
    [
        ({}, {"threshold": ">=0.7", "answer_correctness": None, "groundedness": None}),
        ({"threshold": 0.5}, {"threshold": 0.5, "answer_correctness": None, "groundedness": None}),
        ({"groundedness": 0.9}, {"threshold": None, "answer_correctness": None, "groundedness": 0.9}),
    ],
)
def test_the_grades_of_a_call_as_data(arguments: dict[str, Any], grades: dict[str, Any]) -> None:
    """One grade named means that the other is free; none means the default for both."""
    spec = spec_of(rb.assert_search_rag)
    assert spec is not None
    asked = spec.asked({"sample": 1, **arguments})
    assert (asked.metrics, asked.options, asked.grades) == ({"search_rag": None}, {}, grades)


def test_only_helpers_carry_a_spec() -> None:
    def helper() -> None: ...

    assert spec_of(helper) is None
    helper.ragbench_helper = "faithfulness"  # type: ignore[attr-defined]
    assert spec_of(helper) is None


def test_a_helper_binds_as_python_does() -> None:
    helper: Any = rb.assert_exact_match
    assert helper(SAMPLE.with_(answer="30 days"), "==1").value == 1.0
    assert helper(threshold="==1", sample=SAMPLE.with_(answer="30 days")).value == 1.0
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'sample'"):
        helper(threshold="==1")
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3"):
        helper(SAMPLE, "==1", "more")
    with pytest.raises(TypeError, match="multiple values for argument 'sample'"):
        helper(SAMPLE, sample=SAMPLE)
    with pytest.raises(rb.UsageError, match="has no option 'words'"):
        helper(SAMPLE, "==1", words=2)
    with pytest.raises(rb.UsageError, match="needs a cut-off: write 'hit_rate@10'"):
        rb.assert_hit_rate(SAMPLE.with_(context_ids=["a"], relevant_ids=["a"]), ">=0.5")  # type: ignore[call-arg]


def test_a_yes_or_no_needs_no_threshold() -> None:
    judge = Scripted(check_aspect=lambda _: {"verdict": True, "reason": "it does"})
    assert rb.assert_aspect(SAMPLE, "It names a period.", judge=judge).value == 1.0
    assert rb.assert_metric("aspect", SAMPLE, definition="It names a period.", judge=judge).value == 1.0
    with pytest.raises(rb.QualityFailure, match="aspect 1.00, wanted ==0"):
        rb.assert_aspect(SAMPLE, "It insults.", direction="lower", judge=judge)


def test_a_metric_of_ones_own_gets_its_helper() -> None:
    with pytest.raises(AttributeError, match="assert_test_words_said"):
        _ = rb.assert_test_words_said

    @metric("test_words_said", tier="generation", needs="answer", high=100)
    def words_said(sample: rb.RagSample, *, least: int = 0) -> float:
        """How many words the answer has."""
        return max(least, len((sample.answer or "").split()))

    helper = rb.assert_test_words_said
    assert helper(SAMPLE, ">=4").value == 4
    assert "How many words" in str(helper.__doc__)
    assert inspect.signature(helper).parameters["least"].default == 0
    spec = spec_of(helper)
    assert spec is not None
    assert spec.metric == "test_words_said"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rb.assert_metric(SAMPLE, "faithfulness", 1), "assert_metric('faithfulness', sample, ...)"),  # type: ignore[arg-type]
        (lambda: rb.score(SAMPLE, "faithfulness"), "score('faithfulness', sample, ...)"),  # type: ignore[arg-type]
        (lambda: rb.assert_over("mrr", [SAMPLE]), "assert_over(samples, 'mrr', ...)"),  # type: ignore[arg-type]
        (lambda: rb.score_over("mrr", [SAMPLE]), "score_over(samples, 'mrr', ...)"),  # type: ignore[arg-type]
        (lambda: rb.assert_retrieval("mrr", [SAMPLE], 1), "assert_retrieval(samples, 'mrr', ...)"),  # type: ignore[arg-type]
        (lambda: rb.assert_retrieval("mrr", SAMPLE, 1), "assert_retrieval(samples, 'mrr', ...)"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_swapped_arguments(call: Any, message: str) -> None:
    with pytest.raises(rb.UsageError) as caught:
        call()
    assert str(caught.value) == f"the arguments are swapped: write {message}"


@pytest.mark.parametrize("given", [{"question": "How long?"}, None, [SAMPLE]])
def test_what_is_no_sample(given: Any) -> None:
    with pytest.raises(rb.UsageError, match="exact_match is computed from a RagSample, got"):
        rb.score("exact_match", given)


@pytest.mark.asyncio
async def test_swapped_arguments_of_async_helpers() -> None:
    with pytest.raises(rb.UsageError, match=r"swapped: write assert_metric\('bleu', sample"):
        await rb.aassert_metric(SAMPLE, "bleu", 1)  # type: ignore[arg-type]
    with pytest.raises(rb.UsageError, match=r"swapped: write ascore\('bleu', sample"):
        await rb.ascore(SAMPLE, "bleu")  # type: ignore[arg-type]
