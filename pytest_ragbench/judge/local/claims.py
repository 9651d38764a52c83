"""Answers cut into parts: statements that can be verified one by one, and what states nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

from pytest_ragbench.judge.local.relevance import is_abstention, is_closed, is_courtesy
from pytest_ragbench.judge.local.terms import analyse
from pytest_ragbench.languages import catalog, rules
from pytest_ragbench.text import (
    detect_language,
    is_blank,
    is_question,
    is_unspaced,
    language_to_read,
    sentences,
)

Kind = Literal["claim", "greeting", "lead-in", "question", "refusal"]

_LIST_CLAUSE = r"\s*;\s+|(?<=:)\s+(?=\d{1,2}[.)] )|[；]\s*"
_PHRASE_END = re.compile(r"(?<=[,:;–—])\s+|\s+[-–—]\s+|(?<=[、：；])")
_STOP = re.compile(r"(?<=[.!…;:])[\"'»”)]*\s+|(?<=[。！；])")
_CONTACT = re.compile(r"\d|@|\bwww\.|https?:")
_LEAD_IN = re.compile(r"[:：]\W*$")
_MOST_IN_A_LIST = 12
_SHORTEST_ANSWER = 4


@dataclass(frozen=True)
class ClaimRules:
    """``claims.toml``: what in an answer says nothing about the subject, as patterns. Case does not count."""

    topic: ClassVar[str] = "claims"

    openers: tuple[str, ...] = ()
    """What says where an answer comes from or how sure it is, not what it says. Taken off, repeatedly."""
    closers: tuple[str, ...] = ()
    """The same at the end of a statement."""
    sources: tuple[str, ...] = ()
    """Words for what an answer is made from: a statement about it isn't one about the subject."""
    turns: tuple[str, ...] = ()
    """What joins a statement and the saying that more is not known: "..., but the text does not say when". A group
    is what is cut out, else the whole."""
    fillers: tuple[str, ...] = ()
    """Whole sentences that make no statement about the subject."""
    affirmatives: tuple[str, ...] = ()
    """Yes, and then the words that stand for it, in lower case."""
    negatives: tuple[str, ...] = ()
    """No, in the same way."""
    question_starts: tuple[str, ...] = ()
    """How a question begins that follows a statement in the same sentence: "It is closed, isn't it?"."""
    told_in_questions: tuple[str, ...] = ()
    """Questions that state something, which is their group: "Did you know that ...?"."""
    clause_joints: tuple[str, ...] = ()
    """Where a clause with its own subject begins; what joins it to the one before is left out."""
    clause_ends: tuple[str, ...] = ()
    """What ends a clause, and stays with it."""

    @cached_property
    def opener(self) -> re.Pattern[str]:
        return re.compile(f"^(?:{'|'.join(self.openers) or '(?!)'})", re.IGNORECASE)

    @cached_property
    def closer(self) -> re.Pattern[str]:
        """With the mark that ends the sentence as its group."""
        return re.compile(rf"(?:{'|'.join(self.closers) or '(?!)'})(\W*)$", re.IGNORECASE)

    @cached_property
    def source(self) -> re.Pattern[str]:
        return re.compile("|".join(self.sources) or "(?!)", re.IGNORECASE)

    @cached_property
    def turn(self) -> re.Pattern[str]:
        return re.compile("|".join(self.turns) or "(?!)", re.IGNORECASE)

    @cached_property
    def filler(self) -> re.Pattern[str]:
        patterns = "|".join(self.fillers) or "(?!)"
        return re.compile(rf"^(?:{patterns})[.!。！\s]*$", re.IGNORECASE | re.DOTALL)

    @cached_property
    def split(self) -> re.Pattern[str]:
        """Between clauses; the group ``end`` belongs to the one before."""
        ends = [f"(?P<end>{'|'.join(self.clause_ends)})"] if self.clause_ends else []
        return re.compile("|".join([_LIST_CLAUSE, *self.clause_joints, *ends]))

    @cached_property
    def question_start(self) -> re.Pattern[str]:
        return re.compile(f"(?:{'|'.join(self.question_starts) or '(?!)'})", re.IGNORECASE)

    @cached_property
    def told(self) -> re.Pattern[str]:
        return re.compile(f"^(?:{'|'.join(self.told_in_questions) or '(?!)'})", re.IGNORECASE | re.DOTALL)

    @cached_property
    def answer_word(self) -> re.Pattern[str]:
        """A yes or no at the beginning, with the marks after it."""
        longest_first = sorted(self.affirmatives + self.negatives, key=len, reverse=True)
        words = "|".join(map(re.escape, longest_first)) or "(?!)"
        return re.compile(rf"\W*({words})(?:\s*[,.!:;、。！…–—]+\s*|\s+-+\s+|\s*$)", re.IGNORECASE)

    def answer_word_of(self, sentence: str) -> tuple[str, str] | None:
        """The yes or no that a sentence begins with, and the rest of it."""
        match = self.answer_word.match(sentence)
        if match is not None:
            return match.group(1), sentence[match.end() :]
        # "No it is not", without a comma, but not "No dogs".
        opener = self.opener.match(sentence)
        word = opener.group().strip().casefold() if opener is not None else ""
        return (word, sentence[opener.end() :]) if opener is not None and self.answers(word) else None

    def answers(self, word: str) -> bool:
        return word in self.affirmatives or word in self.negatives


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of an answer, and what it is. Of these only claims are verified."""

    text: str
    kind: Kind


def split_claims(answer: str, question: str = "") -> list[str]:
    """The statements of ``answer``, in order, each for itself: the claims among :func:`answer_parts`."""
    return [part.text for part in answer_parts(answer, question) if part.kind == "claim"]


def answer_parts(answer: str, question: str = "") -> list[Part]:
    """All of ``answer``, in order and without repetitions: claims, and what is none.

    Sentences and list items; coordinated clauses only where each has its own subject and enough words. "According
    to the documentation" is taken off, and what says that more is not known is told apart. A yes or no to
    ``question`` claims what was asked: its text is the word, a colon and the question. Whatever holds a number, an
    address or a name of its own is a claim, however polite.
    """
    known = rules(ClaimRules, language_to_read(answer))
    parts: list[Part] = []
    given = sentences(answer)
    closed = is_closed(question)
    for whole in given:
        sentence = whole
        first = not any(part.kind == "claim" for part in parts)
        begins = known.answer_word_of(sentence) if first and not is_blank(question) else None
        # To an open question "no" may begin anything; only alone it must be the answer to it.
        if begins is not None and (closed or (len(given) == 1 and is_blank(begins[1]))):
            word, rest = begins
            parts.append(Part(f"{word}: {question.strip()}", "claim"))
            if not _says_more(rest):
                continue
            sentence = _capital(rest)
        for piece in _without_question(sentence, known):
            for clause in _clauses(piece, known):
                for told in _beside_refusal(clause, known):
                    parts += _read(_bare(told, known), known)
    claimed = any(part.kind == "claim" for part in parts)
    if closed and not claimed and (said := _answered_without_word(given, known)):
        # "It is.", "You can't.": words without content answer the question too.
        return [Part(f"{said}: {question.strip()}", "claim"), *(p for p in parts if p.kind != "greeting")]
    return list(dict.fromkeys(parts))


def answered(claim: str, question: str) -> bool | None:
    """Whether the claim says yes (True) or no (False) to the question; None where it is another claim."""
    word, colon, rest = claim.partition(": ")
    if not colon or is_blank(question) or rest != question.strip():
        return None
    folded = word.casefold()
    # The word may stand in the answer's language, not in the question's.
    languages = [rules(ClaimRules, language_to_read(text)) for text in (word, question)]
    if any(folded in known.affirmatives for known in languages):
        return True
    return False if any(folded in known.negatives for known in languages) else None


def _says_more(text: str) -> bool:
    return bool(analyse(text).content) or is_question(text)


def _answered_without_word(given: list[str], known: ClaimRules) -> str:
    """The word that an answer of small words stands for; ``""`` where it answers nothing."""
    if len(given) != 1 or is_question(given[0]) or known.filler.match(given[0]):
        return ""
    sentence = analyse(given[0])
    if sentence.content or len(given[0]) < _SHORTEST_ANSWER:
        return ""
    language = catalog().get(detect_language(given[0]))
    own = language.rules(ClaimRules) if language is not None else known
    words = own.negatives if sentence.denies else own.affirmatives
    return words[0] if words else ""


def _without_question(sentence: str, known: ClaimRules) -> list[str]:
    """The sentence; a question at the end of a statement apart: "The fee is 30 euros. anything else?"."""
    if not is_question(sentence):
        return [sentence]
    if told := known.told.match(sentence):
        return [next(filter(None, told.groups())).rstrip("?？ ")]
    if known.question_start.match(sentence) and not _STOP.search(sentence):
        return [sentence]
    for stop in reversed([*_STOP.finditer(sentence)]):
        head, tail = sentence[: stop.start()], sentence[stop.end() :]
        # "Do you mean Mr. Smith?" is one question.
        if tail and _enough(head) and not known.question_start.match(head):
            return [*_without_question(head, known), tail]
    for cut in reversed([*_PHRASE_END.finditer(sentence), *known.split.finditer(sentence)]):
        head, tail = sentence[: cut.start()], sentence[cut.end() :]
        if cut.lastgroup == "end":
            head = sentence[: cut.end()]
        asks = known.question_start.match(tail) is not None or cut.lastgroup == "end"
        if tail and asks and _enough(head) and not known.question_start.match(head):
            return [head.rstrip(" ,、–—-"), tail]
    return [sentence]


def _enough(text: str) -> bool:
    """Whether the text can state something by itself."""
    sentence = analyse(text)
    return len(sentence.content) >= 2 or bool(sentence.numbers)


def _read(statement: str, known: ClaimRules) -> list[Part]:
    """What one clause is; a courtesy that goes on with a statement is cut there."""
    if is_blank(statement):
        return []
    if is_question(statement):
        return [Part(statement, "question")]
    if known.filler.match(statement):
        pieces = [piece for piece in _PHRASE_END.split(statement) if not is_blank(piece)]
        stated = [piece for piece in pieces if _states_beside_courtesy(piece, known)]
        if _LEAD_IN.search(statement):
            stated = [statement] if _measures(statement) else []
        elif not stated and _CONTACT.search(statement):
            stated = [statement]
        if stated:
            return [Part(_capital(piece.strip(" ,、")), "claim") for piece in stated]
        return [Part(statement, "lead-in" if _LEAD_IN.search(statement) else "greeting")]
    if is_abstention(statement):
        return [Part(statement, "refusal")]
    return [Part(statement, "claim" if analyse(statement).content else "greeting")]


def _states_beside_courtesy(piece: str, known: ClaimRules) -> bool:
    if _CONTACT.search(piece):
        return True
    if known.filler.match(piece) or is_courtesy(piece):
        return False
    return len(analyse(piece).content) >= (2 if is_unspaced(piece.strip()[0]) else 3)


def _measures(statement: str) -> bool:
    """Whether a heading has a number that says more than how many lines follow."""
    return any(
        number.unit or max(number.readings) > _MOST_IN_A_LIST
        for number in analyse(statement).numbers
        if number.firm
    )


def _beside_refusal(clause: str, known: ClaimRules) -> list[str]:
    """The clause; where a part of it states something and the other that more is not known, both."""
    for turn in known.turn.finditer(clause):
        start, end = turn.span(turn.lastindex or 0)
        parts = clause[:start].strip(" ,、"), clause[end:]
        refused = [is_abstention(part) for part in parts]
        stated = parts[refused.index(False)] if any(refused) and not all(refused) else ""
        if stated and _states(stated) and not known.source.search(stated) and not is_courtesy(stated):
            return [part if refuses else _capital(part) for part, refuses in zip(parts, refused, strict=True)]
    return [clause]


def _states(text: str) -> bool:
    sentence = analyse(text)
    return len(sentence.content) >= 3 or (len(sentence.content) == 2 and bool(sentence.numbers))


def _bare(sentence: str, known: ClaimRules) -> str:
    """The sentence without what says where it comes from."""
    rest = _strip_openers(sentence, known)
    while (match := known.closer.search(rest)) and analyse(rest[: match.start()]).content:
        rest = rest[: match.start()].rstrip(" ,、") + match.group(match.lastindex or 0)
    return rest


def _strip_openers(sentence: str, known: ClaimRules) -> str:
    rest = re.sub(r"^\(?\d{1,2}[.)] +(?=\D)", "", sentence.strip())
    while match := known.opener.match(rest):
        shorter = rest[match.end() :].lstrip(" ,:")
        if match.end() == 0 or not shorter:
            break
        rest = shorter
    return _capital(rest) if rest != sentence.strip() else rest


def _capital(rest: str) -> str:
    """With a capital where the language wants one: names and abbreviations are told by it later."""
    if rest[:1].islower():
        language = catalog().get(detect_language(rest))
        if language is not None and language.script.capitals:
            return rest[0].upper() + rest[1:]
    return rest


def _clauses(sentence: str, known: ClaimRules) -> list[str]:
    """The sentence, or its coordinated clauses where every one can stand alone."""
    parts: list[str] = []
    start = 0
    for match in known.split.finditer(sentence):
        parts.append(sentence[start : match.end() if match.lastgroup == "end" else match.start()])
        start = match.end()
    parts.append(sentence[start:])
    parts = [part.strip(" 、") for part in parts]
    # A clause of one or two words shares its subject with the one before, and alone it can't be verified.
    if len(parts) > 1 and all(len(analyse(part).content) >= 3 for part in parts):
        return parts
    return [sentence]
