"""What the processes of a run have in common, as one interface.

Three implement it: :class:`~pytest_ragbench.engine.local.LocalCoordinator` in the process that owns it (the
only one, or xdist's controller), :class:`~pytest_ragbench.engine.client.RemoteCoordinator` in a worker, which
asks the controller's over a local connection, and
:class:`~pytest_ragbench.engine.on_redis.coordinator.RedisCoordinator` for several hosts. One suite of tests
runs against all of them.

A process that is told to make a call makes it itself: a service's body does not travel, the work of HTTP and
JSON is spread over the workers, and a function of the user's is called where it lives.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, NamedTuple, Protocol

from pytest_ragbench.engine.limits import Limits


class Kept(NamedTuple):
    """A payload, the tokens and seconds that it took when it was asked for, and the run that asked."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    paid_by: str | None = None
    yours: bool = False
    """This run's look-ahead paid for it, and the asking test is the first to come for it."""


class Failure(NamedTuple):
    """What a call ended in, its retries used up."""

    message: str
    code: str
    trace_id: str | None = None
    raw: str | None = None
    """The reply that could not be used: evidence for whoever meets the failure in another process."""


class Reply(NamedTuple):
    """A stored reply. Times are seconds since the epoch; ``run`` is set where it is for one run only."""

    digest: str
    kind: str
    provider: str
    run: str | None
    created: float
    used: float
    payload: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    paid_by: str | None = None

    @property
    def kept(self) -> Kept:
        return Kept(self.payload, self.prompt_tokens, self.completion_tokens, self.seconds, self.paid_by)


class Attempt(NamedTuple):
    """One request that is about to be sent.

    Parameters
    ----------
    size
        Characters of what is asked: from them its tokens are guessed at before the first reply.
    urgent
        A test waits for it; guesses wait behind.
    number
        1 for the first attempt, 2 for the first retry ...
    waited
        What :meth:`Coordinator.leave` returned for the attempt before, if there was one.
    """

    kind: str
    provider: str
    model: str | None
    size: int
    urgent: bool
    limits: Limits
    number: int = 1
    waited: float = 0.0


class Outcome(NamedTuple):
    """What became of an attempt. ``code``: None for a reply, ``"cancelled"``, or the error's.

    ``heals``: it failed in a way that may pass, and ``last``: it is not tried again all the same. ``model``: as
    the reply tells it.
    """

    code: str | None = None
    message: str = ""
    heals: bool = False
    last: bool = False
    retry_after: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    model: str | None = None


class Permit(NamedTuple):
    """Leave to send one request; to be handed back with :meth:`Coordinator.leave`."""

    number: int
    at_once: int = 1
    """Requests to the same provider that are under way, this one included."""


class Event(NamedTuple):
    """Something that counts and needed no request: a stored reply (with what it once took), or a fetch that
    ended in an error; or a reply to record.
    """

    what: Literal["stored", "failed", "record"]
    kind: str = ""
    provider: str = ""
    model: str | None = None
    saved: tuple[int, int] = (0, 0)
    identity: str = ""
    line: str = ""


class Refused(Exception):
    """No request may be sent. ``why``: the provider is ``"down"``, its ``"quota"`` is used up, the run's
    ``"budget"`` is, or the ``"usage"`` is wrong (a price is missing).
    """

    def __init__(self, why: str, message: str) -> None:
        super().__init__(why, message)
        self.why = why
        self.message = message


class Lost(Exception):
    """The coordinator can't be reached any more; the message says why."""


class Coordinator(Protocol):
    """Used on the engine's loop only. All may raise :class:`Lost`."""

    shared: bool
    """Whether other processes use it, too."""

    def stored(self, digest: str) -> Kept | None:
        """A reply that is at hand without waiting; None says nothing."""
        ...

    async def claim(
        self, digest: str, *, ahead: bool, own: bool = False, unreadable: str | None = None
    ) -> Kept | Failure | None:
        """The reply. None: it is for the caller to fetch, and to tell by :meth:`publish` what came of it.

        While somebody else fetches it, this waits for them, whoever they are. A failure is that of a guess
        (``ahead``); a test that gets it takes it away, so that a rerun asks anew. ``own``: the guess is for a test
        of the caller's, which is the one that takes what the caller fetches now. ``unreadable``: a stored text that
        the caller can't read; it is forgotten.
        """
        ...

    def publish(self, digest: str, outcome: Reply | Failure | None) -> None:
        """What came of a claim; None: nothing, so that the next may try."""
        ...

    async def enter(self, attempt: Attempt) -> Permit:
        """Wait for a call slot, and for the provider's pace; take the request from the budget.

        Raises
        ------
        Refused
            It may not be sent.
        """
        ...

    async def leave(self, permit: Permit, outcome: Outcome) -> float:
        """The request is over. For a failed one: the ``waited`` of the next attempt."""
        ...

    async def take(self, digest: str) -> bool:
        """A test comes for what a guess paid: whether it is the first of the run to do so."""
        ...

    async def claim_tests(self, numbers: Collection[int]) -> set[int]:
        """Those tests that nobody else of the run (who still lives) looks ahead to; they are the caller's now."""
        ...

    def note(self, event: Event) -> None:
        """Count, or record."""
        ...

    async def host(self, name: str, arguments: list[Any]) -> Any:
        """Do something once for the run, in the process that owns it: start a model, say where it is."""
        ...

    async def close(self) -> None:
        """Hand over what is left, and give up all that is held."""
        ...
