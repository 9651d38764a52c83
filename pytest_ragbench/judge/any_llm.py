"""A judge behind a service that speaks no OpenAI-compatible API: ``judge = "any:anthropic/MODEL"`` (extra ``any``).

The library any-llm-sdk makes Anthropic's, Bedrock's, Vertex' and other calls out of chat completions, and theirs
out of the replies.
"""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any, ClassVar

from pytest_ragbench.engine.limits import limits_of
from pytest_ragbench.engine.threads import in_thread
from pytest_ragbench.http.clients import CHAT, ClientService
from pytest_ragbench.http.endpoints import Endpoint
from pytest_ragbench.judge.clients import ClientJudge
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.providers import Spec
from pytest_ragbench.secrets import Secret
from pytest_ragbench.settings import ProviderSettings


def named_judge(spec: Spec) -> AnyJudge:
    """``"any:PROVIDER/MODEL"``, with the limits, prices, key and URL of ``[providers.PROVIDER]``.

    Raises
    ------
    UsageError
        No provider or no model is named, the key is missing, or the extra is not installed.
    """
    provider, _, model = spec.rest.partition("/")
    settings = spec.settings.providers.get(provider, ProviderSettings())
    model = model or settings.model or ""
    if not provider or not model:
        raise UsageError(f'judge {spec.text!r} names no model; write judge = "any:PROVIDER/MODEL"')
    replays = spec.engine.replays("judge")
    if find_spec("any_llm") is None and not replays:
        raise UsageError(
            f"judge {spec.text!r} needs the extra 'any': pip install 'pytest-ragbench[any]' (any-llm-sdk)"
        )
    key = spec.environ.get(settings.api_key_env, "").strip() if settings.api_key_env else None
    if key == "" and not replays:
        raise UsageError(f"provider {provider!r} needs a key: the variable {settings.api_key_env} is not set")
    spec.engine.set_limits(provider, limits_of(settings))
    endpoint = Endpoint(
        provider,
        settings.base_url or f"any-llm:{provider}",
        headers={name: Secret(value) for name, value in settings.headers.items()},
        extra_body=settings.extra_body,
        secrets=tuple(Secret(value) for value in (key, *settings.headers.values()) if value),
    )
    return AnyJudge(AnyService(endpoint, key, settings.base_url), settings, model, spec.engine, "store")


class AnyJudge(ClientJudge):
    """Answers every task through any-llm; made by :func:`named_judge`."""

    # Anthropic's and Bedrock's APIs have no log probabilities, and any-llm hands on no others.
    probabilities: ClassVar[bool] = False


class AnyService(ClientService):
    """One provider of any-llm, whose client is made with the first question that the store can't answer."""

    def __init__(self, endpoint: Endpoint, key: str | None, url: str | None) -> None:
        super().__init__({CHAT: self._complete}, endpoint, JudgeError)
        self._key = None if key is None else Secret(key)
        self._url = url
        self._made: tuple[asyncio.AbstractEventLoop, Any] | None = None

    async def ready(self) -> None:
        """Import the provider's own library, which takes up to seconds, and make its client."""
        loop = asyncio.get_running_loop()
        # A client belongs to its loop; a forked child has another one.
        if self._made is None or self._made[0] is not loop:
            self._made = loop, await in_thread(self._make)

    def _make(self) -> Any:
        from any_llm import AnyLLM
        from any_llm.exceptions import MissingApiKeyError, UnsupportedParameterError, UnsupportedProviderError

        provider = self.endpoint.provider
        more: dict[str, Any] = {"api_base": self._url, "unified_exceptions": True}
        more["api_key"] = None if self._key is None else self._key.reveal()
        if self.endpoint.headers:
            more["default_headers"] = {name: value.reveal() for name, value in self.endpoint.headers.items()}
        try:
            try:
                return AnyLLM.create(provider, max_retries=0, **more)
            except UnsupportedParameterError:  # a client without retries of its own
                return AnyLLM.create(provider, **more)
        except (MissingApiKeyError, UnsupportedProviderError, ImportError) as error:
            raise UsageError(f'judge "any:{provider}/...": {self.masked(str(error))}') from error

    async def _complete(self, **body: Any) -> Any:
        from any_llm.exceptions import InvalidRequestError, UnsupportedParameterError

        assert self._made is not None
        try:
            return await self._made[1].acompletion(**body)
        except (InvalidRequestError, UnsupportedParameterError) as error:
            if error.status_code is None:
                # Refused by the library itself, as a service would: it is then asked without the parameter.
                raise _UnsupportedError(f"unsupported parameter: {error}") from error
            raise


class _UnsupportedError(Exception):
    status_code = 400
