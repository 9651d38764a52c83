"""Encodings are never guessed; what is suggested had better be right."""

from __future__ import annotations

import pytest

from pytest_ragbench.questions.encodings import WrongEncoding, decode, likely_encoding

RU = "вопрос;эталон\nКак оформить возврат товара?;За 7 дней\n"
JA = "質問,正解\n返品の期限はいつですか,7日以内です\n"
KO = "질문,정답\n반품 기한은 며칠입니까,7일 이내입니다\n"
ZH = "问题,答案\n退货的期限是多少天,七天以内可以退货\n"
TW = "問題,答案\n退貨的期限是多少天,七天以內可以退貨\n"
FR = "question,reference\nOù est le café de la gare ?,À côté du musée\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("text", [RU, JA, KO, ZH, FR])
def test_utf_with_its_mark(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RU, "cp1251"), (RU, "koi8_r"), (RU, "cp866"), (JA, "cp932"), (JA, "euc_jp"), (KO, "cp949"), (ZH, "gb18030"),
        (TW, "big5"), (FR, "cp1252"), (JA, "iso2022_jp"), (KO, "iso2022_kr"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ascii_rows", [0, 1, 3000])
def test_another_encoding_is_an_error_that_suggests_it(text: str, encoding: str, ascii_rows: int) -> None:
    """Also behind a header and rows of ASCII, which hide it."""
    text = "question,reference\n" * ascii_rows + text
    data = text.encode(encoding)
    with pytest.raises(WrongEncoding, match=f"encoding='{encoding}'"):
        decode(data)
    assert decode(data, encoding) == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("text", [RU, JA, KO, TW, FR, "question\nПочему?\n", "question,id\n" * 3000 + KO])
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


WRITTEN_AS = {
    "cp1251": RU, "koi8_r": RU, "cp866": RU, "cp932": JA, "euc_jp": JA, "cp949": KO, "gb18030": ZH, "big5": TW,
}  # fmt: skip


@pytest.mark.parametrize("written", WRITTEN_AS)
@pytest.mark.parametrize("given", [*WRITTEN_AS, "shift_jis", "euc_kr", "gbk"])
def test_a_wrong_encoding_of_the_caller_is_not_silent(written: str, given: str) -> None:
    text = WRITTEN_AS[written]
    try:
        found = decode(text.encode(written), given)
    except WrongEncoding:
        return
    assert found == text


def test_what_the_caller_says_is_believed_of_few_letters_and_of_rare_encodings() -> None:
    assert decode("q\nЁж\n".encode("cp1251"), "cp1251") == "q\nЁж\n"
    assert decode("q\nżółć\n".encode("cp1250"), "cp1250") == "q\nżółć\n"
    assert decode("q\n東京都新宿区西新宿二丁目八番一号\n".encode("cp932"), "cp932").endswith("一号\n")


def test_no_suggestion_without_evidence() -> None:
    assert likely_encoding(b"question\n\xff\n") is None
    assert likely_encoding(b"plain") is None


@pytest.mark.parametrize("encoding", ["idna", "undefined", "rot13", "no-such"])
def test_a_name_that_is_no_encoding_of_files(encoding: str) -> None:
    with pytest.raises(WrongEncoding, match=encoding):
        decode("вопрос".encode(), encoding)
