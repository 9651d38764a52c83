"""Questions that a program already has."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench import Question, QuestionFileError
from pytest_ragbench.questions import questions_from

ROWS: list[dict[str, Any]] = [
    {"user_input": "How long?", "reference": "30 days.", "retrieved_contexts": ["a", "b"]},
    {"user_input": "Сколько?", "reference": None, "retrieved_contexts": ["c"]},
]


def check(found: list[Question]) -> None:
    assert [question.question for question in found] == ["How long?", "Сколько?"]
    assert [question.reference for question in found] == ["30 days.", None]
    assert [question.contexts for question in found] == [("a", "b"), ("c",)]
    assert [question.id for question in found] == ["How-long", "Сколько"]


def test_lists_and_generators() -> None:
    check(questions_from(ROWS))
    check(questions_from(row for row in ROWS))


def test_texts_mappings_and_questions_together() -> None:
    own = Question(id="own", question="Own?")
    found = questions_from(["One?", own, {"question": "Two?", "id": "two"}])
    assert [(question.id, question.question) for question in found] == [
        ("One", "One?"),
        ("own", "Own?"),
        ("two", "Two?"),
    ]


@pytest.mark.stacks
def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    check(questions_from(pandas.DataFrame(ROWS)))
    numbers = pandas.DataFrame(
        {"question": ["a", "b"], "reference": ["x", pandas.NA], "score": [1.5, float("nan")]}
    )
    first, second = questions_from(numbers)
    assert (first.metadata, second.metadata, second.reference) == ({"score": 1.5}, {"score": None}, None)


@pytest.mark.stacks
def test_polars() -> None:
    check(questions_from(pytest.importorskip("polars").DataFrame(ROWS)))


@pytest.mark.stacks
def test_hugging_face_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list(ROWS)
    check(questions_from(data))
    check(questions_from(data.to_iterable_dataset()))  # as load_dataset(..., streaming=True) gives
    for splits in (
        datasets.DatasetDict({"test": data}),
        datasets.IterableDatasetDict({"test": data.to_iterable_dataset()}),
    ):
        with pytest.raises(QuestionFileError, match=r"choose a split of it, as dataset\['test'\]"):
            questions_from(splits)


def test_arrow_tables() -> None:
    check(questions_from(pytest.importorskip("pyarrow").Table.from_pylist(ROWS)))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("q.csv", "got str"),
        (3, "got int"),
        ([], "no questions"),
        ([{"refrence": "x", "question": "q"}], "did you mean 'reference'"),
        (["q", 3], "questions:2: wanted a string"),
        (["q", "q"], "more than once"),
        ({"train": []}, "choose a split"),
    ],
)
def test_what_is_no_list_of_questions(value: Any, said: str) -> None:
    with pytest.raises(QuestionFileError, match=said):
        questions_from(value)
