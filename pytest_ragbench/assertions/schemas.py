"""JSON Schemas of answers, checked by the jsonschema library where a test has one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_ragbench.extensions import required
from pytest_ragbench.questions.files import shown_name, similar_file


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


def schema_of(name: str | Path, folder: Path | None = None) -> Any:
    """The schema that a JSON file holds.

    Parameters
    ----------
    folder
        What a relative path is relative to. Default: the working directory.

    Raises
    ------
    ValueError
        Naming the file: there is none, or it isn't JSON.
    """
    file = (folder or Path.cwd()) / Path(name).expanduser()
    try:
        return json.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(
            f"{name}: no such file (seen from {folder or Path.cwd()}){similar_file(file)}"
        ) from None
    except OSError as error:
        raise ValueError(f"{shown_name(file)}: can't be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{shown_name(file)}:{error.lineno}: not JSON: {error.msg}") from None
    except ValueError as error:  # not UTF-8
        raise ValueError(f"{shown_name(file)}: not JSON: {error}") from None


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
