"""Field types of judge replies: what counts as yes, as a grade, as a string.

Strict on purpose. A value that is not clearly one of the allowed ones is an error that quotes it;
nothing is clamped, rounded, guessed or filled in, since any default would be a verdict that no judge
gave.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from pytest_ragbench.languages import catalog

# Yes and no


@dataclass(frozen=True)
class VerdictWords:
    """``verdicts.toml``: whole replies that mean yes and no.

    Not words to look for: "not yes" and "yes and no" are in neither list. A word that means yes in one language
    and no in another ("jo") counts as neither.
    """

    topic: ClassVar[str] = "verdicts"

    yes: frozenset[str] = frozenset()
    no: frozenset[str] = frozenset()


# What may stand around the word: quotes, brackets, markdown, a full stop. Not a question mark, not a
# leading minus or exclamation mark: those change the meaning.
_BEFORE = " \t\r\n\"'`*_([{<«“”„‘’‚「『【〈《（¡"
_AFTER = " \t\r\n\"'`*_)]}>»“”‘’」』】〉》）.,;:!。、।։۔…"


def _plain(text: str) -> str:
    """NFKC and lower case, without invisible characters: ``"ＹＥＳ"`` and ``"yes"`` are the same."""
    # Twice: casefold can produce what NFKC has to compose again.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


@cache
def _verdicts() -> Mapping[str, bool]:
    others = catalog().others
    spoken = [each.rules(VerdictWords) for each in catalog()]
    yes = {_plain(word) for word in others.yes.union(others.yes_phrases, *(each.yes for each in spoken))}
    no = {_plain(word) for word in others.no.union(others.no_phrases, *(each.no for each in spoken))}
    return {word: word in yes for word in yes ^ no}


def yes_no(value: Any) -> bool:
    """``True`` or ``False`` from a boolean, 0 or 1, ``"0"`` or ``"1"``, or a word for yes or no.

    Words are understood in many languages, in any case and width, with punctuation around them,
    but only where they are the whole value.

    Raises
    ------
    ValueError
        Anything else: 2, -1, null, ``"maybe"``, ``"yes and no"``.
    """
    # Before numbers: True is an int.
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        word = " ".join(_plain(value).split()).lstrip(_BEFORE).rstrip(_AFTER)
        if word in ("0", "1"):
            return word == "1"
        if word in _verdicts():
            return _verdicts()[word]
    raise ValueError(f"{shown(value)} is neither yes nor no")


YesNo = Annotated[bool, PlainValidator(yes_no), WithJsonSchema({"type": "boolean"})]
"""A verdict: see :func:`yes_no`."""


# Grades

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def _number(value: Any) -> int | float | None:
    """A number from a number or from text that is nothing but one; None where it is none."""
    if isinstance(value, str):
        text = unicodedata.normalize("NFKC", value).strip()
        # float() also takes '1_000', 'nan' and 'infinity'; and a megabyte of digits takes long.
        if len(text) > 60 or not _NUMBER.fullmatch(text):
            return None
        value = float(text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None


def grade01(value: Any) -> float:
    """A grade in 0..1 from a number or numeric text.

    Raises
    ------
    ValueError
        Anything else: a boolean, NaN, 1.5, ``"80%"``, ``"8/10"``. Which scale was meant can't be
        known, so nothing is clamped or rescaled.
    """
    number = _number(value)
    if number is None or not 0 <= number <= 1:
        raise ValueError(f"{shown(value)} is not a number in the range 0..1")
    return float(abs(number))  # no -0.0


Grade01 = Annotated[
    float, PlainValidator(grade01), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
"""A grade in 0..1: see :func:`grade01`."""


@dataclass(frozen=True, slots=True)
class IntegerScale:
    """Grades from ``low`` to ``high`` in whole steps: ``Annotated[int, IntegerScale(0, 4, 2)]``."""

    low: int
    high: int
    step: int = 1

    def __post_init__(self) -> None:
        if self.step < 1 or self.high <= self.low or (self.high - self.low) % self.step:
            raise ValueError(f"no scale: {self.low}..{self.high} by {self.step}")

    def __str__(self) -> str:
        return f"{self.low}..{self.high}" + (f" by {self.step}" if self.step > 1 else "")

    @property
    def grades(self) -> range:
        return range(self.low, self.high + 1, self.step)

    def read(self, value: Any) -> int:
        """The grade, from a whole number or its text.

        Raises
        ------
        ValueError
            Anything that is not on the scale: 1.5, 4 on 0..2, True, None.
        """
        number = _number(value)
        if number is None or number not in self.grades:
            raise ValueError(f"{shown(value)} is not a grade on the scale {self}")
        return int(number)

    def normalised(self, grade: int) -> float:
        """The grade in 0..1: (grade - low) / (high - low)."""
        return (grade - self.low) / (self.high - self.low)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        if self.step > 1:
            return {"type": "integer", "enum": list(self.grades)}
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


def grade_on(low: int, high: int, step: int = 1) -> Any:
    """The field type for an integer scale known only at run time; see :class:`IntegerScale`."""
    return Annotated[int, IntegerScale(low, high, step)]


# Texts


def _text(value: Any) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not a string")
    return value


Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": "string"})]
"""A string; null counts as the empty one."""


def _item(value: Any) -> Any:
    if value is None:
        raise ValueError("null is not allowed in a list of strings")
    return _text(value)


ListedText = Annotated[str, BeforeValidator(_item), WithJsonSchema({"type": "string"})]
"""A string in a list, where null is refused: it would quietly shorten what is counted."""


def shown(value: Any, limit: int = 80) -> str:
    """The value as messages quote it: JSON words for JSON values, cut, on one line."""
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else _repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # an integer of more than 4300 digits has no decimal text
        return f"a {type(value).__name__} too large to show"
