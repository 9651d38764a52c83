"""Credentials masked in whatever of a run is sent to another host: questions and answers as well as prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from pytest_ragbench.secrets import Redactor

_Part = TypeVar("_Part")


def masked(part: _Part) -> _Part:
    """A record of the run with the values of variables such as ``OPENAI_API_KEY`` masked in all its texts."""
    found: _Part = _masked(part, Redactor([]))
    return found


def _masked(value: Any, redact: Redactor) -> Any:
    if isinstance(value, str):
        return redact(value)
    if is_dataclass(value) and not isinstance(value, type):
        told = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        # Records with nothing in them to mask stay as they are.
        changed = {name: new for name, old in told.items() if (new := _masked(old, redact)) != old}
        return replace(value, **changed) if changed else value
    if isinstance(value, Mapping):
        return {_masked(name, redact): _masked(each, redact) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_masked(each, redact) for each in value)
    return value
