"""Sending chat completions to an OpenAI-compatible API: OpenAI, vLLM, Ollama, LiteLLM, a company's gateway.

Services differ in what they take. Structured output by schema is tried first, then JSON mode, then the
prompt alone; what a service refused is remembered. Retries, time limits, call slots and the store are the
engine's: an attempt is exactly one request.
"""

from __future__ import annotations

import re
from typing import Any

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.calls import Call, Closing, Sender, Sent, Transient
from pytest_ragbench.http.api import ApiClient, ApiReply, Service
from pytest_ragbench.http.endpoints import Endpoint
from pytest_ragbench.http.service_errors import ServiceError, service_error
from pytest_ragbench.judge.completions import RawReply, completion_of, error_in
from pytest_ragbench.judge.forms import (
    ChatRequest,
    RequestForm,
    better_form,
    first_form,
    is_about,
    is_too_long,
    request_body,
)
from pytest_ragbench.judge.reading.endings import outage_in
from pytest_ragbench.judge.reading.strict_json import UnreadableReply, loaded
from pytest_ragbench.model.errors import JudgeError

NO_LOGPROBS_HINT = (
    'Ask a model whose service gives log probabilities ("top_logprobs"), '
    'or set verdicts = "json" for the metric'
)


class ChatAdapter:
    """Sends chat completions. It is given data only, so any process of the run can do it."""

    def __init__(self, engine: Closing) -> None:
        self._engine = engine
        self._clients: dict[str, ApiClient] = {}
        self._forms: dict[tuple[str, str, str], RequestForm] = {}

    def form(self, endpoint: Endpoint, asked: ChatRequest) -> RequestForm:
        """The form that the service takes, as far as it is known."""
        return self._forms.get(_known_by(endpoint, asked)) or first_form(asked)

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
        known = form = self.form(endpoint, asked)
        while True:
            try:
                sent = await sender(lambda used=form: _attempt(service, asked, used))  # type: ignore[misc]
            except _Refused as refused:
                form = refused.better
                continue
            # Only now: one odd question must not change how all others are asked.
            if form != known:
                self._forms[_known_by(endpoint, asked)] = self.form(endpoint, asked).merged(known, form)
            reply: RawReply = sent.payload
            return reply

    def _client(self, endpoint: Endpoint) -> ApiClient:
        client = self._clients.get(endpoint.identity)
        if client is None:
            client = self._clients[endpoint.identity] = ApiClient(endpoint, JudgeError, self._engine.on_close)
        return client


def _known_by(endpoint: Endpoint, asked: ChatRequest) -> tuple[str, str, str]:
    return endpoint.url, asked["model"], asked["output"]


async def _attempt(client: Service, asked: ChatRequest, form: RequestForm) -> Sent:
    reply = await client.post("/chat/completions", request_body(asked, form, client.endpoint.extra_body))
    if 200 <= reply.status < 300:
        data = _json(reply.text)
        error = error_in(data)
        if error is None:
            return _completed(client, reply, data)
        # Gateways report the fault of the service behind them in a reply with status 200.
        reply = ApiReply(error.status or reply.status, reply.headers, reply.text)
    else:
        error = service_error(reply.text)
    # Other statuses have nothing to do with the form of the request.
    better = better_form(error, form, asked) if reply.status in (200, 400, 404, 422, 501) else None
    raise _Refused(better) if better else _failure(client, reply, error, asked)


def _json(text: str) -> Any:
    try:
        return loaded(text)
    except (ValueError, RecursionError):
        return None


def _completed(client: Service, reply: ApiReply, data: Any) -> Sent:
    where = client.endpoint
    try:
        completion = completion_of(data)
    except UnreadableReply as problem:
        message = f"{where.provider}: the reply from {where.url}: {problem}"
        raise JudgeError(message, code=problem.code, raw=reply.text) from None
    if completion is None:
        raise JudgeError(
            f"{where.provider}: {where.url} sent no chat completion: {one_line(reply.text)}",
            code="no_completion",
            raw=reply.text,
        )
    if (outage := outage_in(completion.payload)) is not None:
        raise Transient(f"{where.provider}: {where.url}: {outage}", code="interrupted")
    return completion


def _failure(client: Service, reply: ApiReply, told: ServiceError, asked: ChatRequest) -> Exception:
    error = client.failure(reply, error=told)
    if reply.status >= 500 or isinstance(error, Transient):
        return error
    # A client error that names the parameter: this model has no log probabilities, and never will.
    if asked["schema"] is None and re.search(r"\blog_?probs|top_?logprobs", f"{told.param} {told.message}"):
        return JudgeError(f"{error}. {NO_LOGPROBS_HINT}", code="no_logprobs", raw=reply.text)
    for part in ("temperature", "seed", "max_tokens"):
        if not is_too_long(told) and is_about(told, part):
            setting = f"providers.{client.endpoint.provider}.{part}"
            return JudgeError(f"{error}; change {setting}", code=f"http_{reply.status}", raw=reply.text)
    return error


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
