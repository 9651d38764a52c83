"""What is different between two things asked, in words: for a request that a recording does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

_MARKER = re.compile(r"-[0-9a-f]{8}(?=>)")
_OPENING = re.compile(r"<(\w+)>")
_AROUND = 30
_MOST = 4

Leaf = tuple[str, Any, Any]
"""Path, the value recorded, the value now."""


def differences(recorded: Any, now: Any) -> tuple[float, list[str]]:
    """How far apart two JSON values are (0: equal; up to 1 for each leaf), and what differs, at most four
    phrases: ``prompt[1]: '1-0f3a9c27-en' recorded, '2-77aa01bc-en' now``.
    """
    leaves = list(_different(recorded, now, ""))
    distance = sum(1 - _likeness(before, after) for _, before, after in leaves)
    told = [_told(*leaf) for leaf in leaves[:_MOST]]
    if len(leaves) > _MOST:
        told.append(f"and {len(leaves) - _MOST} more")
    return distance, told


def _different(before: Any, after: Any, path: str) -> Iterator[Leaf]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            inner = f"{path}.{name}" if path else name
            yield from _different(before.get(name), after.get(name), inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _different(old, new, f"{path}[{number}]")
    elif before != after or type(before) is not type(after):
        yield path, before, after


def _likeness(before: Any, after: Any) -> float:
    """0..0.99; texts are alike as far as they begin and end alike."""
    if not (isinstance(before, str) and isinstance(after, str)):
        return 0.0
    # Markers of quoted parts differ in every prompt, and would drown what really differs.
    before, after = _MARKER.sub("", before), _MARKER.sub("", after)
    start = _shared(before, after)
    end = _shared(before[start:][::-1], after[start:][::-1])
    return min(0.99, (start + end) / max(len(before), len(after), 1))


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _told(path: str, before: Any, after: Any) -> str:
    if not (isinstance(before, str) and isinstance(after, str)):
        return f"{path}: {_short(before)} recorded, {_short(after)} now"
    before, after = _MARKER.sub("", before), _MARKER.sub("", after)
    start = _shared(before, after)
    labels = _OPENING.findall(before[:start])
    inside = f" ({labels[-1]})" if labels else ""
    begin = max(0, start - _AROUND) if max(len(before), len(after)) > 3 * _AROUND else 0
    return f"{path}{inside}: {_short(before[begin:])} recorded, {_short(after[begin:])} now"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 2 * _AROUND + 10 else f"{shown[: 2 * _AROUND + 6]}...{shown[-1]}"
