"""The files that ``ragbench init`` writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pytest_ragbench.languages import DEFAULT, language


@dataclass(frozen=True)
class StartTexts:
    """``init.toml``: a few documents, and questions that they answer."""

    topic: ClassVar[str] = "init"

    documents: Mapping[str, str] = field(default_factory=dict)
    """By id."""
    questions: tuple[tuple[str, ...], ...] = ()
    """(question, right answer, id of the document that has it)."""


_STAND_IN = '''"""Stands for your RAG system until ragbench.toml says where that is."""

DOCUMENTS = {documents}


def answer(question: str) -> dict[str, object]:
    """Documents by how many pieces of three letters they share with the question."""

    def pieces(text: str) -> set[str]:
        return {{text[at : at + 3].casefold() for at in range(len(text) - 2)}}

    ranked = sorted(DOCUMENTS, key=lambda name: -len(pieces(question) & pieces(DOCUMENTS[name])))
    chunks = [{{"id": name, "text": DOCUMENTS[name]}} for name in ranked]
    return {{"answer": DOCUMENTS[ranked[0]], "contexts": chunks}}
'''

_TEST = '''"""The quality of our RAG system."""

import pytest

from pytest_ragbench import assert_faithfulness, assert_retrieval


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
{service}

[thresholds]
faithfulness = ">=0.7"
"""

_TO_REPLACE = """\
retriever = "stand_in:answer"     # answers until you put your service in place of this line:
# url = "http://localhost:8080\""""


def files_for(lang: str, rag_url: str | None, judge: str) -> dict[str, str]:
    """File name -> text. Without a service, a stand-in that answers from three documents is among them."""
    sample = language(lang).rules(StartTexts)
    if not sample.questions:
        sample = language(DEFAULT).rules(StartTexts)
    documents = "{\n" + "".join(
        f"    {json.dumps(name)}: {json.dumps(text, ensure_ascii=False)},\n"
        for name, text in sample.documents.items()
    )
    stand_in = {} if rag_url else {"stand_in.py": _STAND_IN.format(documents=documents + "}")}
    service = f"url = {json.dumps(rag_url)}" if rag_url else _TO_REPLACE
    questions = [
        {"question": question, "reference": reference, "relevant_ids": [document]}
        for question, reference, document in sample.questions
    ]
    return {
        "ragbench.toml": _CONFIG.format(judge=json.dumps(judge), service=service),
        "questions.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in questions),
        "test_rag.py": _TEST,
        **stand_in,
    }
