"""JSON as a judge sends it: what Python's own reader lets through (keys given twice, NaN) is remembered and refused."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any


class UnreadableReply(ValueError):
    """A reply that is not a verdict.

    ``code`` is one of truncated, context_window, repetition, refused, content_filter, interrupted, unfinished,
    empty, only_reasoning, not_json, not_object, missing_key, ambiguous, duplicate_key, non_finite.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class NonFinite:
    literal: str


class Object(dict[str, Any]):
    """A JSON object that remembers a key that it was given twice."""

    duplicate: str | None = None


def _object(pairs: list[tuple[str, Any]]) -> Object:
    found = Object(pairs)
    if len(found) < len(pairs):
        found.duplicate = Counter(key for key, _ in pairs).most_common(1)[0][0]
    return found


def _float(literal: str) -> float | NonFinite:
    value = float(literal)
    return value if math.isfinite(value) else NonFinite(literal)


def _int(literal: str) -> int | NonFinite:
    # No verdict needs more digits, and int() refuses thousands of them.
    return int(literal) if len(literal) <= 300 else NonFinite(literal[:20] + "…")


DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_int, parse_constant=NonFinite, strict=False
)
"""Makes :class:`Object` of objects and :class:`NonFinite` of numbers that are not JSON; see :func:`check_values`."""


def loaded(text: str) -> Any:
    """A service's reply, whose objects remember keys given twice; numbers as Python reads them."""
    return json.loads(text, object_pairs_hook=_object)


def check_values(value: Any, path: str = "") -> None:
    """Refuse what is not JSON in a decoded value.

    Raises
    ------
    UnreadableReply
        Naming the key.
    """
    if isinstance(value, NonFinite):
        raise UnreadableReply(
            "non_finite", f"{path}: {value.literal} is not valid JSON; a finite number is needed"
        )
    if isinstance(value, Object):
        if value.duplicate is not None:
            where = f"{path}.{value.duplicate}" if path else value.duplicate
            raise UnreadableReply("duplicate_key", f"{where}: given twice in the JSON of the reply")
        for key, item in value.items():
            check_values(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_values(item, f"{path}[{index}]")
