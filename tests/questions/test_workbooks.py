from __future__ import annotations

import subprocess
import zipfile
from datetime import date, datetime
from pathlib import Path
from shutil import which
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


@pytest.mark.skipif(which("soffice") is None, reason="needs LibreOffice")
def test_a_workbook_that_libreoffice_wrote(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("question,reference\nHow many?,=1+1\nСколько?,30\n")
    command = [
        "soffice",
        "--headless",
        "--convert-to",
        "xlsx",
        "--outdir",
        str(tmp_path),
        str(tmp_path / "q.csv"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    assert [question.question for question in load_questions(tmp_path / "q.xlsx")] == [
        "How many?",
        "Сколько?",
    ]
