"""Words by which a claim can differ from a chunk that has the same words otherwise: opposites, synonyms, quantifiers,
hedges, roles. All are data of the languages; a change there needs a new ``VERSION``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar

from pytest_ragbench.languages import rules
from pytest_ragbench.text import stem

if TYPE_CHECKING:
    from pytest_ragbench.judge.local.terms import Sentence, Term


_SHORTEST_STEM = 2


@dataclass(frozen=True)
class ContrastRules:
    """``contrasts.toml``. Words are matched by stem; pieces are looked for in the text as they are, where no spaces
    stand between words.
    """

    topic: ClassVar[str] = "contrasts"

    opposites: tuple[str, ...] = ()
    """Sets whose members exclude each other: ``before prior | after later``. A word in two counts for the first."""
    opposite_pieces: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    """Words that may stand for each other."""
    universal: frozenset[str] = frozenset()
    """All, every."""
    universal_pieces: tuple[str, ...] = ()
    partial: frozenset[str] = frozenset()
    """Some, most."""
    partial_pieces: tuple[str, ...] = ()
    exclusive: frozenset[str] = frozenset()
    """Only; in exactly these forms."""
    exclusive_pieces: tuple[str, ...] = ()
    not_exclusive: tuple[str, ...] = ()
    """Patterns of what only looks like one of ``exclusive_pieces``."""
    hedges: frozenset[str] = frozenset()
    """What weakens a statement: a claim that drops it says more than the text does."""
    hedge_forms: frozenset[str] = frozenset()
    """The same, in exactly these forms."""
    hedge_pieces: tuple[str, ...] = ()
    after_hedge: frozenset[str] = frozenset()
    """Words after which it is none: "may not" forbids."""
    intentions: frozenset[str] = frozenset()
    """Forms that weaken a statement only before one of ``after_intention``: "plans to", but not "the plan"."""
    after_intention: frozenset[str] = frozenset()
    conditions: frozenset[str] = frozenset()
    """Forms that weaken a statement less: "if", of what holds mostly."""
    able: frozenset[str] = frozenset()
    """A claim with one of these is as careful as one with a hedge."""
    roles: frozenset[str] = frozenset()
    """Prepositions and particles that tell who does what to whom."""
    passives: tuple[str, ...] = ()
    """Patterns of the passive voice, which turns the roles round."""
    fixed_order: str = ""
    """Letters of a language in which the order of words tells their roles, as a character class."""
    doer_and_deed: tuple[str, ...] = ()
    """Endings of a word that does something and of the same word that it is done to: ``"а у"``; ``-`` for none."""
    doer_in_passive: tuple[str, ...] = ()
    """The same where the doer's sentence is in the passive voice and the other one is not."""
    case_endings: tuple[str, ...] = ()
    """Patterns of the last letters of words that change with their role, where the order of words is free."""
    list_words: frozenset[str] = frozenset()
    """Between the items of a list."""
    speaker: frozenset[str] = frozenset()
    """Words in which speakers mean themselves."""
    speakers: frozenset[str] = frozenset()
    """Words of chunks in which somebody speaks."""


@cache
def contrasts(lang: str | None) -> Contrasts:
    """The words of the languages by which text in ``lang`` is read."""
    return Contrasts(rules(ContrastRules, lang), lang)


class Contrasts:
    """Contrast rules, ready to be looked up."""

    def __init__(self, rules: ContrastRules, lang: str | None) -> None:
        self.rules = rules
        self.lang = lang
        self.opposites: dict[str, tuple[int, int]] = {}
        """stem -> (number of the set, number of the side)."""
        for row, line in enumerate(rules.opposites):
            for side, words in enumerate(line.casefold().split("|")):
                for word in words.split():
                    self.opposites.setdefault(stem(word, lang), (row, side))
        # Longer ones first, so that 不可能 is not 可能.
        self.opposite_pieces = [
            sorted(
                ((word, side) for side, cell in enumerate(line.split("|")) for word in cell.split()),
                key=lambda pair: -len(pair[0]),
            )
            for line in rules.opposite_pieces
        ]
        self.synonym_rows = {line: _stems(line.casefold().split(), lang) for line in rules.synonyms}
        self.synonyms: dict[str, frozenset[str]] = {}
        """stem -> the rows that have it."""
        for line, stems in self.synonym_rows.items():
            for each in stems:
                self.synonyms[each] = self.synonyms.get(each, frozenset()) | {line}
        self.universal = _stems(rules.universal, lang)
        self.partial = _stems(rules.partial, lang)
        self.hedges = rules.hedge_forms | rules.conditions | _stems(rules.hedges, lang)
        self.roles = rules.roles | {""}
        self._doers = _endings(rules.doer_and_deed)
        self._doers_in_passive = _endings(rules.doer_in_passive)
        self._passive = re.compile("|".join(rules.passives) or "(?!)")
        self._not_exclusive = re.compile("|".join(rules.not_exclusive) or "(?!)")
        self._fixed_order = re.compile(f"[{rules.fixed_order}]+") if rules.fixed_order else None
        self._case_ending = re.compile(
            f"(?:{'|'.join(rules.case_endings)})$" if rules.case_endings else "(?!)"
        )

    def passive(self, text: str) -> bool:
        return self._passive.search(text) is not None

    def fixed_order(self, word: str) -> bool:
        """Whether the word is of a language in which the order of words tells their roles."""
        letters = "".join(filter(str.isalpha, word))
        return self._fixed_order is not None and (
            not letters or self._fixed_order.fullmatch(letters) is not None
        )

    def declined(self, word: str) -> bool:
        """Whether the word has an ending that would change with its role."""
        return self._case_ending.search(word) is not None

    def hedged(self, sentence: Sentence) -> bool:
        """Whether the sentence weakens what it states, or says under which condition it holds."""
        return bool(self.hedges_in(sentence)) or first(self.rules.hedge_pieces, sentence.folded) is not None

    def hedges_in(self, sentence: Sentence) -> list[Term]:
        """The words that weaken it."""
        found = []
        for place, term in enumerate(sentence.terms, start=1):
            follows = sentence.terms[place].text.casefold() if place < len(sentence.terms) else ""
            weak = not self.hedges.isdisjoint((term.key, term.folded))
            meant = term.folded in self.rules.intentions and follows in self.rules.after_intention
            if meant or (weak and follows not in self.rules.after_hedge):
                found.append(term)
        return found

    def turned(self, mine: str, theirs: str) -> int:
        """1 where two forms of a word make ``mine`` the doer and ``theirs`` the one it is done to, -1 for the other
        way round, 0 where its endings do not tell.
        """
        if any(_forms(mine, theirs, doer, deed) for doer, deed in self._doers):
            return 1
        return -1 if any(_forms(theirs, mine, doer, deed) for doer, deed in self._doers) else 0

    def done_by(self, passive: str, active: str) -> bool:
        """Whether a word does something in a passive sentence that is done to it in an active one, by its endings."""
        return any(_forms(passive, active, doer, deed) for doer, deed in self._doers_in_passive)

    def exclusive_piece(self, text: str) -> str | None:
        """The first piece of ``text`` that says "only"."""
        return first(self.rules.exclusive_pieces, self._not_exclusive.sub("", text))


def first(pieces: Sequence[str], text: str) -> str | None:
    """The first of the pieces that the text has."""
    return next((piece for piece in pieces if piece in text), None)


def _stems(words: Iterable[str], lang: str | None) -> frozenset[str]:
    return frozenset(stem(word, lang) for word in words)


def _endings(rows: Sequence[str]) -> list[tuple[str, str]]:
    return [(one.strip("-"), other.strip("-")) for one, other in (row.split() for row in rows)]


def _forms(one: str, other: str, ending: str, other_ending: str) -> bool:
    """Whether two words are one stem with these endings; a vowel of the stem may drop out: Пётр, Петра."""
    if one == other or not one.endswith(ending) or not other.endswith(other_ending):
        return False
    stem_one, stem_other = one[: len(one) - len(ending)], other[: len(other) - len(other_ending)]
    if len(stem_other) < _SHORTEST_STEM:
        return False
    if stem_one == stem_other:
        return True
    dropped = len(stem_one) - 2
    return not ending and dropped > 0 and stem_one[:dropped] + stem_one[-1] == stem_other
