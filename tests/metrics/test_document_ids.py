"""Ids of documents: one in every Unicode form, and of a kind that the file and the retriever share."""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

import pytest

from pytest_ragbench import QualityFailure, RagSample, assert_expected, score
from pytest_ragbench.metrics.formulas import retrieval
from pytest_ragbench.metrics.registry import all_metrics

BY_ID = sorted(
    each.name for each in all_metrics().values() if {"context_ids", "relevant_ids"} <= set(each.needs)
)
NAMES = ["보고서.pdf", "résumé.docx", "ガイド.md", "Зачёт.pdf", "Tiếng Việt", "हिंदी क़ानून"]


def retrieved(found: list[Any], relevant: Any) -> RagSample:
    return RagSample("Which?", "This.", context_ids=found, relevant_ids=relevant)


def named(metric: str) -> str:
    return metric if metric in ("mrr", "map", "r_precision") or metric.startswith("id_") else f"{metric}@1"


@pytest.mark.parametrize("metric", BY_ID)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_the_forms_of_a_name_are_one_id(metric: str, form: Any) -> None:
    other: Any = "NFD" if form == "NFC" else "NFC"
    for name in NAMES:
        for relevant in ([normalize(other, name)], {normalize(other, name): 2}):
            assert score(named(metric), retrieved([normalize(form, name)], relevant)).value == 1.0


def test_the_forms_are_one_for_formulas_and_expectations() -> None:
    composed, apart = (normalize(form, "보고서.pdf") for form in ("NFC", "NFD"))
    assert retrieval.hit_rate([apart], [composed], 1) == 1.0
    for ours, theirs in ((composed, apart), (apart, composed)):
        sample = RagSample("Which?", f"As {ours} says.", context_ids=[ours])
        assert_expected(sample, retrieves=theirs, cites=theirs, regex=f"As {theirs}")
        with pytest.raises(QualityFailure, match="matches"):
            assert_expected(sample, not_regex=f"As {theirs}")


@pytest.mark.parametrize(
    ("found", "relevant", "said"),
    [
        ([0, 9], ["k7-capacity"], "retrieved: 0, 9: these are numbers and the relevant ids are names"),
        (["k7-capacity"], [0, 9], "retrieved: k7-capacity: these are names and the relevant ids are numbers"),
        (["0d9a2b1c-7e44-4f0e-9d6b-2f6f1f0f9a11"], ["faq.md"], "these are UUIDs and the relevant ids are names"),
        (["https://w/faq#3"], ["faq.md"], "these are URLs and the relevant ids are names"),
        (["e3b0c44298fc1c149afbf4c8996fb92427ae41e4"], ["7"], "these are hashes and the relevant ids are numbers"),
        ([4, 3, 2, 1], ["faq.md"], "retrieved: 4, 3, 2, ...: these are numbers"),
    ],
)  # fmt: skip
def test_ids_of_another_kind_are_shown(found: list[Any], relevant: list[Any], said: str) -> None:
    for name in ("hit_rate@1", "id_based_context_recall"):
        got = score(name, retrieved(found, relevant))
        assert got.value == 0.0
        assert got.reason.startswith(f"not retrieved: {relevant[0]}")
        assert said in got.reason


@pytest.mark.parametrize(
    ("found", "relevant"),
    [(["faq.md"], ["guide.md"]), ([1], [2]), ([1, "faq.md"], ["guide.md"]), ([1], ["guide.md", 2])],
)
def test_ids_of_one_kind_are_not_suspected(found: list[Any], relevant: list[Any]) -> None:
    assert "these are" not in score("hit_rate@1", retrieved(found, relevant)).reason
