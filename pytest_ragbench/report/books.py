"""Sums of calls, tokens and latencies, by kind of call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

Books = Mapping[str, Mapping[str, Any]]
"""Kind -> name -> a number, or a list of seconds."""


def add(total: dict[str, dict[str, Any]], new: Books) -> None:
    """Add ``new`` to ``total`` in place."""
    for kind, entries in new.items():
        sums = total.setdefault(kind, {})
        for name, value in entries.items():
            if isinstance(value, (list, tuple)):
                sums.setdefault(name, []).extend(value)
            else:
                sums[name] = sums.get(name, 0) + value


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` (0..1) of ``values`` do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
