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
        ("値は３．１４です。終わり", ["値は３．１４です。", "終わり"]),
        ("本当?はい", ["本当?", "はい"]),
        ("API本?はい", ["API本?", "はい"]),
        ("本API?はい", ["本API?はい"]),
        ("Really?yes", ["Really?yes"]),
        ("Pens, books etc. The rest is mine.", ["Pens, books etc.", "The rest is mine."]),
        ("Read U.S. 5 first.", ["Read U.S. 5 first."]),
        ("v1.2 is out. Get it.", ["v1.2 is out.", "Get it."]),
        ("He said (yes.) Then left.", ["He said (yes.)", "Then left."]),
        ("It ends.** Next one.", ["It ends.**", "Next one."]),
        ("Stop... Then go.", ["Stop...", "Then go."]),
        ("He asked: why? and left.", ["He asked: why? and left."]),
        ("Open the menu. 2. Choose it. 3. Save.", ["Open the menu.", "2. Choose it.", "3. Save."]),
        ("Open. 2. Choose it.", ["Open.", "2. Choose it."]),
        ("Take 2. Then go.", ["Take 2.", "Then go."]),
        ("See p. 5 of it. It is no. 7.", ["See p. 5 of it.", "It is no. 7."]),
        ("Take vitamin C. It helps.", ["Take vitamin C.", "It helps."]),
        ("Жил в XIX в. В Москве.", ["Жил в XIX в.", "В Москве."]),
        ("Весил 5 г. мяса. Купил.", ["Весил 5 г. мяса.", "Купил."]),
        ("Да. нет.", ["Да. нет."]),
        ("da. net.", ["da.", "net."]),
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


@pytest.mark.parametrize(
    "text",
    [
        "one\r\ntwo",
        "The lamp is\u2028red.",
        "See the list,\nWhich is long.",
        "The price (\nIn euros) is 5.",
        "It costs\n5 euros.",
    ],
)
def test_a_sentence_over_two_lines(text: str) -> None:
    assert sentences(text) == [text.strip()]


@pytest.mark.parametrize(
    "lines",
    [
        ["It hums.", "red lamp"],
        ["Colours:", "red"],
        ["USB", "5 ports"],
        ["設定は abc", "5 回"],
        ["Done (see below).", "5 more"],
        ["It costs 5", "6 left"],
    ],
)
def test_each_line_a_sentence(lines: list[str]) -> None:
    assert sentences("\n".join(lines)) == lines
    assert sentences("\r\n".join(lines)) == lines


@pytest.mark.parametrize("between", ["\n\n", "\n \n", "\r\n\r\n", "\n---\n", "\u2029\u2029", "\n# ", "\n- "])
def test_a_paragraph_ends_where_no_line_would(between: str) -> None:
    assert sentences(f"the lamp, {between}red") == ["the lamp,", "red"]


def test_a_heading_is_no_beginning_of_the_line_below() -> None:
    assert sentences("# Setup\ninstall it\n- one,\ntwo") == ["Setup", "install it", "one,\ntwo"]
    assert sentences("(a) one\n(b) two\nc) three\n12. four\n① five") == [
        "one", "two", "three", "four", "five",
    ]  # fmt: skip


def test_blank_text_has_no_sentence() -> None:
    assert sentences(" \n\t") == []
    assert sentences("...") == []
