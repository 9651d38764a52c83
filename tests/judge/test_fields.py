from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from pytest_ragbench.judge.reading import fields
from pytest_ragbench.judge.reading.fields import (
    Grade01,
    IntegerScale,
    ListedText,
    Text,
    VerdictWords,
    YesNo,
    grade01,
    grade_on,
    yes_no,
)
from pytest_ragbench.languages import catalog


class Model(BaseModel):
    verdict: YesNo = True
    grade: Grade01 = 0.0
    text: Text = ""


YES: list[Any] = [
    "yes",
    "Yes.",
    " YES ",
    "ＹＥＳ",
    "**Yes**",
    '"yes"',
    "True",
    "да",
    "Да.",
    "«Да»",
    "верно",
    "はい",
    "はい。",
]
YES += [
    "ええ",
    "是",
    "是的。",
    "對",
    "ja",
    "Oui !",
    "¡Sí!",
    "si",
    "sì",
    "sim",
    "tak",
    "ano",
    "네",
    "evet",
    "igen",
]
YES += ["हाँ", "نعم", "כן", "có", "ναι", "так", "kyllä", "1", 1, 1.0, True, "y", "\u200byes\ufeff"]
NO: list[Any] = [
    "no",
    "No.",
    "нет",
    "Нет!",
    "неверно",
    "не верно",
    "いいえ",
    "いえ。",
    "否",
    "不是",
    "nein",
    "non",
    "não",
    "nie",
]
NO += [
    "아니요",
    "hayır",
    "HAYIR",
    "nem",
    "नहीं",
    "لا",
    "לא",
    "không",
    "όχι",
    "ні",
    "ei",
    "false",
    "0",
    0,
    0.0,
    False,
]
NEITHER: list[Any] = [
    2,
    -1,
    0.5,
    None,
    "",
    " ",
    "maybe",
    "idk",
    "возможно",
    "yes and no",
    "not yes",
    "да/нет",
    "yes?",
    "!yes",
]
NEITHER += [
    "-1",
    "1%",
    "10",
    "yes, but",
    "yesterday",
    "нетто",
    "はい・いいえ",
    "是否",
    [],
    {},
    ["yes"],
    math.nan,
    "-",
    ".",
]


@pytest.mark.parametrize("value", YES, ids=ascii)
def test_words_for_yes(value: Any) -> None:
    assert yes_no(value) is True


@pytest.mark.parametrize("value", NO, ids=ascii)
def test_words_for_no(value: Any) -> None:
    assert yes_no(value) is False


@pytest.mark.parametrize("value", NEITHER, ids=ascii)
def test_anything_else_is_an_error_that_quotes_it(value: Any) -> None:
    with pytest.raises(ValueError, match="neither yes nor no") as caught:
        yes_no(value)
    assert fields.shown(value) in str(caught.value)


def test_no_word_means_both() -> None:
    others = catalog().others
    spoken = [each.rules(VerdictWords) for each in catalog()]
    assert all(yes_no(word) for word in others.yes.union(others.yes_phrases, *(each.yes for each in spoken)))
    assert not any(yes_no(word) for word in others.no.union(others.no_phrases, *(each.no for each in spoken)))


@given(st.text() | st.integers() | st.floats() | st.none())
def test_yes_no_never_does_anything_but_decide_or_refuse(value: Any) -> None:
    try:
        assert yes_no(value) in (True, False)
    except ValueError:
        return


@pytest.mark.parametrize(
    ("value", "grade"),
    [(0, 0.0), (1, 1.0), (0.75, 0.75), ("0.8", 0.8), (" 1.0 ", 1.0), ("０．５", 0.5), ("1e-1", 0.1)],
)
def test_grades(value: Any, grade: float) -> None:
    found = grade01(value)
    assert found == grade
    assert type(found) is float


def test_no_negative_zero() -> None:
    assert math.copysign(1, grade01(-0.0)) == 1


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        None,
        math.nan,
        math.inf,
        -0.2,
        1.5,
        9,
        85,
        10**400,
        "80%",
        "8/10",
        "",
        "nan",
        "inf",
        "0,8",
        "0_1",
        "1.0000001",
        "9" * 5000,
        [],
        {"grade": 1},
        "high",
        "0.8 of 1",
    ],
    ids=lambda value: ascii(value)[:20] if not isinstance(value, int) or value < 100 else "huge",
)
def test_no_grade(value: Any) -> None:
    with pytest.raises(ValueError, match=r"range 0\.\.1"):
        grade01(value)


@given(st.floats(0, 1))
def test_grades_are_never_changed(value: float) -> None:
    assert grade01(value) == value
    assert grade01(repr(value)) == value


@given(st.floats(allow_nan=False).filter(lambda value: not 0 <= value <= 1))
def test_grades_are_never_clamped(value: float) -> None:
    with pytest.raises(ValueError, match="range"):
        grade01(value)


@pytest.mark.parametrize(
    ("scale", "good", "bad"),
    [
        (IntegerScale(0, 2), [0, 1, 2, "2", 2.0, "1.0"], [4, 1.5, "1.5", -1, True, None, "two", ""]),
        (IntegerScale(0, 4, 2), [0, 2, 4, "4"], [1, 3, 5, 2.5, False]),
        (IntegerScale(1, 5), [1, 5, "3"], [0, 6, math.nan]),
    ],
    ids=str,
)
def test_integer_scales(scale: IntegerScale, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert scale.read(value) == float(value)
    for value in bad:
        with pytest.raises(ValueError, match=r"not a grade on the scale \d\.\.\d") as caught:
            scale.read(value)
        assert fields.shown(value) in str(caught.value)


def test_scales_are_normalised() -> None:
    assert [IntegerScale(1, 5).normalised(grade) for grade in (1, 2, 5)] == [0, 0.25, 1]
    with pytest.raises(ValueError, match="no scale"):
        IntegerScale(0, 5, 2)


def test_texts() -> None:
    assert Model.model_validate({"text": None}).text == ""
    others: list[Any] = [1, True, [], {}]
    for value in others:
        with pytest.raises(ValidationError, match="is not a string"):
            Model.model_validate({"text": value})


def test_json_schemas_are_plain() -> None:
    properties = Model.model_json_schema()["properties"]
    bare = {
        name: {k: v for k, v in item.items() if k not in ("title", "default")}
        for name, item in properties.items()
    }
    assert bare == {
        "verdict": {"type": "boolean"},
        "grade": {"type": "number", "minimum": 0, "maximum": 1},
        "text": {"type": "string"},
    }

    class Graded(BaseModel):
        three: grade_on(0, 2)  # type: ignore[valid-type]
        even: grade_on(0, 4, 2)  # type: ignore[valid-type]

    graded = json.dumps(Graded.model_json_schema()["properties"])
    assert '"maximum": 2' in graded
    assert '"enum": [0, 2, 4]' in graded
    assert Graded.model_validate({"three": "1", "even": 4}).even == 4


def test_null_is_a_text_and_no_item_of_a_list() -> None:
    assert TypeAdapter(Text).validate_python(None) == ""
    assert TypeAdapter(list[ListedText]).validate_python(["a"]) == ["a"]
    with pytest.raises(ValidationError, match="null is not allowed in a list of strings"):
        TypeAdapter(list[ListedText]).validate_python(["a", None])


def test_values_are_shown_in_words_of_json_and_cut() -> None:
    assert [fields.shown(value) for value in (None, True, False, "a")] == ["null", "true", "false", "'a'"]
    assert fields.shown("a" * 78) == f"'{'a' * 78}'"
    assert fields.shown("a" * 79) == f"'{'a' * 78}…"
    assert fields.shown("abcdef", 5) == "'abc…"
    assert fields.shown(10**5000) == "a int too large to show"


def test_a_grade_is_no_longer_than_sixty_characters() -> None:
    assert grade01("0." + "5" * 58) == pytest.approx(5 / 9)
    with pytest.raises(ValueError, match="range"):
        grade01("0." + "5" * 59)


@pytest.mark.parametrize(
    ("low", "high", "step"), [(0, 0, 1), (2, 1, 1), (0, 4, 0), (0, 4, 3), (0, 4, -1), (1, 4, 2)]
)
def test_what_is_no_scale(low: int, high: int, step: int) -> None:
    with pytest.raises(ValueError, match="no scale"):
        IntegerScale(low, high, step)


def test_a_scale_is_told_with_its_steps() -> None:
    assert [str(IntegerScale(0, 4, step)) for step in (1, 2, 4)] == ["0..4", "0..4 by 2", "0..4 by 4"]
    assert str(IntegerScale(0, 1)) == "0..1"
