import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.text import sentences


@given(st.text(max_size=120))
def test_sentences_are_substrings_in_order(text: str) -> None:
    position = 0
    for sentence in sentences(text):
        assert sentence == sentence.strip()
        position = text.index(sentence, position) + len(sentence)


@given(st.text("abcАБ вт.東。！? \n-1г", max_size=60))
def test_no_letter_is_lost(text: str) -> None:
    kept = sum(character.isalpha() for sentence in sentences(text) for character in sentence)
    markers = text.count("б)") + text.count("a)")
    assert kept + markers >= sum(character.isalpha() for character in text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith paid 3.5 dollars. He left.", ["Dr. Smith paid 3.5 dollars.", "He left."]),
        ("Use e.g. Python. See Fig. 2 for more.", ["Use e.g. Python.", "See Fig. 2 for more."]),
        ("She lives in the U.S. She likes it.", ["She lives in the U.S.", "She likes it."]),
        ("The U.S. Army came.", ["The U.S. Army came."]),
        ("J. R. R. Tolkien wrote it. Read it!", ["J. R. R. Tolkien wrote it.", "Read it!"]),
        ("it works. it is fast.", ["it works.", "it is fast."]),
        (
            "Родился в 1991 г. в г. Москве. Жил на ул. Мира.",
            ["Родился в 1991 г. в г. Москве.", "Жил на ул. Мира."],
        ),
        ("Ручки, книги и т. д. Всё есть.", ["Ручки, книги и т. д.", "Всё есть."]),
        ("А. С. Пушкин умер в 1837 г. Ему было 37 лет.", ["А. С. Пушкин умер в 1837 г.", "Ему было 37 лет."]),
        ("Цена 5 тыс. руб. за штуку, т.е. дорого.", ["Цена 5 тыс. руб. за штуку, т.е. дорого."]),
        ("本当？はい。そうです！", ["本当？", "はい。", "そうです！"]),
        ("「行こう。今。」と彼は言った。次の文。", ["「行こう。今。」と彼は言った。", "次の文。"]),
        ("値は3.14です。終わり", ["値は3.14です。", "終わり"]),
    ],
)
def test_abbreviations_initials_decimals_and_quotations(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_markdown_items_and_headings_lose_their_markers() -> None:
    text = "## Setup\n\n- install it\n* run it\n1. First step\n2) Second step\n\n---\nDone."
    expected = ["Setup", "install it", "run it", "First step", "Second step", "Done."]
    assert sentences(text) == expected


def test_a_wrapped_line_goes_on_and_a_new_one_does_not() -> None:
    assert sentences("The lamp is\nred and large\nIt hums") == ["The lamp is\nred and large", "It hums"]


def test_blank_text_has_no_sentence() -> None:
    assert sentences(" \n\t") == []
    assert sentences("...") == []
