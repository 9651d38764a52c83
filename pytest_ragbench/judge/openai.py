"""A judge behind an OpenAI-compatible chat API."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel

from pytest_ragbench.engine.calls import Call, Scope, Sender
from pytest_ragbench.engine.limits import limits_of
from pytest_ragbench.http.endpoints import OPENAI, Endpoint, endpoint_of
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.chat import ChatAdapter
from pytest_ragbench.judge.conversation import Conversation, Turn
from pytest_ragbench.judge.forms import ChatRequest
from pytest_ragbench.judge.reading.probability import verdict_tokens
from pytest_ragbench.judge.reading.schemas import strict_schema
from pytest_ragbench.judge.rendering import Message, language_of, prompt_version
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import Spec
from pytest_ragbench.secrets import fingerprinted, is_secret_name
from pytest_ragbench.settings import ProviderSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

R = TypeVar("R", bound=BaseModel)

# Part of store keys; rises when replies are asked for or read in another way.
_PROTOCOL = 1


DEFAULT_OPENAI_MODEL = "gpt-4o-mini"
"""Asked where ``OPENAI_API_KEY`` is set and no model is named anywhere."""


def named_judge(spec: Spec) -> ChatJudge:
    """``"PROVIDER"`` or ``"PROVIDER:MODEL"``; see :func:`openai_judge`."""
    settings = spec.settings.providers.get(spec.name, ProviderSettings())
    default = settings.model or (DEFAULT_OPENAI_MODEL if spec.name == OPENAI else None)
    return openai_judge(spec.name, settings, spec.rest or default, spec.engine, environ=spec.environ)


def openai_judge(
    provider_name: str,
    settings: ProviderSettings,
    model: str | None,
    engine: Engine,
    *,
    environ: Mapping[str, str] = os.environ,
) -> ChatJudge:
    """A judge that asks ``model`` (or the provider's own) of a configured provider.

    Raises
    ------
    UsageError
        No model, no base URL or no key: named, before any call.
    """
    name = model or settings.model
    if not name:
        raise UsageError(
            f'provider {provider_name!r} has no model; write judge = "{provider_name}:MODEL" '
            f"or providers.{provider_name}.model"
        )
    engine.set_limits(provider_name, limits_of(settings))
    # A recording is replayed where no key is at hand, in CI for one.
    endpoint = endpoint_of(provider_name, settings, environ, keyless=engine.replays("judge"), model=name)
    return ChatJudge(provider_name, settings, name, engine, endpoint)


class ChatJudge:
    """Answers every task by chat completions; make it with :func:`openai_judge`."""

    tasks: Collection[str] | None = None
    probabilities: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    """Replies are kept by the engine, for all workers: asking ahead of a test makes no call twice."""
    scope: ClassVar[Scope] = "store"
    """How long replies are kept."""

    def __init__(
        self, provider: str, settings: ProviderSettings, model: str, engine: Engine, endpoint: Endpoint
    ) -> None:
        self.name = f"{provider}:{model}"
        self._provider = provider
        self._settings = settings
        self._model = model
        self._engine = engine
        self._endpoint = endpoint

    def __repr__(self) -> str:
        return f"<judge {self.name}>"

    @property
    def identity(self) -> str:
        """With what shapes its replies and is not as usual."""
        settings, usual = self._settings, ProviderSettings.model_fields["temperature"].default
        more = [] if settings.temperature == usual else [f"temperature {settings.temperature}"]
        if settings.extra_body:
            told = json.dumps(fingerprinted(settings.extra_body), sort_keys=True, default=str)
            more.append(f"extra_body {hashlib.sha256(told.encode()).hexdigest()[:8]}")
        return f"{self.name} ({', '.join(more)})" if more else self.name

    @property
    def output_taken(self) -> str:
        """How replies are asked for: ``"json_schema"``, ``"json_object"`` or ``"prompt"``. Known after a call."""
        adapter = self._engine.adapter("chat")
        assert isinstance(adapter, ChatAdapter)
        return adapter.form(self._endpoint, self._request([], 1, None)).output

    async def ask(self, task: Task[R]) -> Answered[R]:
        """See :class:`~pytest_ragbench.judge.base.Judge`."""
        talk = Conversation(task)
        call = Call(
            kind="judge",
            provider=self._provider,
            adapter="chat",
            config=self._endpoint,
            body=self._turn(talk.first),
            key=self._key(task, talk.first.messages),
            scope="run" if task.fresh else self.scope,
            model_name=self._model,
        )

        def following(replies: Sequence[Any]) -> ChatRequest | None:
            turn = talk.following(replies)
            return None if turn is None else self._turn(turn)

        # One fetch for the whole conversation: its replies are stored, and read again, together.
        got = await self._engine.fetch(
            call, talk.read, following=following, send=self._own_sending(call, following)
        )
        return Answered(
            got.value.reply, self.name, got.usage, got.duration, got.cached, got.took,
            said=got.value.said, prompts=got.value.prompts,
        )  # fmt: skip

    def _own_sending(
        self, call: Call, following: Callable[[Sequence[Any]], ChatRequest | None]
    ) -> Callable[[Sender], Awaitable[Any]] | None:
        """What sends the call in the place of its adapter, where something has to be done before or after."""
        return None

    def _key(self, task: Task[Any], messages: list[Message]) -> dict[str, Any]:
        """What shapes the reply. No threshold, no test, no secret."""
        settings = self._settings
        return {
            "protocol": _PROTOCOL,
            "url": self._endpoint.url,
            "model": self._model,
            "prompt": [task.name, prompt_version(task)],
            "messages": messages,
            **({"one_word": _word_tokens(task), "temperature": 0} if task.one_word else self._json_key(task)),
            "seed": settings.seed,
            # A rotated key must not make stored replies useless, and must not be in the key.
            "extra_body": fingerprinted(settings.extra_body),
            "headers": {k: v for k, v in settings.headers.items() if not is_secret_name(k)},
            "vote": task.vote,
        }

    def _json_key(self, task: Task[Any]) -> dict[str, Any]:
        settings = self._settings
        # Schema and limits shape a reply as much as the prompt does; a verdict in a word has neither.
        return {
            "schema": strict_schema(task.reply_schema()),
            "structured_output": settings.structured_output,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
        }

    def _turn(self, turn: Turn[Any]) -> ChatRequest:
        task = turn.task
        # Temperature 0 and few tokens, whatever is configured: only the first token's probability counts.
        if task.one_word:
            return {**self._request(turn.messages, _word_tokens(task), None), "temperature": 0}
        schema = {"name": task.name, "schema": strict_schema(task.reply_schema())}
        return self._request(turn.messages, self._settings.max_tokens * turn.room, schema)

    def _request(
        self, messages: list[Message], max_tokens: int, schema: dict[str, Any] | None
    ) -> ChatRequest:
        return {
            "model": self._model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": self._settings.temperature,
            "seed": self._settings.seed,
            "output": self._settings.structured_output,
            "schema": schema,
        }


def _word_tokens(task: Task[Any]) -> int:
    return verdict_tokens(language_of(task))
