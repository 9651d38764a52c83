"""Which words say the same and which say a kind of what another says: a hedgehog is an animal.

The words are data of the languages (``kinds.toml``), made from WordNet and Wiktionary by
``benchmarks/kinds.py``; a change needs a new ``VERSION``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

from pytest_ragbench.judge.local.words import WordRules, words
from pytest_ragbench.languages import Language, catalog
from pytest_ragbench.text import fold, stem
from pytest_ragbench.text.stems import StemRules

_LONGEST = 12
"""Characters of the longest word that is looked for where no spaces stand between words."""


@dataclass(frozen=True)
class KindRules:
    """``kinds.toml``: a tree of words."""

    topic: ClassVar[str] = "kinds"

    tree: str = ""
    """A line holds words of one meaning. Lines that are indented by one space more, below it, are kinds of it."""


class Meaning(NamedTuple):
    """A line of a tree, and the lines below that are kinds of it."""

    lang: str
    line: int
    last: int


class Named(NamedTuple):
    """A word that has a meaning in the tree."""

    word: str
    share: float
    """Of the run of letters that it was found in, 0..1; 1 where words have spaces around them."""
    meanings: tuple[Meaning, ...]


class Lines:
    """The lines of the trees that a sentence has words of, so that kinds of a word are found quickly."""

    def __init__(self, named: Iterable[Named]) -> None:
        self._lines: dict[str, list[int]] = {}
        for each in named:
            for meaning in each.meanings:
                self._lines.setdefault(meaning.lang, []).append(meaning.line)
        for lines in self._lines.values():
            lines.sort()

    def has(self, named: Named, *, kinds: bool) -> bool:
        """Whether one of the words means what ``named`` does, or, with ``kinds``, a kind of it."""
        return any(self._between(each, each.last if kinds else each.line) for each in named.meanings)

    def _between(self, meaning: Meaning, last: int) -> bool:
        lines = self._lines.get(meaning.lang, [])
        place = bisect_left(lines, meaning.line)
        return place < len(lines) and lines[place] <= last


def is_kind(one: Named, other: Named, *, kinds: bool) -> bool:
    """Whether the second word means what the first does, or, with ``kinds``, a kind of it."""
    return any(
        mine.lang == theirs.lang and mine.line <= theirs.line <= (mine.last if kinds else mine.line)
        for mine in one.meanings
        for theirs in other.meanings
    )


def word_kinds(word: str, stemmed: str, lang: str | None) -> tuple[Named, ...]:
    """The meanings of a word with spaces around it, by its stem."""
    for language in catalog().reading(lang):
        if language.rules(StemRules).knows(word):
            meanings = _kinds(language).meanings.get(stemmed)
            return (Named(word, 1.0, meanings),) if meanings else ()
    return ()


def run_kinds(text: str, lang: str | None) -> list[tuple[int, int, tuple[Meaning, ...]]]:
    """(start, end, meanings) of words in writing without spaces; the longest that fits, from the left."""
    for language in catalog().reading(lang):
        if not language.script.spaced:
            return list(_kinds(language).found(text))
    return []


@cache
def _kinds(language: Language) -> _Kinds:
    return _Kinds(language)


class _Kinds:
    """The tree of one language, ready to be looked up."""

    def __init__(self, language: Language) -> None:
        self._letters = language.rules(WordRules)
        code, spaced = language.code, language.script.spaced
        clean = words(code).clean
        self.meanings: Mapping[str, tuple[Meaning, ...]]
        found: dict[str, list[Meaning]] = {}
        for line, meaning in _meanings(language.rules(KindRules).tree, code):
            for word in line:
                key = stem(fold(word, code), code) if spaced else self._uninflected(clean(word))
                if key:
                    found.setdefault(key, []).append(meaning)
        self.meanings = {word: tuple(dict.fromkeys(each)) for word, each in found.items()}

    def _uninflected(self, word: str) -> str:
        """A word of ideographs without the last letter, which changes with its form: 食べる as 食べ. Empty for short
        words in grammar letters alone, which would be found in the midst of other words.
        """
        grammar, ideographs = self._letters.grammar_letters, self._letters.ideographs
        if not re.search(f"[^{grammar}]", word):
            return word if len(word) > 3 else ""
        inflected = re.fullmatch(f"(.*[{ideographs}][{grammar}]*)[{grammar}]", word)
        return inflected.group(1) if inflected else word

    def found(self, text: str) -> Iterator[tuple[int, int, tuple[Meaning, ...]]]:
        position = 0
        while position < len(text):
            for end in range(min(position + _LONGEST, len(text)), position, -1):
                meanings = self.meanings.get(text[position:end])
                if meanings and self._stands_alone(text, position, end):
                    yield position, end, meanings
                    position = end - 1
                    break
            position += 1

    def _stands_alone(self, text: str, start: int, end: int) -> bool:
        """Not within a longer loan word; a single ideograph not within a run of them."""
        around = text[start - 1 : start] + text[end : end + 1]
        letters = self._letters.loan_letters
        if end - start == 1:
            letters += self._letters.ideographs
        elif not re.match(f"[{letters}]", text[start:end]):
            return True
        return re.search(f"[{letters}]", around) is None


def _meanings(tree: str, lang: str) -> Iterator[tuple[list[str], Meaning]]:
    """Each line's words and meaning, where the kinds of a line are the lines that follow it, indented further."""
    lines = tree.splitlines()
    depths = [len(line) - len(line.lstrip(" ")) for line in lines]
    last = list(range(len(lines)))
    open_lines: list[int] = []
    for number, depth in enumerate([*depths, 0]):
        while open_lines and depths[open_lines[-1]] >= depth:
            last[open_lines.pop()] = number - 1
        open_lines.append(number)
    for number, line in enumerate(lines):
        yield line.split(), Meaning(lang, number, last[number])
