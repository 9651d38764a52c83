"""A Python callable in the place of the service."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_ragbench.engine.calls import Call, Sender, Sent, Transient
from pytest_ragbench.engine.threads import call
from pytest_ragbench.model.errors import EndpointError, RagbenchError
from pytest_ragbench.model.samples import Question, RagSample, sample_from
from pytest_ragbench.rag.mapping import COLUMNS, BadReply, ReplyReader, found_in
from pytest_ragbench.rag.trace_context import Trace, new_trace, within
from pytest_ragbench.settings import ReplyMapping

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

_PAIR = ReplyReader(ReplyMapping(contexts="contexts"))

Answer = str | Mapping[str, Any] | RagSample | tuple[str, Any]
"""What a callable may return: the answer; a mapping as a JSON reply would be; a sample; or answer and
contexts (a list of strings, or of mappings with text, id and score)."""


class CallableRetriever:
    """Asks ``function(question)``, or ``function(question, session=...)`` where it has that parameter; sync or async.

    A sync function runs in a thread of its own with the asker's context variables, an async one on
    the engine's loop; both within the question's trace
    (:mod:`~pytest_ragbench.rag.trace_context`). Answers are not kept, since nothing tells when the function changes.
    """

    provider: str = "rag"
    """As of an :class:`~pytest_ragbench.rag.HttpRetriever`."""

    def __init__(
        self,
        function: Callable[[str], Answer | Awaitable[Answer]],
        engine: Engine,
        reader: ReplyReader | None = None,
        name: str | None = None,
    ) -> None:
        self._function = function
        self._takes_session = _takes_session(function)
        self._called = name
        self._engine = engine
        self._reader = reader or ReplyReader()

    @property
    def name(self) -> str:
        """``callable module.function``, or as it was called."""
        return self._called or f"callable {callable_name(self._function)}"

    def __repr__(self) -> str:
        return f"<CallableRetriever {self.name}>"

    async def ask(self, question: Question) -> RagSample:
        """Call the function; see :class:`~pytest_ragbench.rag.Retriever`."""

        async def send(sender: Sender) -> Any:
            traces: list[Trace] = []

            async def attempt() -> Sent:
                traces.append(new_trace())
                with within(traces[-1]):
                    return await self._attempt(question)

            try:
                answer, latency = (await sender(attempt)).payload
            except EndpointError as error:
                error.trace_id = traces[-1].trace_id if traces else None
                raise
            return answer, {
                "latency": latency,
                "at_once": getattr(sender, "at_once", None),
                **traces[-1]._asdict(),
            }

        call = Call(
            kind="rag",
            provider=self.provider,
            adapter="function",
            config=None,
            body=question.question,
            key={"callable": self.name, "question": question.question},
            scope="none",
        )
        fetched = await self._engine.fetch(call, self._read, send=send)
        found, how = fetched.value
        return sample_from(question, **{**how, **found})

    async def _attempt(self, question: Question) -> Sent:
        started = time.monotonic()
        function: Callable[..., Any] = self._function
        if self._takes_session:
            function = functools.partial(function, session=question.session)
        try:
            answer = await call(function, question.question)
        # Raised on purpose, and already in the form that the engine understands.
        except (RagbenchError, Transient):
            raise
        except (Exception, SystemExit) as error:  # sys.exit() there would end the engine's loop
            raise EndpointError(
                f"{self.name} raised {type(error).__name__}: {error}", code="exception"
            ) from error
        return Sent((answer, time.monotonic() - started))

    def _read(self, payload: tuple[Any, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        answer, how = payload
        try:
            # Recordings of earlier versions hold the seconds alone.
            return self._columns(answer), how if isinstance(how, dict) else {"latency": how}
        except BadReply as problem:
            raise EndpointError(f"{self.name}: {problem}", code="bad_reply", raw=repr(answer)) from None

    def _columns(self, answer: Any) -> dict[str, Any]:
        if isinstance(answer, RagSample):
            return _given(answer)
        # A common way to return both from a function.
        if isinstance(answer, tuple) and len(answer) == 2:
            text, contexts = answer
            if not isinstance(text, str):
                raise BadReply(f"the answer of (answer, contexts) is a {type(text).__name__}, not a string")
            if contexts is None:
                return {"answer": text}
            return found_in(_PAIR.read({"answer": text, "contexts": _listed(contexts)}))
        if isinstance(answer, (str, Mapping)):
            return found_in(self._reader.read(answer))
        raise BadReply(
            f"it returned a {type(answer).__name__}; return a string, a dict with answer and contexts, "
            f"(answer, contexts), or a RagSample"
        )


def _takes_session(function: Callable[..., Any]) -> bool:
    try:
        return "session" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # some builtins have none
        return False


def _listed(contexts: Any) -> Any:
    """Any iterable of chunks as a list; anything else stays, for the reader to refuse."""
    if isinstance(contexts, (str, Mapping)) or not hasattr(contexts, "__iter__"):
        return contexts
    return list(contexts)


_COLUMNS = (
    *COLUMNS, "reference", "reference_contexts", "relevant_ids", "relevant_urls", "lang", "latency",
    "first_token",
)  # fmt: skip


def _given(sample: RagSample) -> dict[str, Any]:
    """The columns that the callable's own sample fills; the question's text and id stay."""
    found = {name: getattr(sample, name) for name in _COLUMNS if getattr(sample, name) is not None}
    if sample.contexts is not None:
        found |= {name: getattr(sample, name) for name in COLUMNS[1:]}
    return {**found, "metadata": sample.metadata}


def callable_name(function: Any) -> str:
    """``module.qualified_name`` of a function, method, partial or callable object."""
    inner = getattr(function, "func", function)  # functools.partial
    qualified = getattr(inner, "__qualname__", None)
    if qualified is None:
        inner = type(inner)
        qualified = inner.__qualname__
    return f"{getattr(inner, '__module__', None) or '?'}.{qualified}"
