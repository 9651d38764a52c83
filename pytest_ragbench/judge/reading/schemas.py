"""JSON schemas as providers take them in strict mode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KEPT = frozenset(
    {"type", "properties", "items", "anyOf", "enum", "const", "minimum", "maximum", "description", "$defs"}
)


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the dialect of OpenAI's strict mode.

    Every object lists all its keys as required and allows no other; titles, defaults and keywords
    that strict mode does not know are left out. What is optional in the reply is null or empty then.
    """
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key not in _KEPT:
            continue
        if key in ("properties", "$defs"):
            strict[key] = {name: strict_schema(item) for name, item in value.items()}
        elif key == "items":
            strict[key] = strict_schema(value)
        elif key == "anyOf":
            strict[key] = [strict_schema(item) for item in value]
        else:
            strict[key] = value
    if strict.get("type") == "object":
        # Strict mode refuses schemas with optional keys.
        strict["required"] = list(strict.setdefault("properties", {}))
        strict["additionalProperties"] = False
    return strict
