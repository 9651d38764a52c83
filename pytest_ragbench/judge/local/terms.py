"""What a sentence says, as far as words show it: terms with weights, polarity and neighbours."""

# ruff: noqa: SIM905

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pytest_ragbench.judge.local import lexicon
from pytest_ragbench.judge.local.numbers import Number, numbers
from pytest_ragbench.text import sentences, stem

_FOOTNOTE = re.compile(r"\[(?:注釈 ?|注 ?|note ?)?\d{1,3}\]")
# Not inside a longer run of the same script.
_VARIANT = re.compile(
    "|".join(
        rf"(?<![ァ-ヶー]){word}(?![ァ-ヶー])" if re.match("[ァ-ヶー]", word) else rf"{word}"
        for word in sorted(lexicon.VARIANTS_JA, key=len, reverse=True)
    )
)
# "Patch Management: ..." is a title, not a name.
_HEADING = re.compile(r"[^.:!?]{1,60}:")
_PIECE = re.compile(
    r"(?P<kanji>[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+)|(?P<katakana>[\u30a1-\u30fa\u30fc]+)|"
    r"(?P<hiragana>[\u3041-\u3096]+)|(?P<word>[^\W_\u3005-\u3007\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]+(?:['’](?:s|t|re|ve|ll|d|m)\b)?)"
    r"|(?P<mark>[,;:.!?()—–、。・「」«»\"])"
)
_NEGATIVE_TAIL = re.compile("(?:ない|なかっ|なく|ません|ず(?![つるれ])|ぬ$)")
_NOT_NEGATIVE = re.compile(
    "おこない|おこなく|うしな|ともな|すくな|まかな|あぶな|きたな|そこな|つなが|少な|まずは|必ず|わず"
    "|なければな|なくてはな|ないといけ|なくては|しかな|だけでな|のみならず|かもしれ|に過ぎな|にすぎな|ないよう"
)
_PREPOSITIONS = frozenset(
    (
        "of in on at by for with from to into onto as about over under between through during before "
        "after than against toward towards via without в во на с со к ко у из от до по за под над о об "
        "для без через перед между при про чем против вместо"
    ).split()
)
_JOINS = frozenset("and but while whereas or и а но или".split())
_SUBJECT_JA = ("が", "は", "も")
WEIGHT = {
    "word": 1.0,
    "name": 1.4,
    "number": 1.4,
    "katakana": 1.2,
    "hiragana": 0.5,
    "stop": 0.12,
}


MOST_WORDS = 300
"""Content words of one sentence that are compared pair by pair; no sentence meant for reading has more."""


@dataclass(slots=True)
class Term:
    """A word, a name, a number or a run of Japanese letters, at its place in a sentence."""

    key: str
    text: str
    kind: str
    weight: float
    index: int
    """Place among all terms of the sentence."""
    clause: int
    """Number of the clause, counted by commas and the like."""
    link: str = ""
    """The preposition before it (en, ru) or the particle after it (ja)."""
    negated: str = ""
    """"not" or "without" where it is denied."""
    number: Number | None = None
    folded: str = ""

    @property
    def content(self) -> bool:
        return self.kind != "stop"


@dataclass(slots=True)
class Sentence:
    """One analysed sentence."""

    text: str
    folded: str
    terms: list[Term]
    content: list[Term] = field(default_factory=list)
    keys: frozenset[str] = frozenset()
    numbers: list[Number] = field(default_factory=list)
    words: frozenset[str] = frozenset()


@dataclass(slots=True)
class Chunk:
    """One analysed chunk: its sentences, and its word stems by their first three letters."""

    sentences: list[Sentence]
    folded: str
    stems: dict[str, list[str]]


@lru_cache(maxsize=512)
def analyse_chunk(text: str) -> Chunk:
    """The chunk with its sentences analysed. Cached: a chunk is asked about once for every claim."""
    parts = [analyse(sentence) for sentence in sentences(clean(text))] or [analyse(text)]
    stems: dict[str, list[str]] = {}
    for key in sorted({term.key for part in parts for term in part.terms if len(term.key) >= 3}):
        stems.setdefault(key[:3], []).append(key)
    return Chunk(parts, "\n".join(part.folded for part in parts), stems)


def clean(text: str) -> str:
    """NFKC without footnote marks, Markdown emphasis and typographic variants."""
    text = unicodedata.normalize("NFKC", _FOOTNOTE.sub("", text)).replace("’", "'")
    text = _VARIANT.sub(lambda match: lexicon.VARIANTS_JA[match.group()], text)
    return re.sub(r"\*\*|__|`", "", re.sub(r" n't\b", "n't", text))


@lru_cache(maxsize=8192)
def analyse(sentence: str) -> Sentence:
    """Terms of one sentence (or claim). Cached."""
    reader = _Reader(clean(sentence))
    reader.read()
    folded = reader.text.casefold().replace("ё", "е")
    return Sentence(
        text=reader.text,
        folded=folded,
        terms=reader.terms,
        content=[term for term in reader.terms if term.content][:MOST_WORDS],
        keys=frozenset(term.key for term in reader.terms),
        numbers=reader.numbers,
        words=frozenset(re.findall(r"[^\W\d_]+", folded)),
    )


class _Reader:
    """Reads a sentence from left to right and keeps what the words before say about the next one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.numbers = numbers(text)
        self.terms: list[Term] = []
        self.clause = 0
        self.link = ""
        self.denied = ""
        self.first = True  # at a place where any word has a capital
        heading = _HEADING.match(text)
        self.heading_end = heading.end() if heading else 0
        self.shouting = text.upper() == text and text.lower() != text

    def read(self) -> None:
        waiting = list(reversed(self.numbers))
        done = 0
        for piece in _PIECE.finditer(self.text):
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
            elif piece.lastgroup == "word":
                self.word(surface, piece.end())
            elif piece.lastgroup == "hiragana":
                self.hiragana(surface, piece)
            else:
                self.run(surface, piece.lastgroup or "kanji")

    def add(self, key: str, text: str, kind: str, weight: float, **more: Any) -> None:
        self.terms.append(Term(key, text, kind, weight, len(self.terms), self.clause, **more))

    def number(self, number: Number) -> None:
        key = "#" + ",".join(f"{value:g}" for value in sorted(number.readings)) + number.unit
        weight = WEIGHT["number"] if number.firm else 0.3
        self.add(
            key, number.text, "number", weight, link=self.link, number=number, folded=number.text.casefold()
        )
        self.link, self.first = "", False

    def mark(self, mark: str) -> None:
        if mark in ",;:()—–、。!?":
            self.clause += 1
            self.denied = self.link = ""
        if mark in '.!?:"«(':
            self.first = True

    def word(self, surface: str, end: int) -> None:
        word = surface.casefold().replace("ё", "е")
        bare = word.removesuffix("n't") if word.endswith("n't") else re.sub(r"'\w+$", "", word)
        if word in lexicon.NEGATION_EN or word in lexicon.NEGATION_RU or word.endswith("n't"):
            if not self.text[end : end + 8].lstrip().casefold().startswith(("only", "только")):
                self.denied = "without" if word in ("without", "без") else "not"
            self.add(word, surface, "stop", WEIGHT["stop"])
            return
        if word in _JOINS:
            self.clause += 1
        if word in ("but", "но", "а"):
            self.denied = ""
        if bare in _PREPOSITIONS:
            self.link = bare
        if bare in lexicon.STOP_EN or bare in lexicon.STOP_RU:
            self.add(stem(bare), surface, "stop", WEIGHT["stop"], folded=bare)
            self.first = self.first and bare in ("the", "a", "an")
            return
        name = self.is_name(surface, end) or any(character.isdigit() for character in bare)
        key = stem(bare)
        kind = "name" if name else "word"
        self.add(key, surface, kind, WEIGHT[kind], link=self.link, negated=self.denied, folded=bare)
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

    def hiragana(self, surface: str, piece: re.Match[str]) -> None:
        if self.terms and self.terms[-1].kind != "stop":
            previous = self.terms[-1]
            around = self.text[max(0, piece.start() - 1) : piece.end() + 2]
            if _NEGATIVE_TAIL.search(surface) and not _NOT_NEGATIVE.search(around):
                previous.negated = "not"
            previous.link = previous.link or _particle(surface)
        for word in _kana_words(surface):
            self.add(word, word, "hiragana", WEIGHT["hiragana"], folded=word)
        self.first = False

    def run(self, surface: str, kind: str) -> None:
        """A run of kanji or katakana; kanji weigh by their number."""
        time = next((word for word in lexicon.TIME_JA if surface.startswith(word) and surface != word), "")
        if time:
            self.add(time, time, kind, WEIGHT["katakana"], folded=time)
            surface = surface.removeprefix(time)
        if surface in lexicon.GENERIC_JA:
            weight = 0.2
        elif kind == "katakana":
            weight = WEIGHT["katakana"] if len(surface) > 1 else 0.3
        else:
            weight = min(2.4, 0.6 * len(surface))
        self.add(surface, surface, kind, weight, folded=surface)
        self.first = False


_PARTICLES = "から より まで によって により が は を に へ と も の で".split()


def _particle(tail: str) -> str:
    """The case particle that a hiragana run begins with; topic and subject are one."""
    for particle in _PARTICLES:
        if tail.startswith(particle):
            return "が" if particle in _SUBJECT_JA else "により" if particle == "によって" else particle
    return ""


@lru_cache(maxsize=8192)
def _kana_words(run: str) -> tuple[str, ...]:
    """What is left of a hiragana run once grammar is taken off: words of three letters and more."""
    found: list[str] = []
    pending = ""
    position = 0
    while position < len(run):
        grammar = next((piece for piece in lexicon.GRAMMAR_JA if run.startswith(piece, position)), None)
        if grammar is not None and (len(grammar) > 1 or not pending):
            if len(pending) >= 2:
                found.append(pending)
            pending = ""
            position += len(grammar)
        else:
            pending += run[position]
            position += 1
    if len(pending) >= 2:
        found.append(pending)
    return tuple(found)
