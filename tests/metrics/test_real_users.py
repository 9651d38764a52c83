"""Ground truth by document URL: the questions of real users, and what they were shown."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import QualityFailure, RagSample, UsageError, assert_retrieval, score
from pytest_ragbench.metrics.formulas.urls import document_of
from tests.plugin.conftest import Project
from tests.servers.rag_server import rag_server


def shown(urls: list[str] | None, *found: str, **more: Any) -> RagSample:
    return RagSample("How?", "So.", context_urls=found, relevant_urls=urls, **more)


@pytest.mark.parametrize(
    ("urls", "found", "values"),
    [
        # One document in three chunks: a repeat keeps its rank and earns nothing.
        (["https://w/u"], ["https://w/u"] * 3, {"url_ndcg@5": 1, "url_precision@5": 0.2, "url_recall@5": 1}),
        (["https://w/c"], ["https://w/x", "https://w/y", "https://w/c"], {"url_mrr": 1 / 3, "url_ndcg@3": 0.5}),
        (["https://w/c"], ["https://w/x", "https://w/x", "https://w/c"], {"url_mrr": 1 / 3, "url_hit_rate@2": 0}),
        (["https://w/c"], [], {"url_mrr": 0, "url_recall@3": 0, "url_precision@3": 0, "url_hit_rate@1": 0}),
        (["https://w/c"], ["", "", "https://w/c"], {"url_mrr": 1 / 3, "url_precision@3": 1 / 3}),
        (["https://w/a", "https://w/z"], ["https://w/a#top"], {"url_recall@1": 0.5, "url_hit_rate@1": 1}),
    ],
)  # fmt: skip
def test_values(urls: list[str], found: list[str], values: dict[str, float]) -> None:
    for name, value in values.items():
        assert score(name, shown(urls, *found)).value == pytest.approx(value), name


def test_a_blank_url_is_nothing_to_find() -> None:
    sample = shown([" ", "https://w/a"], "https://w/a", "")
    assert score("url_recall@2", sample).value == 1.0
    assert score("url_ndcg@2", sample).value == 1.0


def test_documents_ranked_instead_of_chunks() -> None:
    sample = shown(["https://w/c"], "https://w/x", "https://w/x", "https://w/c")
    assert score("url_mrr", sample, collapse=True).value == 0.5
    unnamed = shown(["https://w/c"], "", "", "https://w/c")
    assert score("url_mrr", unnamed, collapse=True).value == pytest.approx(1 / 3)


def test_chunks_and_urls_are_levels_of_their_own() -> None:
    sample = shown(
        ["https://w/return"],
        "https://w/return",
        "https://w/pay",
        context_ids=["c7", "c9"],
        relevant_ids=["c9"],
    )
    assert (score("mrr", sample).value, score("url_mrr", sample).value) == (0.5, 1.0)
    with pytest.raises(UsageError, match="context_urls.*rag.reply.context_urls"):
        score("url_mrr", RagSample("How?", context_ids=["https://w/u"], relevant_urls=["https://w/u"]))


def test_questions_without_a_url_are_counted_and_left_out() -> None:
    samples = [
        shown(["https://w/u"], "https://w/u", id="hit"), shown(["https://w/u"], "https://w/x", id="miss"),
        shown(None, "https://w/x", id="null"), shown([], "https://w/x", id="blank"),
    ]  # fmt: skip
    found = assert_retrieval(samples, "url_hit_rate@1", ">=0.5")
    assert found.value == 0.5
    assert found.details["n_without_relevant_urls"] == 2
    assert found.details["values"] == {"hit": 1.0, "miss": 0.0}
    with pytest.raises(QualityFailure, match=r"left out   2 questions without relevant urls"):
        assert_retrieval(samples, "url_mrr", ">=0.9")
    with pytest.raises(UsageError, match="no question has relevant_urls"):
        assert_retrieval(samples[2:], "url_mrr", ">=0.5")
    with pytest.raises(UsageError, match="needs relevant_urls, and this question has none"):
        score("url_mrr", samples[3])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://Wiki.example/a", "http://wiki.example:80/a/", True),
        ("https://w/Страница", "https://w/%D0%A1%D1%82%D1%80%D0%B0%D0%BD%D0%B8%D1%86%D0%B0#вверх", True),
        ("https://w/ガイド", "https://w/%E3%82%AB%E3%82%99%E3%82%A4%E3%83%89", True),  # composed and not
        ("https://w/view?pageId=7", "https://w/view?pageId=8", False),
        ("https://w/#/guide", "https://w/#/price", False),
        ("https://w/a", "https://w/A", False),
        ("https://w:8443/a", "https://w/a", False),
        ("ftp://w/a", "https://w/a", False),
        ("/wiki/a/", "/wiki/a#x", True),
        ("page 7", "page 7 ", True),
        ("http://[bad", "http://[bad", True),
    ],
)  # fmt: skip
def test_when_urls_name_the_same_document(one: str, other: str, same: bool) -> None:
    assert (document_of(one) == document_of(other)) is same


@given(st.text(max_size=30))
def test_any_text_can_be_compared(text: str) -> None:
    assert document_of(text) == document_of(text)
    assert document_of("https://w/" + text.strip().replace("\\", "")) is not None


TESTS = """
import pytest
from pytest_ragbench import assert_retrieval

pytestmark = pytest.mark.rag_questions("sqlite:///data/support.db", table="question_answer")

@pytest.mark.parametrize("metric", ["url_hit_rate@1", "url_mrr"])
def test_shown_again(rag_samples, metric):
    found = assert_retrieval(rag_samples, metric, ">=0.5")
    assert found.details["n_without_relevant_urls"] == 1

def test_of_another_tier(rag_samples):
    assert_retrieval(rag_samples, "mrr", ">=0.5")
"""


def test_the_benchmark_of_real_users(project: Project, both: list[str]) -> None:
    (project.path / "data").mkdir()
    with sqlite3.connect(project.path / "data" / "support.db") as connection:
        connection.execute("CREATE TABLE question_answer (id INTEGER PRIMARY KEY, question, confluence_url)")
        connection.executemany(
            "INSERT INTO question_answer VALUES (?, ?, ?)",
            [(1, "Как вернуть?", "https://w/return"), (2, "返品？", None), (3, "When?", "https://w/other")],
        )
    connection.close()
    project.write(test_users_py=TESTS)
    chunks = [{"text": "Bring the receipt.", "id": "c7", "url": "http://w/return/#receipt"}, {"text": "Pay."}]
    with rag_server(lambda _: {"answer": "So.", "chunks": chunks}) as rag:
        result = project.run(
            "--rag-url", rag.url, "--ragbench-tier", "real-users", "--ragbench-json", "out.json", *both
        )
    result.assert_outcomes(passed=2, deselected=0 if both else 1)
    found = {(row["metric"], row["tier"], row["mean"]) for row in project.report()["summary"]["metrics"]}
    assert found == {("url_hit_rate@1", "real_users", 0.5), ("url_mrr", "real_users", 0.5)}
    assert sorted(rag.questions) == sorted(["Как вернуть?", "返品？", "When?"])
