"""A retriever that asks a RAG service over HTTP."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_ragbench.engine.calls import Call, Scope, Sender
from pytest_ragbench.model.errors import EndpointError, UsageError
from pytest_ragbench.model.samples import Question, RagSample, sample_from
from pytest_ragbench.rag.decoding import read_reply
from pytest_ragbench.rag.mapping import BadReply, Reply, ReplyReader, found_in
from pytest_ragbench.rag.service import Sending, Service, bad_reply, measured
from pytest_ragbench.rag.sessions import turns_before
from pytest_ragbench.rag.target import target_of
from pytest_ragbench.secrets import Redactor, Secret, fingerprint, is_secret_name
from pytest_ragbench.settings import RagSettings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


def http_retriever(
    settings: RagSettings, engine: Engine, environ: Mapping[str, str] = os.environ
) -> HttpRetriever:
    """A retriever that asks the configured service; nothing is sent yet.

    ``settings.url`` may be a base URL, hold the path already, or be a template with ``{question}``
    or ``{TEXT}``.

    Raises
    ------
    UsageError
        Where there is no URL, the question would go nowhere, the variable named by ``auth_env`` is
        missing, a header can't be sent, or a reply path can't be parsed.
    """
    return HttpRetriever(settings, engine, headers_of(settings, environ, keyless=engine.replays("rag")))


@dataclass(frozen=True)
class Headers:
    """The headers of a request, what is secret in them, and what stands for them in store keys."""

    sent: Mapping[str, Secret]
    secrets: tuple[Secret, ...]
    key: Mapping[str, Any]


def headers_of(settings: RagSettings, environ: Mapping[str, str], *, keyless: bool) -> Headers:
    """All headers of a request. Secret ones stand in the key by fingerprint, or by their variable's name.

    ``keyless``: the variable may be missing, since a recording answers in the service's place.
    """
    sent: dict[str, str] = {
        "Accept": "application/json, text/plain;q=0.9, */*;q=0.5",
        "Accept-Encoding": "gzip, deflate",
        "User-Agent": "pytest-ragbench",
    }
    sent |= {name.title(): value for name, value in settings.headers.items()}
    key: dict[str, Any] = {
        name.title(): fingerprint(value) if is_secret_name(name) else value
        for name, value in settings.headers.items()
    }
    secrets = [value for name, value in settings.headers.items() if is_secret_name(name)]
    if settings.auth_env:
        value = environ.get(settings.auth_env, "").strip()
        if not value and not keyless:
            raise UsageError(
                f"rag.auth_env names the variable {settings.auth_env}, which is not set or blank; set it, "
                f"or remove auth_env where the service needs no key"
            )
        scheme = settings.auth_scheme.strip()
        sent[settings.auth_header.title()] = f"{scheme} {value}" if scheme else value
        key["auth"] = [settings.auth_header.title(), scheme, settings.auth_env]
        secrets.append(value)
    for name, value in sent.items():
        if not _sendable(name) or not _sendable(value):
            raise UsageError(f"rag: the header {name!r} holds characters that can't be sent in a header")
    # "Bearer KEY" may come back as the bare key.
    parts = [part for value in secrets for part in (value, value.split()[-1] if value.split() else "")]
    return Headers({name: Secret(value) for name, value in sent.items()}, tuple(map(Secret, parts)), key)


def _sendable(text: str) -> bool:
    return all(char == "\t" or (char >= " " and char != "\x7f") for char in text)


class HttpRetriever:
    """Asks one HTTP service; made by :func:`http_retriever`."""

    shared: ClassVar[bool] = True
    """Replies are kept by the engine, for all workers: asking ahead of a test makes no call twice."""
    provider: str = "rag"
    """Whose call slots and pace are used, and who is given up when it is down: of several systems each its own."""

    def __init__(self, settings: RagSettings, engine: Engine, headers: Headers) -> None:
        self._target = target_of(settings)
        self._reader = ReplyReader(settings.reply)
        self._scope: Scope = "store" if settings.reuse_answers else "run"
        self._key_headers = dict(headers.key)
        self._engine = engine
        self._service = Service(
            self.name,
            self._target.method,
            self._target.url("x"),
            settings.timeout,
            settings.max_bytes,
            headers.sent,
            (*headers.secrets, *map(Secret, self._target.secrets)),
        )
        self._redact = Redactor(self._service.secrets)

    @property
    def name(self) -> str:
        """Method and URL, query values cut: ``GET http://host/llm/search-rag?questions=...``."""
        return f"{self._target.method} {self._target.shown}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    async def ask(self, question: Question) -> RagSample:
        """Ask the service, or take the stored reply; see :class:`~pytest_ragbench.rag.Retriever`."""
        target, text = self._target, question.question
        # Where the service is not told the session, equal questions of two sessions are one call.
        session = question.session if target.tells_session else None
        # A service remembers its sessions, and the next run has to begin a new one.
        sent = f"{session}-{self._engine.run_id[:8]}" if session is not None else None
        sending: Sending = {"url": target.url(text, sent), "body": target.filled_body(text, sent)}
        earlier = [turn.question for turn in turns_before(question)] if session is not None else []
        call = Call(
            kind="rag",
            provider=self.provider,
            adapter="rag",
            config=self._service,
            body=sending,
            key={
                "method": target.method,
                "url": target.key_url(text, session),
                "body": target.key_body(text, session),
                "headers": self._key_headers,
                **({"earlier": earlier} if earlier else {}),
            },
            scope=self._scope,
        )
        fetched = await self._engine.fetch(call, self._read, send=self._own_sending(sending))
        reply, how = fetched.value
        return sample_from(question, **found_in(reply), **how, cached=fetched.cached)

    def _own_sending(self, sending: Sending) -> Callable[[Sender], Awaitable[Any]] | None:
        """What sends in the place of the adapter, where only this process can."""
        return None

    def _read(self, payload: Any) -> tuple[Reply, dict[str, Any]]:
        try:
            return read_reply(payload, self._reader), measured(payload)
        except BadReply as problem:
            message = bad_reply(self.name, self._redact(str(problem)), payload)
            raise EndpointError(message, code="bad_reply", raw=str(payload["text"])) from None
