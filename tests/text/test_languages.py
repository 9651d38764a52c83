from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_ragbench.languages import Catalog
from pytest_ragbench.text import (
    detect_language,
    fold,
    is_spaced,
    is_unspaced,
    language_to_read,
    languages,
    same_letters,
    stem,
)
from pytest_ragbench.text.identify import checked_code, is_in_language, is_surely, known_codes, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The warranty is two years.", "en"),
        ("Гарантия — два года, API v2.", "ru"),
        ("Гарантія діє два роки.", "uk"),
        ("保証は2年間です。", "ja"),
        ("保修期为两年。", "zh"),
        ("JSON APIを使います", "ja"),
        ("Die Garantie gilt für zwei Jahre und ist nicht übertragbar.", "und"),
        ("보증 기간은 2년입니다", "ko"),
        ("1234 !?", "und"),
        ("", "und"),
    ],
)
def test_language_by_script_and_small_words(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("abcde です", "und"),  # two wide letters are as much as four
        ("abc です", "ja"),
        ("ははは abcde", "ja"),
        ("漢字 かな", "ja"),  # Han beside kana
        ("漢字 かな русский язык", "ru"),
        ("ﾃｽﾄ", "ja"),
        ("ї", "uk"),
        ("и\u0308ї", "uk"),
        ("ค้นหา", "th"),
        ("1 2 3 — ...", "und"),
    ],
)
def test_the_script_with_most_letters_wins(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("cat dog fish bird tree", "en"),
        ("žlut cat dog fish bird", "en"),  # one word in five
        ("žlut čaj cat dog fish", "und"),
        ("the žlut čaj cat dog", "en"),  # and one for each small word of English
        ("the žlut čaj šum dog", "und"),
        ("der cat dog fish bird", "en"),
        ("der die cat dog fish", "und"),
        ("the der die cat dog", "en"),
    ],
)
def test_so_many_words_may_be_foreign(text: str, language: str) -> None:
    assert detect_language(text) == language


@pytest.fixture
def with_german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A catalog in which two languages share the Latin letters."""
    known = Catalog({"de": Path(__file__).parents[1] / "languages" / "german"})
    caches = (detect_language, languages._detector)
    monkeypatch.setattr(languages, "catalog", lambda: known)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Garantie gilt für zwei Jahre.", "de"),
        ("The warranty is two years.", "en"),
        ("Straße", "de"),  # a letter of its own
        ("cat dog fish bird tree", "en"),  # nothing tells: the first of them
        ("the die cat dog fish bird", "en"),
        ("die das cat the dog", "de"),
        ("größer als über", "de"),  # letters that English has not
        ("über dog fish bird", "de"),
        ("Гарантия — два года.", "ru"),
        ("los las del con", "und"),
    ],
)
@pytest.mark.usefixtures("with_german")
def test_of_languages_in_one_script_small_words_and_letters_tell(text: str, language: str) -> None:
    assert detect_language(text) == language
    assert language_to_read(text) == language


def test_letters_that_are_read_as_others() -> None:
    assert same_letters("Ёлка, ёж, Е\u0308") == "Елка, еж, Е"
    assert fold("Ёлка STRASSE") == "елка strasse"
    assert fold("Straße") == "strasse"


def test_spaces_between_words() -> None:
    assert [is_spaced(code) for code in ("en", "ru-RU", "ja", "zh", "xx")] == [
        True, True, False, False, True,
    ]  # fmt: skip
    assert [is_unspaced(letter) for letter in "あ漢アaж1"] == [True, True, True, False, False, False]


def test_while_no_two_languages_share_a_script_none_need_be_known() -> None:
    assert not Catalog().rivals
    assert language_to_read("Гарантия") is None


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        ("The warranty is two years.", "en", True),
        ("Гарантия — два года.", "en", False),
        ("Гарантия — два года.", "ru", True),
        ("保証", "ja", True),  # Han alone may be Japanese
        ("保証", "zh", True),
        ("保証です", "zh", False),
        ("Гарантія діє", "ru", False),
        ("保証", "ru", False),
        ("보증 기간", "ja", False),
    ],
)
def test_whether_a_text_is_in_a_language(text: str, code: str, found: bool) -> None:
    assert is_in_language(text, code) is found


def test_a_few_words_in_latin_letters_are_not_sure() -> None:
    assert [is_surely(text, "en") for text in ("API", "one two three", "one two three four")] == [
        False, False, True,
    ]  # fmt: skip
    assert is_surely("да", "ru")
    assert is_surely("ja", "xx")


def test_languages_that_need_no_library() -> None:
    assert known_codes()[:3] == ["en", "ru", "ja"]
    assert {"uk", "zh", "ko"} <= set(known_codes())
    assert "und" not in known_codes()
    assert [checked_code(code) for code in ("en", "uk")] == ["en", "uk"]


def test_a_language_that_the_library_knows() -> None:
    pytest.importorskip("py3langid")
    german = "Die Garantie gilt für zwei Jahre und ist nicht übertragbar."
    assert checked_code("de") == "de"
    assert is_in_language(german, "de")
    assert not is_in_language(german, "fr")
    assert (language_of(german), language_of("The price is low.")) == ("de", "en")
    with pytest.raises(ValueError, match="'qq' isn't the code of a known language; known: ace, af, am, "):
        checked_code("qq")


def test_without_the_library_only_what_script_and_small_words_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(ValueError, match=r"'de': .*py3langid.*; without it: en, ru, ja, "):
        checked_code("de")
    assert language_of("Die Garantie gilt für zwei Jahre und ist nicht übertragbar.") == "und"
    assert language_of("Гарантия") == "ru"


@pytest.mark.parametrize(
    "forms",
    [
        "refund refunds refunded refunding",
        "study studies studied",
        "rise rose risen",
        "stop stopped stopping",
        "cat cats",
        "ёлка елка ёлки",
        "договор договора договоры договором",
        "новая новой новую",
        "оплатил оплатила оплатили",
    ],
)
def test_forms_of_a_word_share_a_stem(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


def test_other_scripts_are_left_alone() -> None:
    assert stem("東京") == "東京"
    assert stem("x86") == "x86"
    assert [stem(word) for word in ("bus", "gas", "вдв")] == ["bus", "gas", "вдв"]
