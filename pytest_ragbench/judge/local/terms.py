"""What a sentence says, as far as words show it: terms with weights, polarity and neighbours."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import lru_cache

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
    "of in on at by for with from to into onto as about over under between through during before after than against "
    "toward towards via without "
    "в во на с со к ко у из от до по за под над о об для без через перед между при про чем против вместо".split()
)
_JOINS = frozenset("and but while whereas or и а но или".split())
_SUBJECT_JA = ("が", "は", "も")
WEIGHT = {
    "word": 1.0,
    "name": 1.4,
    "number": 1.4,
    "latin": 1.4,
    "katakana": 1.2,
    "hiragana": 0.5,
    "stop": 0.12,
}


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
    negations: int = 0


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
    """Terms of one sentence (or claim)."""
    text = clean(sentence)
    folded = text.casefold().replace("ё", "е")
    quantities = numbers(text)
    terms: list[Term] = []
    clause = 0
    link = ""
    negate = ""
    negations = 0
    first = True
    heading = _HEADING.match(text)
    shouting = text.upper() == text and text.lower() != text
    position = 0
    skip_until = 0
    queue = iter(quantities)
    upcoming = next(queue, None)
    for piece in _PIECE.finditer(text):
        if piece.start() < skip_until and piece.end() <= skip_until:
            continue
        if upcoming is not None and piece.end() > upcoming.start:
            key = "#" + ",".join(f"{value:g}" for value in sorted(upcoming.readings)) + upcoming.unit
            terms.append(
                Term(key, upcoming.text, "number", WEIGHT["number"] if upcoming.firm else 0.3, position, clause, link,
                     number=upcoming, folded=upcoming.text.casefold())
            )  # fmt: skip
            position += 1
            skip_until = upcoming.end
            link = ""
            first = False
            upcoming = next(queue, None)
            while upcoming is not None and upcoming.start < skip_until:
                upcoming = next(queue, None)
            if piece.end() <= skip_until or piece.lastgroup == "word":
                continue
        kind, surface = piece.lastgroup or "", piece.group()
        if piece.start() < skip_until:
            surface = text[skip_until : piece.end()]
            if not surface:
                continue
        if kind == "mark":
            if surface in ",;:()—–、。!?":
                clause += 1
                negate = ""
                link = ""
            if surface in '.!?:"«(':
                first = True
            continue
        if kind == "word":
            word = surface.casefold().replace("ё", "е")
            negative = word in lexicon.NEGATION_EN or word in lexicon.NEGATION_RU or word.endswith("n't")
            bare = word.removesuffix("n't") if word.endswith("n't") else re.sub(r"'\w+$", "", word)
            if negative:
                following = text[piece.end() : piece.end() + 8].lstrip().casefold()
                if not following.startswith(("only", "только")):
                    negate, negations = "without" if word in ("without", "без") else "not", negations + 1
                terms.append(Term(word, surface, "stop", WEIGHT["stop"], position, clause))
                position += 1
                continue
            if word in _JOINS:
                clause += 1
            if word in ("but", "но", "а"):
                negate = ""
            stop = bare in lexicon.STOP_EN or bare in lexicon.STOP_RU
            if bare in _PREPOSITIONS:
                link = bare
            if stop:
                terms.append(Term(stem(bare), surface, "stop", WEIGHT["stop"], position, clause, folded=bare))
                position += 1
                first = first and bare in ("the", "a", "an")
                continue
            capital = surface[0].isupper()
            titled = heading is not None and piece.end() <= heading.end()
            name = capital and not shouting and not titled and (not first or surface[1:] != surface[1:].lower())
            if not name and capital and first and not shouting and not titled:
                following_word = re.match(r"[ -]([^\W\d_])([^\W\d_]?)", text[piece.end() : piece.end() + 3])
                name = (
                    following_word is not None
                    and following_word.group(1).isupper()
                    and following_word.group(2).islower()
                )
            kind = "name" if name or any(c.isdigit() for c in bare) else "word"
            key = stem(bare)
            terms.append(
                Term(key, surface, kind, WEIGHT[kind], position, clause, link, negate, folded=bare)
            )
            position += 1
            negate = ""
            link = ""
            first = False
            continue
        first = False
        if kind == "hiragana":
            tail = surface
            if (
                terms
                and terms[-1].kind in ("kanji", "katakana", "latin", "number", "hiragana")
                and piece.start() > 0
            ):
                previous = terms[-1]
                if _NEGATIVE_TAIL.search(tail) and not _NOT_NEGATIVE.search(
                    text[max(0, piece.start() - 1) : piece.end() + 2]
                ):
                    previous.negated = "not"
                    negations += 1
                previous.link = previous.link or _particle(tail)
            for run in _kana_words(tail):
                terms.append(Term(run, run, "hiragana", WEIGHT["hiragana"], position, clause, folded=run))
                position += 1
            continue
        weight = WEIGHT["katakana"] if kind == "katakana" else min(2.4, 0.6 * len(surface))
        if kind == "katakana" and len(surface) < 2:
            weight = 0.3
        if surface in lexicon.GENERIC_JA:
            weight = 0.2
        time = next((word for word in lexicon.TIME_JA if surface.startswith(word) and surface != word), "")
        if time:
            terms.append(Term(time, time, kind, 1.2, position, clause, folded=time))
            position += 1
            surface = surface.removeprefix(time)
            weight = min(2.4, 0.6 * len(surface))
        terms.append(Term(surface, surface, kind, weight, position, clause, folded=surface))
        position += 1
    content = [term for term in terms if term.content]
    return Sentence(
        text=text,
        folded=folded,
        terms=terms,
        content=content,
        keys=frozenset(term.key for term in terms),
        numbers=quantities,
        words=frozenset(re.findall(r"[^\W\d_]+", folded)),
        negations=negations,
    )


def _particle(tail: str) -> str:
    for particle in (
        "から",
        "より",
        "まで",
        "によって",
        "により",
        "が",
        "は",
        "を",
        "に",
        "へ",
        "と",
        "も",
        "の",
        "で",
    ):
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
