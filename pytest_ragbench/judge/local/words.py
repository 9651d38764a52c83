"""The small words of a sentence, by the rules of its languages, and how it is cut into words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import ClassVar

from pytest_ragbench.languages import catalog, rules
from pytest_ragbench.text import detect_language, is_unspaced, stem

_LIFE = re.compile(r"\(([^()]*?\d{3,4}[^()]*?)\s*[-–—~〜]\s*([^()]*?\d{3,4}[^()]*?)\)")
_BORN_AND_DIED = 2


@dataclass(frozen=True)
class WordRules:
    """``words.toml``: words that carry grammar, and how words are told apart. Forms are casefolded."""

    topic: ClassVar[str] = "words"

    stop: frozenset[str] = frozenset()
    """Words without content."""
    negations: frozenset[str] = frozenset()
    negative_endings: tuple[str, ...] = ()
    """Endings that deny: ``n't``."""
    denials: frozenset[str] = frozenset()
    """Words that deny what they are said of: forbidden, excluded, impossible."""
    denial_pieces: tuple[str, ...] = ()
    """The same where no spaces stand between words."""
    without: frozenset[str] = frozenset()
    """Those of ``negations`` that say that something is lacking."""
    only: tuple[str, ...] = ()
    """Words after which a negation denies nothing: "not only"."""
    negative_prefixes: tuple[str, ...] = ()
    """What turns a word into its opposite: ``un``, 不."""
    prepositions: frozenset[str] = frozenset()
    joins: frozenset[str] = frozenset()
    """Words that begin a clause."""
    turns: frozenset[str] = frozenset()
    """Those of ``joins`` after which a denial is over."""
    articles: frozenset[str] = frozenset()
    clitics: tuple[str, ...] = ()
    """What belongs to the word before it, behind an apostrophe: ``s``, ``ll``."""
    life_dates: tuple[str, ...] = ()
    """What is said of the two dates in brackets behind a name: born, died."""
    footnotes: tuple[str, ...] = ()
    """Words before the number of a footnote: ``[note 1]``."""
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """One spelling of a word, to the others, as they are written."""

    # Writing without spaces: a run of letters is cut by the kind of its characters.
    ideographs: str = ""
    """Characters of content words, as a character class."""
    loan_letters: str = ""
    """Letters of loan words and names."""
    grammar_letters: str = ""
    """Letters of endings, particles and some words."""
    separators: str = ""
    """Characters that no word with spaces around it has."""
    grammar: frozenset[str] = frozenset()
    """What grammar letters say without content; the longest that fits is taken off."""
    time_words: tuple[str, ...] = ()
    """Words that run into the next one."""
    generic: frozenset[str] = frozenset()
    """Runs of ideographs that carry little."""
    particles: tuple[str, ...] = ()
    """At the beginning of a run of grammar letters; the first that fits."""
    same_particles: Mapping[str, str] = field(default_factory=dict)
    """Particles that count as another."""
    subject: str = ""
    """The particle of the subject."""
    negative_tails: tuple[str, ...] = ()
    """Patterns of endings that deny the word before them."""
    not_negative: tuple[str, ...] = ()
    """Patterns of what only looks so."""


@cache
def words(lang: str | None) -> Words:
    """The words of the languages by which text in ``lang`` is read."""
    return Words(rules(WordRules, lang), lang)


class Words:
    """Word rules, ready to be looked up."""

    def __init__(self, rules: WordRules, lang: str | None = None) -> None:
        self.rules = rules
        self._denials = frozenset(stem(word, lang) for word in rules.denials)
        self.pieces = _pieces(rules)
        longest_first = sorted(rules.grammar, key=len, reverse=True)
        self._grammar = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self._footnote = re.compile(rf"\[(?:(?:{_any(rules.footnotes)}) ?)?\d{{1,3}}\]")
        self._detached = re.compile(rf" ({_any(rules.negative_endings)})\b")
        self._spelling = {form: word for word, forms in rules.spellings.items() for form in forms}
        self._spelling_letters = frozenset(form[0] for form in self._spelling)
        self._spelt = re.compile("|".join(self._alone(form) for form in _longest(self._spelling)) or "(?!)")
        self._ideograph = re.compile(f"[{rules.ideographs}]" if rules.ideographs else "(?!)")
        self._negative_tail = re.compile("|".join(rules.negative_tails) or "(?!)")
        self._not_negative = re.compile("|".join(rules.not_negative) or "(?!)")
        self.words_in_grammar = lru_cache(maxsize=8192)(self._words_in_grammar)

    def _alone(self, form: str) -> str:
        """A pattern for the form; one in loan letters must not be part of a longer run of them."""
        letters = self.rules.loan_letters
        if letters and re.match(f"[{letters}]", form):
            return rf"(?<![{letters}]){form}(?![{letters}])"
        return re.escape(form)

    def clean(self, text: str) -> str:
        """NFKC without footnote marks, Markdown emphasis and variants of spelling."""
        text = unicodedata.normalize("NFKC", self._footnote.sub("", text)).replace("’", "'")
        if not self._spelling_letters.isdisjoint(text):  # the pattern is slow
            text = self._spelt.sub(lambda match: self._spelling[match.group()], text)
        return re.sub(r"\*\*|__|`", "", self._detached.sub(r"\1", text))

    def has_ideographs(self, text: str) -> bool:
        return self._ideograph.search(text) is not None

    def denies(self, word: str) -> bool:
        """Whether the word denies what follows it."""
        return word in self.rules.negations or word.endswith(self.rules.negative_endings)

    def denial(self, folded: str, keys: frozenset[str]) -> bool:
        """Whether a sentence, by its text and stems, says that something is forbidden, excluded or impossible."""
        return not self._denials.isdisjoint(keys) or any(
            piece in folded for piece in self.rules.denial_pieces
        )

    def bare(self, word: str) -> str:
        """The word without what hangs on it by an apostrophe."""
        for ending in self.rules.negative_endings:
            if word.endswith(ending):
                return word.removesuffix(ending)
        return re.sub(r"'\w+$", "", word)

    def denies_before(self, tail: str, around: str) -> bool:
        """Whether a run of grammar letters denies the word before it; ``around``: with a letter on each side."""
        return self._negative_tail.search(tail) is not None and self._not_negative.search(around) is None

    def particle(self, tail: str) -> str:
        """The case particle that a run of grammar letters begins with; topic and subject are one."""
        found = next((each for each in self.rules.particles if tail.startswith(each)), "")
        return self.rules.same_particles.get(found, found)

    def _words_in_grammar(self, run: str) -> tuple[str, ...]:
        """What is left of a run of grammar letters once grammar is taken off: words of two letters and more."""
        found: list[str] = []
        pending = ""
        position = 0
        while position < len(run):
            grammar = self._grammar.match(run, position)
            if grammar is not None and (len(grammar.group()) > 1 or not pending):
                if len(pending) >= 2:
                    found.append(pending)
                pending = ""
                position = grammar.end()
            else:
                pending += run[position]
                position += 1
        if len(pending) >= 2:
            found.append(pending)
        return tuple(found)


def with_life_dates(text: str) -> str:
    """Cleaned text; two dates in brackets behind a name get the words for what they are: born, died."""
    if _LIFE.search(text) is None:
        return text
    language = catalog().get(detect_language(text))
    said = language.rules(WordRules).life_dates if language is not None else ()
    if len(said) != _BORN_AND_DIED:
        return text
    born, died = said

    def named(match: re.Match[str]) -> str:
        first, last = match.group(1).strip(), match.group(2).strip()
        # A verb stands behind its date where no spaces stand between words.
        return f"({first}{born}{last}{died})" if is_unspaced(born[0]) else f"({born} {first}, {died} {last})"

    return _LIFE.sub(named, text)


def _pieces(rules: WordRules) -> re.Pattern[str]:
    """What a sentence is made of; the name of the group tells its kind."""
    runs = [
        f"(?P<{name}>[{letters}]+)|"
        for name, letters in (
            ("ideographs", rules.ideographs),
            ("loanword", rules.loan_letters),
            ("grammar", rules.grammar_letters),
        )
        if letters
    ]
    clitic = rf"(?:['’](?:{_any(rules.clitics)})\b)?"
    return re.compile(
        "".join(runs)
        + rf"(?P<word>[^\W_{rules.separators}]+{clitic})"
        + r"|(?P<mark>[,;:.!?()—–、。・「」«»\"])"
    )


def _any(words: tuple[str, ...]) -> str:
    """A pattern for one of the words; for none of them, one that never matches."""
    return "|".join(re.escape(word) for word in words) or "(?!)"


def _longest(words: Mapping[str, str]) -> list[str]:
    return sorted(words, key=len, reverse=True)
