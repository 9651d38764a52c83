"""A judge behind an OpenAI-compatible chat API: OpenAI, vLLM, Ollama, LiteLLM, a company's gateway.

Services differ in what they take. Structured output by schema is tried first, then JSON mode, then the
prompt alone; what a service refused is remembered for the process. Retries, time limits, call slots and
the store are the engine's: an attempt is exactly one request.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel

from pytest_ragbench.engine.requests import Request, Sender, Sent, Transient
from pytest_ragbench.judge.asking import Conversation, Heard, RawReply, Turn
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.chat import completion_of
from pytest_ragbench.judge.endpoints import Endpoint, endpoint_of
from pytest_ragbench.judge.one_word import INSTEAD, TOP, verdict_tokens
from pytest_ragbench.judge.posting import NotPosted, Poster
from pytest_ragbench.judge.rendering import Message, language_of, prompt_version
from pytest_ragbench.judge.replies import one_line
from pytest_ragbench.judge.schemas import strict_schema
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.rag.secrets import fingerprinted, is_secret_name
from pytest_ragbench.settings import ProviderSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine

R = TypeVar("R", bound=BaseModel)

_PROTOCOL = 1
"""Goes into store keys; rises when replies are asked for or read in another way."""

_HEALS = frozenset({408, 409, 429})
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


@dataclass(frozen=True)
class _Dialect:
    """What a service is known to take."""

    output: str = "json_schema"
    tokens: str = "max_tokens"
    top: int = TOP
    without: frozenset[str] = frozenset()


_DIALECTS: dict[tuple[str, str, str], _Dialect] = {}
"""By URL, model and configured output, for the process."""


def openai_judge(
    provider_name: str,
    settings: ProviderSettings,
    model: str | None,
    engine: Engine,
    *,
    environ: Mapping[str, str] = os.environ,
) -> OpenAIJudge:
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
    from pytest_ragbench.engine.limits import limits_of

    engine.set_limits(provider_name, limits_of(settings))
    endpoint = endpoint_of(provider_name, settings, environ, keyless=engine.replays("judge"))
    return OpenAIJudge(provider_name, settings, name, engine, endpoint)


class OpenAIJudge:
    """Answers every task by chat completions; make it with :func:`openai_judge`."""

    tasks: Collection[str] | None = None
    probabilities: ClassVar[bool] = True
    shared: ClassVar[bool] = True
    """Replies are kept by the engine, for all workers: asking ahead of a test makes no call twice."""

    def __init__(
        self, provider: str, settings: ProviderSettings, model: str, engine: Engine, endpoint: Endpoint
    ) -> None:
        self.name = f"{provider}:{model}"
        self._provider = provider
        self._settings = settings
        self._model = model
        self._engine = engine
        self._endpoint = endpoint
        self._poster = Poster(endpoint, settings.headers, engine)

    def __repr__(self) -> str:
        return f"<judge {self.name}>"

    @property
    def output_taken(self) -> str:
        """How replies are asked for: ``"json_schema"``, ``"json_object"`` or ``"prompt"``. Known after a call."""
        known = _DIALECTS.get((self._endpoint.url, self._model, self._settings.structured_output))
        return (known or self._first_dialect()).output

    async def ask(self, task: Task[R]) -> Answered[R]:
        """See :class:`~pytest_ragbench.judge.base.Judge`."""
        talk = Conversation(task)

        async def fetch(sender: Sender) -> list[RawReply]:
            return await talk.hold(lambda turn: self._complete(turn, sender))

        request: Request[Heard[R]] = Request(
            kind="judge",
            provider=self._provider,
            key=self._key(task, talk.opening),
            fetch=fetch,
            read=talk.read,
            scope="run" if task.fresh else "store",
            failure=JudgeError,
        )
        got = await self._engine.fetch(request)
        return Answered(got.value.reply, self.name, got.usage, got.duration, got.cached, said=got.value.said)

    def _key(self, task: Task[Any], messages: list[Message]) -> dict[str, Any]:
        """What shapes the reply. No threshold, no test, no secret."""
        settings = self._settings
        return {
            "protocol": _PROTOCOL,
            "url": self._endpoint.url,
            "model": self._model,
            "prompt": [task.name, prompt_version(task)],
            "messages": messages,
            **(_word_form(task) if task.one_word else self._json_form(task)),
            "seed": settings.seed,
            "extra_body": fingerprinted(settings.extra_body),
            "headers": {k: v for k, v in settings.headers.items() if not is_secret_name(k)},
            "vote": task.vote,
        }

    def _json_form(self, task: Task[Any]) -> dict[str, Any]:
        settings = self._settings
        return {
            "schema": strict_schema(task.reply_schema()),
            "structured_output": settings.structured_output,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
        }

    # One turn

    async def _complete(self, turn: Turn[Any], sender: Sender) -> RawReply:
        """One reply; more than one call only while the service refuses parts of the request."""
        await self._poster.ready()
        known = (self._endpoint.url, self._model, self._settings.structured_output)
        while True:
            dialect = _DIALECTS.get(known) or self._first_dialect()
            try:
                sent = await sender(lambda used=dialect: self._attempt(turn, used))  # type: ignore[misc]
            except _Refused as refused:
                # Others may have learnt the same, or more, meanwhile.
                if _DIALECTS.get(known, self._first_dialect()) == dialect:
                    _DIALECTS[known] = refused.better
                continue
            reply: RawReply = sent.payload
            return reply

    def _first_dialect(self) -> _Dialect:
        wanted = self._settings.structured_output
        return _Dialect(output="json_schema" if wanted == "auto" else wanted)

    async def _attempt(self, turn: Turn[Any], dialect: _Dialect) -> Sent:
        try:
            posted = await self._poster.post("/chat/completions", self._body(turn, dialect))
        except NotPosted as problem:
            message = (
                f"{self._provider}: no connection to {self._endpoint.url}: {one_line(str(problem), 200)}"
            )
            if problem.heals:
                raise Transient(message, code="connection") from None
            raise JudgeError(message, code="connection") from None
        if not 200 <= posted.status < 300:
            raise self._failure(posted.status, posted.headers, posted.text, dialect)
        return self._sent(posted.text)

    def _body(self, turn: Turn[Any], dialect: _Dialect) -> dict[str, Any]:
        settings = self._settings
        body: dict[str, Any] = {
            "model": self._model,
            "messages": turn.messages,
            dialect.tokens: settings.max_tokens * turn.room,
            "temperature": settings.temperature,
            "seed": settings.seed,
        }
        if turn.task.one_word:
            body |= {dialect.tokens: verdict_tokens(language_of(turn.task)), "temperature": 0}
            body |= {"logprobs": True, "top_logprobs": dialect.top}
        elif dialect.output == "json_schema":
            schema = strict_schema(turn.task.reply_schema())
            named = {"name": turn.task.name, "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        elif dialect.output == "json_object":
            body["response_format"] = {"type": "json_object"}
        body = {key: value for key, value in body.items() if value is not None and key not in dialect.without}
        return {**body, **settings.extra_body}

    # What came back

    def _sent(self, text: str) -> Sent:
        try:
            data = json.loads(text)
        except ValueError:
            data = None
        if isinstance(data, Mapping) and data.get("error") and not data.get("choices"):
            # Gateways report the fault of the service behind them in a reply of their own.
            error = data["error"]
            status = error.get("code") if isinstance(error, Mapping) else None
            raise self._failure(status if isinstance(status, int) else 200, {}, text, None)
        completion = completion_of(data)
        if completion is None:
            head = one_line(text, 200)
            raise JudgeError(
                f"{self._provider}: {self._endpoint.url} sent no chat completion: {head}",
                code="no_completion",
                raw=text,
            )
        return completion

    def _failure(
        self, status: int, headers: Mapping[str, str], body: str, dialect: _Dialect | None
    ) -> Exception:
        """The error for a reply that is one, sorted by whether asking again can help."""
        if dialect is not None and (better := self._better(status, body, dialect)):
            return _Refused(better)
        code, text = _error_of(body)
        message = f"{self._provider}: {status} from {self._endpoint.url}: {one_line(text, 300)}"
        if status < 500 and "logprobs" in text:
            return JudgeError(f"{message}. {INSTEAD}", code="no_logprobs", raw=body)
        if code in _NO_MONEY or status == 402:
            return JudgeError(
                f"{message} (quota used up: {code or status})", code="insufficient_quota", raw=body
            )
        if status in _HEALS or status >= 500:
            return Transient(message, code=f"http_{status}", retry_after=_retry_after(headers))
        return JudgeError(message, code=f"http_{status}", raw=body)

    def _better(self, status: int, body: str, dialect: _Dialect) -> _Dialect | None:
        """How to ask instead, where the service complains about a part that can be left out."""
        if status not in (400, 404, 422, 501):
            return None
        if dialect.output != "prompt" and self._settings.structured_output == "auto" and _FORMAT.search(body):
            return replace(dialect, output="json_object" if dialect.output == "json_schema" else "prompt")
        if dialect.tokens == "max_tokens" and "max_completion_tokens" in body:
            return replace(dialect, tokens="max_completion_tokens")
        if "top_logprobs" in body and dialect.top > _FEW:
            return replace(dialect, top=_FEW)
        if _UNSUPPORTED.search(body):
            for part in ("temperature", "seed"):
                if part not in dialect.without and re.search(rf"['\"`]{part}['\"`]", body):
                    return replace(dialect, without=dialect.without | {part})
        return None


def _word_form(task: Task[Any]) -> dict[str, Any]:
    return {"one_word": verdict_tokens(language_of(task)), "temperature": 0}


_FEW = 5
"""Log probabilities that a service gives which refuses :data:`TOP`."""
_FORMAT = re.compile(
    r"response_format|json_schema|json_object|structured[ _-]?output|json[ _-]mode|guided_json", re.I
)
_UNSUPPORTED = re.compile(r"unsupported|not support|unrecognized|unknown|not permitted|extra inputs", re.I)


class _Refused(Exception):
    """The service does not take the request in this form."""

    def __init__(self, better: _Dialect) -> None:
        super().__init__(better)
        self.better = better


def _error_of(body: str) -> tuple[str, str]:
    """Code and text of an OpenAI-style error body; the body itself where it is something else."""
    try:
        error = json.loads(body)
    except ValueError:
        return "", body
    error = error.get("error", error) if isinstance(error, Mapping) else error
    if not isinstance(error, Mapping):
        return "", str(error)
    codes = [str(error.get(name) or "") for name in ("code", "type")]
    code = next((code for code in codes if code in _NO_MONEY), codes[0])
    return code, str(error.get("message") or error.get("detail") or body)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    from pytest_ragbench.rag.retry_after import parse_retry_after

    milliseconds = headers.get("retry-after-ms") or ""
    if re.fullmatch(r"\d{1,9}(\.\d+)?", milliseconds):
        return float(milliseconds) / 1000
    return parse_retry_after(headers.get("retry-after"), time.time())
