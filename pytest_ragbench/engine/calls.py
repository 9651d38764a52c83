"""A call as data, and what sends it.

A :class:`Call` says everything that a service is asked: who sends it (an adapter, found by name), where to,
and what. It holds JSON only, so that any process can send it and two processes that ask for the same thing
can tell. What only the asking process knows (how a reply becomes a value, whether another turn is needed)
is handed to :meth:`~pytest_ragbench.engine.core.Engine.fetch` beside it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Generic, Literal, Protocol, TypeVar

from pytest_ragbench.model.errors import (
    EmbeddingError,
    EndpointError,
    JudgeError,
    RagbenchError,
    Unscored,
)
from pytest_ragbench.model.scores import Usage

T = TypeVar("T")

Kind = Literal["rag", "judge", "embedding"]
Scope = Literal["store", "run", "none"]
"""How long a reply is kept: for later runs too, for this run (all its workers), or not at all."""

FAILURES: Mapping[str, type[Unscored]] = {
    "rag": EndpointError,
    "judge": JudgeError,
    "embedding": EmbeddingError,
}
"""What is raised when the retries of a call are used up, by kind."""

ADAPTERS: Mapping[str, str] = {
    "chat": "pytest_ragbench.judge.chat:ChatAdapter",
    "embeddings": "pytest_ragbench.embeddings.api:EmbeddingsAdapter",
    "rag": "pytest_ragbench.rag.service:RagAdapter",
}
"""Name -> ``module:class`` of an :class:`Adapter`. A module is imported when a call names its adapter."""


@dataclass(frozen=True, slots=True)
class Call:
    """Something to be asked once.

    Parameters
    ----------
    kind
        Sums (calls, tokens, latency) are kept by kind.
    provider
        Whose call slots and limits the call uses.
    adapter
        Who sends it: a name in :data:`ADAPTERS`, or ``module:class``.
    config
        Where to, and how: plain data that can be pickled, the same for many calls. Credentials in it are
        :class:`~pytest_ragbench.secrets.Secret`, since a call may be logged.
    body
        JSON: what is sent.
    key
        JSON: everything that shapes the reply, and nothing that doesn't; no secret.
    scope
        How long the reply is kept.
    model_name
        The provider's model that is asked, where the key does not name it as ``"model"``.
    """

    kind: Kind
    provider: str
    adapter: str
    config: Any
    body: Any
    key: Mapping[str, Any]
    scope: Scope = "store"
    model_name: str | None = None

    @property
    def model(self) -> str | None:
        """The provider's model that is asked, where there is one."""
        model = self.model_name or self.key.get("model")
        return model if isinstance(model, str) else None

    @property
    def failure(self) -> type[Unscored]:
        """The class to raise when retries are used up."""
        return FAILURES[self.kind]


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
    """The result of one successful attempt: raw reply as JSON values, and the tokens it took.

    ``model``: who replied, where only the reply tells: of a function of the user's.
    """

    payload: Any
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model: str | None = None


class Sender(Protocol):
    """Makes one request: waits for a slot, bounds its time, retries what can heal, counts it."""

    async def __call__(self, attempt: Callable[[], Awaitable[Sent]], /) -> Sent: ...


class Closing(Protocol):
    """An engine, as far as adapters need one."""

    def on_close(self, close: Callable[[], Awaitable[Any]]) -> None:
        """Await ``close()`` on the engine's loop before it stops."""
        ...


class Adapter(Protocol):
    """Sends calls of one form. Made once for each engine, on its loop: ``Class(engine)``."""

    async def fetch(self, call: Call, sender: Sender) -> Any:
        """Make one request or more through ``sender``; returns the payload (JSON) to keep.

        Raises
        ------
        Unscored
            The service refused, in a way that no retry can heal.
        """
        ...


Following = Callable[[Sequence[Any]], Any]
"""Payloads so far -> the body of the next turn, or None where nothing more is to be asked."""


@dataclass(frozen=True)
class Fetched(Generic[T]):
    """A value, and what it took. Where no call was made: zero usage, zero duration, ``cached``."""

    value: T
    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0
    cached: bool = False
    took: float | None = None
    """Of a stored reply: the seconds that it took when it was asked for; None: not known, or not stored."""


class Adapters:
    """The adapters of one engine, each made when it is first needed."""

    def __init__(self, engine: Closing) -> None:
        self._engine = engine
        self._made: dict[str, Adapter] = {}

    def named(self, name: str) -> Adapter:
        """The adapter of this name.

        Raises
        ------
        LookupError
            Neither a name in :data:`ADAPTERS` nor ``module:class``.
        """
        if name not in self._made:
            module, _, attribute = ADAPTERS.get(name, name).partition(":")
            if not attribute:
                raise LookupError(f"unknown adapter {name!r}; known: {', '.join(ADAPTERS)}")
            # Imported here: a run that only asks a service never loads the clients of judges or embedders.
            self._made[name] = getattr(import_module(module), attribute)(self._engine)
        return self._made[name]

    async def send(self, call: Call, sender: Sender, following: Following | None = None) -> Any:
        """The payload of a call; with ``following``, the payloads of all turns."""
        return await send_turns(self.named(call.adapter), call, sender, following)


async def send_turns(adapter: Adapter, call: Call, sender: Sender, following: Following | None = None) -> Any:
    """The payload of a call; with ``following``, the payloads of all turns."""
    payload = await adapter.fetch(call, sender)
    if following is None:
        return payload
    payloads = [payload]
    # Each turn is a request of its own, with a permit and retries of its own; what is stored is all of them.
    while (body := following(payloads)) is not None:
        payloads.append(await adapter.fetch(replace(call, body=body), sender))
    return payloads
