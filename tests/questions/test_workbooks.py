from __future__ import annotations

import zipfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from pytest_ragbench import QuestionFileError, load_questions


def book(path: Path, **sheets: list[list[Any]]) -> Path:
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path / "q.xlsx")
    return path / "q.xlsx"


def test_a_sheet_as_people_write_it(tmp_path: Path) -> None:
    file = book(
        tmp_path,
        Лист1=[
            [None, None, None, None],
            ["Вопрос", "Правильный ответ", "критичный", "дата", "бюджет"],
            ["Сколько дней?", 30, True, date(2024, 5, 1), 1.5],
            [None, None, None, None],
            ["Почём?", 12.0, False, datetime(2024, 5, 1, 12, 30), None],
        ],
    )
    first, second = load_questions(file)
    assert (first.question, first.reference, first.must_pass) == ("Сколько дней?", "30", True)
    assert first.metadata == {"дата": "2024-05-01", "бюджет": "1.5"}
    assert (second.reference, second.must_pass) == ("12", False)
    assert [question.location and question.location.line for question in (first, second)] == [3, 5]


def test_the_sheet_with_the_questions_is_found(tmp_path: Path) -> None:
    file = book(tmp_path, notes=[["Read me"]], 質問=[["質問", "正解"], ["何日?", "30日"]], empty=[])
    [question] = load_questions(file)
    assert (question.question, question.reference) == ("何日?", "30日")


def test_of_several_one_is_named(tmp_path: Path) -> None:
    file = book(tmp_path, old=[["question"], ["a"]], new=[["question"], ["b"]])
    with pytest.raises(
        QuestionFileError, match="sheets 'old' and 'new' hold questions: say which: table='old'"
    ):
        load_questions(file)
    assert load_questions(file, table="new")[0].question == "b"
    with pytest.raises(QuestionFileError, match="no sheet 'nwe'"):
        load_questions(file, table="nwe")


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "empty"),
        ([["question"]], "header without rows"),
        ([["question", "question"], ["a", "b"]], "more than once"),
        ([["question", "reference"], ["a", "#REF!"]], "q.xlsx:2: column 'reference' holds the error #REF!"),
        ([["colour"], ["red"]], "no column for the question"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, rows: list[list[Any]], said: str) -> None:
    with pytest.raises(QuestionFileError, match=said):
        load_questions(book(tmp_path, sheet=rows))


def test_a_file_that_is_no_workbook(tmp_path: Path) -> None:
    (tmp_path / "q.xlsx").write_text("question\na\n")
    with pytest.raises(QuestionFileError, match="not a workbook"):
        load_questions(tmp_path / "q.xlsx")
    with zipfile.ZipFile(tmp_path / "q.xlsx", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(QuestionFileError, match="not a workbook"):
        load_questions(tmp_path / "q.xlsx")


def test_a_workbook_that_libreoffice_wrote() -> None:
    """LibreOffice 7.4 wrote it: a sheet about the file first, a merged title above the header, formulas, dates,
    a percentage, numbers as texts, tags merged over two rows, forty formatted rows without content at the end.
    """
    questions = load_questions(Path(__file__).parent / "data" / "libreoffice.xlsx")
    assert [(question.id, question.reference) for question in questions] == [
        ("007", "В течение 30 дней."),
        ("8", "2"),
        ("ja-1", "30日以内です。\nレシートが必要です。"),
        ("2.50", "300"),
    ]
    assert [question.must_pass for question in questions] == [True, False, True, False]
    assert questions[0].relevant_ids == {"returns": 1.0, "faq": 1.0}
    assert questions[0].thresholds == {"faithfulness": ">=0.8"}
    assert [question.tags for question in questions] == [("возврат",), (), ("返品", "保証"), ()]
    assert [question.metadata["обновлено"] for question in questions[:3]] == [
        "2026-11-20",
        "2026-11-21 09:30:00",
        None,
    ]
    assert [question.metadata["бюджет"] for question in questions] == ["1500", "0.25", "0.1", "1234567890123"]
    assert questions[3].location is not None
    assert questions[3].location.line == 7


def test_a_header_below_a_title_is_found_and_a_table_without_questions_named(tmp_path: Path) -> None:
    titled = [["Questions"], ["as of May"], ["question", "reference"], ["a?", "b"]]
    assert load_questions(book(tmp_path, s=titled))[0].question == "a?"
    with pytest.raises(
        QuestionFileError, match="1: no column for the question; columns found: 'colour', 'size'"
    ):
        load_questions(book(tmp_path, s=[["colour", "size"], ["question", "reference"], ["a?", "b"]]))
