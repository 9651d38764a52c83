"""What goes into the engine and what comes out. Plain data, no I/O."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from pytest_ragbench.model.errors import RagbenchError, Unscored
from pytest_ragbench.model.scores import Usage

T = TypeVar("T")

Kind = Literal["rag", "judge", "embedding"]
Scope = Literal["store", "run", "none"]
"""How long a reply is kept: for later runs too, for this run (all its workers), or not at all."""


class Transient(RagbenchError):
    """One attempt failed in a way that can heal: timeout, connection error, 408/409/429/5xx.

    Parameters
    ----------
    message
        What happened, in one line, with URL (no secrets) and status.
    code
        ``"timeout"``, ``"connection"``, ``"http_429"`` ...
    retry_after
        Seconds that the server asked for, already parsed from either form of the header.
    """

    def __init__(self, message: str, *, code: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Sent:
    """The result of one successful attempt: raw reply as JSON values, and the tokens it took."""

    payload: Any
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Sender(Protocol):
    """Makes one call: waits for a slot, bounds its time, retries what can heal, counts it."""

    async def __call__(self, attempt: Callable[[], Awaitable[Sent]], /) -> Sent: ...


@dataclass(frozen=True)
class Request(Generic[T]):
    """Something to be had once.

    Parameters
    ----------
    kind
        For the books: calls, tokens and latency are summed by kind.
    provider
        Whose call slots and limits the calls use.
    key
        JSON values: everything that shapes the reply, and nothing that doesn't.
    fetch
        Makes one call or more through the sender that it is given; returns the payload to keep.
    read
        Payload -> value. Raises :class:`~pytest_ragbench.model.errors.Unscored` where the payload is no
        answer; then nothing is kept. A stored payload that can't be read counts as not stored.
    scope
        How long the payload is kept.
    failure
        The class to raise when retries are used up.
    """

    kind: Kind
    provider: str
    key: Mapping[str, Any]
    fetch: Callable[[Sender], Awaitable[Any]]
    read: Callable[[Any], T]
    scope: Scope = "store"
    failure: type[Unscored] = Unscored

    @property
    def model(self) -> str | None:
        """The provider's model that is asked, where there is one."""
        model = self.key.get("model")
        return model if isinstance(model, str) else None


@dataclass(frozen=True, slots=True)
class Fetched(Generic[T]):
    """A value, and what it took.

    ``usage`` and ``duration`` (seconds) are those of this run; both are zero where the payload was
    stored (``cached``).
    """

    value: T
    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0
    cached: bool = False


@dataclass(frozen=True)
class Obtained(Generic[T]):
    """What one fetch brought, for all who wait for it: the reply as it is kept, and the first one's value."""

    text: str
    value: T
    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0
    cached: bool = False
    paid_in_run: bool = False
    """Stored, but asked for by this very run: by a guess of another worker, as a rule."""
