"""Keeping credentials out of messages, reprs, keys and stored replies."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

_MASK = "***"
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
    """Masks known secrets in any text, also where they come URL-encoded or JSON-escaped."""

    __slots__ = ("_forms",)

    def __init__(self, secrets: Iterable[Secret]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            value = secret.reveal()
            forms |= {value, quote(value, safe=""), json.dumps(value)[1:-1]}
        self._forms = tuple(
            Secret(form) for form in sorted(forms, key=len, reverse=True) if len(form) >= _SHORTEST
        )

    def __call__(self, text: str) -> str:
        for form in self._forms:
            text = text.replace(form.reveal(), _MASK)
        return text


def is_secret_name(name: str) -> bool:
    """Whether a header or query parameter of this name usually carries a credential."""
    return bool(_SECRET_NAME.search(name))


def fingerprint(value: str) -> str:
    """Stands for a secret value in keys: tells two values apart, and gives neither away."""
    return "sha256:" + hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:12]
