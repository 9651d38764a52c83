"""Sentences of plain or Markdown text."""

# ruff: noqa: SIM905  (word lists read best as text)

from __future__ import annotations

import re

from pytest_ragbench.text.languages import detect_language, is_cjk

_MARKER = re.compile(
    r"[ \t\u3000]*(?:>[ \t]*)*(?:#{1,6}[ \t]+|[-*+•‣▪◦–—・●○■□◆※][ \t\u3000]+|[・●○■□◆※•‣▪◦]|"
    r"\(?\d{1,3}[.)）][ \t\u3000]+|\(?[a-zа-я][)）][ \t]+|[①-⑳][ \t\u3000]*)"
)
_RULE = re.compile(r"[ \t]*(?:[-=*_~|:+`][ \t]*){3,}$")
_CLOSERS = "\"'»”’)]）」』】〉》*_"
_STOP = re.compile(r"[.!?…。！？｡]+")
_WIDE_STOPS = "。！？｡"
# Never the end of a sentence, whatever follows.
_BEFORE_NAME = frozenset(
    (
        "mr mrs ms dr prof st sr jr rev gen col capt lt sgt hon gov sen rep vs fig figs eq eqs vol ch sec "
        "approx e.g i.e cf al ул просп пер пл им акад проф доц рис табл гл см ср напр т.е т.к т.н ст-ца "
        "г-н г-жа гр тов св обл р-н о-в пос дер корп кв стр"
    ).split()
)
# The end of a sentence only where a capital letter follows (it mostly does not).
_MAY_END = frozenset(
    (
        "etc inc ltd co corp no nos jan feb mar apr jun jul aug sep sept oct nov dec dept est ed eds p pp "
        "a.m p.m т.д т.п т.ч др пр г гг в вв н.э тыс млн млрд руб коп долл чел мин сек час кг км см мм "
        "тел стр д"
    ).split()
)
_NEED_NUMBER = frozenset(["г", "гг", "в", "вв", "д", "с", "р"])
_STARTERS = frozenset(
    (
        "the it he she they this these that those in on at we you there however but and for a an its "
        "their his her он она оно они это эти в на по мы вы но и а для его её их"
    ).split()
)
_LAST_WORD = re.compile(r"(?:[^\W\d_]\.[ \u00a0]?)*[^\W_]+(?:-[^\W_]+)?$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")


def sentences(text: str, lang: str | None = None) -> list[str]:
    """Sentences of ``text``: exact substrings, in order, without the white space around them.

    Knows 。！？ and quotations in 「」, Russian and English abbreviations and initials, decimals,
    list items and headings (their markers are left out), and lines: a line break ends a sentence
    unless the line is plainly wrapped (the next one goes on in lower case, or the line ends in a
    comma). ``lang`` is a language code as from :func:`detect_language`; by default it is detected.
    """
    language = lang or detect_language(text)
    # Chat text in lower case throughout gives no capitals to go by.
    caseless = not any(character.isupper() for character in text)
    found: list[str] = []
    for block in _blocks(text, cjk=language in ("ja", "zh")):
        found += _split(block, caseless=caseless)
    return found


def _blocks(text: str, *, cjk: bool) -> list[str]:
    """Paragraphs, list items and headings as substrings of ``text``, markers cut off."""
    blocks: list[str] = []
    start, end = 0, -1
    open_block = heading = False
    for line in re.finditer(r"[^\r\n\u2028\u2029]+|\r\n|[\r\n\u2028\u2029]", text):
        content = line.group()
        if content[0] in "\r\n\u2028\u2029":
            continue
        blank = not content.strip() or _RULE.match(content) is not None
        marker = _MARKER.match(content)
        gap = text[end : line.start()] if open_block else ""
        goes_on = (
            open_block
            and not blank
            and marker is None
            and not heading
            and len(re.findall(r"\r\n|[\r\n\u2028\u2029]", gap)) < 2
            and _wrapped(text[start:end], content, cjk=cjk)
        )
        if goes_on:
            end = line.end()
            continue
        if open_block:
            blocks.append(text[start:end])
        open_block = not blank
        start = line.start() + (marker.end() if marker else 0)
        end = line.end()
        heading = marker is not None and "#" in marker.group()
    if open_block:
        blocks.append(text[start:end])
    return blocks


def _wrapped(before: str, after: str, *, cjk: bool) -> bool:
    last, first = before.rstrip()[-1:], after.lstrip()[:1]
    if last in ",、，;-–(（「":
        return True
    if last in ".!?…。！？:：":
        return False
    return first.islower() or (not cjk and last.islower() and first.isdigit())


def _split(block: str, *, caseless: bool) -> list[str]:
    found: list[str] = []
    start = 0
    quoted = _quoted(block)
    for stop in _STOP.finditer(block):
        if stop.start() < start or any(low < stop.start() < high for low, high in quoted):
            continue
        end = stop.end()
        while end < len(block) and block[end] in _CLOSERS:
            end += 1
        if _ends(block, stop, end, start, caseless=caseless):
            found.append(block[start:end])
            start = end
    found.append(block[start:])
    stripped = [sentence.strip() for sentence in found]
    return [sentence for sentence in stripped if any(c.isalnum() for c in sentence)]


def _quoted(block: str) -> list[tuple[int, int]]:
    """Spans in Japanese quotation marks or brackets; a full stop inside does not end the sentence."""
    return [match.span() for match in re.finditer(r"「[^「」]*」|『[^『』]*』|（[^（）]*）", block)]


def _ends(block: str, stop: re.Match[str], end: int, start: int, *, caseless: bool) -> bool:
    mark, before = stop.group(), block[start : stop.start()]
    following = block[end:]
    if any(wide in mark for wide in _WIDE_STOPS):
        return not re.match("[とって]", following) or end == stop.end()
    if not following:
        return True
    if not following[0].isspace():
        # "本当?はい": no space needed after a Japanese letter; "v1.2", "example.com" go on.
        return mark[0] in "!?" and bool(before) and is_cjk(before[-1])
    following = following.lstrip().lstrip("\"'«“‘([（「『*_")
    first = following[:1]
    if first.islower() and not caseless:
        return False
    # "1. Open the menu. 2. Choose": the number of an item in running text ends nothing.
    item = re.search(r"(?:^|[.!?:;…][\s\"'»”)]+)\d{1,2}$", block[max(0, stop.start() - 12) : stop.start()])
    return mark != "." or (item is None and not _abbreviation(before, following))


def _abbreviation(before: str, following: str) -> bool:
    before = before[-60:]
    match = _LAST_WORD.search(before)
    if match is None:
        return False
    word = re.sub(r"[ \u00a0]", "", match.group()).casefold()
    capital = following[:1].isupper()
    next_word = _NEXT_WORD.match(following)
    starter = next_word is not None and next_word.group().casefold() in _STARTERS
    if word in _BEFORE_NAME:
        return True
    if word in _MAY_END:
        if word in _NEED_NUMBER and not re.search(r"[\dIVXLC][ \u00a0]?$", before[: match.start()]):
            return True
        return not capital
    letters = word.split(".")
    if all(len(part) == 1 and part.isalpha() for part in letters):
        # "U.S. The law" ends, "U.S. Army", "A. Smith" and "vitamin C. It" are told by the next word.
        return not starter
    return False
