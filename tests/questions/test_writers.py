from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ragbench import Question, UsageError, load_questions
from pytest_ragbench.cli.shared import Exit
from pytest_ragbench.questions.writers import columns_of, write_questions
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]  # the fixture

FULL = [
    Question(
        id="a", question="How long?", reference="30 days, \"exactly\"\nor less", answer="=30",
        contexts=("one; two", "[three]"), context_ids=("d1", "d2"), reference_contexts=("gold",),
        relevant_ids={"d1": 1.0, "d3": 1.0}, lang="en", must_pass=True, tags=("x", "y"),
        thresholds={"faithfulness": ">=0.8"}, session="s", cluster="c", metadata={"owner": "QA"},
    ),
    Question(id="б", question="Сколько дней?", relevant_ids={"d1": 3.0, "d2": 0.5}, should_abstain=True),
    Question(id="三", question="何日ですか。", reference="30日"),
]  # fmt: skip


def said(question: Question) -> dict[str, Any]:
    """Without what a table can't tell from nothing: a blank answer, a cell of a column that others fill."""
    found = {name: value for name, value in columns_of(question).items() if value != ""}
    metadata = {name: value for name, value in found.pop("metadata", {}).items() if value is not None}
    return {**found, "metadata": metadata}


@pytest.mark.parametrize("suffix", ["jsonl", "json", "yaml", "csv", "tsv", "xlsx", "parquet"])
def test_what_is_written_is_read_again(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"q.{suffix}"
    write_questions(FULL, file)
    assert [said(question) for question in load_questions(file)] == [said(question) for question in FULL]
    if suffix in ("jsonl", "json", "yaml"):
        assert [columns_of(each) for each in load_questions(file)] == [columns_of(each) for each in FULL]


texts = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)


@given(st.lists(st.tuples(texts, st.none() | texts, st.lists(texts, max_size=3)), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@pytest.mark.parametrize("suffix", ["csv", "yaml", "xlsx"])
def test_any_text_survives(
    tmp_path: Path, suffix: str, rows: list[tuple[str, str | None, list[str]]]
) -> None:
    questions = [
        Question(
            id=f"q{n}",
            question=f"Q {question}",
            reference=reference and f"R {reference}",
            contexts=tuple(f"C {c}" for c in contexts) or None,
        )
        for n, (question, reference, contexts) in enumerate(rows)
    ]
    write_questions(questions, tmp_path / f"q.{suffix}")
    again = load_questions(tmp_path / f"q.{suffix}")
    assert [said(question) for question in again] == [said(question) for question in questions]


@pytest.mark.parametrize(
    ("target", "suffix", "kept"),
    [
        (
            "ragas",
            "jsonl",
            {"question", "answer", "reference", "contexts", "reference_contexts", "context_ids"},
        ),
        ("ragas", "csv", {"question", "answer", "reference", "contexts", "reference_contexts"}),
        ("deepeval", "json", {"question", "answer", "reference", "contexts", "reference_contexts"}),
        ("langsmith", "jsonl", {"question", "reference"}),
        ("promptfoo", "yaml", {"question", "reference", "contexts"}),
    ],
)
def test_the_forms_of_other_tools_are_read_again(
    tmp_path: Path, target: str, suffix: str, kept: set[str]
) -> None:
    file = tmp_path / f"q.{suffix}"
    write_questions(FULL, file, target)
    for again, question in zip(load_questions(file), FULL, strict=True):
        for name in kept:
            assert (getattr(again, name) or None) == getattr(question, name), name


def test_names_of_other_tools(tmp_path: Path) -> None:
    def first(target: str) -> dict[str, Any]:
        write_questions(FULL, tmp_path / "q.json", target)
        row: dict[str, Any] = json.loads((tmp_path / "q.json").read_text())[0]
        return row

    assert first("ragas")["user_input"] == "How long?"
    assert first("ragas")["reference_context_ids"] == ["d1", "d3"]
    assert first("deepeval")["retrieval_context"] == ["one; two", "[three]"]
    assert first("deepeval")["context"] == ["gold"]
    assert first("langsmith")["inputs"] == {"question": "How long?"}
    assert first("langsmith")["outputs"] == {"answer": FULL[0].reference}
    assert first("promptfoo")["vars"]["question"] == "How long?"


def test_a_cell_of_a_workbook_is_never_a_formula(tmp_path: Path) -> None:
    import openpyxl

    write_questions(FULL[:1], tmp_path / "q.xlsx")
    cells = [cell for row in openpyxl.load_workbook(tmp_path / "q.xlsx").active.iter_rows() for cell in row]
    assert [cell.data_type for cell in cells if cell.value == "=30"] == ["s"]


@pytest.mark.parametrize(("name", "target"), [("q.xlsx", "promptfoo"), ("q.txt", "own"), ("q.csv", "nobody")])
def test_what_cant_be_written(tmp_path: Path, name: str, target: str) -> None:
    with pytest.raises(UsageError):
        write_questions(FULL, tmp_path / name, target)


def test_the_command(cli: Cli) -> None:
    cli.write("q.csv", "question,reference\nHow long?,30 days\n")
    ran = cli("export", "q.csv", "golden.json", "--as", "deepeval", "--json")
    assert ran.data == {"questions": 1, "output": "golden.json", "as": "deepeval"}
    assert cli("export", "q.csv", "golden.json").code == Exit.USAGE
    assert cli("export", "q.csv", "golden.json", "--force").code == Exit.OK
    assert load_questions(cli.path / "golden.json")[0].reference == "30 days"
