"""Thresholds as people write them: ``">=0.8"``, ``0.8``, ``"0.7..0.9"``, ``"good"``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_ragbench.model.errors import UsageError

Direction = Literal["higher", "lower"]
"""Which way is better."""

TOLERANCE = 1e-9
"""Float noise allowed on both sides of a limit: 0.7999999999999999 meets ``>=0.8``."""

_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_COMPARISON = re.compile(rf"(>=|<=|==|>|<)\s*({_NUMBER})")
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})")
_HELP = "write '>=0.8', '>0.8', '<=0.2', '<0.2', '==1', '0.7..0.9', a number, or a band"


@dataclass(frozen=True, slots=True)
class Scale:
    """What a threshold has to know of a metric.

    Parameters
    ----------
    metric
        Its name, for messages.
    low, high
        The metric's range; ``math.inf`` where there is no bound.
    direction
        ``"higher"`` or ``"lower"`` is better.
    bands
        Lower limits of the named bands, e.g. ``{"excellent": 0.9, "good": 0.7}`` (upper limits where
        lower is better).
    """

    metric: str = "score"
    low: float = 0.0
    high: float = 1.0
    direction: Direction = "higher"
    bands: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Threshold:
    """A readable condition on a score: ``low <= value <= high``, each end open or closed."""

    text: str
    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False

    def met(self, value: float) -> bool:
        """Whether ``value`` satisfies the condition, up to :data:`TOLERANCE`. NaN never does."""
        above = value > self.low + TOLERANCE if self.low_open else value >= self.low - TOLERANCE
        below = value < self.high - TOLERANCE if self.high_open else value <= self.high + TOLERANCE
        return above and below

    def shown(self, value: float) -> str:
        """``value`` with as many digits as it takes to see on which side of the limit it lies."""
        limits = [limit for limit in (self.low, self.high) if math.isfinite(limit)]
        # 17 digits tell any two floats apart.
        for digits in range(2, 17):
            text = f"{value:.{digits}f}"
            text = text.removeprefix("-") if float(text) == 0 else text
            if self.met(float(text)) == self.met(value) and all(
                float(text) != limit or abs(value - limit) <= TOLERANCE for limit in limits
            ):
                return text
        return repr(value)

    def __str__(self) -> str:
        return self.text


def parse_threshold(threshold: str | float | Threshold, scale: Scale | None = None) -> Threshold:
    """Read a threshold and check it against the metric's range and direction.

    A bare number is a limit in the metric's good direction: at least 0.8 where higher is better, at
    most 0.2 where lower is. A band means "that band or better".

    Raises
    ------
    UsageError
        Unreadable, not finite, out of the metric's range, or pointing the wrong way.
    """
    scale = scale or Scale()
    # Its direction is checked below: it may have been parsed for another metric.
    if isinstance(threshold, Threshold):
        parsed = threshold
    # True would be read as >=1.
    elif isinstance(threshold, bool) or not isinstance(threshold, (str, int, float)):
        raise UsageError(
            f"threshold for {scale.metric} must be a string or a number, got {threshold!r}; {_HELP}"
        )
    elif isinstance(threshold, str):
        parsed = _parse_text(threshold, scale)
    else:
        parsed = _limit(_better(scale), float(threshold), scale)
    _check_direction(parsed, scale)
    return parsed


def _parse_text(text: str, scale: Scale) -> Threshold:
    # As phones, spreadsheets and word processors write them.
    cleaned = text.strip().replace("≥", ">=").replace("≤", "<=").replace("−", "-")
    if match := _COMPARISON.fullmatch(cleaned):
        return _limit(match[1], float(match[2]), scale)
    if match := _RANGE.fullmatch(cleaned):
        low, high = float(match[1]), float(match[2])
        if low > high:
            raise UsageError(f"threshold {text!r} for {scale.metric} is empty: {low:g} is above {high:g}")
        for limit in (low, high):
            _check_range(limit, text, scale)
        return Threshold(cleaned.replace(" ", ""), low, high)
    if re.fullmatch(_NUMBER, cleaned):
        return _limit(_better(scale), float(cleaned), scale)
    bands = scale.bands or {}
    if cleaned.casefold() in bands:
        return _limit(_better(scale), bands[cleaned.casefold()], scale)
    if cleaned.isalpha():
        known = ", ".join(f"{name} ({limit:g})" for name, limit in bands.items()) or "none"
        raise UsageError(
            f"threshold {text!r} for {scale.metric} is not a band; its bands: {known}. Or {_HELP}"
        )
    raise UsageError(f"unreadable threshold {text!r} for {scale.metric}; {_HELP}{_hint(cleaned)}")


def _hint(text: str) -> str:
    if "%" in text:
        return ". Percent signs are not understood: 80% is 0.8"
    if re.search(r"\d,\d", text):
        return ". Use a decimal point, not a comma"
    if re.match(r"=[<>]", text):
        return f". Did you mean {text[1] + '=' + text[2:]!r}?"
    if "nan" in text.casefold() or "inf" in text.casefold():
        return ". The limit must be a finite number"
    return ""


def _better(scale: Scale) -> str:
    return ">=" if scale.direction == "higher" else "<="


def _limit(operator: str, limit: float, scale: Scale) -> Threshold:
    # Without float noise: 0.1 + 0.2 reads as 0.3.
    text = f"{operator}{limit:.12g}"
    if not math.isfinite(limit):
        raise UsageError(f"threshold {text!r} for {scale.metric} must be a finite number")
    _check_range(limit, text, scale)
    match operator:
        case ">=" | ">":
            threshold = Threshold(text, low=limit, low_open=operator == ">")
        case "<=" | "<":
            threshold = Threshold(text, high=limit, high_open=operator == "<")
        case _:
            threshold = Threshold(text, low=limit, high=limit)
    if (operator == ">" and limit >= scale.high) or (operator == "<" and limit <= scale.low):
        raise UsageError(
            f"threshold {text!r} for {scale.metric} can never be met: it ranges over "
            f"{scale.low:g}..{scale.high:g}"
        )
    return threshold


def _check_range(limit: float, text: str, scale: Scale) -> None:
    if not scale.low <= limit <= scale.high:
        raise UsageError(
            f"threshold {text!r} for {scale.metric}: {limit:g} lies outside its range {scale.low:g}..{scale.high:g}"
        )


def _check_direction(threshold: Threshold, scale: Scale) -> None:
    # A range, and ==, point both ways and are taken at their word.
    only_low = math.isinf(threshold.high) and math.isfinite(threshold.low)
    only_high = math.isinf(threshold.low) and math.isfinite(threshold.high)
    if scale.direction == "higher" and only_high:
        raise UsageError(
            f"threshold {threshold.text!r} for {scale.metric} points the wrong way: higher is better, "
            f"so write '>={threshold.high:g}'"
        )
    if scale.direction == "lower" and only_low:
        raise UsageError(
            f"threshold {threshold.text!r} for {scale.metric} points the wrong way: lower is better, "
            f"so write '<={threshold.low:g}'"
        )
