"""The identity of a call: one digest for everything that shapes the reply."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from pytest_ragbench.engine.calls import Call


def digest_of(call: Call, run_id: str) -> str:
    """SHA-256 (hex) over :func:`identity_of` a call."""
    return digest_of_text(identity_of(call, run_id))


def digest_of_text(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()


def identity_of(call: Call, run_id: str) -> str:
    """The canonical JSON of kind, provider, key and, in run scope, the run.

    Raises
    ------
    TypeError
        Where the key holds something that is not JSON; the message names where.
    """
    identity: dict[str, Any] = {
        "kind": call.kind,
        "provider": call.provider,
        "key": call.key
        if _is_plain(call.key)
        else json_values(call.key, f"key of a {call.kind} request to {call.provider!r}"),
    }
    if call.scope == "run":
        identity["run"] = run_id
    # Sorted, and without spaces: the digest must not depend on who built the mapping.
    return json.dumps(identity, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def payload_text(payload: Any, where: str) -> str:
    """The payload as JSON text that SQLite can hold.

    Raises
    ------
    TypeError
        Naming the place of the first value that is not JSON.
    """
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, as cut replies have: only escaped is it text
        return json.dumps(payload, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        json_values(payload, where)
        raise
    return text


def _is_plain(value: Any) -> bool:
    """Whether nothing in it has to be converted or refused: quicker than to convert it, and nearly always true."""
    # Exact types: a str subclass may serialise as something else.
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    return kind is float and math.isfinite(value)


def json_values(value: Any, path: str) -> Any:
    """``value`` in plain JSON values (tuples become lists, any mapping a dict)."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{path}: {value!r} is not a finite number, so not JSON")
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"{path}: JSON keys are texts, got {key!r} ({type(key).__name__})")
        return {key: json_values(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_values(item, f"{path}[{number}]") for number, item in enumerate(value)]
    raise TypeError(f"{path}: {type(value).__name__} is not JSON: {value!r:.80}")
