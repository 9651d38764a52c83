"""Where a provider is, and the key for it. The key is never shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.rag.secrets import Redactor, Secret, is_secret_name, secrets_in
from pytest_ragbench.settings import ProviderSettings

OPENAI_URL = "https://api.openai.com/v1"
_LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "host.docker.internal")  # noqa: S104 - compared, not bound


@dataclass(frozen=True)
class Endpoint:
    """Base URL (fit to be shown), query parameters and key (not fit for that)."""

    url: str
    query: tuple[tuple[str, str], ...] = field(repr=False)
    key: Secret
    redacted: Redactor = field(repr=False)
    """Takes everything secret out of a text."""


def endpoint_of(
    provider: str, settings: ProviderSettings, environ: Mapping[str, str], *, keyless: bool = False
) -> Endpoint:
    """A provider's URL and key from its settings and the environment.

    ``OPENAI_API_KEY`` and ``OPENAI_BASE_URL`` are for the provider named ``openai`` alone: a key is
    never sent to another service than the one that it was set for. ``keyless``: nobody will be asked,
    so the key may be missing.

    Raises
    ------
    UsageError
        Naming the setting or the variable that is missing.
    """
    url = settings.base_url
    if url is None and provider == "openai":
        url = _checked(environ.get("OPENAI_BASE_URL", "").strip() or OPENAI_URL)
    if url is None:
        raise UsageError(f"provider {provider!r} has no URL; set providers.{provider}.base_url")
    variable = settings.api_key_env or ("OPENAI_API_KEY" if provider == "openai" else None)
    value = environ.get(variable, "").strip() if variable else ""
    local = (urlsplit(url).hostname or "") in _LOCAL
    if not value and not keyless and (settings.api_key_env or (variable and not local)):
        raise UsageError(
            f"provider {provider!r} needs a key: the variable {variable} is not set. "
            f'Set it, or write judge = "local" to do without'
        )
    if not (value.isascii() and value.isprintable()):
        raise UsageError(f"the key in the variable {variable} holds characters that no key has")
    key = Secret(value or "no-key")  # some local services want one, whichever it is
    parts = urlsplit(url)
    query = tuple(parse_qsl(parts.query, keep_blank_values=True))
    named = [*settings.headers.items(), *query]
    held = [text for name, text in named if is_secret_name(name)]
    secrets = [Secret(text) for text in (value, *held, *secrets_in(settings.extra_body)) if text]
    bare = urlunsplit((parts.scheme, parts.netloc, parts.path, "", "")).rstrip("/")
    return Endpoint(bare, query, key, Redactor(secrets))


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise UsageError("OPENAI_BASE_URL must be an http:// or https:// URL without a password in it")
    return url.rstrip("/")
