"""A number with its unit, and when two of them are one quantity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pytest_ragbench.text import is_unspaced

_IN_BASE_UNITS: Mapping[str, tuple[str, float]] = {
    "ms": ("second", 0.001), "second": ("second", 1), "minute": ("second", 60), "hour": ("second", 3600),
    "day": ("second", 86_400), "week": ("second", 604_800),
    "mm": ("m", 0.001), "cm": ("m", 0.01), "m": ("m", 1), "km": ("m", 1000),
    "g": ("g", 1), "kg": ("g", 1000), "ton": ("g", 1_000_000),
}  # fmt: skip
"""Unit to the one that it can be counted in, and how many of that it is. Months are left out: their
numbers are those of the calendar, too."""
_OCLOCK = "oclock"
"""Unit of a time of day."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number. ``readings`` has two values where the notation is ambiguous (1.000)."""

    readings: frozenset[float]
    unit: str
    """Normalised unit, ``month`` for a month (1-12), or ``""`` where none is known."""
    start: int
    end: int
    text: str
    firm: bool = True
    """False where the word is a number only now and then ("one")."""
    limit: str = ""
    """``most`` or ``least`` where the number is a limit ..."""
    limit_words: str = ""
    """... and the words that make it one ..."""
    limit_at: tuple[int, int] = (0, 0)
    """... with their place."""
    clock: str = ""
    """``24`` for a time of day such as 9:30, ``12`` where the half of the day is named."""

    @property
    def as_limit(self) -> str:
        """``at most 20 kg``."""
        behind = is_unspaced(self.limit_words[0])
        return f"{self.text}{self.limit_words}" if behind else f"{self.limit_words} {self.text}"

    def matches(self, other: Number) -> bool:
        """True where both can be the same quantity: a shared reading and no two different units."""
        if self.unit and other.unit and self.unit != other.unit:
            return self._converts(other)
        return bool(self.readings & other.readings) or self._rounds(other) or self._on_clock(other)

    def _on_clock(self, other: Number) -> bool:
        """5 p.m. for the 5 of "from 9 to 5", which does not name the half of the day; not for 5:00."""
        if {self.clock, other.clock} != {"12", ""} or {self.unit, other.unit} - {"", _OCLOCK}:
            return False
        named, bare = (self, other) if self.clock else (other, self)
        return any(value - 12 in bare.readings for value in named.readings if value >= 13)

    def _converts(self, other: Number) -> bool:
        """15 minutes for a quarter of an hour, 14 days for two weeks."""
        mine, theirs = _IN_BASE_UNITS.get(self.unit), _IN_BASE_UNITS.get(other.unit)
        if mine is None or theirs is None or mine[0] != theirs[0]:
            return False
        return any(
            math.isclose(one * mine[1], two * theirs[1], rel_tol=1e-6)
            for one in self.readings
            for two in other.readings
        )

    def _rounds(self, other: Number) -> bool:
        """8.5 million for 8,537,673: the claim keeps at least one leading digit and the size."""
        for mine in self.readings:
            digits = f"{mine:.0f}".rstrip("0")
            if mine < 10_000 or len(digits) > 3:
                continue
            step = 10.0 ** (len(f"{mine:.0f}") - len(digits))
            for theirs in other.readings:
                exact = theirs != mine and theirs % step
                if exact and (0 <= theirs - mine < step or abs(theirs - mine) <= step / 2):
                    return True
        return False
