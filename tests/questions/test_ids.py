"""Test ids: readable, stable, unique, and one word for ``-k``."""

from __future__ import annotations

import random
import unicodedata

import pytest
from _pytest.mark.expression import Expression
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import questions as room  # not the names: pytest would collect test_id
from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import Location, Question
from pytest_ragbench.questions import ids


def made(*names: str) -> list[Question]:
    return [
        Question(id=name, question="q?", location=Location("q.csv", line))
        for line, name in enumerate(names, 2)
    ]


@pytest.mark.parametrize(
    ("question_id", "expected"),
    [
        ("q1", "q1"),
        ("вопрос/1", "вопрос-1"),
        ("a::b[c]", "a-b-c"),
        ("x\0y", "x-y"),
        ("строка\n2", "строка-2"),
        ("返金", "返金"),
        ("返金・交換「特急」", "返金-交換-特急"),
        ("データベース", "データベース"),
        ("1_0", "1_0"),
        ("v1.10+beta", "v1.10+beta"),
        ("C:\\dir\\file", "C-dir-file"),
        ("../../etc/passwd", "etc-passwd"),
        ("за\u0301мок", "замок"),
        ("й", "й"),  # и and a breve, composed
        ("мяг\u00adкий\u200bперенос", "мягкийперенос"),
        ("हिन्दी", "हिन्दी"),
        ("or", "q-or"),
        ("not", "q-not"),
    ],
)
def test_what_an_id_looks_like(question_id: str, expected: str) -> None:
    assert room.test_id(question_id) == expected


@pytest.mark.parametrize("question_id", ["", "???", "\n", "😀", "::", "-", "..."])
def test_an_id_without_a_letter_is_named_by_its_hash(question_id: str) -> None:
    name = room.test_id(question_id)
    assert name.startswith("q-")
    assert len(name) == 8
    assert name == room.test_id(question_id)


@given(st.text(max_size=300))
def test_any_id_is_safe_in_a_node_id(question_id: str) -> None:
    name = room.test_id(question_id)
    assert name
    assert not set(name) & set("/\\:[]'\"\0\n\r\t ")
    assert name.isprintable()
    assert len(name) <= 80
    assert room.test_id(name) == name  # so it can be typed back


@given(st.text(st.characters(categories=["L", "N", "P", "Z", "Cc", "S"]), max_size=60))
def test_k_selects_by_the_whole_id(question_id: str) -> None:
    name = room.test_id(question_id)
    seen: list[str] = []

    def matches(word: str, /, **_: str | int | bool | None) -> bool:
        seen.append(word)
        return True

    # Some numerals (Old Persian ones, fractions) are digits to str and no letters to -k's own pattern.
    if all(letter.isidentifier() or letter.isdecimal() or letter in "-+." for letter in name):
        assert Expression.compile(name).evaluate(matches)
        assert seen == [name]


def test_a_long_id_is_cut_at_a_word_and_stays_different() -> None:
    first = room.test_id("очень длинный идентификатор " * 6 + "первый")
    second = room.test_id("очень длинный идентификатор " * 6 + "второй")
    assert first != second
    assert first[:-6] == second[:-6]
    assert len(first) <= 80
    assert first.startswith("очень-длинный-идентификатор-")
    wide = room.test_id("非常に長い識別子" * 20)
    assert len(wide) <= 44  # 80 columns


def test_ids_that_differ_only_in_replaced_letters_get_a_hash_and_the_plain_one_stays() -> None:
    names = room.test_ids(made("a/b", "a-b", "a b", "c"))
    assert names[1] == "a-b"
    assert names[3] == "c"
    assert len(set(names)) == 4
    assert names[0].startswith("a-b-")


def test_numbers_are_left_alone() -> None:
    assert room.test_ids(made("1", "10", "1_0", "01")) == ["1", "10", "1_0", "01"]


@given(st.lists(st.text(max_size=12), unique=True, max_size=12), st.randoms(use_true_random=False))
def test_ids_are_unique_and_do_not_depend_on_the_order(names: list[str], shuffle: random.Random) -> None:
    given_order = dict(zip(names, room.test_ids(made(*names)), strict=True))
    assert len(set(given_order.values())) == len(names)
    shuffled = names[:]
    shuffle.shuffle(shuffled)
    assert dict(zip(shuffled, room.test_ids(made(*shuffled)), strict=True)) == given_order


def test_an_id_that_equals_the_hashed_form_of_another_does_not_clash() -> None:
    clash = room.test_ids(made("a/b", "a b"))[0]
    names = room.test_ids(made("a/b", "a b", clash))
    assert len(set(names)) == 3
    assert names[2] == clash


def test_the_same_id_twice_is_an_error_with_both_places() -> None:
    with pytest.raises(QuestionFileError, match=r"'x'.*q\.csv:2 and q\.csv:3"):
        room.test_ids(made("x", "x"))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Как вернуть товар?", "Как-вернуть-товар"),
        ("How long do I have to return it?", "How-long-do-I-have-to-return-it"),
        ("返品の期限はいつですか？", "返品の期限はいつですか"),
        ("  Сколько   стоит\nPro?  ", "Сколько-стоит-Pro"),
    ],
)
def test_a_short_question_is_its_own_slug(question: str, expected: str) -> None:
    assert ids.slug(question) == expected
    assert room.test_id(expected) == expected


def test_a_long_question_is_cut_and_told_apart_by_its_hash() -> None:
    start = "Как вернуть товар, если прошло больше тридцати дней "
    first, second = ids.slug(start + "и нет чека?"), ids.slug(start + "и чек есть?")
    assert first != second
    assert first.startswith("Как-вернуть-товар-если-прошло")
    assert len(first) <= 40


def test_composed_and_decomposed_letters_give_one_slug() -> None:
    text = "Чей это ёжик?"
    assert ids.slug(text) == ids.slug(unicodedata.normalize("NFD", text))


@pytest.mark.parametrize("words", ["how long does it last ", "返品の期限はいつ", "как долго", "क्या यह "])
def test_an_id_costs_no_more_than_reading_the_question(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Letters are counted, not seconds: a page as a question once took minutes."""
    page = words * 2000
    expected = ids.slug(page), room.test_id(page)
    looked_at = 0

    def width(letter: str) -> str:
        nonlocal looked_at
        looked_at += 1
        return unicodedata.east_asian_width(letter)

    monkeypatch.setattr(ids, "east_asian_width", width)
    assert (ids.slug(page), room.test_id(page)) == expected
    assert looked_at < 400


@pytest.mark.parametrize(
    ("question", "slug", "test_id"),
    [
        (
            "How long do I have to return a product that I bought on sale last December?",
            "How-long-do-I-have-to-return-a-98feea",
            "How-long-do-I-have-to-return-a-product-that-I-bought-on-sale-last-December",
        ),
        (
            "Сколько дней есть на возврат товара, купленного на распродаже в декабре?",
            "Сколько-дней-есть-на-возврат-8376e3",
            "Сколько-дней-есть-на-возврат-товара-купленного-на-распродаже-в-декабре",
        ),
        (
            "セールで買った商品は何日以内に返品できますか、レシートがない場合も教えてください。",
            "セールで買った商品は何日以内に返-9d45b3",
            "セールで買った商品は何日以内に返品できますか-レシートがない場合も教えてください",
        ),
        (
            "supercalifragilisticexpialidocious" * 3,
            "supercalifragilisticexpialidociou-ba51fc",
            "supercalifragilisticexpialidocioussupercalifragilisticexpialidocioussuper-ba51fc",
        ),
    ],
)
def test_ids_stay_what_they_were(question: str, slug: str, test_id: str) -> None:
    """Old reports and baselines pair questions by their ids."""
    assert (ids.slug(question), room.test_id(question)) == (slug, test_id)
