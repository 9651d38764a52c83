"""The judge itself: does it agree with people, and with itself? Run this before you trust its scores."""

import pytest

from pytest_ragbench import (
    RagSample,
    assert_cohen_kappa,
    assert_judge_accuracy,
    assert_judge_consistency,
    assert_judge_error_rate,
    score,
)

CHUNK = {
    "en": "Products can be returned within 30 days. A receipt is needed.",
    "ru": "Товар можно вернуть в течение 30 дней. Для этого нужен чек.",
    "ja": "商品は30日以内に返品できます。返品にはレシートが必要です。",
}
# (language, answer, what a person says: is the answer in the chunk?)
LABELLED = [
    ("en", "Products can be returned within 30 days.", True),
    ("en", "Products can be returned within 45 days.", False),
    ("en", "No receipt is needed.", False),
    ("en", "A receipt is needed.", True),
    ("ru", "Товар можно вернуть в течение 30 дней.", True),
    ("ru", "Товар можно вернуть в течение 45 дней.", False),
    ("ru", "Для этого нужен чек.", True),
    ("ja", "商品は30日以内に返品できます。", True),
    ("ja", "商品は45日以内に返品できます。", False),
    ("ja", "返品にはレシートが必要です。", True),
]
SAMPLES = [RagSample("?", answer, [CHUNK[lang]], lang=lang) for lang, answer, _ in LABELLED]


def test_it_agrees_with_people():
    ratings = [int(score("faithfulness", sample).value == 1) for sample in SAMPLES]
    labels = [int(supported) for _, _, supported in LABELLED]
    assert_cohen_kappa(list(zip(ratings, labels, strict=True)), ">=0.8")


def test_it_agrees_with_itself():
    assert_judge_consistency(SAMPLES, ">=0.95", by="faithfulness")


def test_it_replies():
    assert_judge_error_rate(SAMPLES, "<=0.01", by="faithfulness")


@pytest.mark.rag_questions("questions.jsonl")
def test_the_service_knows_when_to_answer(rag_samples):
    """The judge inside the service: "yes" where it gave an answer, held against whether it should have."""
    decided = [("no" if score("abstention", sample).value else "yes") for sample in rag_samples]
    should = [not sample.should_abstain for sample in rag_samples]
    assert_judge_accuracy(list(zip(decided, should, strict=True)), ">=0.85")
