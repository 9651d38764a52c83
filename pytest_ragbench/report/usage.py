"""Sums of calls, tokens and latencies, by kind of call and by model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UsageSums = Mapping[str, Mapping[str, Any]]
"""``"judge"``, or ``"judge openai:gpt-4o"`` for one of its models -> name -> a number, or a list of seconds."""


def add_usage(total: dict[str, dict[str, Any]], new: UsageSums) -> None:
    """Add ``new`` to ``total`` in place."""
    for kind, entries in new.items():
        sums = total.setdefault(kind, {})
        for name, value in entries.items():
            if isinstance(value, (list, tuple)):
                sums.setdefault(name, []).extend(value)
            else:
                sums[name] = sums.get(name, 0) + value
