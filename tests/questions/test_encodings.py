"""Encodings are never guessed; what is suggested had better be right."""

from __future__ import annotations

import pytest

from pytest_ragbench.questions.encodings import WrongEncoding, decode, likely_encoding

RU = "вопрос;эталон\nКак оформить возврат товара?;За 7 дней\n"
JA = "質問,正解\n返品の期限はいつですか,7日以内です\n"
FR = "question,reference\nOù est le café de la gare ?,À côté du musée\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", [RU, JA, FR])
def test_utf_with_its_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [(RU, "cp1251"), (RU, "koi8_r"), (RU, "cp866"), (JA, "cp932"), (JA, "euc_jp"), (FR, "cp1252")],
)
def test_another_encoding_is_an_error_that_suggests_it(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    with pytest.raises(WrongEncoding, match=f"encoding='{encoding}'"):
        decode(data)
    assert decode(data, encoding) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [RU, JA, FR, "question\nПочему?\n"])
def test_utf_16_without_its_mark(text: str, encoding: str) -> None:
    with pytest.raises(WrongEncoding, match=f"encoding='{encoding}'"):
        decode(text.encode(encoding))
    assert decode(text.encode(encoding), encoding) == text


def test_one_damaged_byte_in_utf_8_gets_no_wrong_advice() -> None:
    data = "вопрос\nКак?\nГд".encode() + b"\xd0\n"
    with pytest.raises(WrongEncoding, match="damaged") as caught:
        decode(data)
    assert caught.value.line == 3
    assert "offset" in str(caught.value)


def test_unknown_and_wrong_encodings_of_the_caller() -> None:
    with pytest.raises(WrongEncoding, match="unknown encoding 'cp12510'"):
        decode(b"question", "cp12510")
    with pytest.raises(WrongEncoding, match="not in the encoding cp932"):
        decode(RU.encode(), "cp932")


def test_no_suggestion_without_evidence() -> None:
    assert likely_encoding(b"question\n\xff\n") is None
    assert likely_encoding(b"plain") is None


@pytest.mark.parametrize("encoding", ["idna", "undefined", "rot13", "no-such"])
def test_a_name_that_is_no_encoding_of_files(encoding: str) -> None:
    with pytest.raises(WrongEncoding, match=encoding):
        decode("вопрос".encode(), encoding)
