"""What a sentence says, as far as words show it: terms with weights, polarity and neighbours."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pytest_ragbench.judge.local.contrasts import contrasts
from pytest_ragbench.judge.local.kinds import Lines, Meaning, Named, run_kinds, word_kinds
from pytest_ragbench.judge.local.numbers import numbers
from pytest_ragbench.judge.local.quantities import Number
from pytest_ragbench.judge.local.words import with_life_dates, words
from pytest_ragbench.text import fold, language_to_read, sentences, stem

# "Patch Management: ..." is a title, not a name.
_HEADING = re.compile(r"[^.:!?]{1,60}:")
_CLAUSE_MARKS = ",;:()—–、。!?"
_QUOTES = {"«": True, "»": False, '"': False}
_MARKS_BEFORE_CAPITAL = '.!?:"«('

WEIGHT = {
    "word": 1.0,
    "name": 1.4,
    "number": 1.4,
    "loanword": 1.2,
    "grammar": 0.5,
    "stop": 0.12,
}
WEIGHT_OF_IDEOGRAPH = 0.6
"""Of each in a run, up to :data:`MOST_OF_IDEOGRAPHS` in all."""
MOST_OF_IDEOGRAPHS = 2.4
WEIGHT_OF_LIMIT = 0.2
"""Of ideographs that say no more than whether a number is an upper or a lower limit."""
MOST_WORDS = 300
"""Content words of one sentence that are compared pair by pair; no sentence meant for reading has more."""


@dataclass(slots=True)
class Term:
    """A word, a name, a number or a run of letters written without spaces, at its place in a sentence."""

    key: str
    text: str
    kind: str
    """A key of :data:`WEIGHT`, or ``ideographs``."""
    weight: float
    index: int
    """Place among all terms of the sentence."""
    clause: int
    """Number of the clause, counted by commas and the like."""
    link: str = ""
    """The preposition before it, or the particle after it."""
    negated: str = ""
    """"not" or "without" where it is denied."""
    quoted: bool = False
    """In quotation marks: a title, which does not change with its role; the word before it does."""
    number: Number | None = None
    limit: str = ""
    """``most`` or ``least`` of a word that makes the number beside it one: within 30 days, no later than 30 days."""
    folded: str = ""
    synonyms: frozenset[str] = frozenset()
    """Rows of synonyms that the word stands in."""
    named: tuple[Named, ...] = ()
    """What the word means, or the words in a run do, where that is known."""

    @property
    def content(self) -> bool:
        return self.kind != "stop"


@dataclass(slots=True)
class Sentence:
    """One analysed sentence."""

    text: str
    folded: str
    terms: list[Term]
    lang: str | None = None
    """Whose words it was read by; None where the languages known share no script."""
    content: list[Term] = field(default_factory=list)
    keys: frozenset[str] = frozenset()
    numbers: list[Number] = field(default_factory=list)
    words: frozenset[str] = frozenset()
    denies: bool = False
    """Whether anything in it is denied."""
    meanings: Lines = field(default_factory=lambda: Lines(()))
    """What its words mean, where that is known."""


@dataclass(slots=True)
class Chunk:
    """One analysed chunk: its sentences, and its word stems by their first three letters."""

    sentences: list[Sentence]
    folded: str
    stems: dict[str, list[str]]


@lru_cache(maxsize=512)
def analyse_chunk(text: str) -> Chunk:
    """The chunk with its sentences analysed. Cached: a chunk is asked about once for every claim."""
    lang = language_to_read(text)
    read = with_life_dates(clean(text, lang))
    parts = [analyse(sentence, lang) for sentence in sentences(read)] or [analyse(text, lang)]
    stems: dict[str, list[str]] = {}
    for key in sorted({term.key for part in parts for term in part.terms if len(term.key) >= 3}):
        stems.setdefault(key[:3], []).append(key)
    return Chunk(parts, "\n".join(part.folded for part in parts), stems)


def clean(text: str, lang: str | None = None) -> str:
    """NFKC without footnote marks, Markdown emphasis and variants of spelling."""
    return words(lang or language_to_read(text)).clean(text)


@lru_cache(maxsize=8192)
def analyse(sentence: str, lang: str | None = None) -> Sentence:
    """Terms of one sentence (or claim). Cached."""
    lang = lang or language_to_read(sentence)
    reader = _Reader(clean(sentence, lang), lang)
    reader.read()
    folded = fold(reader.text, lang)
    return Sentence(
        text=reader.text,
        folded=folded,
        terms=reader.terms,
        lang=lang,
        content=[term for term in reader.terms if term.content][:MOST_WORDS],
        keys=frozenset(term.key for term in reader.terms),
        numbers=reader.numbers,
        words=frozenset(re.findall(r"[^\W\d_]+", folded)),
        denies=reader.denies,
        meanings=Lines(named for term in reader.terms for named in term.named),
    )


class _Reader:
    """Reads a sentence from left to right and keeps what the words before say about the next one."""

    def __init__(self, text: str, lang: str | None) -> None:
        self.text = text
        self.lang = lang
        self.words = words(lang)
        self.rules = self.words.rules
        self.synonyms = contrasts(lang).synonyms
        self.numbers = numbers(text, lang)
        self.limits = [number for number in self.numbers if number.limit]
        self.terms: list[Term] = []
        self.clause = 0
        self.link = ""
        self.denied = ""
        self.denies = False
        self.quoted = False
        self.first = True  # at a place where any word has a capital
        self.in_runs: list[tuple[int, int, tuple[Meaning, ...]]] | None = None
        heading = _HEADING.match(text)
        self.heading_end = heading.end() if heading else 0
        self.shouting = text.upper() == text and text.lower() != text

    def read(self) -> None:
        # Numbers were found first, since one may span several pieces: "3 million", "twenty-five".
        waiting = list(reversed(self.numbers))
        done = 0
        for piece in self.words.pieces.finditer(self.text):
            if piece.end() <= done:
                continue
            if waiting and piece.end() > waiting[-1].start:
                number = waiting.pop()
                self.number(number)
                done = number.end
                if piece.end() <= done or piece.lastgroup == "word":
                    continue
            start = max(piece.start(), done)
            surface = self.text[start : piece.end()]
            if piece.lastgroup == "mark":
                self.mark(surface)
            elif limit := self.limit(start, piece.end()):
                self.limiting(surface, piece.lastgroup or "ideographs", limit)
            elif piece.lastgroup == "word":
                self.word(surface, piece.end())
            elif piece.lastgroup == "grammar":
                self.grammar(surface, piece)
            else:
                self.run(surface, piece.lastgroup or "ideographs", start)

    def add(self, key: str, text: str, kind: str, weight: float, **more: Any) -> None:
        self.terms.append(
            Term(key, text, kind, weight, len(self.terms), self.clause, quoted=self.quoted, **more)
        )

    def number(self, number: Number) -> None:
        key = "#" + ",".join(f"{value:g}" for value in sorted(number.readings)) + number.unit
        weight = WEIGHT["number"] if number.firm else 0.3
        self.add(
            key, number.text, "number", weight, link=self.link, number=number, folded=number.text.casefold()
        )
        self.link, self.first = "", False

    def limit(self, start: int, end: int) -> str:
        """Whether the piece is of the words that make a number a limit, and which."""
        for number in self.limits:
            if number.limit_at[0] <= start and end <= number.limit_at[1]:
                return number.limit
        return ""

    def limiting(self, surface: str, kind: str, limit: str) -> None:
        """Such a piece: its denial ("no more than") is of the limit, and denies nothing else."""
        folded = fold(surface, self.lang)
        kind = "stop" if kind == "grammar" or (kind == "word" and self.is_light(folded)) else kind
        self.denies = self.denies or self.words.denies(folded)
        weight = WEIGHT_OF_LIMIT if kind == "ideographs" else WEIGHT[kind]
        self.add(stem(folded, self.lang), surface, kind, weight, folded=folded, limit=limit)
        self.first = False

    def is_light(self, word: str) -> bool:
        return self.words.denies(word) or self.words.bare(word) in self.rules.stop

    def mark(self, mark: str) -> None:
        if mark in _CLAUSE_MARKS:
            self.clause += 1
            self.denied = self.link = ""  # a denial reaches to the end of its clause
        if mark in _MARKS_BEFORE_CAPITAL:
            self.first = True
        if mark in _QUOTES:
            self.quoted = _QUOTES[mark] if mark != '"' else not self.quoted

    def word(self, surface: str, end: int) -> None:
        word = fold(surface, self.lang)
        if self.words.denies(word):
            # "not only" affirms.
            if not self.text[end : end + 8].lstrip().casefold().startswith(self.rules.only):
                self.denied = "without" if word in self.rules.without else "not"
                self.denies = True
            self.add(word, surface, "stop", WEIGHT["stop"])
            return
        bare = self.words.bare(word)
        if word in self.rules.joins:
            self.clause += 1
        if word in self.rules.turns:
            self.denied = ""
        if bare in self.rules.prepositions:
            self.link = bare
        if bare in self.rules.stop:
            self.add(stem(bare, self.lang), surface, "stop", WEIGHT["stop"], folded=bare)
            self.first = self.first and bare in self.rules.articles
            return
        name = self.is_name(surface, end) or any(character.isdigit() for character in bare)
        kind = "name" if name else "word"
        key = stem(bare, self.lang)
        self.add(
            key,
            surface,
            kind,
            WEIGHT[kind],
            link=self.link,
            negated=self.denied,
            folded=bare,
            synonyms=self.synonyms.get(key, frozenset()),
            named=() if name else word_kinds(bare, key, self.lang),
        )
        self.denied = self.link = ""
        self.first = False

    def is_name(self, surface: str, end: int) -> bool:
        if not surface[0].isupper() or self.shouting or end <= self.heading_end:
            return False
        if not self.first or surface[1:] != surface[1:].lower():
            return True
        # "Kurt Cobain was ...": a capital at the start tells nothing, two in a row do.
        return re.match(r"[ -][^\W\d_]", self.text[end : end + 2]) is not None and (
            self.text[end + 1].isupper() and self.text[end + 2 : end + 3].islower()
        )

    def grammar(self, surface: str, piece: re.Match[str]) -> None:
        """A run of grammar letters: it says the role of the word before it, and may hold words itself."""
        self.denies = self.denies or self.words.denies_before(surface, surface)
        if self.terms and self.terms[-1].kind != "stop":
            previous = self.terms[-1]
            around = self.text[max(0, piece.start() - 1) : piece.end() + 2]
            if self.words.denies_before(surface, around):
                previous.negated = "not"
            previous.link = previous.link or self.words.particle(surface)
        start = piece.end() - len(surface)
        for word in self.words.words_in_grammar(surface):
            named = self.named_in(word, start + surface.find(word))
            self.add(word, word, "grammar", WEIGHT["grammar"], folded=word, named=named)
        self.first = False

    def named_in(self, surface: str, start: int) -> tuple[Named, ...]:
        """The words with a known meaning that a run of letters has a part of."""
        if self.in_runs is None:  # most texts have spaces
            self.in_runs = run_kinds(self.text, self.lang)
        end = start + len(surface)
        return tuple(
            Named(self.text[first:last], (min(last, end) - max(first, start)) / len(surface), meanings)
            for first, last, meanings in self.in_runs
            if first < end and last > start
        )

    def run(self, surface: str, kind: str, start: int) -> None:
        """A run of ideographs or a loan word; ideographs weigh by their number."""
        # "Today's opening" is written in one run with what opens.
        time = next((t for t in self.rules.time_words if surface.startswith(t) and surface != t), "")
        if time:
            self.add(time, time, kind, WEIGHT["loanword"], folded=time)
            surface = surface.removeprefix(time)
            start += len(time)
        if surface in self.rules.generic:
            weight = 0.2
        elif kind == "loanword":
            weight = WEIGHT["loanword"] if len(surface) > 1 else 0.3
        else:
            weight = min(MOST_OF_IDEOGRAPHS, WEIGHT_OF_IDEOGRAPH * len(surface))
        self.add(surface, surface, kind, weight, folded=surface, named=self.named_in(surface, start))
        self.first = False
