"""NFC and NFD are one text: for every metric that compares answer and reference without a model, and for embedders."""

from __future__ import annotations

from typing import Any
from unicodedata import normalize

import pytest

from pytest_ragbench import RagSample, score, score_over
from pytest_ragbench.embeddings.base import checked_texts
from pytest_ragbench.metrics.registry import Metric, all_metrics
from pytest_ragbench.text import detect_language, sentences

TEXTS = {
    "ko": "환불은 30일 이내에 가능합니다.",
    "vi": "Thời hạn đổi trả là 30 ngày.",
    "ja": "ガイドブックは30ページです。",
    "ru": "Возврат ещё возможен, мой ёж.",
    "fr": "Le délai de retour est élevé à Nîmes.",
    "hi": "क़ानून के अनुसार 30 दिन।",
    "el": "Η επιστροφή γίνεται σε 30 ημέρες.",
}
METRICS = [
    each
    for each in all_metrics().values()
    if {"answer", "reference"} <= set(each.needs) and not each.tasks and not each.embedder
]
OF_TEXT = [each for each in METRICS if each.tier == "generation"]


def test_the_table_is_not_empty() -> None:
    assert {
        "bleu",
        "corpus_bleu",
        "chrf",
        "rouge1",
        "rougeL",
        "exact_match",
        "token_f1",
        "string_similarity",
    } <= {each.name for each in OF_TEXT}


@pytest.mark.parametrize("metric", OF_TEXT, ids=lambda metric: metric.name)
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_text_is_equal_to_itself_in_the_other_form(metric: Metric, form: Any) -> None:
    other: Any = "NFD" if form == "NFC" else "NFC"
    for lang, text in TEXTS.items():
        sample = RagSample("q?", normalize(form, text), reference=normalize(other, text), lang=lang)
        found = score_over([sample], metric.name) if metric.of == "set" else score(metric.name, sample)
        # A text has fewer than four words here and there: corpus BLEU is then what equal texts get, which may be 0.
        equal = sample.with_(answer=text, reference=text)
        wanted = score_over([equal], metric.name) if metric.of == "set" else score(metric.name, equal)
        assert found.value == wanted.value, lang
        assert metric.of == "set" or found.value == metric.high, lang


@pytest.mark.parametrize("metric", OF_TEXT, ids=lambda metric: metric.name)
def test_so_is_a_text_that_differs(metric: Metric) -> None:
    for text in TEXTS.values():
        values = set()
        for form in ("NFC", "NFD"):
            sample = RagSample("q?", normalize(form, f"{text} Déjà vu."), reference=text, lang="und")
            found = score_over([sample], metric.name) if metric.of == "set" else score(metric.name, sample)
            values.add(found.value)
        assert len(values) == 1


@pytest.mark.parametrize(
    "options", [{"tokenizer": "whitespace"}, {"tokenizer": str.split}, {"fold_yo": True}]
)
def test_whoever_cuts_the_tokens(options: dict[str, Any]) -> None:
    for text in TEXTS.values():
        sample = RagSample("q?", normalize("NFD", text), reference=normalize("NFC", text))
        assert score("rouge1", sample, **options).value == 1.0


@pytest.mark.parametrize("lang", TEXTS)
def test_the_language_and_the_sentences_are_those_of_the_text(lang: str) -> None:
    composed, apart = (normalize(form, TEXTS[lang]) for form in ("NFC", "NFD"))
    assert detect_language(apart) == detect_language(composed)
    assert sentences(f"{apart} {apart}") == [apart, apart]


def test_ukrainian_is_told_by_a_letter_that_may_be_in_two_parts() -> None:
    assert detect_language(normalize("NFD", "Їжак поїхав")) == "uk"


def test_an_embedder_gets_one_form() -> None:
    assert checked_texts([normalize("NFD", TEXTS["ko"])], "m") == [TEXTS["ko"]]


def test_chunks_are_compared_in_one_form() -> None:
    sample = RagSample("q?", contexts=[normalize("NFD", TEXTS["ko"])], reference_contexts=[TEXTS["ko"]])
    for name in ("non_llm_context_precision", "non_llm_context_recall"):
        assert score(name, sample).value == 1.0
