"""Sentences of plain or Markdown text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pytest_ragbench.languages import catalog, rules
from pytest_ragbench.text import stops
from pytest_ragbench.text.languages import detect_language, is_spaced, is_unspaced

_RULE = re.compile(r"[ \t]*(?:[-=*_~|:+`][ \t]*){3,}$")
_CLOSERS = "\"'»”’“«›)]）」』】〉》*_\ufe0f"
# French quotations end after a space: « Il est parti. »
_SPACED_CLOSER = re.compile(r"[ \u00a0\u202f]»")
# Wide and Urdu full stops stand in numbers, too: ３．５, ۳۔۵.
_DECIMAL_SIGNS = "\uff0e\u06d4"
# "1. Open the menu. 2. Choose": the number of an item in running text ends nothing.
_ITEM = re.compile(r"(?:^|[.!?:;…][\s\"'»”)]+)\d{1,2}$")
_SYLLABLE = re.compile(r"(?<!\w)[^\W\d_\u0000-\u058f]\u02bc*[^\W\d_\u0000-\u058f]?\u02bc*$")
_NEXT_WORD = re.compile(r"[^\W\d_]+")
_LAST_WORD = re.compile(r"(?:[^\W\d_]\.[ \u00a0]?)*[^\W_]+(?:-[^\W_]+)?$")


@dataclass(frozen=True)
class SentenceRules:
    """``sentences.toml``: what ends a sentence, and what looks as if it did."""

    topic: ClassVar[str] = "sentences"

    ends: frozenset[str] = frozenset()
    """Marks that end a sentence before a space: ``.``, ``!``."""
    ends_at_once: frozenset[str] = frozenset()
    """Marks that end a sentence whatever follows: ``。``."""
    quotes: tuple[str, ...] = ()
    """Pairs of marks in which a sentence's end ends nothing: ``「」``."""
    after_quote: frozenset[str] = frozenset()
    """Letters with which a sentence goes on after a closed quotation."""
    before_name: frozenset[str] = frozenset()
    """Abbreviations that are never the end of a sentence, whatever follows, without their last full stop."""
    may_end: frozenset[str] = frozenset()
    """Abbreviations that end a sentence only where a capital letter follows (it mostly does not)."""
    after_number: frozenset[str] = frozenset()
    """Those of ``may_end`` that are abbreviations after a number only, and otherwise never an end."""
    starters: frozenset[str] = frozenset()
    """Words that begin a sentence: after "U.S." they tell that it ended."""
    list_letters: tuple[str, ...] = ()
    """Letters that number the items of a list, as character classes: ``a-z``."""

    @cached_property
    def stop(self) -> re.Pattern[str]:
        """A run of marks that may end a sentence."""
        marks = "".join(sorted(self.ends | self.ends_at_once))
        return re.compile(f"[{re.escape(marks)}{stops.AT_ONCE}{stops.BEFORE_SPACE}]+|{stops.PAIRED}")

    @cached_property
    def at_once(self) -> re.Pattern[str]:
        """A mark that ends a sentence whatever follows."""
        return re.compile(f"[{re.escape(''.join(sorted(self.ends_at_once)))}{stops.AT_ONCE}]")

    @cached_property
    def quoted(self) -> re.Pattern[str] | None:
        """A quotation or bracket in which nothing ends."""
        pairs = [f"{re.escape(q[0])}[^{re.escape(q)}]*{re.escape(q[1])}" for q in self.quotes]
        return re.compile("|".join(pairs)) if pairs else None

    @cached_property
    def marker(self) -> re.Pattern[str]:
        """What stands before a heading, an item of a list, a quoted line."""
        letters = "".join(self.list_letters)
        lettered = rf"\(?[{letters}][)）][ \t]+|" if letters else ""
        return re.compile(
            r"[ \t\u3000]*(?:>[ \t]*)*(?:#{1,6}[ \t]+|[-*+•‣▪◦–—・●○■□◆※][ \t\u3000]+|[・●○■□◆※•‣▪◦]|"
            rf"\(?\d{{1,3}}[.)）][ \t\u3000]+|{lettered}[①-⑳][ \t\u3000]*)"
        )


def sentences(text: str, lang: str | None = None) -> list[str]:
    """Sentences of ``text``: exact substrings, in order, without the white space around them.

    By the rules of the language and of those in other scripts: marks that end a sentence, quotations,
    abbreviations and initials; in all further scripts by Unicode's marks (:mod:`pytest_ragbench.text.stops`), and
    by spaces where the script has no marks. Beside them decimals, list items and headings (their markers are left
    out), and lines: a line break ends a sentence unless the line is plainly wrapped (the next one goes on in lower
    case, or the line ends in a comma). ``lang`` is a language code as from :func:`detect_language`; by default it
    is detected.
    """
    language = lang or detect_language(text)
    given = rules(SentenceRules, language)
    # Chat text in lower case throughout gives no capitals to go by.
    caseless = not any(character.isupper() for character in text)
    found: list[str] = []
    for block in _blocks(text, given, spaced=is_spaced(language)):
        for sentence in _split(block, given, caseless=caseless):
            found += stops.at_spaces(sentence, catalog().others.joiners)
    return found


def _blocks(text: str, rules: SentenceRules, *, spaced: bool) -> list[str]:
    """Paragraphs, list items and headings as substrings of ``text``, markers cut off."""
    blocks: list[str] = []
    start, end = 0, -1
    open_block = heading = False
    for line in re.finditer(r"[^\r\n\u2028\u2029]+|\r\n|[\r\n\u2028\u2029]", text):
        content = line.group()
        if content[0] in "\r\n\u2028\u2029":
            continue
        blank = not content.strip() or _RULE.match(content) is not None
        marker = rules.marker.match(content)
        gap = text[end : line.start()] if open_block else ""
        goes_on = (
            open_block
            and not blank
            and marker is None
            and not heading
            and len(re.findall(r"\r\n|[\r\n\u2028\u2029]", gap)) < 2
            and _wrapped(text[start:end], content, rules, spaced=spaced)
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


def _wrapped(before: str, after: str, rules: SentenceRules, *, spaced: bool) -> bool:
    """Whether the line ``after`` goes on with the sentence of the lines ``before``."""
    last, first = before.rstrip()[-1:], after.lstrip()[:1]
    if last in ",、，;-–(（「":
        return True
    if last in ":：" or rules.stop.fullmatch(last):
        return False
    return _is_small(first) or (spaced and _is_small(last) and first.isdigit())


def _is_small(letter: str) -> bool:
    """Whether it is a letter that would be a capital at the beginning of a sentence: not so in Georgian."""
    return letter.islower() and letter.title() != letter


def _split(block: str, rules: SentenceRules, *, caseless: bool) -> list[str]:
    found: list[str] = []
    start = 0
    quoted = [match.span() for match in rules.quoted.finditer(block)] if rules.quoted else []
    for stop in rules.stop.finditer(block):
        if any(low < stop.start() < high for low, high in quoted):
            continue
        end = stop.end()
        while end < len(block) and block[end] in _CLOSERS:
            end += 1
        if spaced_closer := _SPACED_CLOSER.match(block, end):
            end = spaced_closer.end()
        before, following = block[start : stop.start()], block[end:]
        # After a quotation the sentence may go on: 「...。」と言った。
        if rules.at_once.search(stop.group()):
            decimal = stop.group() in _DECIMAL_SIGNS and before[-1:].isdigit() and following[:1].isdigit()
            ended = not decimal and (end == stop.end() or following[:1] not in rules.after_quote)
        elif stop.group() == "." and _ITEM.search(block[max(0, stop.start() - 12) : stop.start()]):
            ended = not following
        else:
            ended = _ends(before, stop.group(), following, rules, caseless=caseless)
            # डॉ. शर्मा: where sentences end in a mark of the script's own, a full stop after a syllable shortens it.
            if ended and following and stop.group() == "." and _SYLLABLE.search(_lettered(before)):
                ended = rules.at_once.search(block) is None
        if ended:
            found.append(block[start:end])
            start = end
    found.append(block[start:])
    # Rulers and rows of dots aren't sentences.
    stripped = [sentence.strip() for sentence in found]
    return [sentence for sentence in stripped if any(c.isalnum() for c in sentence)]


def _ends(before: str, mark: str, following: str, rules: SentenceRules, *, caseless: bool) -> bool:
    """Whether ``mark`` ends the sentence that has ``before`` so far; quotation marks after it belong to it."""
    if not following:
        return True
    if not following[0].isspace():
        # "本当?はい": no space needed after a Japanese letter; "v1.2", "example.com" go on.
        return mark[0] in "!?" and bool(before) and is_unspaced(before[-1])
    following = following.lstrip().lstrip("\"'«“‘([（「『*_")
    if _is_small(following[:1]) and not caseless:
        return False
    return mark != "." or not _abbreviation(before, following, rules)


def _lettered(text: str) -> str:
    """The end of ``text`` with a letter in place of each vowel sign and accent, which ``re`` takes for no letter."""
    return re.sub(r"[^\w\s]", _letter_for, text[-60:])


def _letter_for(mark: re.Match[str]) -> str:
    return "\u02bc" if unicodedata.category(mark[0]).startswith("M") else mark[0]


def _abbreviation(before: str, following: str, rules: SentenceRules) -> bool:
    """Whether the last word of ``before`` is an abbreviation that ends no sentence."""
    before = _lettered(before)
    match = _LAST_WORD.search(before)
    if match is None:
        return False
    word = re.sub(r"[ \u00a0]", "", match.group()).casefold()
    if word in rules.before_name:
        return True
    if word in rules.may_end:
        if word in rules.after_number and not re.search(r"[\dIVXLC][ \u00a0]?$", before[: match.start()]):
            return True
        return not following[:1].isupper()
    if all(len(part) == 1 and part.isalpha() for part in word.split(".")):
        # "U.S. The law" ends, "U.S. Army", "A. Smith" and "vitamin C. It" are told by the next word.
        next_word = _NEXT_WORD.match(following)
        return next_word is None or next_word.group().casefold() not in rules.starters
    return False
