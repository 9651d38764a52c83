"""Questions from a table or a query, by the library's SQLite (``sqlite``) and SQLAlchemy (``sqlite+pysqlite``)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.questions import load_questions
from pytest_ragbench.questions.readers import sql

ROWS = [
    (3, "Как вернуть товар?", "Принесите чек.", "https://wiki/return", "2024-05-01", None),
    (1, "返品できますか？", None, None, None, "0.5"),
    (2, "How do I return it?", "", "", "2024-05-02", "x"),
]


def make(name: str = "support.db", rows: Sequence[Sequence[Any]] = ROWS, key: str = "PRIMARY KEY") -> None:
    Path(name).unlink(missing_ok=True)
    with sqlite3.connect(name) as connection:
        connection.execute(
            f"CREATE TABLE question_answer (qa INTEGER {key}, question TEXT, answer TEXT, confluence_url TEXT, "
            "created DATE, note TEXT)"
        )
        connection.executemany("INSERT INTO question_answer VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()


@pytest.fixture(params=["sqlite", "sqlite+pysqlite"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param != "sqlite":
        pytest.importorskip("sqlalchemy", reason="needs the extra 'sql'")
    make()
    return f"{request.param}:///support.db"


def test_a_table_by_its_primary_key(url: str) -> None:
    found = load_questions(url, table="question_answer")
    assert [question.id for question in found] == ["1", "2", "3"]
    assert [question.question for question in found] == [ROWS[1][1], ROWS[2][1], ROWS[0][1]]
    assert [question.relevant_urls for question in found] == [None, (), ("https://wiki/return",)]
    assert [question.answer for question in found] == [None, "", "Принесите чек."]
    assert [question.metadata["note"] for question in found] == ["0.5", "x", None]
    assert str(found[2].metadata["created"]).startswith("2024-05-01")
    assert str(found[0].location).endswith("#question_answer:1")


def test_the_table_may_stand_in_the_url(url: str) -> None:
    assert load_questions(f"{url}#question_answer") == load_questions(url, table="question_answer")


def test_a_query_in_its_own_order(url: str) -> None:
    query = "-- newest first\nSELECT qa AS id, question AS вопрос FROM question_answer ORDER BY qa DESC"
    assert [question.id for question in load_questions(url, query=query)] == ["3", "2", "1"]


def test_without_an_order_rows_are_sorted(url: str) -> None:
    query = "SELECT qa AS id, question FROM question_answer"
    assert [question.id for question in load_questions(url, query=query)] == ["1", "2", "3"]
    make(rows=[(2, "b", *[None] * 4), (1, "a", *[None] * 4)], key="")
    found = load_questions(url, table="question_answer")
    assert [question.question for question in found] == ["a", "b"]


def test_columns_are_mapped(url: str) -> None:
    mapped = {"relevant_urls": "note", "metadata.confluence_url": "confluence_url"}
    found = load_questions(url, table="question_answer", columns=mapped)
    assert [question.relevant_urls for question in found] == [("0.5",), ("x",), None]
    assert found[2].metadata["confluence_url"] == "https://wiki/return"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "question_answr"}, "there is no table 'question_answr'; did you mean 'question_answer'?"),
        ({"table": "users"}, "there is no table 'users'; tables: question_answer"),
        (
            {"table": "question_answer", "columns": {"question": "frage"}},
            r"#question_answer: columns=\{'question': 'frage'\}: no such column; columns found: 'qa', 'question'",
        ),
        ({"query": "SELECT answer FROM question_answer"}, "#query.*: no column for the question; columns found"),
        ({"query": "SELECT question FROM nowhere"}, "#query: no such table: nowhere"),
        ({"query": "SELECT question, answer AS question FROM question_answer"}, "two columns called 'question'"),
        ({"query": "SELECT question FROM question_answer WHERE qa > 9"}, "#query: no questions"),
        ({"query": "SELECT '' AS question"}, "#query:1: the question is blank"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(url: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(QuestionFileError, match=message):
        load_questions(url, **options)


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("sqlite:///support.db", {}, "name the table .* or give a query"),
        ("sqlite:///support.db#t", {"query": "SELECT 1"}, "not both"),
        ("sqlite:///support.db#a", {"table": "b"}, "two tables are named, 'a' and 'b'"),
        ("sqlite:///support.db", {"query": "DELETE FROM question_answer"}, "must begin with SELECT or WITH"),
        ("sqlite:///support.db", {"query": "/* SELECT */ DROP TABLE a"}, "must begin with SELECT or WITH"),
        ("sqlite:///support.db#t", {"encoding": "cp1251"}, "encoding is for files"),
        ("sqlite://", {"table": "t"}, "in memory"),
        ("sqlite:///suport.db", {"table": "t"}, r"suport.db: there is no such database; did you mean 'support.db'"),
        ("env:NO_SUCH_DB#t", {}, "the variable NO_SUCH_DB is not set"),
        ("q.csv", {"table": "t"}, "table and query are for databases"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense(path: str, options: dict[str, Any], message: str) -> None:
    make()
    with pytest.raises(UsageError, match=message):
        load_questions(path, **options)


def test_nothing_is_written() -> None:
    make()
    writing = "WITH one AS (SELECT 1) DELETE FROM question_answer"
    with pytest.raises(QuestionFileError, match="readonly"):
        load_questions("sqlite:///support.db", query=writing)
    assert len(load_questions("sqlite:///support.db#question_answer")) == 3


def test_a_password_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPPORT_DB", "nosuchdatabase://anna:Geheim7@db.internal/support?sslkey=Geheim8")
    with pytest.raises(UsageError) as caught:
        load_questions("env:SUPPORT_DB#question_answer")
    assert "Geheim" not in str(caught.value)
    assert "nosuchdatabase://anna:***@db.internal/support#question_answer" in str(caught.value)


def test_the_variable_holds_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    make()
    monkeypatch.setenv("SUPPORT_DB", "sqlite:///support.db")
    assert len(load_questions("env:SUPPORT_DB", table="question_answer")) == 3


def test_a_relative_file_is_seen_from_the_test() -> None:
    here = Path("/srv/tests")
    assert sql.seen_from(here, "sqlite:///data/q.db#t") == "sqlite:////srv/tests/data/q.db#t"
    assert sql.seen_from(here, "sqlite:////data/q.db") == "sqlite:////data/q.db"
    assert sql.seen_from(here, "postgresql://h/d") == "postgresql://h/d"
    assert sql.seen_from(here, "q.csv") == here / "q.csv"


def test_the_values_of_drivers() -> None:
    from datetime import date
    from decimal import Decimal

    values = [date(2024, 5, 1), Decimal("1.10"), b"\xd0\xb0\xff", ("a", "b"), True, None]
    assert [sql._cell(value) for value in values] == ["2024-05-01", "1.10", "а\\xff", ["a", "b"], True, None]


@pytest.mark.parametrize(
    ("cell", "urls"),
    [
        ("https://a/1", ("https://a/1",)),
        ("https://a/1,2;3|4", ("https://a/1,2;3|4",)),
        ("https://a/1, https://a/2;https://a/3\n/wiki/4", ("https://a/1", "https://a/2", "https://a/3", "/wiki/4")),
        ('["https://a/1"]', ("https://a/1",)),
        (" ", ()),
    ],
)  # fmt: skip
def test_urls_in_a_cell(cell: str, urls: tuple[str, ...]) -> None:
    Path("q.csv").write_text('question,shown_url\nHow?,"' + cell.replace('"', '""') + '"\n', encoding="utf-8")
    [found] = load_questions("q.csv")
    assert found.relevant_urls == (urls or None)


def test_a_real_postgresql() -> None:
    """``RAGBENCH_TEST_POSTGRES=postgresql+psycopg://user@host/database``: what its own types become."""
    url = os.environ.get("RAGBENCH_TEST_POSTGRES")
    if not url:
        pytest.skip("RAGBENCH_TEST_POSTGRES names no database")
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="needs the extra 'sql'")
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        for statement in (
            "DROP TABLE IF EXISTS ragbench_test",
            "CREATE TABLE ragbench_test (id serial PRIMARY KEY, question text, reference text, relevant_ids text[], "
            "thresholds jsonb, must_pass boolean, contexts text[], updated timestamptz, weight numeric(8,3))",
            "INSERT INTO ragbench_test (question, reference, relevant_ids, thresholds, must_pass, contexts, updated, "
            "weight) VALUES ('Сколько дней?', '30', '{returns,faq}', '{\"faithfulness\": \">=0.8\"}', true, "
            "array['Возврат 30 дней', 'Чек'], '2026-11-20 10:00+00', 1.5), "
            "('何日ですか。', '30日', '{}', null, false, '{}', null, null)",
        ):
            connection.exec_driver_sql(statement)
    try:
        first, second = load_questions(url, table="ragbench_test")
        [asked] = load_questions(url, query="SELECT question FROM ragbench_test WHERE must_pass")
    finally:
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE ragbench_test")
    assert (first.id, first.question, first.must_pass) == ("1", "Сколько дней?", True)
    assert (first.relevant_ids, first.thresholds) == ({"returns": 1.0, "faq": 1.0}, {"faithfulness": ">=0.8"})
    assert (first.contexts, second.contexts) == (("Возврат 30 дней", "Чек"), ())
    assert (first.metadata["weight"], second.metadata["weight"]) == ("1.500", None)
    assert str(first.metadata["updated"]).startswith("2026-11-20T10:00:00")
    assert asked.question == "Сколько дней?"
