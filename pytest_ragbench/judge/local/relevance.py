"""Does an answer answer? Abstentions, and what kind of thing a question asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from pytest_ragbench.judge.local.support import Support
from pytest_ragbench.judge.local.terms import Sentence, Term, analyse, clean
from pytest_ragbench.languages import catalog, rules
from pytest_ragbench.text import is_blank, is_question, language_to_read, sentences

KINDS = ("duration", "number", "date", "person", "place", "reason", "yes/no")
"""What a question can ask for; the first whose patterns fit counts."""


@dataclass(frozen=True)
class QuestionRules:
    """``relevance.toml``: abstentions, and what a question asks for, as patterns. Case does not count."""

    topic: ClassVar[str] = "relevance"

    abstentions: tuple[str, ...] = ()
    """How one says that one has no answer."""
    continues: tuple[str, ...] = ()
    """What goes on after an abstention: "I don't know, but ..."."""
    courtesies: tuple[str, ...] = ()
    """Sentences around an abstention that say nothing either."""
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """One of :data:`KINDS` to how one asks for it."""
    open_questions: tuple[str, ...] = ()
    """What can't be answered by yes or no."""
    closed_questions: tuple[str, ...] = ()
    """Beginnings of questions that can, whatever else they have."""
    amounts: tuple[str, ...] = ()
    """Words for an amount without a number, in lower case."""
    times: tuple[str, ...] = ()
    """Words for a time without a number, in lower case."""


@cache
def _questions(lang: str | None) -> _Questions:
    return _Questions(rules(QuestionRules, lang))


class _Questions:
    """Question rules, ready to be looked up."""

    def __init__(self, rules: QuestionRules) -> None:
        self.abstention = _any([*rules.abstentions, *catalog().others.abstentions])
        self.continues = _any(rules.continues)
        self.courtesy = _any(rules.courtesies)
        self.kinds = [(kind, _any(rules.kinds.get(kind, ()))) for kind in KINDS]
        self.open = _any(rules.open_questions)
        self.closed = _any(rules.closed_questions)
        self.amount = _any(rules.amounts)
        self.time = _any(rules.times)

    def refuses(self, sentence: str) -> bool:
        match = self.abstention.search(sentence)
        if match is None:
            return False
        turn = self.continues.search(sentence, match.end())
        return turn is None or len(analyse(sentence[turn.end() :]).content) < 3


def _any(patterns: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(patterns) or "(?!)", re.IGNORECASE)


def is_abstention(answer: str) -> bool:
    """True where the answer says that it can't answer, and nothing else of substance.

    "I don't know, but the warranty is two years" is an answer. A blank answer abstains from nothing.
    """
    if is_blank(answer):
        return False
    text = clean(answer).strip()
    known = _questions(language_to_read(text))
    parts = sentences(text) or [text]
    refused = [part for part in parts if known.refuses(part)]
    if not refused:
        return False
    # "I don't know. Do you mean the annual fee?" still abstains: questions and courtesies say nothing.
    others = [part for part in parts if part not in refused and not is_question(part)]
    substance = sum(len(analyse(part).content) for part in others if not known.courtesy.search(part))
    return substance <= 2


def is_courtesy(text: str) -> bool:
    """True where a phrase is one of those around an abstention: a greeting, an offer of help, an excuse."""
    return _questions(language_to_read(text)).courtesy.search(text) is not None


def is_closed(question: str) -> bool:
    """True where ``question`` can be answered by yes or no: by its form, or since nothing else is asked for."""
    if is_blank(question):
        return False
    text = clean(question).casefold()
    known = _questions(language_to_read(text))
    if known.closed.match(text):
        return True
    kind = question_kind(question)
    asks = is_question(text)
    return kind == "yes/no" or (kind == "other" and asks and not known.open.search(text))


def question_kind(question: str) -> str:
    """What ``question`` asks for: duration, number, date, person, place, reason, yes/no, or other."""
    text = clean(question).casefold()
    known = _questions(language_to_read(text))
    for kind, pattern in known.kinds:
        if pattern.search(text):
            if kind == "yes/no" and known.open.search(text) and not known.closed.match(text):
                continue
            return kind
    return "other"


def addresses(question: str, answer: str) -> Support:
    """Does ``answer`` answer ``question``? Whether it is true is another matter.

    Half is the kind of thing that was asked for (a person for who, a number for how many, ...), half
    is the topic: the share of the question's content words that the answer takes up. A short answer
    need not repeat the question, so that its kind alone counts. ``chunk`` is always None.
    """
    if is_blank(answer):
        return Support(0.0, None, "empty answer")
    if is_abstention(answer):
        return Support(0.0, None, "says that it can't answer")
    kind = question_kind(question)
    # A list answers as its lines together do.
    asked, given = analyse(question), analyse(clean(answer).replace("\n", ". "))
    topic = _topic(asked, given)
    fits = _fits(kind, asked, given, answer)
    short = len(given.content) <= 4
    if not fits:
        return Support(round(0.4 * topic, 4), None, f"the question asks for a {kind}, the answer has none")
    if short and kind not in ("other", "reason"):
        return Support(max(0.8, topic), None, f"gives a {kind}" if kind != "yes/no" else "says yes or no")
    value = 0.35 + 0.65 * topic if kind not in ("other", "reason") else 0.15 + 0.85 * min(1.0, topic * 1.25)
    if short:
        value = max(value, 0.6)
    value = round(min(1.0, value), 4)
    missing = ", ".join([term.text for term in asked.content if not _has(term, given)][:4])
    if value < 0.5:
        return Support(value, None, f"off the topic; not taken up: {missing}")
    # So that the remark fits a threshold above the value as well as one below it.
    answers = "answers the question" if kind not in ("other", "reason") or topic == 1 else "on the topic"
    return Support(value, None, f"{answers}; not taken up: {missing}" if missing else answers)


def _topic(asked: Sentence, given: Sentence) -> float:
    total = sum(term.weight for term in asked.content)
    # A question of small words only has no topic to miss.
    if not total:
        return 1.0
    return sum(term.weight for term in asked.content if _has(term, given)) / total


def _has(term: Term, sentence: Sentence) -> bool:
    if term.key in sentence.keys or term.key in sentence.folded:
        return True
    if term.kind == "ideographs":
        return any(c in sentence.folded for c in term.key)
    return len(term.key) >= 4 and any(k.startswith(term.key[:4]) for k in sentence.keys)


def _fits(kind: str, asked: Sentence, given: Sentence, answer: str) -> bool:
    known = _questions(given.lang)
    # Numbers that are copied from the question answer nothing.
    told = {number.readings for number in asked.numbers}
    fresh = [number for number in given.numbers if number.readings not in told]
    if kind in ("number", "duration"):
        return bool(fresh) or known.amount.search(given.folded) is not None
    if kind == "date":
        return bool(fresh) or known.time.search(given.folded) is not None
    if kind in ("person", "place"):
        asked_keys = {term.key for term in asked.content}
        return any(term.key not in asked_keys for term in given.content)
    return bool(given.terms)
