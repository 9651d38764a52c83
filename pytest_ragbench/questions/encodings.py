"""Bytes to text. A wrong guess would send mojibake to the judge, so encodings are suggested, never guessed."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

_MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Bytes that are looked at to suggest an encoding.
_SAMPLE = 20_000
_LETTERS = 3  # fewer say nothing about a script
# Common letters: text read in a wrong encoding has letters of the script, but hardly these.
_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fc]")
_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u3000-\u303f\uff01-\uff5e]")
_HANGUL = re.compile(r"[\uac00-\ud7a3\u3000-\u303f]")
_OFTEN_KOREAN = frozenset("이다는에의을를은가고하기지로서도한니까인나어사자대일해시요있습")
_HAN = re.compile(r"[\u3400-\u9fff\u3000-\u303f\uff01-\uff5e\u2014\u2018-\u201d\u2026]")
_OFTEN_CHINESE = frozenset(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可里后小么心多天而能好都然没日于起还发"
    "成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长什几天元免费货退款品期限保修"
    "這來國個說們為時會過對裡後麼沒於還發當開經頭從動兩長幾貨費無"
)
_COMMON_SHARE = 0.2
"""As many of all letters are common ones in text, at the least; read in a wrong encoding they are far fewer."""
_CYRILLIC = re.compile(r"[А-ЯЁ]?[а-яё]*|[А-ЯЁ]")
_CYRILLIC_CAPITALS = re.compile(r"[А-ЯЁ]{2,}")
_OFTEN_CYRILLIC = frozenset("оеаинтср")
_COMMON_CYRILLIC = 0.45
"""The eight commonest are 55 to 60 % of Russian letters, and about half of Ukrainian and Bulgarian ones."""
_ACCENTED = re.compile(r"[^\W\d_]*[a-z][^\W\d_]*")
_CLEAR, _AHEAD, _ENOUGH = 0.8, 0.4, 12
"""What a caller's encoding is refused by: so plausible is another, so far ahead of it, in so many bytes."""
_SEVEN_BIT = re.compile(rb"\x1b\$(?:[@B]|\)C)")
"""How mail encodings begin Japanese or Korean text: bytes that are ASCII all the same, and so UTF-8."""
_NARROWER = {
    "shift_jis": "cp932", "euc_kr": "cp949", "gbk": "gb18030", "gb2312": "gb18030", "cp950": "big5",
    "big5hkscs": "big5",
}  # fmt: skip


class WrongEncoding(Exception):
    """The bytes are not text in the encoding; ``line`` is the 1-based line of the first bad byte."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def marked(data: bytes) -> str | None:
    """The encoding that the byte order mark at the beginning of ``data`` stands for; None without one."""
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


def decode(data: bytes, encoding: str | None = None) -> str:
    """The text of ``data``: in ``encoding``, or as its byte order mark says, or in UTF-8.

    Raises
    ------
    WrongEncoding
        Naming the offset of the first bad byte and, where one seems likely, the encoding to give.
    """
    if encoding is None and (wide := _unmarked_utf16(data)):
        raise WrongEncoding(
            f"the encoding seems to be UTF-16 without a byte order mark: give encoding={wide!r}, "
            "or save the file as UTF-8",
            1,
        )
    if encoding is None and (escape := _SEVEN_BIT.search(data)) and data.isascii():
        name = "iso2022_kr" if escape[0].endswith(b"C") else "iso2022_jp"
        raise WrongEncoding(
            f"the encoding seems to be {name.replace('iso2022_', 'ISO-2022-').upper()}, by its escape sequences: "
            f"give encoding={name!r}, or save the file as UTF-8",
            data.count(b"\n", 0, escape.start()) + 1,
        )
    name = encoding or marked(data) or "utf-8"
    try:
        text = data.decode(name)
    except LookupError:
        raise WrongEncoding(
            f"unknown encoding {name!r}: give a name that Python knows, as 'cp1251'"
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WrongEncoding(
            f"the file is not in the encoding {name}: byte 0x{data[error.start]:02x} at offset {error.start} "
            f"({error.reason}). {_advice(data, error.start, encoding)}",
            line,
        ) from None
    except UnicodeError as error:  # "idna", "undefined": not encodings of files
        raise WrongEncoding(f"the file is not in the encoding {name}: {error}") from None
    if encoding is not None and (better := _clearly_better(data, encoding)):
        raise WrongEncoding(
            f"read as {name} the file has hardly a word; it looks like {better}: give encoding={better!r}"
        )
    return text.removeprefix("\ufeff")


def _clearly_better(data: bytes, encoding: str) -> str | None:
    """Another old encoding in which the text is words, where in the given one it is none."""
    given = codecs.lookup(encoding).name
    known = {codecs.lookup(name).name: name for name in _CANDIDATES} | _NARROWER
    head = _foreign_lines(data)
    # Unicode, and encodings of which nothing is known here, are taken as they are given.
    if given not in known or sum(byte > 0x7F for byte in head) < _ENOUGH:
        return None
    best, now = likely_encoding(data), _plausible(head, known[given])
    if best is None or best == known[given] or _plausible(head, best) < max(_CLEAR, now + _AHEAD):
        return None
    return best


def _unmarked_utf16(data: bytes) -> str | None:
    """UTF-16 without a mark shows by NULs in the first line, which text in other encodings never has."""
    if marked(data):
        return None
    end = data.find(b"\n")
    at = data.find(b"\0", 0, end + 2 if end >= 0 else _SAMPLE)  # one more byte: the other half of "\n"
    if at < 0:
        return None
    return "utf-16-le" if at % 2 else "utf-16-be"


def _advice(data: bytes, start: int, tried: str | None) -> str:
    # UTF-8 up to this byte can't be chance once it has letters outside ASCII.
    if tried is None and not data[:start].isascii():
        return "What stands before it is UTF-8, so this byte seems damaged"
    likely = likely_encoding(data)
    if likely and likely != tried:
        return f"It looks like {likely}: give encoding={likely!r}, or save the file as UTF-8"
    return "Give its encoding (encoding='cp1251', encoding='cp932' ...), or save the file as UTF-8"


def likely_encoding(data: bytes) -> str | None:
    """The old encoding whose reading has the most words of one script, None where none has half."""
    head = _foreign_lines(data)
    scores = {name: _plausible(head, name) for name in _CANDIDATES}
    best = max(_CANDIDATES, key=lambda name: scores[name])
    return best if scores[best] > 0.5 else None


def _foreign_lines(data: bytes) -> bytes:
    """Lines with bytes outside ASCII: a header, and many rows after it, may have none."""
    found = bytearray()
    # A line end is in none of these encodings the half of another character.
    for line in data.splitlines(keepends=True):
        if not line.isascii():
            found += line
        if len(found) >= _SAMPLE:
            break
    return bytes(found)


def _plausible(data: bytes, encoding: str) -> float:
    """The share of foreign letters or words that look like text when read in ``encoding``."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return 0.0
    return _CANDIDATES[encoding](text)


def _japanese(text: str) -> float:
    foreign = _foreign(text)
    kana = sum(_KANA.match(letter) is not None for letter in foreign)
    # Chinese and Korean bytes are kanji in a Japanese encoding, and hardly ever kana.
    return _share(_JAPANESE, foreign) * min(1.0, kana / (len(foreign) or 1) / _COMMON_SHARE)


def _korean(text: str) -> float:
    return _with_common(text, _HANGUL, _OFTEN_KOREAN)


def _chinese(text: str) -> float:
    # Kana have the same bytes in GB 2312 and EUC-JP.
    return 0.0 if _KANA.search(text) else _with_common(text, _HAN, _OFTEN_CHINESE)


def _with_common(text: str, script: re.Pattern[str], common: frozenset[str]) -> float:
    foreign = _foreign(text)
    often = sum(letter in common for letter in foreign)
    return _share(script, foreign) * min(1.0, often / (len(foreign) or 1) / _COMMON_SHARE)


def _foreign(text: str) -> list[str]:
    return [letter for letter in text if letter > "\x7f"]


def _share(script: re.Pattern[str], letters: list[str]) -> float:
    if len(letters) < _LETTERS:
        return 0.0
    return sum(script.match(letter) is not None for letter in letters) / len(letters)


def _cyrillic(text: str) -> float:
    # The code pages have the same letters in another order and case, so that words alone tell little.
    letters = [letter for letter in _foreign(text) if letter.isalpha()]
    often = sum(letter.casefold() in _OFTEN_CYRILLIC for letter in letters)
    words = max(_of_words(text, _CYRILLIC), 0.5 * _of_words(text, _CYRILLIC_CAPITALS))
    return words * min(1.0, often / (len(letters) or 1) / _COMMON_CYRILLIC)


def _western(text: str) -> float:
    return _of_words(text, _ACCENTED)


def _of_words(text: str, pattern: re.Pattern[str]) -> float:
    words = [word for word in re.findall(r"\S+", text) if not word.isascii()]
    parts = [part for word in words for part in re.findall(r"[^\W\d_]+", word) if not part.isascii()]
    good = sum(len(part) for part in parts if pattern.fullmatch(part))
    # Other characters, such as the box drawings of a wrong code page, count against the encoding.
    odd = sum(
        not letter.isalpha() and letter not in "«»—–…№“”„’°§"
        for word in words
        for letter in word
        if letter > "\x7f"
    )
    total = sum(map(len, parts)) + odd
    return good / total if total >= _LETTERS else 0.0


_CANDIDATES: dict[str, Callable[[str], float]] = {
    "cp932": _japanese,
    "euc_jp": _japanese,
    "cp949": _korean,
    "gb18030": _chinese,
    "big5": _chinese,
    "cp1251": _cyrillic,
    "koi8_r": _cyrillic,
    "cp866": _cyrillic,
    "cp1252": _western,
}
"""The encodings that exports in East Asia and Russia, and Western Excel, still have, and how to tell text in them."""
