"""Answers cut into claims: statements that can be verified one by one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pytest_ragbench.judge.local.relevance import is_abstention
from pytest_ragbench.judge.local.terms import analyse
from pytest_ragbench.languages import catalog, rules
from pytest_ragbench.text import detect_language, is_blank, language_to_read, sentences

_LIST_CLAUSE = r"\s*;\s+|(?<=:)\s+(?=\d{1,2}[.)] )|[；]\s*"


@dataclass(frozen=True)
class ClaimRules:
    """``claims.toml``: what in an answer says nothing about the subject, as patterns. Case does not count."""

    topic: ClassVar[str] = "claims"

    openers: tuple[str, ...] = ()
    """What says where an answer comes from or how sure it is, not what it says. Taken off, repeatedly."""
    fillers: tuple[str, ...] = ()
    """Whole sentences that make no statement about the subject."""
    bare_answers: frozenset[str] = frozenset()
    """Yes and no, alone."""
    clause_joints: tuple[str, ...] = ()
    """Where a clause with its own subject begins; what joins it to the one before is left out."""
    clause_ends: tuple[str, ...] = ()
    """What ends a clause, and stays with it."""

    @cached_property
    def opener(self) -> re.Pattern[str]:
        return re.compile(f"^(?:{'|'.join(self.openers)})", re.IGNORECASE)

    @cached_property
    def filler(self) -> re.Pattern[str]:
        return re.compile(rf"^(?:{'|'.join(self.fillers)})[.!。！\s]*$", re.IGNORECASE | re.DOTALL)

    @cached_property
    def split(self) -> re.Pattern[str]:
        """Between clauses; the group ``end`` belongs to the one before."""
        ends = [f"(?P<end>{'|'.join(self.clause_ends)})"] if self.clause_ends else []
        return re.compile("|".join([_LIST_CLAUSE, *self.clause_joints, *ends]))


def split_claims(answer: str, question: str = "") -> list[str]:
    """The statements of ``answer``, in order, each for itself.

    Sentences and list items; coordinated clauses only where each has its own subject and enough words.
    Greetings, closing phrases, questions, lead-ins to lists and "according to the documentation" are
    left out. A bare "yes" or "no" is joined with ``question``, because alone it says nothing. An abstention
    ("I don't know") makes no claim: the list is empty where there is nothing else.
    """
    claims: list[str] = []
    known = rules(ClaimRules, language_to_read(answer))
    for sentence in sentences(answer):
        if re.sub(r"[\W_]+", "", sentence).casefold() in known.bare_answers:
            # Beside other sentences the yes is what those say in full.
            if not is_blank(question) and not claims and len(sentences(answer)) == 1:
                claims.append(f"{sentence.strip(' .!。！')}: {question.strip()}")
            continue
        for clause in _clauses(sentence, known):
            statement = _strip_openers(clause, known)
            if statement and _states(statement, known):
                claims.append(statement)
    return list(dict.fromkeys(claims))


def _states(statement: str, known: ClaimRules) -> bool:
    if statement.rstrip("\"'»”)」 ").endswith(("?", "？")):
        return False
    if known.filler.match(statement) or is_abstention(statement):
        return False
    return bool(analyse(statement).content)


def _strip_openers(sentence: str, known: ClaimRules) -> str:
    rest = re.sub(r"^\(?\d{1,2}[.)] +(?=\D)", "", sentence.strip())
    while match := known.opener.match(rest):
        shorter = rest[match.end() :].lstrip(" ,:")
        if match.end() == 0 or not shorter:
            break
        rest = shorter
    # A capital where the language wants one: names and abbreviations are told by it later.
    if rest != sentence.strip() and rest[:1].islower():
        language = catalog().get(detect_language(rest))
        if language is not None and language.script.capitals:
            rest = rest[0].upper() + rest[1:]
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
