"""Light stemming: enough to match the forms of one word, no dictionary.

NLTK (it comes with rouge-score) has Snowball stemmers, but importing it takes over a second; these
rules take none. Each language brings its steps of suffixes as data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import ClassVar

from pytest_ragbench.languages import catalog


@dataclass(frozen=True)
class Step:
    """One step of a stemmer: of several endings the first that fits is cut or exchanged."""

    cut: tuple[tuple[str, ...], ...] = ()
    """(pattern, what comes in its place)."""
    otherwise: tuple[Step, ...] = ()
    """Steps to take where no ending fits."""

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], str]]:
        return [(re.compile(pattern), place) for pattern, place in self.cut]

    def take(self, word: str) -> str:
        """The word without its ending."""
        # One ending a step: the order of the patterns is the language's.
        for pattern, place in self._patterns:
            shorter = pattern.sub(place, word, count=1)
            if shorter != word:
                return shorter
        return _taken(self.otherwise, word)


def _taken(steps: Sequence[Step], word: str) -> str:
    for step in steps:
        word = step.take(word)
    return word


@dataclass(frozen=True)
class StemRules:
    """``stems.toml``: how the forms of a word come to one stem."""

    topic: ClassVar[str] = "stems"

    words: str = ""
    """How a word of the language begins, as a pattern; words of no language stay as they are."""
    shortest: int = 0
    """Letters of the shortest word that is cut."""
    keep: str = ""
    """What is never cut, at the beginning; a word without it stays as it is."""
    irregular: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Base form to forms that no step would bring to it."""
    steps: tuple[Step, ...] = ()

    @cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(self.words)

    @cached_property
    def _keep(self) -> re.Pattern[str]:
        return re.compile(self.keep)

    @cached_property
    def _bases(self) -> Mapping[str, str]:
        return {form: base for base, forms in self.irregular.items() for form in forms}

    def knows(self, word: str) -> bool:
        """Whether the word is one of the language, as far as letters tell."""
        return bool(self.words) and self._words.match(word) is not None

    def stem(self, word: str) -> str:
        """The stem of a word that :meth:`knows` knows."""
        word = self._bases.get(word, word)
        # The beginning is kept, or short words would lose their root.
        head = self._keep.match(word)
        if head is None or len(word) < self.shortest:
            return word
        return head.group() + _taken(self.steps, word[head.end() :])


@lru_cache(maxsize=65536)
def stem(word: str, lang: str | None = None) -> str:
    """The stem of one casefolded word; a word in letters of no language with a stemmer comes back as it is.

    ``lang``: the language of the text it stands in; of languages in one script, that one's rules count.
    """
    for language in catalog().reading(lang):
        rules = language.rules(StemRules)
        if rules.knows(word):
            # Before the endings are cut, which are written with one of the two letters.
            for letter, other in language.script.same_letters.items():
                word = word.replace(letter, other)
            return rules.stem(word)
    return word
