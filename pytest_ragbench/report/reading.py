"""Reports read from files and from other processes, validated.

Reading is lenient where an older version wrote less: a field that it did not know has its default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import SCHEMA, VERSION, RunReport

T = TypeVar("T")


def read_report(path: Path) -> RunReport:
    """The report in a file.

    Raises
    ------
    UsageError
        Naming the file: it can't be read, holds no JSON, no report of this kind, or one of a version that
        this ragbench does not know.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: no JSON report: not UTF-8") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON report: {error}") from None
    return report_from(data, name=str(path))


def report_from(data: object, *, name: str = "report") -> RunReport:
    """The report in parsed JSON; ``name`` is for messages.

    Raises
    ------
    UsageError
        As :func:`read_report`.
    """
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise UsageError(f"{name}: no report of --ragbench-json: its 'schema' is not {SCHEMA!r}")
    # Before validation: a newer version's fields would give a misleading message.
    version = data.get("version")
    if version != VERSION:
        raise UsageError(
            f"{name}: a report of version {version!r}; this ragbench reads up to version {VERSION}"
        )
    return part_from(RunReport, data, name=name)


def part_from(kind: type[T], data: object, *, name: str = "report") -> T:
    """A part of a report, from builtin types.

    Raises
    ------
    UsageError
        Naming the field that has no such value.
    """
    try:
        part: T = _adapter(cast(Any, kind)).validate_python(data)
        return part
    except ValidationError as error:
        # One is enough to find the place; pydantic lists each variant that did not fit.
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{name}: {place}: {first['msg']}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
