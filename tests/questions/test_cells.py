"""Cells that carry structure, and the small print of reading them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.questions import load_questions
from tests.questions.files import load, refused


def row(**cells: Any) -> str:
    return json.dumps({"question": "Q", **cells}, ensure_ascii=False)


def test_thresholds_as_an_object_or_its_json_beside_columns() -> None:
    (question,) = load("q.jsonl", row(thresholds={"faithfulness": 0.80, "mrr": None}, threshold_bleu=">=20"))
    assert question.thresholds == {"faithfulness": "0.8", "bleu": ">=20"}
    (question,) = load("q.csv", 'question,thresholds\nq,"{""faithfulness"": "">=0.8""}"\n')
    assert question.thresholds == {"faithfulness": ">=0.8"}
    (question,) = load("q.yaml", "- question: q\n  thresholds: {faithfulness: 0.70, rougeL: good}\n")
    assert question.thresholds == {"faithfulness": "0.70", "rougeL": "good"}


def test_metadata_column_and_unknown_columns_are_merged() -> None:
    (question,) = load("q.jsonl", row(metadata={"a": 1, "b": [1.5, None]}, c="в"))
    assert question.metadata == {"a": 1, "b": [1.5, None], "c": "в"}
    (question,) = load("q.csv", 'question,metadata\nq,"{""a"": 1}"\n')
    assert question.metadata == {"a": 1}
    assert "'metadata' must be an object" in refused("q.jsonl", row(metadata=[1]))
    assert "can't be read" in refused("q.jsonl", row(metadata="{a: 1"))


def test_ground_truths_of_early_ragas() -> None:
    assert load("q.jsonl", row(ground_truths=["R"]))[0].reference == "R"
    assert "a list of 2" in refused("q.jsonl", row(ground_truths=["R", "S"]))


@pytest.mark.parametrize(
    "tags", [["smoke", " регресс "], "smoke, регресс", "smoke;регресс", "smoke、регресс"]
)
def test_tags(tags: Any) -> None:
    assert load("q.jsonl", row(tags=tags))[0].tags == ("smoke", "регресс")


def test_context_ids_keep_order_and_doubles() -> None:
    assert load("q.jsonl", row(context_ids=["b", 1, "b"]))[0].context_ids == ("b", "1", "b")
    assert load("q.jsonl", row(context_ids=7))[0].context_ids == ("7",)
    assert "'context_ids'" in refused("q.jsonl", row(context_ids={"b": 1}))


def test_contexts_of_another_type() -> None:
    assert "'contexts' must be a list of strings" in refused("q.jsonl", row(contexts={"a": 1}))
    assert "half of a surrogate" in refused("q.jsonl", '{"question": "Q", "contexts": ["\\udc00"]}')


def test_flags_of_json() -> None:
    assert load("q.jsonl", row(must_pass=1, should_abstain=""))[0].must_pass is True
    assert "'must_pass'" in refused("q.jsonl", row(must_pass=[True]))


def test_line_separators_of_unicode_end_no_line() -> None:
    (question,) = load("q.jsonl", '{"question": "a\u2028b\u0085c"}\n')
    assert question.question == "a\u2028b\u0085c"


def test_the_mark_of_utf_8_goes_also_where_the_encoding_is_given() -> None:
    (question,) = load("q.csv", "question\na?\n".encode("utf-8-sig"), encoding="utf-8")
    assert question.question == "a?"
    assert question.metadata == {}


def test_ids_that_look_the_same_are_the_same() -> None:
    message = refused(
        "q.jsonl", '{"id": "\u0439", "question": "a"}\n{"id": "\u0438\u0306", "question": "b"}\n'
    )
    assert "lines 1 and 2" in message


def test_the_first_of_several_merged_mappings_wins() -> None:
    (question,) = load("q.yaml", "- <<: [{question: первый}, {question: второй, reference: да}]\n")
    assert (question.question, question.reference) == ("первый", "да")
    assert "'<<' takes a mapping" in refused("q.yaml", "- <<: text\n  question: a\n")


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("- ? [a, b]\n  : c\n  question: q\n", "a key must be a string"),
        ("- question: a\x07b\n", "not YAML"),
        ("just a text\n", "wanted a list of mappings"),
        ("questions:\n- question: a\ndata:\n- question: b\n", "two lists of questions"),
    ],
)
def test_yaml_of_another_shape(content: str, part: str) -> None:
    assert part in refused("q.yaml", content)


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ('"text"', "wanted a list of objects"),
        ('[1, {"question": "a"}]', "wanted an object"),
        ("{1: 2}", "not JSON"),
        ('{"a": 1, "a": 2, "questions": [{"question": "q"}]}', "'a' is given more than once"),
        ('{"a": NaN, "questions": [{"question": "q"}]}', "NaN"),
        ('[{"question": "a", "n": 1e999}]', "too large"),
        ('[{"question": "a", "n": ' + "9" * 5000 + "}]", "not JSON"),
        ('{"question": ["a"], "answer": []}', "different lengths"),
    ],
)
def test_json_of_another_shape(content: str, part: str) -> None:
    assert part in refused("q.json", content)


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    assert "q.csv: can't be read: Permission denied" in refused("q.csv", "question\na\n")


def test_a_file_outside_the_working_directory_is_named_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("q.csv").write_text("question\na?\n", encoding="utf-8")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert str(load_questions(tmp_path / "q.csv")[0].location) == f"{tmp_path / 'q.csv'}:2"
