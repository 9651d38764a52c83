"""Contexts in one cell: lists that JSON, Python or numpy wrote, and texts that merely look like one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.questions import parse_contexts

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.lists(words, max_size=5))
def test_a_list_written_by_python_or_json_comes_back(chunks: list[str]) -> None:
    assert parse_contexts(str(chunks)) == chunks
    assert parse_contexts(json.dumps(chunks)) == chunks
    assert parse_contexts(json.dumps(chunks, ensure_ascii=False, indent=1)) == chunks


@given(st.lists(words.filter(lambda chunk: "\0" not in chunk), min_size=2, max_size=5))
def test_an_array_written_by_numpy_is_never_joined(chunks: list[str]) -> None:
    assert parse_contexts(str(np.array(chunks, dtype=object))) == chunks


@pytest.mark.parametrize(
    "cell",
    [
        "Доставка занимает три дня.",
        "[1] Сноска: возврат за 7 дней",
        "[1] Сноска, см. также [2]",
        "[ссылка](https://example.org) и [ещё одна]",
        '["Устав"] раздел второй',
        "| План | Цена |\n| --- | --- |\n| Pro | $20 |",
        "cat access.log | grep ERROR; exit",
        '{"price": 20}',
        "(см. приложение)",
        "('только скобки')",
        "  返品は7日以内です。 ",
        "None of the plans includes a phone line",
    ],
)
def test_a_text_stays_one_text(cell: str) -> None:
    assert parse_contexts(cell) == [cell]


@pytest.mark.parametrize("cell", ["", "  ", "[]", "[ ]", "\n"])
def test_nothing_is_no_context(cell: str) -> None:
    assert parse_contexts(cell) == []


@pytest.mark.parametrize(
    ("cell", "chunks"),
    [
        ("['Возврат за 7 дней', \"it's free\"]", ["Возврат за 7 дней", "it's free"]),
        ("[u'старый', u'питон']", ["старый", "питон"]),
        ("('a', 'b')", ["a", "b"]),
        ("['a',\n 'b',]", ["a", "b"]),
        ('["две\nстроки"]', ["две\nстроки"]),
        ("['say \"a\" \"b\"', 'c']", ['say "a" "b"', "c"]),
        ("['it\\'s'\n \"b\"]", ["it's", "b"]),
    ],
)
def test_lists(cell: str, chunks: list[str]) -> None:
    assert parse_contexts(cell) == chunks


@pytest.mark.parametrize(
    "cell",
    [
        "['a', None]",
        "[1, 2]",
        "[['a'], ['b']]",
        "[b'a']",
        "['a', 'cut off at the end of the ce",
        '["cut off", "in a ',
        "['first' 'second' ... 'last']",
        "['a' 'b', 'c']",
        "['a'  # a note\n 'b']",
        "array(['a', 'b'], dtype=object)",
        "nan",
        "None",
        "[nan]",
        "[" * 5000 + "'a'" + "]" * 5000,
    ],
)
def test_what_can_not_be_a_list_of_texts_is_an_error_that_names_contexts(cell: str) -> None:
    with pytest.raises(QuestionFileError, match="contexts"):
        parse_contexts(cell)
