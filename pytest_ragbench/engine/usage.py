"""Usage: what was asked of whom, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ragbench.engine.prices import Price


@dataclass
class KindUsage:
    """Sums over the calls of one kind, or of one model. Latencies are seconds of successful attempts."""

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


class UsageSums:
    """Sums for each kind (``judge``), and for each of its models (``judge openai:gpt-4o-mini``), which have
    all but latencies. Written by the loop's thread only; :meth:`plain` may be read by any.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, KindUsage] = {}
        self._told: dict[str, dict[str, int]] = {}
        self._marks: dict[str, tuple[float, ...]] = {}

    def of(self, kind: str) -> KindUsage:
        return self._kinds.setdefault(kind, KindUsage())

    def where(self, kind: str, provider: str, model: str | None) -> list[KindUsage]:
        """Where a call is counted: with its kind first, then with its model."""
        return [self.of(kind)] + ([self.of(f"{kind} {provider}:{model}")] if model is not None else [])

    def add_stored(
        self,
        kind: str,
        provider: str,
        model: str | None,
        saved: tuple[int, int],
        price: Callable[[], Price | None],
    ) -> None:
        """A reply was had without a call; ``saved``: the tokens that it took when it was asked for."""
        known = price() if any(saved) and model is not None else None
        for each in self.where(kind, provider, model):
            each.stored += 1
            each.saved_tokens += sum(saved)
            if known is not None:
                each.saved_cost += known.of(*saved)

    def plain(self) -> dict[str, Any]:
        """Builtin types only: ``{"judge": {"calls": 3, ...}, ...}``."""
        # A copy first: the loop's thread may add a kind meanwhile.
        return {kind: asdict(sums) for kind, sums in sorted(self._kinds.copy().items())}

    def totals(self) -> dict[str, dict[str, float]]:
        """The sums alone, by kind: cheap, so that they can be asked for often and by any thread."""
        return {
            kind: {"calls": sums.calls, "stored": sums.stored, "cost": sums.cost}
            for kind, sums in self._kinds.copy().items()
        }

    def news(self) -> dict[str, Any]:
        """What has been added since the last call, in the form of :meth:`plain`; kinds without any are left
        out. Costs no more than there is new, so that it can be asked for after every test.
        """
        new: dict[str, Any] = {}
        for kind, sums in sorted(self._kinds.copy().items()):
            mark = sums.mark()  # before the sums are read: the loop's thread may add to them meanwhile
            if self._marks.get(kind) == mark:
                continue
            self._marks[kind] = mark
            told = self._told.setdefault(kind, {})
            added: dict[str, Any] = {}
            for name, value in vars(sums).items():
                before = told.get(name, 0)
                # Latencies are a list: only its new end travels.
                added[name] = value[before:] if isinstance(value, list) else value - before
                told[name] = before + (len(added[name]) if isinstance(value, list) else added[name])
            if any(added.values()):
                new[kind] = added
        return new
