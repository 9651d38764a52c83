"""Bytes to text. A wrong guess would send mojibake to the judge, so encodings are suggested, never guessed."""

from __future__ import annotations

import codecs
import re

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
# The encodings that exports in Japanese and Russian, and Western Excel, still have.
_CANDIDATES = ("cp932", "euc_jp", "cp1251", "koi8_r", "cp866", "cp1252")
_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u3000-\u303f\uff01-\uff5e]+")
_CYRILLIC = re.compile(r"[А-ЯЁ]?[а-яё]*|[А-ЯЁ]+")
_ACCENTED = re.compile(r"[^\W\d_]*[a-z][^\W\d_]*")


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
    return text.removeprefix("\ufeff")


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
    # Cut after a line, so that no multi-byte character is split.
    head = data if len(data) <= _SAMPLE else data[: data.rfind(b"\n", 0, _SAMPLE) + 1] or data
    scores = {name: _plausible(head, name) for name in _CANDIDATES}
    best = max(_CANDIDATES, key=lambda name: scores[name])
    return best if scores[best] > 0.5 else None


def _plausible(data: bytes, encoding: str) -> float:
    """The share of foreign words that look like words when read in ``encoding``."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return 0.0
    words = [word for word in re.findall(r"\S+", text) if not word.isascii()]
    if encoding in ("cp932", "euc_jp"):
        foreign = [letter for word in words for letter in word if not letter.isascii()]
        good = sum(bool(_JAPANESE.fullmatch(letter)) for letter in foreign)
        return good / len(foreign) if len(foreign) >= _LETTERS else 0.0
    pattern = _ACCENTED if encoding == "cp1252" else _CYRILLIC
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
