"""Keeping credentials out of messages, reprs, keys and stored replies."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

_MASK = "***"
# Long, no word or number alone, no sentence: "false" and "4096" stay readable where they occur.
_LOOKS_SECRET = re.compile(r"(?=\S*\d)(?=\S*[^\W\d])\S{12,}")
# Shorter values are too likely to be ordinary words of an answer.
_SHORTEST = 4
_SECRET_NAME = re.compile(
    r"authorization|cookie|token|secret|passw|signature|credential|api[-_]?key|access[-_]?key|(^|[-_])(key|sig|auth)$",
    re.IGNORECASE,
)


class Secret:
    """A value that no repr, traceback or debugger line shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"Secret({_MASK})"


class Redactor:
    """Masks known secrets in any text, also where they come URL-encoded or JSON-escaped.

    Known are those given, and what the environment holds under names such as ``OPENAI_API_KEY``: the
    service under test may use a key of its own, and send it back in an error.
    """

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[Secret], environ: Mapping[str, str] | None = None) -> None:
        # A service may echo a key as it got it, in a URL, or inside a JSON string.
        forms: set[str] = set()
        held = environment_secrets(os.environ if environ is None else environ)
        for secret in [*secrets, *held]:
            value = secret.reveal()
            forms |= {value, quote(value, safe=""), json.dumps(value)[1:-1]}
        self._forms = tuple(
            Secret(form) for form in sorted(forms, key=len, reverse=True) if len(form) >= _SHORTEST
        )

    def __call__(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form.reveal(), _MASK)
        return text


def environment_secrets(environ: Mapping[str, str]) -> list[Secret]:
    """The values of variables whose names say that they are secret; not those too plain to be."""
    # Not items(): pytest sets and deletes a variable of its own meanwhile, in another thread.
    named = [environ.get(name, "") for name in list(environ) if is_secret_name(name)]
    return [Secret(value) for value in named if _LOOKS_SECRET.fullmatch(value) and not value.startswith("/")]


def masked_mapping(values: Mapping[str, str]) -> dict[str, str]:
    """Headers or parameters for a repr: secret ones masked."""
    return {name: _MASK if is_secret_name(name) else value for name, value in values.items()}


def masked_url(url: str) -> str:
    """The URL for a repr: the values of its query masked."""
    base, mark, query = url.partition("?")
    return base + mark + "&".join(f"{part.partition('=')[0]}={_MASK}" for part in query.split("&") if part)


def is_secret_name(name: str) -> bool:
    """Whether a header or query parameter of this name usually carries a credential."""
    return bool(_SECRET_NAME.search(name))


def fingerprinted(values: Any) -> Any:
    """JSON values for a key, with the fingerprints of strings whose names usually carry credentials."""
    if isinstance(values, Mapping):
        return {
            name: fingerprint(value) if _is_secret(name, value) else fingerprinted(value)
            for name, value in values.items()
        }
    return [fingerprinted(value) for value in values] if isinstance(values, (list, tuple)) else values


def secrets_in(values: Any) -> list[str]:
    """The texts that :func:`fingerprinted` replaces."""
    if isinstance(values, Mapping):
        return [
            secret
            for name, value in values.items()
            for secret in ([value] if _is_secret(name, value) else secrets_in(value))
        ]
    return (
        [text for value in values for text in secrets_in(value)] if isinstance(values, (list, tuple)) else []
    )


def _is_secret(name: Any, value: Any) -> bool:
    """``max_tokens = 512`` is none, nor is what a question or a session goes into."""
    if not isinstance(value, str) or "{question}" in value or "{session}" in value:
        return False
    return is_secret_name(str(name))


def fingerprint(value: str) -> str:
    """Stands for a secret value in keys: tells two values apart, and gives neither away."""
    return "sha256:" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
