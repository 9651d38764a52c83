"""Which words of a chunk stand for which words of a claim."""

from __future__ import annotations

from functools import lru_cache

from pytest_ragbench.judge.local.contrasts import contrasts, first
from pytest_ragbench.judge.local.kinds import is_kind
from pytest_ragbench.judge.local.terms import Chunk, Sentence, Term
from pytest_ragbench.judge.local.words import WordRules, words
from pytest_ragbench.languages import catalog
from pytest_ragbench.text import stem
from pytest_ragbench.text.stems import StemRules

SYNONYM = 0.85
KIND = 0.85
"""How far a sentence has a word of the claim by another one of the same meaning, or by a kind of it."""
MOST_OF_CLAIM = 0.5
"""Share of the claim's words, by weight, that the sentence must have literally for that: in a long text a kind of
anything is found by chance."""
NEGATED = 0.85
"""How far a word has a synonym, or the word with a negative prefix: whether it denies is weighed elsewhere."""


def match(claim: Sentence, chunk: Chunk) -> list[list[float]]:
    """For each term of the claim and each sentence of the chunk: 0..1, how far the sentence has it."""
    rows = []
    for term in claim.terms:
        if term.number is not None:
            rows.append(
                [float(any(term.number.matches(other) for other in part.numbers)) for part in chunk.sentences]
            )
        elif term.kind in ("ideographs", "loanword", "grammar"):
            rows.append([_run_match(term.key, term.kind, part.folded) for part in chunk.sentences])
        else:
            alike = _alike(term, chunk, claim.lang)
            rows.append(
                [
                    max((v for k, v in alike.items() if k in part.keys), default=0.0)
                    for part in chunk.sentences
                ]
            )
    for term, row in zip(claim.terms, rows, strict=True):
        if term.limit:
            for s, part in enumerate(chunk.sentences):
                row[s] = max(row[s], float(any(number.limit == term.limit for number in part.numbers)))
    _match_kinds(claim, chunk, rows)
    return rows


def _match_kinds(claim: Sentence, chunk: Chunk, rows: list[list[float]]) -> None:
    """Raise what sentences have of the claim by words of the same meaning and kinds of it."""
    known = [(term, row) for term, row in zip(claim.terms, rows, strict=True) if term.named]
    if not known:
        return
    kinds = _kinds_suffice(claim)
    least = MOST_OF_CLAIM * sum(term.weight for term in claim.terms)
    for s, part in enumerate(chunk.sentences):
        if sum(term.weight * row[s] for term, row in zip(claim.terms, rows, strict=True)) < least:
            continue
        for term, row in known:
            # A run is several words: each counts for its letters.
            share = min(
                1.0,
                sum(
                    each.share
                    for each in term.named
                    if each.word not in part.folded and part.meanings.has(each, kinds=kinds)
                ),
            )
            row[s] = max(row[s], share * KIND + (1.0 - share) * row[s])


def _kinds_suffice(claim: Sentence) -> bool:
    """Whether what holds of a kind supports the claim of the wider word: not "no animals" or "all animals" by dogs."""
    known = contrasts(claim.lang)
    universal = not known.universal.isdisjoint(claim.keys) or first(
        known.rules.universal_pieces, claim.folded
    )
    return not (claim.denies or universal)


def _alike(term: Term, chunk: Chunk, lang: str | None) -> dict[str, float]:
    """Stems in the chunk that stand for the term (its forms, synonyms, negated forms), with 0..1."""
    key = term.key
    alike = {key: 1.0}
    if not term.content:
        return alike
    if len(key) >= 4:
        for other in chunk.stems.get(key[:3], ()):
            if other != key and (value := _form_of(key, other)):
                alike[other] = value
    rows = contrasts(lang).synonym_rows
    for row in term.synonyms:
        alike |= {other: SYNONYM for other in rows[row] if other not in alike}
    alike |= {other: NEGATED for other in _negated_forms(term.folded, lang) if other not in alike}
    return alike


@lru_cache(maxsize=65536)
def _negated_forms(word: str, lang: str | None) -> frozenset[str]:
    """Stems of the word with a negative prefix, or without the one it has: available, unavailable."""
    if len(word) < 5:
        return frozenset()
    forms = set()
    for prefix in words(lang).rules.negative_prefixes:
        if word.startswith(prefix) and len(word) - len(prefix) >= 4:
            forms.add(stem(word[len(prefix) :], lang))
    # Only prefixes of the word's own language: "un" makes no Russian word.
    for language in catalog().reading(lang):
        if language.rules(StemRules).knows(word):
            forms |= {stem(prefix + word, lang) for prefix in language.rules(WordRules).negative_prefixes}
    return frozenset(forms)


@lru_cache(maxsize=65536)
def _form_of(one: str, other: str) -> float:
    short, long = sorted((one, other), key=len)
    if len(short) >= 4 and long.startswith(short) and len(long) - len(short) <= 4:
        return 0.9
    # Other endings of one long stem: "reimburse", "reimbursement".
    common = 0
    while common < len(short) and short[common] == long[common]:
        common += 1
    return 0.75 if common >= 5 and common / len(long) >= 0.7 else 0.0


@lru_cache(maxsize=65536)
def _run_match(run: str, kind: str, folded: str) -> float:
    if run in folded:
        return 1.0
    if kind == "loanword":
        for length in range(len(run) - 1, 2, -1):
            if any(run[i : i + length] in folded for i in range(len(run) - length + 1)):
                return 0.8 * length / len(run)
        return 0.0
    if kind == "grammar" or len(run) == 1:
        return 0.0
    # A run is several words in one: pairs of characters are the smallest that still mean something.
    pairs = [run[i : i + 2] for i in range(len(run) - 1)]
    by_pair = sum(pair in folded for pair in pairs) / len(pairs)
    by_one = sum(character in folded for character in run) / len(run)
    return max(0.9 * by_pair, 0.6 * by_one)


def pairs_of(claim: Sentence, source: Sentence) -> list[tuple[Term, Term | None]]:
    """Each content term of the claim with the term of the sentence that it matches, in claim order."""
    pairs: list[tuple[Term, Term | None]] = []
    used: set[int] = set()
    previous = -1
    kinds = _kinds_suffice(claim)
    for term in claim.content:
        options = [other for other in source.content if same(term, other, claim.lang, kinds=kinds)]
        free = [other for other in options if other.index not in used] or options
        # Of several, the one that follows the last match keeps the order of the sentence.
        best = min(
            free, key=lambda other: (other.index < previous, abs(other.index - previous)), default=None
        )
        if best is not None:
            used.add(best.index)
            previous = best.index
        pairs.append((term, best))
    return pairs


def same(one: Term, other: Term, lang: str | None, *, kinds: bool = False) -> bool:
    """True where two terms may be the same word (its forms, synonyms, negated forms) or number, or, with ``kinds``,
    where the second is a kind of the first.
    """
    if one.key == other.key or (one.limit and one.limit == other.limit):
        return True
    if one.number is not None or other.number is not None:
        return one.number is not None and other.number is not None and one.number.matches(other.number)
    if any(is_kind(mine, theirs, kinds=kinds) for mine in one.named for theirs in other.named):
        return True
    if one.kind in ("ideographs", "loanword"):
        shorter = min(one.key, other.key, key=len)
        return other.kind == one.kind and len(shorter) >= 2 and (one.key in other.key or other.key in one.key)
    if one.synonyms and not one.synonyms.isdisjoint(other.synonyms):
        return True
    if one.key[:3] == other.key[:3]:
        return len(one.key) >= 4 and len(other.key) >= 4 and _form_of(one.key, other.key) > 0
    return one.key[-2:] == other.key[-2:] and opposite(one, other, lang)


def opposite(one: Term, other: Term, lang: str | None) -> bool:
    """True where one of two words is the other with a negative prefix: 対応 and 非対応."""
    if one.kind == "ideographs" or other.kind == "ideographs":
        short, long = sorted((one.key, other.key), key=len)
        return len(short) >= 2 and long[0] in words(lang).rules.negative_prefixes and long[1:] == short
    return one.key in _negated_forms(other.folded, lang) or other.key in _negated_forms(one.folded, lang)


def agree(one: Term, other: Term, lang: str | None) -> bool:
    """True where both are affirmed or both denied, a negative prefix counting as a denial."""
    return (bool(one.negated) != bool(other.negated)) == opposite(one, other, lang)
