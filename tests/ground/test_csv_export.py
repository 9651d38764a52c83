from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.csv_export import original_text, safe_cell, score_rows, write_csv
from pytest_ragbench.report.reading import part_from

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＠")


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+7 495", "-нет данных", "@SUM(A1)", "\t=1", "\r=1", "  =1", "＝１＋１", "'=1", "'", "''quoted"],
)
def test_a_text_that_a_spreadsheet_would_run_is_marked(text: str) -> None:
    cell = safe_cell(text)
    assert not cell.lstrip(" ").startswith(FORMULAS)
    assert original_text(cell) == text


@given(st.text())
def test_no_text_is_a_formula_and_none_is_lost(text: str) -> None:
    cell = safe_cell(text)
    assert not cell.lstrip(" \u00a0\u3000").startswith(FORMULAS)
    assert original_text(cell) == text


def test_numbers_stay_numbers_and_nothing_is_an_empty_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(
        path, [{"a": -0.5, "b": None, "c": True}, {"a": 3, "b": ["=x", "y"], "d": 'かな, "と"\nкириллица'}]
    )
    assert read(path) == [
        ["a", "b", "c", "d"],
        ["-0.5", "", "true", ""],
        ["3", '["=x", "y"]', "", 'かな, "と"\nкириллица'],
    ]


def test_columns_can_be_chosen_and_headers_are_texts_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_csv(path, [{"=cmd": 1, "b": 2}], columns=["b", "=cmd"])
    assert read(path) == [["b", "'=cmd"], ["2", "1"]]


def test_half_a_surrogate_pair_can_be_written(tmp_path: Path) -> None:
    write_csv(tmp_path / "t.csv", [{"a": "\ud800x"}])
    assert read(tmp_path / "t.csv")[1] == ["\\ud800x"]


def test_a_file_that_cant_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        write_csv(tmp_path / "nowhere" / "t.csv", [])


def test_a_json_report_as_rows() -> None:
    results = json.loads(
        """[{"test": "t[a]", "outcome": "failed", "kind": "quality", "question_id": "a", "message": "m",
             "system": "small",
             "samples": [{"question": "Q?", "answer": "=A", "contexts": ["c"]}],
             "scores": [{"metric": "faithfulness", "tier": "generation", "sample": 0, "value": 0.5,
                         "threshold": ">=0.8",
                         "passed": false, "error": null}]},
            {"test": "t[b]", "outcome": "error", "kind": "judge", "message": "down", "samples": [], "scores": []}]"""
    )
    first, second = (row for each in results for row in score_rows(part_from(TestRecord, each)))
    assert (first["metric"], first["value"], first["answer"], first["error"]) == (
        "faithfulness",
        0.5,
        "=A",
        "m",
    )
    assert (first["system"], second["system"]) == ("small", None)
    assert (second["metric"], second["error"], second["outcome"]) == (None, "down", "error")
