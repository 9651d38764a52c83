"""Every metric once: with the embedded local judge where it can, with a fake one where it can't."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench import RagSample, UsageError, score
from pytest_ragbench.judge.local_judge import local_judge
from pytest_ragbench.metrics.registry import all_metrics
from tests.metrics.scripted import Scripted, claims, verdicts

SAMPLES = {
    "en": RagSample(
        "How long is the warranty?",
        "The warranty lasts two years.",
        ["The warranty lasts two years from the purchase.", "Delivery is free in May."],
        reference="The warranty lasts two years.",
    ),
    "ru": RagSample(
        "Сколько действует гарантия?",
        "Гарантия действует два года.",
        ["Гарантия действует два года со дня покупки.", "Доставка в мае бесплатна."],
        reference="Гарантия действует два года.",
    ),
    "ja": RagSample(
        "保証期間はどのくらいですか。",
        "保証期間は2年です。",
        ["保証期間は購入日から2年です。", "5月は送料が無料です。"],
        reference="保証期間は2年です。",
    ),
}


@pytest.mark.parametrize("lang", ["en", "ru", "ja"])
def test_the_local_judge(lang: str) -> None:
    sample, judge = SAMPLES[lang], local_judge()
    expected = {
        "context_precision": 1.0,
        "context_utilization": 1.0,
        "context_relevance_ratio": 0.5,
        "context_recall": 1.0,
        "factual_correctness": 1.0,
        "noise_sensitivity": 0.0,
    }
    assert {name: score(name, sample, judge=judge).value for name in expected} == expected
    assert score("answer_correctness", sample, judge=judge, weights=(1, 0)).value == 1.0
    swapped = sample.with_(contexts=list(sample.contexts or ())[::-1])
    assert score("context_precision", swapped, judge=judge).value == 0.5


def test_what_the_local_judge_can_not_do_is_said_before() -> None:
    for name in (
        "answer_accuracy",
        "context_entity_recall",
        "e2e_score",
        "context_relevance",
        "response_groundedness",
    ):
        with pytest.raises(UsageError, match=f"{name}: the judge 'local' can't do"):
            score(name, SAMPLES["en"], judge="local")


def any_judge() -> Scripted:
    """Says yes to everything."""

    def all_of(numbers: str) -> Any:
        return lambda user: verdicts(*[1] * user.count(numbers))

    return Scripted(
        split_claims=claims("a"),
        verify_claims=lambda user: verdicts(*[1] * user.count("<claim-")),
        write_questions={"questions": [{"question": "a", "noncommittal": False}]},
        grade_relevance={"grade": 1},
        grade_faithfulness={"grade": 1},
        grade_search_rag={"answer_correctness": 1, "groundedness": 1},
        grade_end_to_end={"grade": 1},
        check_abstention={"abstains": True},
        judge_chunks=all_of("<chunk-"),
        compare_claims=all_of("<claim-"),
        extract_entities={"entities": ["a"]},
        extract_sentences=lambda user: {"sentences": ["Delivery is free in May."]},
        rate_accuracy={"rating": 2},
        rate_context_relevance={"rating": 2},
        rate_groundedness={"rating": 2},
        check_aspect={"verdict": True},
        rate_rubric={"rating": 2},
    )


OPTIONS: dict[str, dict[str, Any]] = {
    "aspect": {"definition": "Is it short?"},
    "rubric": {"rubric": {1: "bad", 2: "good"}},
}
COMPLETE = SAMPLES["en"].with_(
    reference_contexts=["The warranty lasts two years."], context_ids=["1", "2"], relevant_ids=["1"],
    context_urls=["https://w/1", "https://w/2"], relevant_urls=["https://w/1"],
)  # fmt: skip
"""Whatever a metric may need."""


def with_cut(name: str) -> str:
    cut = name.removeprefix("url_") in ("hit_rate", "recall", "precision", "judged")
    return f"{name}@2" if cut else name


BASES = sorted(name for name, known in all_metrics().items() if known.of == "sample")


@pytest.mark.parametrize("name", BASES)
def test_every_metric_of_a_sample(name: str) -> None:
    base = with_cut(name)
    judge = any_judge()
    found = score(
        base,
        COMPLETE,
        judge=judge,
        embedder=lambda texts: [[1.0, 0.0] for _ in texts],
        **OPTIONS.get(name, {}),
    )
    assert found.metric == base
    known = all_metrics()[name]
    assert known.low <= found.value <= known.high
    assert bool(judge.asked) is bool(known.tasks)
    assert (found.judge == "Scripted") is bool(judge.asked)
