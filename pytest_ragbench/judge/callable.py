"""Any function as a judge: your own client library, a framework's model, a fake for tests."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Call, Sender, Sent
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.completions import RawReply, completion_of, string_or_none, text_of
from pytest_ragbench.judge.conversation import Conversation, Turn, converse
from pytest_ragbench.judge.rendering import prompt_version
from pytest_ragbench.model.errors import JudgeError, RagbenchError, UsageError

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

R = TypeVar("R", bound=BaseModel)


def callable_judge(
    function: Callable[..., Any], name: str | None = None, engine: Engine | None = None
) -> CallableJudge:
    """A judge that sends its prompts through ``function``.

    Parameters
    ----------
    function
        Takes chat messages (``[{"role": "system", "content": ...}, ...]``) and returns, at once or
        when awaited, the reply: a string, the verdict object as a dict or pydantic model,
        ``(text, finish_reason)``, a chat completion, or an object with ``.content``. A function that
        is not async runs in a thread. An attribute ``ragbench_key`` (JSON: model, temperature ...)
        says that replies may be stored, and under which key; without it nothing is stored.
    name
        What reports show; the function's own name by default.
    engine
        Bounds, counts and stores the calls. Without one the function is simply called.

    Raises
    ------
    UsageError
        ``function`` can't be called.
    """
    if not callable(function):
        raise UsageError(f"a judge must be callable, got {type(function).__name__}")
    return CallableJudge(function, name or _name_of(function), engine)


class CallableJudge:
    """Answers every task through a function; make it with :func:`callable_judge`."""

    tasks: Collection[str] | None = None

    def __init__(self, function: Callable[..., Any], name: str, engine: Engine | None) -> None:
        self.name = name
        self._function = function
        self._engine = engine

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
            heard = talk.read(await converse(talk, self._call))
            return Answered(heard.reply, self.name, said=heard.said)

        async def send(sender: Sender) -> list[RawReply]:
            async def complete(turn: Turn[Any]) -> RawReply:
                async def attempt() -> Sent:
                    return Sent(await self._call(turn))

                reply: RawReply = (await sender(attempt)).payload
                return reply

            return await converse(talk, complete)

        # Nothing else tells whether another run's function would reply in the same way.
        key = getattr(self._function, "ragbench_key", None)
        call = Call(
            kind="judge",
            provider=f"judge:{self.name}",
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
        )
        got = await self._engine.fetch(call, talk.read, send=send)
        return Answered(
            got.value.reply, self.name, got.usage, got.duration, got.cached, got.took, said=got.value.said
        )

    async def _call(self, turn: Turn[Any]) -> RawReply:
        messages = [dict(message) for message in turn.messages]  # the function may change its own
        try:
            # A blocking function in a thread: on the engine's loop it would stop all other calls.
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(messages)
            else:
                result = await asyncio.to_thread(self._function, messages)
                if inspect.isawaitable(result):
                    result = await result
            return _raw(result)
        except RagbenchError:
            raise
        except Exception as error:
            reason = one_line(f"{type(error).__name__}: {error}", 300)
            raise JudgeError(f"the judge {self.name} raised {reason}", code="judge_raised") from error


def _raw(result: Any) -> RawReply:
    """What a function returned, as a raw reply.

    Raises
    ------
    TypeError
        It returned nothing of the kind.
    """
    if isinstance(result, tuple) and len(result) == 2 and (result[1] is None or isinstance(result[1], str)):
        return {**_raw(result[0]), "finish_reason": result[1]}
    # Messages of LangChain are pydantic models, too, and are read by their content below.
    if isinstance(result, BaseModel) and not hasattr(result, "content"):  # a completion, or a typed reply
        result = result.model_dump(mode="json")
    if result is None or isinstance(result, (str, list)):
        return _reply(text_of(result))
    if isinstance(result, Mapping):
        return _raw_mapping(result)
    if hasattr(result, "content"):  # LangChain's messages
        metadata = getattr(result, "response_metadata", None)
        finish = metadata.get("finish_reason") if isinstance(metadata, Mapping) else None
        own = getattr(result, "finish_reason", None)
        return _reply(text_of(result.content), own or finish, getattr(result, "refusal", None))
    raise TypeError(
        f"a judge must return a string, a dict or an object with .content, got {type(result).__name__}"
    )


def _raw_mapping(result: Mapping[str, Any]) -> RawReply:
    """A chat completion, a chat message, or else the verdict object itself."""
    completion = completion_of(result)
    if completion is not None:
        reply: RawReply = completion.payload
        return reply
    # A verdict may have a key `content` as well, but hardly that one alone.
    if isinstance(result.get("content"), str) and ("role" in result or len(result) == 1):
        return _reply(result["content"], result.get("finish_reason"), result.get("refusal"))
    return _reply(json.dumps(result, ensure_ascii=False))


def _reply(content: str | None, finish_reason: Any = None, refusal: Any = None) -> RawReply:
    return {
        "content": content,
        "finish_reason": string_or_none(finish_reason),
        "refusal": string_or_none(refusal),
    }


def _name_of(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", None) or type(function).__name__
    return "judge function" if name == "<lambda>" else str(name)
