"""Sending chat completions to an OpenAI-compatible API: OpenAI, vLLM, Ollama, LiteLLM, a company's gateway.

Services differ in what they take. Structured output by schema is tried first, then JSON mode, then the
prompt alone; what a service refused is remembered. Retries, time limits, call slots and the store are the
engine's: an attempt is exactly one request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Call, Closing, Sender, Sent
from pytest_ragbench.http.api import ApiClient, ApiReply, Service
from pytest_ragbench.http.endpoints import Endpoint
from pytest_ragbench.judge.completions import RawReply, completion_of
from pytest_ragbench.model.errors import JudgeError

DEFAULT_TOP_LOGPROBS = 20
"""Of how many tokens the probability is asked: the most that OpenAI gives."""
# How many a service gives that refuses :data:`DEFAULT_TOP_LOGPROBS`.
_FEW_TOP_LOGPROBS = 5

NO_LOGPROBS_HINT = (
    'Ask a model whose service gives log probabilities ("top_logprobs"), '
    'or set verdicts = "json" for the metric'
)

_ABOUT_FORMAT = re.compile(
    r"response_format|json_schema|json_object|structured[ _-]?output|json[ _-]mode|guided_json", re.I
)
_UNSUPPORTED = re.compile(r"unsupported|not support|unrecognized|unknown|not permitted|extra inputs", re.I)


class ChatRequest(TypedDict):
    """One chat completion to be had, as JSON values."""

    model: str
    messages: list[dict[str, str]]
    max_tokens: int
    temperature: float | None
    seed: int | None
    output: str
    """``"auto"``, ``"json_schema"``, ``"json_object"`` or ``"prompt"``."""
    schema: dict[str, Any] | None
    """Name and strict JSON schema of the reply; None where log probabilities are asked for instead."""


@dataclass(frozen=True)
class RequestForm:
    """The form in which a service is known to take requests."""

    output: str = "json_schema"
    limit_name: str = "max_tokens"
    top_logprobs: int = DEFAULT_TOP_LOGPROBS
    without: frozenset[str] = frozenset()


class ChatAdapter:
    """Sends chat completions. It is given data only, so any process of the run can do it."""

    def __init__(self, engine: Closing) -> None:
        self._engine = engine
        self._clients: dict[str, ApiClient] = {}
        self._forms: dict[tuple[str, str, str], RequestForm] = {}

    def form(self, endpoint: Endpoint, asked: ChatRequest) -> RequestForm:
        """The form that the service takes, as far as it is known."""
        return self._forms.get(_known_by(endpoint, asked)) or _first_form(asked)

    async def fetch(self, call: Call, sender: Sender) -> RawReply:
        """One reply; more than one request only while the service refuses parts of it.

        ``call.config`` is an :class:`~pytest_ragbench.http.endpoints.Endpoint`, ``call.body`` a
        :class:`ChatRequest`.

        Raises
        ------
        JudgeError
            The service refused, or sent no chat completion.
        """
        return await self.ask(self._client(call.config), call.body, sender)

    async def ask(self, service: Service, asked: ChatRequest, sender: Sender) -> RawReply:
        """As :meth:`fetch`, of a service that need not be data."""
        endpoint = service.endpoint
        await service.ready()
        while True:
            form = self.form(endpoint, asked)
            try:
                sent = await sender(lambda used=form: _attempt(service, asked, used))  # type: ignore[misc]
            except _Refused as refused:
                # Concurrent calls may have learnt the same, or more, meanwhile.
                if self.form(endpoint, asked) == form:
                    self._forms[_known_by(endpoint, asked)] = refused.better
                continue
            reply: RawReply = sent.payload
            return reply

    def _client(self, endpoint: Endpoint) -> ApiClient:
        client = self._clients.get(endpoint.identity)
        if client is None:
            client = self._clients[endpoint.identity] = ApiClient(endpoint, JudgeError, self._engine.on_close)
        return client


def _known_by(endpoint: Endpoint, asked: ChatRequest) -> tuple[str, str, str]:
    return endpoint.url, asked["model"], asked["output"]


def _first_form(asked: ChatRequest) -> RequestForm:
    return RequestForm(output="json_schema" if asked["output"] == "auto" else asked["output"])


async def _attempt(client: Service, asked: ChatRequest, form: RequestForm) -> Sent:
    reply = await client.post("/chat/completions", _body(asked, form, client.endpoint.extra_body))
    if not 200 <= reply.status < 300:
        better = _better(reply, form, asked)
        raise _Refused(better) if better else _failure(client, reply)
    return _completed(client, reply)


def _body(asked: ChatRequest, form: RequestForm, extra: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": asked["model"],
        "messages": asked["messages"],
        form.limit_name: asked["max_tokens"],
        "temperature": asked["temperature"],
        "seed": asked["seed"],
    }
    if asked["schema"] is None:
        body |= {"logprobs": True, "top_logprobs": form.top_logprobs}
    elif form.output == "json_schema":
        body["response_format"] = {"type": "json_schema", "json_schema": {**asked["schema"], "strict": True}}
    elif form.output == "json_object":
        body["response_format"] = {"type": "json_object"}
    # None means that the service decides; some refuse an explicit null.
    body = {key: value for key, value in body.items() if value is not None and key not in form.without}
    # Last, so that the user's own parameters win.
    return {**body, **extra}


def _completed(client: Service, reply: ApiReply) -> Sent:
    try:
        data = json.loads(reply.text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, Mapping) and data.get("error") and not data.get("choices"):
        # Gateways report the fault of the service behind them in a reply with status 200.
        error = data["error"]
        status = error.get("code") if isinstance(error, Mapping) else None
        raise _failure(client, ApiReply(status if isinstance(status, int) else 200, {}, reply.text))
    completion = completion_of(data)
    if completion is None:
        where = client.endpoint
        raise JudgeError(
            f"{where.provider}: {where.url} sent no chat completion: {one_line(reply.text)}",
            code="no_completion",
            raw=reply.text,
        )
    return completion


def _failure(client: Service, reply: ApiReply) -> Exception:
    error = client.failure(reply)
    # A client error that names the parameter: this model has no log probabilities, and never will.
    if reply.status < 500 and "logprobs" in str(error):
        return JudgeError(f"{error}. {NO_LOGPROBS_HINT}", code="no_logprobs", raw=reply.text)
    return error


def _better(reply: ApiReply, form: RequestForm, asked: ChatRequest) -> RequestForm | None:
    """How to ask instead, where the service complains about a part that can be left out."""
    # Other statuses have nothing to do with the form of the request.
    if reply.status not in (400, 404, 422, 501):
        return None
    if form.output != "prompt" and asked["output"] == "auto" and _ABOUT_FORMAT.search(reply.text):
        return replace(form, output="json_object" if form.output == "json_schema" else "prompt")
    # OpenAI's reasoning models; the message names the parameter to use instead.
    if form.limit_name == "max_tokens" and "max_completion_tokens" in reply.text:
        return replace(form, limit_name="max_completion_tokens")
    if "top_logprobs" in reply.text and form.top_logprobs > _FEW_TOP_LOGPROBS:
        return replace(form, top_logprobs=_FEW_TOP_LOGPROBS)
    # Only where the parameter is quoted: any message may contain the words seed and temperature.
    if _UNSUPPORTED.search(reply.text):
        for part in ("temperature", "seed"):
            if part not in form.without and re.search(rf"['\"`]{part}['\"`]", reply.text):
                return replace(form, without=form.without | {part})
    return None


class ServiceAdapter:
    """Chat completions of one service that only this process has: a client object of the user's."""

    def __init__(self, chat: ChatAdapter, service: Service) -> None:
        self._chat = chat
        self._service = service

    async def fetch(self, call: Call, sender: Sender) -> RawReply:
        """See :meth:`ChatAdapter.fetch`."""
        return await self._chat.ask(self._service, call.body, sender)


class _Refused(Exception):
    """The service does not take requests in this form."""

    def __init__(self, better: RequestForm) -> None:
        super().__init__(better)
        self.better = better
