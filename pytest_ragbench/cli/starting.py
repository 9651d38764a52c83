"""The files that ``ragbench init`` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class _Sample:
    """Documents by id, and questions: text, right answer, id of the document that has it."""

    documents: dict[str, str]
    questions: list[tuple[str, str, str]]


_SAMPLES = {
    "en": _Sample(
        {
            "returns": "Products can be returned within 30 days. The receipt is needed.",
            "delivery": "Delivery takes two days and is free above 50 euros.",
            "warranty": "Every product has a warranty of two years.",
        },
        [
            ("Within how many days can products be returned?", "Within 30 days.", "returns"),
            ("How long does delivery take?", "Two days.", "delivery"),
            ("How long is the warranty of a product?", "Two years.", "warranty"),
        ],
    ),
    "ru": _Sample(
        {
            "returns": "Товар можно вернуть в течение 30 дней. Для возврата нужен чек.",
            "delivery": "Доставка занимает два дня и бесплатна при заказе от 3000 рублей.",
            "warranty": "Гарантия на каждый товар составляет два года.",
        },
        [
            ("В течение скольких дней можно вернуть товар?", "В течение 30 дней.", "returns"),
            ("Сколько дней занимает доставка?", "Два дня.", "delivery"),
            ("Какова гарантия на товар?", "Два года.", "warranty"),
        ],
    ),
    "ja": _Sample(
        {
            "returns": "商品は30日以内であれば返品できます。返品にはレシートが必要です。",
            "delivery": "配送には2日かかります。5000円以上の注文は送料無料です。",
            "warranty": "すべての商品の保証期間は2年間です。",
        },
        [
            ("商品は何日以内であれば返品できますか。", "30日以内です。", "returns"),
            ("配送には何日かかりますか。", "2日です。", "delivery"),
            ("商品の保証期間は何年ですか。", "2年間です。", "warranty"),
        ],
    ),
}

_STAND_IN = '''
DOCUMENTS = {documents}


def answer(question: str) -> dict[str, object]:
    """Stands for your RAG system: documents by how many pieces of three letters they share with the question."""

    def pieces(text: str) -> set[str]:
        return {{text[at : at + 3].casefold() for at in range(len(text) - 2)}}

    ranked = sorted(DOCUMENTS, key=lambda name: -len(pieces(question) & pieces(DOCUMENTS[name])))
    chunks = [{{"id": name, "text": DOCUMENTS[name]}} for name in ranked]
    return {{"answer": DOCUMENTS[ranked[0]], "contexts": chunks}}


@pytest.fixture(scope="session")
def retriever():
    """Remove this (and the two above) and write [rag] url into ragbench.toml to test your service."""
    return answer

'''

_TEST = '''"""The quality of our RAG system."""

import pytest

from pytest_ragbench import assert_faithfulness, assert_retrieval
{stand_in}
@pytest.mark.rag_questions("questions.jsonl")
def test_answer(rag_sample):
    """One test for each question: does the answer say only what the chunks say?"""
    assert_faithfulness(rag_sample)  # threshold: ragbench.toml


@pytest.mark.rag_questions("questions.jsonl")
def test_retrieval(rag_samples):
    """All questions together: does the right document come first?"""
    assert_retrieval(rag_samples, "hit_rate@1", ">=0.9")
'''

_CONFIG = """\
# Settings of pytest-ragbench; `ragbench doctor` checks them.
judge = {judge}     # "local" needs no key; "openai:gpt-4o-mini" reads the key from OPENAI_API_KEY

[rag]
{url}

[thresholds]
faithfulness = ">=0.7"
"""


def files_for(lang: str, rag_url: str | None, judge: str) -> dict[str, str]:
    """File name -> text. Without a service, the test brings a stand-in that answers from three documents."""
    sample = _SAMPLES[lang]
    documents = "{\n" + "".join(
        f"    {json.dumps(name)}: {json.dumps(text, ensure_ascii=False)},\n"
        for name, text in sample.documents.items()
    )
    stand_in = "" if rag_url else _STAND_IN.format(documents=documents + "}")
    url = f"url = {json.dumps(rag_url)}" if rag_url else '# url = "http://localhost:8080"'
    questions = [
        {"question": question, "reference": reference, "relevant_ids": [document]}
        for question, reference, document in sample.questions
    ]
    return {
        "ragbench.toml": _CONFIG.format(judge=json.dumps(judge), url=url),
        "questions.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in questions),
        "test_rag.py": _TEST.format(stand_in=stand_in or "\n"),
    }
