"""One module a format; a new format is a module with a ``READER`` and a line in the two tables here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from pytest_ragbench.questions.reading import Reader

FORMATS = {
    "csv": "delimited",
    "tsv": "delimited",
    "jsonl": "json_lines",
    "json": "json_list",
    "yaml": "yaml_list",
    "parquet": "parquet",
    "xlsx": "workbook",
}
"""Format -> module of this package."""

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
"""File name suffix (lower case) -> format."""


def format_of(suffix: str, wanted: str | None = None) -> str | None:
    """The format called ``wanted`` ("csv", "ndjson", ".yml" ...), or else that of the suffix, or None.

    Raises
    ------
    UsageError
        Where ``wanted`` is no format.
    """
    if wanted is None:
        return SUFFIXES.get(suffix.lower())
    name = wanted.strip().lower().lstrip(".")
    name = SUFFIXES.get(f".{name}", name)
    if name not in FORMATS:
        raise UsageError(f"unknown question file format {wanted!r}; known: {', '.join(FORMATS)}")
    return name


def reader(name: str) -> Reader:
    """The reader of a format; its module (and a library it needs) is imported here."""
    module = import_module(f"{__name__}.{FORMATS[name]}")
    found: Reader = module.READER
    return found
