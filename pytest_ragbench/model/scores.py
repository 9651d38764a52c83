"""Plain data: a score, and what it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pytest_ragbench.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Usage:
    """What was asked of a provider. ``calls`` counts requests that were sent, retries included."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars, where a price is known."""

    @property
    def tokens(self) -> int:
        """Of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        # Of unknown and known the known: at least that much was paid.
        costs = [cost for cost in (self.cost, other.cost) if cost is not None]
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            sum(costs) if costs else None,
        )


UNSURE = (0.35, 0.65)
"""Between these probabilities a verdict says neither yes nor no with any weight."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of evidence: a claim (or chunk, question, entity) and the verdict on it."""

    text: str
    ok: bool | None = None
    """True ✓, False ✗, None where the line only informs."""
    reason: str = ""
    chunk: int | None = None
    """1-based number of the chunk that the verdict rests on."""
    value: float | None = None
    """How probable the verdict's yes is, where it was graded; of other lines a value of their own."""

    @property
    def unsure(self) -> bool:
        """True where the judge can't tell: a graded verdict with a probability near one half."""
        return self.ok is not None and self.value is not None and UNSURE[0] <= self.value <= UNSURE[1]


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """What a judge sent, word for word."""

    text: str
    task: str = ""
    """What it was asked: ``verify_claims``, ``grade_relevance`` ..."""
    judge: str | None = None
    vote: int = 0
    """Which of several votes it belongs to, from 1; 0 where there was one only."""
    cached: bool = False
    usage: Usage = Usage()
    """Of the conversation that ended with this reply; of earlier replies in it, and of stored ones, nothing."""
    duration: float = 0.0
    """In seconds, likewise."""
    prompt: Callable[[], Sequence[Mapping[str, str]]] | None = field(default=None, repr=False, compare=False)
    """Renders the messages that it replied to: kept for each score, they would be most of a run's memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The value of one metric for one sample (or for a set of them).

    Always finite: what has no value raises :class:`~pytest_ragbench.model.errors.Unscored`.
    ``float(score)`` gives the value.

    Raises
    ------
    UsageError
        Where ``value`` is not a finite number. It is converted to a plain float, so that numpy and
        Decimal values can cross to another process.
    """

    metric: str
    value: float
    reason: str = ""
    error_message: str = ""
    """The judge's own words on what is wrong, where it gave some."""
    evidence: tuple[Finding, ...] = ()
    evidence_title: str = "claims"
    judge: str | None = None
    embedder: str | None = None
    votes: int = 1
    usage: Usage = Usage()
    duration: float = 0.0
    """Seconds spent waiting for judge and embedder (successful attempts; 0 for stored replies)."""
    cached: bool = False
    """True where every reply came from the store."""
    sample_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """Parts of the value by name: ``precision``, ``recall``, ``n_claims`` ..."""
    replies: tuple[JudgeReply, ...] = field(default=(), repr=False, compare=False)
    """What the judge sent; none of the local judge, which computes its verdicts."""

    def __post_init__(self) -> None:
        try:
            value = float(self.value)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(f"{self.metric}: a score must be a finite number, got {self.value!r}")
        # A numpy.float64 would end a run under xdist without results.
        object.__setattr__(self, "value", value)

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Builtin types only, ready for JSON and for another process; without the judge's replies."""
        told: dict[str, Any] = plain(self.fields())
        return told

    def fields(self) -> dict[str, Any]:
        """As :meth:`to_dict`, but for the types of what is in ``details``."""
        told: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__ if name != "replies"}
        told["evidence"] = [asdict(finding) for finding in self.evidence]
        told["usage"] = asdict(self.usage)
        return told


def plain(value: Any) -> Any:
    """The same value in exact builtin types.

    Only those cross from an xdist worker; a ``numpy.float64`` (a subclass of float) would end the
    run without results.
    """
    kind = type(value)
    if kind is dict:
        return {plain(key) if type(key) is str else str(key): plain(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [plain(item) for item in value]
    # Most values are these, and every field of every score passes here.
    if value is None or kind is bool or kind is float or kind is int or (kind is str and value.isascii()):
        return value
    if isinstance(value, str):
        # A lone surrogate (half of a UTF-16 pair, from a broken reply) can't be encoded at all.
        return str.__str__(value).encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy scalars and arrays
        return plain(value.tolist())
    try:
        return float(value)  # Decimal, Fraction
    except (TypeError, ValueError):
        return str(value)
