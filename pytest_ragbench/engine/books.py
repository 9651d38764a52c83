"""Accounting: what was asked of whom, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.scores import Usage

if TYPE_CHECKING:
    from pytest_ragbench.engine.prices import Price
    from pytest_ragbench.engine.requests import Request


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
    cost: float = 0.0
    """US dollars, for models whose price is known."""
    unpriced: int = 0
    """Tokens of models whose price is not known."""
    saved_tokens: int = 0
    """What the stored replies took when they were asked for."""
    saved_cost: float = 0.0
    latencies: list[float] = field(default_factory=list)

    def mark(self) -> tuple[float, ...]:
        """Another one after each entry."""
        return (
            *(self.calls, self.stored, self.failed, self.prompt_tokens, self.completion_tokens, self.cost),
            *(self.unpriced, self.saved_tokens, self.saved_cost, len(self.latencies)),
        )


class Books:
    """One page for each kind (``judge``), and one for each of its models (``judge openai:gpt-4o-mini``),
    which counts all but latencies. Written by the loop's thread only; :meth:`plain` may be read by any.
    """

    def __init__(self) -> None:
        self._pages: dict[str, Page] = {}
        self._told: dict[str, dict[str, int]] = {}
        self._marks: dict[str, tuple[float, ...]] = {}

    def page(self, kind: str) -> Page:
        return self._pages.setdefault(kind, Page())

    def pages(self, request: Request[Any]) -> list[Page]:
        """Where a request's calls are counted: its kind's page first, then its model's."""
        pages = [self.page(request.kind)]
        if request.model is not None:
            pages.append(self.page(f"{request.kind} {request.provider}:{request.model}"))
        return pages

    def note_stored(self, request: Request[Any], saved: Usage, price: Callable[[], Price | None]) -> None:
        """A reply was had without a call; ``saved``: what it took when it was asked for."""
        known = price() if saved.tokens and request.model is not None else None
        for page in self.pages(request):
            page.stored += 1
            page.saved_tokens += saved.tokens
            if known is not None:
                page.saved_cost += known.of(saved.prompt_tokens, saved.completion_tokens)

    def plain(self) -> dict[str, Any]:
        """Builtin types only: ``{"judge": {"calls": 3, ...}, ...}``."""
        return {kind: asdict(page) for kind, page in sorted(self._pages.copy().items())}

    def totals(self) -> dict[str, dict[str, float]]:
        """The sums alone, by kind: cheap, so that they can be asked for often and by any thread."""
        return {
            kind: {"calls": page.calls, "stored": page.stored, "cost": page.cost}
            for kind, page in self._pages.copy().items()
        }

    def news(self) -> dict[str, Any]:
        """What has been added since the last call, in the form of :meth:`plain`; kinds without any are left
        out. Costs no more than there is new, so that it can be asked for after every test.
        """
        new: dict[str, Any] = {}
        for kind, page in sorted(self._pages.copy().items()):
            mark = page.mark()  # before the sums are read: the loop's thread may add to them meanwhile
            if self._marks.get(kind) == mark:
                continue
            self._marks[kind] = mark
            told = self._told.setdefault(kind, {})
            added: dict[str, Any] = {}
            for name, value in vars(page).items():
                before = told.get(name, 0)
                added[name] = value[before:] if isinstance(value, list) else value - before
                told[name] = before + (len(added[name]) if isinstance(value, list) else added[name])
            if any(added.values()):
                new[kind] = added
        return new
