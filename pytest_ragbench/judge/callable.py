"""Any function as a judge: your own client library, a framework's model, a fake for tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Call, Sender, Sent, Transient
from pytest_ragbench.engine.limits import limits_of
from pytest_ragbench.engine.prices import FUNCTION
from pytest_ragbench.engine.threads import call
from pytest_ragbench.http.api import Service
from pytest_ragbench.http.endpoints import Endpoint
from pytest_ragbench.http.failures import failure_in
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.completions import (
    RawReply,
    completion_of,
    finish_reason_of,
    string_or_none,
    text_of,
    tokens_of,
)
from pytest_ragbench.judge.conversation import Conversation, Turn, converse
from pytest_ragbench.judge.reading.endings import outage_in
from pytest_ragbench.judge.rendering import prompt_version
from pytest_ragbench.model.errors import JudgeError, RagbenchError, UsageError
from pytest_ragbench.settings import Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

R = TypeVar("R", bound=BaseModel)


_MESSAGE_KEYS = frozenset(("role", "content", "finish_reason", "refusal", "usage", "model"))


def callable_judge(
    function: Callable[..., Any],
    name: str | None = None,
    engine: Engine | None = None,
    settings: Settings | None = None,
) -> CallableJudge:
    """A judge that sends its prompts through ``function``.

    Parameters
    ----------
    function
        Takes chat messages (``[{"role": "system", "content": ...}, ...]``) and returns, at once or
        when awaited, the reply: a string, the verdict object as a dict or pydantic model,
        ``(text, finish_reason)``, a chat completion, an object with ``.content``, or
        ``{"content": ..., "usage": {"prompt_tokens": ..., "completion_tokens": ...}, "model": ...}``, whose
        tokens and model count in usage and budget. A function that is not async runs in a thread. Errors with a
        status or Retry-After, as client libraries raise them, are retried or not as those of any service.
        An attribute ``ragbench_key`` (JSON: model, temperature ...) says that replies may be stored, and under
        which key; without it nothing is stored.
    name
        What reports show; the function's own name by default.
    engine
        Bounds, counts and stores the calls. Without one the function is simply called.
    settings
        Their ``providers.NAME`` has timeout, retries, limits and prices for the judge of this name.

    Raises
    ------
    UsageError
        ``function`` can't be called.
    """
    if not callable(function):
        raise UsageError(f"a judge must be callable, got {type(function).__name__}")
    judge = CallableJudge(function, name or _name_of(function), engine)
    own = None if settings is None else settings.providers.get(judge.name)
    if engine is not None and own is not None:
        engine.set_limits(judge.provider, limits_of(own))
    return judge


class CallableJudge:
    """Answers every task through a function; make it with :func:`callable_judge`."""

    tasks: Collection[str] | None = None

    def __init__(self, function: Callable[..., Any], name: str, engine: Engine | None) -> None:
        self.name = name
        self.provider = f"{FUNCTION}{name}"
        """Whose limits and prices hold for its calls."""
        self._function = function
        self._engine = engine
        self._service = Service(Endpoint(f"the judge {name}", "the function"), JudgeError)

    def __repr__(self) -> str:
        return f"<judge {self.name}>"

    @property
    def identity(self) -> str:
        """With a fingerprint of ``ragbench_key``: a function with another one is another judge."""
        key = getattr(self._function, "ragbench_key", None)
        if key is None:
            return self.name
        told = json.dumps(key, sort_keys=True, default=str).encode("utf-8", "replace")
        return f"{self.name} (key {hashlib.sha256(told).hexdigest()[:8]})"

    async def ask(self, task: Task[R]) -> Answered[R]:
        """See :class:`~pytest_ragbench.judge.base.Judge`."""
        talk = Conversation(task)
        if self._engine is None:
            heard = talk.read(await converse(talk, self._called_once))
            return Answered(heard.reply, self.name, said=heard.said, prompts=heard.prompts)

        async def send(sender: Sender) -> list[RawReply]:
            async def complete(turn: Turn[Any]) -> RawReply:
                reply: RawReply = (await sender(lambda: self._call(turn))).payload
                return reply

            return await converse(talk, complete)

        # Nothing else tells whether another run's function would reply in the same way.
        key = getattr(self._function, "ragbench_key", None)
        request = Call(
            kind="judge",
            provider=self.provider,
            adapter="function",
            config=None,
            body=talk.first.messages,
            key={
                "key": key,
                "prompt": [task.name, prompt_version(task)],
                "messages": talk.first.messages,
                "vote": task.vote,
            },
            scope="none" if key is None else "run" if task.fresh else "store",
            model_name=string_or_none(key.get("model")) if isinstance(key, Mapping) else None,
        )
        got = await self._engine.fetch(request, talk.read, send=send)
        return Answered(
            got.value.reply, self.name, got.usage, got.duration, got.cached, got.took,
            said=got.value.said, prompts=got.value.prompts,
        )  # fmt: skip

    async def _called_once(self, turn: Turn[Any]) -> RawReply:
        try:
            reply: RawReply = (await self._call(turn)).payload
        except Transient as error:
            raise JudgeError(str(error), code=error.code) from error.__cause__
        return reply

    async def _call(self, turn: Turn[Any]) -> Sent:
        messages = [dict(message) for message in turn.messages]  # the function may change its own
        try:
            sent = _sent(await call(self._function, messages))
            if (outage := outage_in(sent.payload)) is not None:
                raise Transient(f"{self.name}: {outage}", code="interrupted")
            return sent
        except RagbenchError:
            raise
        except Exception as error:
            sorted_error = failure_in(error, self._service)
            if sorted_error is not None:
                raise sorted_error from error
            reason = one_line(f"{type(error).__name__}: {error}", 300)
            raise JudgeError(f"the judge {self.name} raised {reason}", code="judge_raised") from error


def _sent(result: Any) -> Sent:
    """What a function returned, as a raw reply, with the tokens and the model that it tells of.

    Raises
    ------
    TypeError
        It returned nothing of the kind.
    """
    if isinstance(result, tuple) and len(result) == 2 and (result[1] is None or isinstance(result[1], str)):
        inner = _sent(result[0])
        return replace(inner, payload={**inner.payload, "finish_reason": result[1]})
    # Messages of LangChain are pydantic models, too, and are read by their content below.
    if isinstance(result, BaseModel) and not hasattr(result, "content"):  # a completion, or a typed reply
        result = result.model_dump(mode="json")
    if result is None or isinstance(result, (str, list)):
        return Sent(_reply(text_of(result)))
    if isinstance(result, Mapping):
        return _sent_mapping(result)
    if hasattr(result, "content"):  # LangChain's messages
        found = getattr(result, "response_metadata", None)
        metadata = found if isinstance(found, Mapping) else {}
        finish = getattr(result, "finish_reason", None) or metadata.get("finish_reason")
        usage = getattr(result, "usage_metadata", None) or getattr(result, "usage", None)
        model = getattr(result, "model", None) or metadata.get("model_name")
        reply = _reply(text_of(result.content), finish, getattr(result, "refusal", None))
        return Sent(reply, *tokens_of(usage), string_or_none(model))
    raise TypeError(
        f"a judge must return a string, a dict or an object with .content, got {type(result).__name__}"
    )


def _sent_mapping(result: Mapping[str, Any]) -> Sent:
    """A chat completion, a chat message, or else the verdict object itself."""
    model = string_or_none(result.get("model"))
    completion = completion_of(result)
    if completion is not None:
        return replace(completion, model=model)
    # A verdict may have a key `content` as well, but hardly among those of a message alone.
    if "content" in result and ("role" in result or result.keys() <= _MESSAGE_KEYS):
        content = result["content"]
        text = json.dumps(content, ensure_ascii=False) if isinstance(content, Mapping) else text_of(content)
        reply = _reply(text, result.get("finish_reason"), result.get("refusal"))
        return Sent(reply, *tokens_of(result.get("usage")), model)
    return Sent(_reply(json.dumps(result, ensure_ascii=False)))


def _reply(content: str | None, finish_reason: Any = None, refusal: Any = None) -> RawReply:
    return {
        "content": content,
        "finish_reason": finish_reason_of(finish_reason),
        "refusal": string_or_none(refusal),
    }


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None) or type(function).__name__
    return "judge function" if name == "<lambda>" else str(name)
