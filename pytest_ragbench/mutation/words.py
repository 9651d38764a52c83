"""Words that rules exchange, by language. Each pair changes the meaning, or keeps it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from pytest_ragbench.languages import DEFAULT, language


@dataclass(frozen=True)
class MutationWords:
    """``mutation.toml``. Pairs are (what is replaced, its replacement)."""

    topic: ClassVar[str] = "mutation"

    units: tuple[tuple[str, ...], ...] = ()
    """Behind a number."""
    negations: tuple[tuple[str, ...], ...] = ()
    """To the opposite, as patterns."""
    rephrased: tuple[tuple[str, ...], ...] = ()
    """To the same in other words, as patterns."""
    added: str = ""
    """A claim that no document makes; a language without one is changed by the words of the default."""
    months: tuple[str, ...] = ()
    before_month: tuple[str, ...] = ()
    """Words after which a name that is also another word (May, March) is the month."""
    weekdays: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    """Patterns of dates in digits, with three groups: before the month, the month, after it."""
    names: tuple[str, ...] = ()
    """In place of a name; the second where the text has the first."""
    name: str = "(?!)"
    """Pattern of a place where a name stands, in its first group."""
    no_names: tuple[str, ...] = ()
    """What looks like a name there."""
    leaning: tuple[str, ...] = ()
    """Patterns of beginnings of sentences that lean on the one before."""

    @cached_property
    def name_pattern(self) -> re.Pattern[str]:
        """:attr:`name`, compiled."""
        return re.compile(self.name)


def mutation_language(lang: str) -> str:
    """The language whose words change text in ``lang``."""
    known = language(lang, DEFAULT)
    return known.code if known.rules(MutationWords).added else DEFAULT


def words_of(lang: str) -> MutationWords:
    """The words of a language from :func:`mutation_language`."""
    return language(lang).rules(MutationWords)
