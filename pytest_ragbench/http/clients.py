"""Services that are asked through the client object of another library: openai's, or one with its methods."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from pytest_ragbench.clean import one_line
from pytest_ragbench.engine.threads import call
from pytest_ragbench.http.api import ApiReply, Service
from pytest_ragbench.http.endpoints import OPENAI, OPENAI_URL, Endpoint
from pytest_ragbench.http.failures import outage_in, reply_in
from pytest_ragbench.model.errors import RagbenchError, Unscored, UsageError
from pytest_ragbench.secrets import Secret
from pytest_ragbench.settings import ProviderSettings, Settings

CHAT = "/chat/completions"
EMBEDDINGS = "/embeddings"
_METHODS = {CHAT: ("chat", "completions", "create"), EMBEDDINGS: ("embeddings", "create")}
# What openai's methods take as arguments; all else of a body is `extra_body` to them.
_ARGUMENTS = frozenset(
    ("dimensions", "encoding_format", "input", "logprobs", "max_completion_tokens", "max_tokens", "messages")
) | {"model", "response_format", "seed", "temperature", "top_logprobs"}
_SAMPLING = frozenset(
    ["temperature", "seed", "max_tokens", "structured_output", "timeout", "max_concurrency"]
)
# What a section of the configuration says that holds for a client object, too.
_SHARED = {
    *_SAMPLING,
    "model",
    "embedding_model",
    "requests_per_minute",
    "tokens_per_minute",
    "prices",
    "retry",
}
_FIELDS: Mapping[str, Any] = {
    "choices": {
        "error": None,
        "finish_reason": None,
        "logprobs": None,
        "message": {
            "content": None,
            "function_call": None,
            "reasoning": None,
            "reasoning_content": None,
            "refusal": None,
            "tool_calls": None,
        },
    },
    "data": {"index": None, "embedding": None},
    "error": None,
    "model": None,
    "usage": {"prompt_tokens": None, "completion_tokens": None},
}


class ClientService(Service):
    """A service behind methods that take a request's body as keyword arguments and return the reply.

    Parameters
    ----------
    methods
        By the path that they stand for: :data:`CHAT`, :data:`EMBEDDINGS`. Async, or sync: then each call runs in
        a thread.
    endpoint
        Provider and URL for messages and keys; its secrets are masked in whatever comes back.
    failure
        The class of errors that asking again can't help.
    """

    def __init__(
        self, methods: Mapping[str, Callable[..., Any]], endpoint: Endpoint, failure: type[Unscored]
    ) -> None:
        super().__init__(endpoint, failure)
        self._methods = methods

    async def post(self, path: str, body: Mapping[str, Any], *, timeout: float | None = None) -> ApiReply:
        """See :meth:`~pytest_ragbench.http.api.Service.post`; the engine bounds the time."""
        arguments = {name: value for name, value in body.items() if name in _ARGUMENTS}
        if extra := {name: value for name, value in body.items() if name not in _ARGUMENTS}:
            arguments["extra_body"] = extra
        try:
            result = await call(self._methods[path], **arguments)
            return ApiReply(200, {}, self._redact(_as_json(result)))
        except RagbenchError:
            raise
        except Exception as error:
            if (reply := reply_in(error, self)) is not None:
                return reply
            if (outage := outage_in(error, self)) is not None:
                raise outage from None
            told = self.masked(one_line(f"{type(error).__name__}: {error}", 300))
            where = self.endpoint
            message = f"{where.provider}: the client raised, asking {where.url}: {told}"
            raise self._failure(message, code="client_raised") from error


class OpenAIClient:
    """A client object with model and sampling, as the user gives it: of a judge or an embedder."""

    path: ClassVar[str]
    """The path that the client is asked for: :data:`CHAT` or :data:`EMBEDDINGS`."""

    def __init__(
        self, client: Any, model: str | None = None, *, provider: str | None = None, **sampling: Any
    ) -> None:
        if not is_client(client, self.path):
            raise UsageError(
                f"{type(self).__name__} needs a client of the library openai, or an object with "
                f"{'.'.join(_METHODS[self.path])}(); got {type(client).__name__}"
            )
        self.client = client
        self.model = model
        self.provider = provider
        self.sampling = sampling

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self.client).__name__}, model={self.model!r})"


@dataclass(frozen=True)
class FoundClient:
    """What there is to know of a client object, put together with the configuration."""

    provider: str
    settings: ProviderSettings
    methods: Mapping[str, Callable[..., Any]]
    endpoint: Endpoint
    has_url: bool


def is_client(value: Any, path: str) -> bool:
    """Whether a value is a client object that can be asked for ``path``."""
    return not isinstance(value, type) and method_of(value, path) is not None


def client_of(given: OpenAIClient, settings: Settings, warn: Callable[[str], None]) -> FoundClient:
    """Provider, settings and methods of a client object, its own retries switched off where it lets us.

    Raises
    ------
    UsageError
        An option of sampling is out of range.
    """
    client, url = given.client, _url_of(given.client)
    provider = given.provider or _provider_of(url, settings)
    section = settings.providers.get(provider, ProviderSettings())
    own = {name: value for name, value in given.sampling.items() if name in _SAMPLING}
    rest = {name: value for name, value in given.sampling.items() if name not in _SAMPLING}
    more = rest.pop("extra_body", {})
    try:
        merged = ProviderSettings.model_validate(
            {
                # The client has its own headers; what the section says of URL and key is not for it.
                **section.model_dump(exclude_unset=True, include=_SHARED),
                **own,
                "extra_body": {**section.extra_body, **rest, **more},
            }
        )
    except ValidationError as error:
        told = "; ".join(f"{problem['loc'][0]}: {problem['msg']}" for problem in error.errors())
        raise UsageError(f"{given!r}: {told}") from None
    # A little longer than ours, which gets to speak first: it only has to free a sync client's thread.
    quiet = _without_retries(client, merged.timeout + 1.0)
    if retries := _retries_of(quiet):
        warn(
            f"the client of {provider} asks again by itself, up to {retries} times, which is not counted; "
            "make it with max_retries=0"
        )
    method = method_of(quiet, given.path)
    assert method is not None
    key = getattr(client, "api_key", None)
    endpoint = Endpoint(
        provider,
        url or f"the client {type(client).__name__}",
        extra_body=merged.extra_body,
        secrets=(Secret(key),) if isinstance(key, str) and key else (),
    )
    return FoundClient(provider, merged, {given.path: method}, endpoint, url is not None)


def method_of(client: Any, path: str) -> Callable[..., Any] | None:
    """The client's method that stands for ``path``; None where it has none."""
    found = client
    for name in _METHODS[path]:
        found = getattr(found, name, None)
    return found if callable(found) else None


def _provider_of(url: str | None, settings: Settings) -> str:
    """The configured provider with this URL; else its host, by which prices are found."""
    if url is None:
        return "client"
    if url == OPENAI_URL:
        return OPENAI
    named = (name for name, provider in settings.providers.items() if provider.base_url == url)
    return next(named, None) or urlsplit(url).hostname or "client"


def _without_retries(client: Any, timeout: float) -> Any:
    """The client with its own retries off and its calls no longer than ``timeout`` seconds, where it can do that.

    The object itself stays as it is: the user may ask other things through it.
    """
    own = getattr(client, "timeout", None)
    shorter = isinstance(own, (int, float)) and own < timeout
    try:
        quiet = client.with_options(max_retries=0, **({} if shorter else {"timeout": timeout}))
    except Exception:
        return client
    # A wrapper that hands on what it doesn't know would give the client inside, and an instrumented method of this
    # very object is on no copy; a mock gives another mock, which nobody has told what to reply.
    same = type(quiet) is type(client) and getattr(quiet, "max_retries", None) == 0
    return quiet if same and not _is_patched(client) else client


def _retries_of(client: Any) -> int:
    retries = getattr(client, "max_retries", 0)
    return retries if isinstance(retries, int) else 0


def _url_of(client: Any) -> str | None:
    """The base URL without its query; None of an object that has none."""
    url = str(getattr(client, "base_url", "") or "")
    return url.partition("?")[0].rstrip("/") if url.startswith(("http://", "https://")) else None


def _is_patched(client: Any) -> bool:
    owners = (
        getattr(getattr(client, "chat", None), "completions", None),
        getattr(client, "embeddings", None),
    )
    return any("create" in getattr(owner, "__dict__", {}) for owner in owners)


def _as_json(result: Any) -> str:
    if isinstance(result, BaseModel):
        # openai's models are made without validation: a value of another type than theirs warns on each call.
        return result.model_dump_json(warnings=False)
    data = result if isinstance(result, Mapping) else _picked(result, _FIELDS)
    # An attribute of a mock that nobody has set is as good as absent.
    return json.dumps(data, ensure_ascii=False, default=lambda _: None)


def _picked(value: Any, fields: Mapping[str, Any] | None) -> Any:
    """The attributes of an object that matter, as JSON values."""
    if isinstance(value, (list, tuple)):
        return [_picked(each, fields) for each in value]
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", warnings=False)
    if fields is None or value is None or isinstance(value, (str, int, float, Mapping)):
        return value
    return {name: _picked(getattr(value, name, None), below) for name, below in fields.items()}
