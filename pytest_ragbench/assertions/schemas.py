"""JSON Schemas of answers, checked by the jsonschema library where a test has one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pytest_ragbench.extensions import required


def validator(schema: Mapping[str, Any]) -> Any:
    """What says where JSON is not as the schema has it: an object with ``iter_errors``.

    A schema without ``$schema`` is one of draft 2020-12. References to other files or hosts are not followed.

    Raises
    ------
    ValueError
        The schema is none.
    UsageError
        The library is not installed.
    """
    return _validator(json.dumps(schema, sort_keys=True))


@lru_cache(maxsize=256)
def _validator(text: str) -> Any:
    jsonschema = required("jsonschema", "json-schema", "json_schema")
    schema = json.loads(text)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"not a JSON Schema: at {error.json_path}: {error.message}") from None
    return kind(schema)
