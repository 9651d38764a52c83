"""Accounting: what was asked of whom, and what it took."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Page:
    """Sums over the requests of one kind. Latencies are seconds of successful attempts."""

    calls: int = 0
    """Requests sent, retries included."""
    stored: int = 0
    """Fetches that sent nothing: the store had the reply, or a fetch under way brought it."""
    failed: int = 0
    """Fetches that ended in an error."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latencies: list[float] = field(default_factory=list)


class Books:
    """One page for each kind. Written by the loop's thread only; :meth:`plain` may be read by any."""

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._told: dict[str, dict[str, int]] = {}

    def page(self, kind: str) -> Page:
        return self._pages.setdefault(kind, Page())

    def plain(self) -> dict[str, Any]:
        """Builtin types only: ``{"judge": {"calls": 3, ...}, ...}``."""
        return {kind: asdict(page) for kind, page in sorted(self._pages.copy().items())}

    def news(self) -> dict[str, Any]:
        """What has been added since the last call, in the form of :meth:`plain`; kinds without any are left
        out. Costs no more than there is new, so that it can be asked for after every test.
        """
        new: dict[str, Any] = {}
        for kind, page in sorted(self._pages.copy().items()):
            told = self._told.setdefault(kind, {})
            added: dict[str, Any] = {}
            for name, value in vars(page).items():
                before = told.get(name, 0)
                added[name] = value[before:] if isinstance(value, list) else value - before
                told[name] = before + (len(added[name]) if isinstance(value, list) else added[name])
            if any(added.values()):
                new[kind] = added
        return new
