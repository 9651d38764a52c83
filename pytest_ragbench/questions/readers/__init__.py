"""The formats of question files, found by entry point.

A reader is one file with a :class:`~pytest_ragbench.questions.rows.Reader` in it, and an entry point of the group
``ragbench.readers`` whose name is the name of the format::

    [project.entry-points."ragbench.readers"]
    ods = "my_package.ods_reader"

The entry point names a module, a class without arguments, or an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_ragbench.extensions import loaded, points
from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from pytest_ragbench.questions.rows import Reader

GROUP = "ragbench.readers"
"""The group of the entry points."""

_BUILT_IN = {
    name: f"{__name__}.{target}"
    for name, target in {
        "csv": "delimited:CSV",
        "tsv": "delimited:TSV",
        "jsonl": "json_lines:JsonLines",
        "json": "json_list:JsonList",
        "yaml": "yaml_list:YamlList",
        "parquet": "parquet:Parquet",
        "xlsx": "workbook:Workbook",
        "sql": "sql:Sql",
    }.items()
}


@lru_cache(maxsize=1)
def installed() -> Mapping[str, Reader]:
    """All readers by the name of their format: the built-in ones, then those of other packages.

    Raises
    ------
    UsageError
        An entry point can't be loaded or isn't a reader, or two have one name.
    """
    found: dict[str, Reader] = {}
    for point in points(GROUP, _BUILT_IN):
        if point.name in found:
            raise UsageError(f"two readers of question files are called {point.name!r}: see {point.value}")
        found[point.name] = _made(point)
    return found


def _made(point: EntryPoint) -> Reader:
    what = f"the reader {point.name!r} of question files"
    target = loaded(point, what)
    try:
        made: Reader = target() if isinstance(target, type) else target
    except Exception as error:  # another package's code
        message = f"{what} ({point.value}) can't be loaded: {type(error).__name__}: {error}"
        raise UsageError(message) from error
    if not callable(getattr(made, "read", None)) or not isinstance(getattr(made, "suffixes", None), tuple):
        raise UsageError(
            f"{what} ({point.value}) needs 'suffixes', a tuple as ('.foo',), and a function 'read(source)'"
        )
    return made


def suffixes() -> dict[str, str]:
    """File name suffix (lower case, with the dot) -> name of the format; the first reader of a suffix has it."""
    found: dict[str, str] = {}
    for name, reader in installed().items():
        for suffix in reader.suffixes:
            found.setdefault(suffix, name)
    return found


def format_of(suffix: str, wanted: str | None = None) -> str | None:
    """The format called ``wanted`` ("csv", "ndjson", ".yml" ...), or else that of the suffix, or None.

    Raises
    ------
    UsageError
        There is no format ``wanted``.
    """
    known = suffixes()
    if wanted is None:
        return known.get(suffix.lower())
    name = wanted.strip().lower().lstrip(".")
    name = known.get(f".{name}", name)
    if name not in known.values():
        names = ", ".join(dict.fromkeys(known.values()))
        raise UsageError(f"unknown question file format {wanted!r}; known: {names}")
    return name


def reader(name: str) -> Reader:
    """The reader of a format, by the format's name."""
    return installed()[name]
