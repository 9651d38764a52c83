"""A request with closures, and what a fetch brought. New code says what it asks as data: a
:class:`~pytest_ragbench.engine.calls.Call`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pytest_ragbench.engine.calls import Fetched, Kind, Scope, Sender, Sent, Transient
from pytest_ragbench.model.errors import Unscored
from pytest_ragbench.model.scores import Usage

__all__ = ["Fetched", "Kind", "Obtained", "Request", "Scope", "Sender", "Sent", "Transient"]

T = TypeVar("T")


@dataclass(frozen=True)
class Request(Generic[T]):
    """Something to be had once.

    Parameters
    ----------
    kind
        Usage (calls, tokens, latency) is summed by kind.
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
