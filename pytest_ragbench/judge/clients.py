"""A judge behind a client object of the user's: of the ``openai`` library, or one with its methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from pytest_ragbench.engine.calls import Call, Scope, Sender, send_turns
from pytest_ragbench.engine.limits import limits_of
from pytest_ragbench.http.clients import CHAT, ClientService, OpenAIClient, client_of
from pytest_ragbench.http.endpoints import OPENAI
from pytest_ragbench.judge.chat import ChatAdapter, ServiceAdapter
from pytest_ragbench.judge.openai import DEFAULT_OPENAI_MODEL, ChatJudge
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.settings import ProviderSettings, Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


class OpenAIJudge(OpenAIClient):
    """A judge that asks through a client object, for a fixture ``judge`` or an argument of that name.

    Parameters
    ----------
    client
        ``OpenAI``, ``AsyncOpenAI``, ``AzureOpenAI`` or ``AsyncAzureOpenAI`` of the library ``openai``, also wrapped
        or instrumented, or any object whose ``chat.completions.create`` takes the same arguments.
    model
        The model, or Azure's deployment. Default: that of the provider, or of the client's deployment.
    provider
        Name of a provider in the configuration whose limits, prices, retries and sampling hold, and the name that
        reports show. Default: the provider with the client's URL, else the URL's host.
    **sampling
        ``temperature``, ``seed``, ``max_tokens``, ``structured_output``, ``timeout`` and ``max_concurrency`` as a
        provider has them in the configuration; all others go into each request as they are (``top_p=0.5``).

    Raises
    ------
    UsageError
        The object has no such method, or no model is named anywhere.
    """

    path = CHAT


def client_judge(value: OpenAIJudge, engine: Engine, settings: Settings) -> ClientJudge:
    """The judge that ``value`` describes.

    Raises
    ------
    UsageError
        No model is named anywhere, or an option of sampling is out of range.
    """
    found = client_of(value, settings, engine.warn)
    model = value.model or _model_of(settings, found.provider, found.settings, value.client)
    if not model:
        raise UsageError(
            f"the judge's client ({found.provider}) names no model; return OpenAIJudge(client, model=...) "
            f"or set providers.{found.provider}.model"
        )
    engine.set_limits(found.provider, limits_of(found.settings))
    service = ClientService(found.methods, found.endpoint, JudgeError)
    return ClientJudge(service, found.settings, model, engine, "store" if found.has_url else "run")


def _model_of(settings: Settings, provider: str, own: ProviderSettings, client: Any) -> str | None:
    if own.model:
        return own.model
    named, _, model = (settings.judge or "").partition(":")
    if named == provider and model:
        return model
    deployment = getattr(client, "_azure_deployment", None)
    if isinstance(deployment, str) and deployment:
        return deployment
    return DEFAULT_OPENAI_MODEL if provider == OPENAI else None


class ClientJudge(ChatJudge):
    """Answers every task through a client object, which only this process has; made by :func:`client_judge`."""

    def __init__(
        self, service: ClientService, settings: ProviderSettings, model: str, engine: Engine, scope: Scope
    ) -> None:
        super().__init__(service.endpoint.provider, settings, model, engine, service.endpoint)
        self._service = service
        self.scope = scope  # type: ignore[misc]  # without a URL nothing tells two clients apart in later runs

    def _own_sending(
        self, call: Call, following: Callable[[Sequence[Any]], Any]
    ) -> Callable[[Sender], Awaitable[Any]]:
        chat = self._engine.adapter("chat")
        assert isinstance(chat, ChatAdapter)
        adapter = ServiceAdapter(chat, self._service)
        return lambda sender: send_turns(adapter, call, sender, following)
