"""Where an OpenAI-compatible service is, and the key for it. The key is never shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from pytest_ragbench.http.connection import Connection
from pytest_ragbench.http.tokens import token_source
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.secrets import Secret, is_secret_name, secrets_in
from pytest_ragbench.settings import ProviderSettings

OPENAI = "openai"
OPENAI_URL = "https://api.openai.com/v1"
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "host.docker.internal")  # noqa: S104 - compared, not bound


@dataclass(frozen=True)
class Endpoint:
    """A service as data: enough to send it something from any process.

    ``url`` is the base URL without its query, and may be shown. ``secrets`` are what must not come back
    in messages and stored replies.
    """

    provider: str
    url: str
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    key: Secret = field(default_factory=lambda: Secret("no-key"))  # some local services want one, any one
    headers: Mapping[str, Secret] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Added to every request's JSON body."""
    secrets: tuple[Secret, ...] = ()
    auth_header: str = "Authorization"
    auth_scheme: str = "Bearer"
    token: str | None = None
    """What is asked for a token before each request: see :func:`~pytest_ragbench.http.tokens.token_source`."""
    connection: Connection = field(default_factory=Connection)

    @cached_property
    def identity(self) -> str:
        """Tells endpoints apart, and gives no secret away."""
        parts = (
            self.provider,
            self.url,
            self.query,
            sorted((name, value.reveal()) for name, value in self.sent_headers.items()),
            json.dumps(self.extra_body, sort_keys=True, default=str),
            self.token,
            self.connection,
        )
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def sent_headers(self) -> dict[str, Secret]:
        """All headers of a request that are always the same, the configured ones last."""
        own = {"Accept": "application/json", "User-Agent": "pytest-ragbench"}
        if self.token is None:
            own |= {name: value.reveal() for name, value in self.carrying(self.key).items()}
        return {name: Secret(value) for name, value in own.items()} | dict(self.headers)

    def carrying(self, key: Secret) -> dict[str, Secret]:
        """The header that carries a key or token."""
        value = key.reveal()
        return {self.auth_header: Secret(f"{self.auth_scheme} {value}" if self.auth_scheme else value)}


def endpoint_of(
    provider: str,
    settings: ProviderSettings,
    environ: Mapping[str, str],
    *,
    keyless: bool = False,
    key_for_other_url: bool = True,
    purpose: str = "provider",
    model: str = "",
) -> Endpoint:
    """A provider's URL and key from its settings and the environment.

    ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` are for the provider named ``openai`` alone: a key is never
    sent to another service than the one that it was set for.

    Parameters
    ----------
    keyless
        The key may be missing, since a recording answers in the service's place.
    key_for_other_url
        Whether the provider ``openai`` gets ``OPENAI_API_KEY`` where its settings name another URL.
    purpose
        What messages call the provider: ``"embedder of provider"``.
    model
        The deployment that the URL names, where the settings have an ``api_version``.

    Raises
    ------
    UsageError
        Naming the setting, file or variable that is missing or can't be used.
    """
    url = settings.base_url
    if url is None and provider == OPENAI:
        url = _checked(environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL)
    if url is None:
        raise UsageError(f"provider {provider!r} has no URL; set providers.{provider}.base_url")
    # A key given for OpenAI must not reach whoever runs another URL.
    gets_openai_key = (
        provider == OPENAI and settings.token is None and (key_for_other_url or settings.base_url is None)
    )
    variable = settings.api_key_env or ("OPENAI_API_KEY" if gets_openai_key else None)
    value = environ.get(variable, "").strip() if variable else ""
    # Services on this machine mostly want no key.
    local = (urlsplit(url).hostname or "") in _LOCAL
    if not value and not keyless and (settings.api_key_env or (variable and not local)):
        raise UsageError(
            f"{purpose} {provider!r} needs a key: the variable {variable} is not set. "
            f'Set it, or choose "local" to do without'
        )
    # Such a value can't be a header, and is usually pasted with something around it.
    if not (value.isascii() and value.isprintable()):
        raise UsageError(f"the key in the variable {variable} holds characters that no key has")
    if settings.token is not None and not keyless:
        token_source(settings.token)
    connection = Connection.of(settings, f"providers.{provider}")
    parts = urlsplit(deployment_url(url, settings.api_version, model))
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    # Whatever may come back in an error message: keys also travel in headers, queries and bodies.
    named = [*settings.headers.items(), *query]
    secrets = (
        value,
        *(text for name, text in named if is_secret_name(name)),
        *secrets_in(settings.extra_body),
    )
    return Endpoint(
        provider,
        urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")).rstrip("/"),
        query,
        Secret(value or "no-key"),
        {name.title(): Secret(value) for name, value in settings.headers.items()},
        settings.extra_body,
        tuple(Secret(text) for text in secrets if text),
        **auth_of(settings),
        token=None if keyless else settings.token,
        connection=connection,
    )


def auth_of(settings: ProviderSettings) -> dict[str, str]:
    """``auth_header`` and ``auth_scheme``: a header that the user names carries the bare key, unless they say more."""
    given = settings.model_fields_set
    found: dict[str, str] = {}
    if "auth_header" in given:
        found = {"auth_header": settings.auth_header.title(), "auth_scheme": ""}
        if settings.auth_header.title() == "Authorization":
            found["auth_scheme"] = "Bearer"
    return found | ({"auth_scheme": settings.auth_scheme.strip()} if "auth_scheme" in given else {})


def deployment_url(url: str, api_version: str | None, model: str) -> str:
    """Where Azure has a deployment: ``URL/openai/deployments/MODEL?api-version=...``.

    A URL that names its deployment, or ends in ``/v1`` (Azure's newer API, which takes the deployment as a model),
    only gets the version.
    """
    if not api_version:
        return url
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if model and "/deployments/" not in path and not path.endswith("/v1"):
        path = f"{path.removesuffix('/openai')}/openai/deployments/{quote(model, safe='')}"
    query = parts.query
    if "api-version" not in dict(parse_qsl(query)):
        query = "&".join(filter(None, (query, f"api-version={quote(api_version, safe='')}")))
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise UsageError("OPENAI_BASE_URL must be an http:// or https:// URL without a password in it")
    return url.rstrip("/")
