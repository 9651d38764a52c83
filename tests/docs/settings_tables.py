"""The tables of docs/configuration.md, made from the settings' model and the options.

python -m tests.docs.settings_tables     # writes them into the page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pytest_ragbench.options import OPTIONS
from pytest_ragbench.settings import Settings
from pytest_ragbench.settings.keys import is_table, tables

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
START, END = "<!-- settings: made by tests/docs/settings_tables.py -->", "<!-- end of settings -->"


def page_with_tables(text: str) -> str:
    """The page, its tables replaced by those of today's model."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{made()}\n{END}{after}"


def made() -> str:
    lines = []
    for path, model in tables(Settings):
        if path[0:1] == ("retrievers",):
            lines += _of_named(path, model)
        elif rows := list(_rows(path, model)):
            lines += [f"### {_title(path)}", "", (model.__doc__ or "").strip().replace("``", "`"), ""]
            lines += ["| key | default | meaning | option |", "|---|---|---|---|", *rows, ""]
    lines += ["### Options without a setting", "", "| option | meaning |", "|---|---|"]
    for option in OPTIONS:
        if option.setting is None:
            lines.append(f"| {_flag(option.flag, option.metavar)} | {_cell(option.help)} |")
    return "\n".join([*lines, ""])


def _of_named(path: tuple[str, ...], model: type[BaseModel]) -> list[str]:
    """The keys alone: they have been told of `[rag]`."""
    if len(path) > 2:
        return []
    keys = ", ".join(f"`{name}`" for name in model.model_fields)
    said = 'Systems under test by name, for `retriever` and `retrievers`: `NAME = "URL"`, another one-line form, or a'
    return [
        f"### {_title(path)}",
        "",
        f"{said} table with those of these keys that differ from `[rag]`: {keys}.",
        "",
    ]


def _title(path: tuple[str, ...]) -> str:
    return "`[" + ".".join("NAME" if part == "*" else part for part in path) + "]`" if path else "At the top"


def _rows(path: tuple[str, ...], model: type[BaseModel]) -> Iterator[str]:
    flags = {option.setting: _flag(option.flag, option.metavar) for option in OPTIONS}
    for name, info in model.model_fields.items():
        if not is_table(info):
            assert info.description, f"{'.'.join([*path, name])} has no description"
            option = flags.get(".".join([*path, name]), "")
            yield f"| `{name}` | {_default(info)} | {_cell(info.description)} | {option} |"


def _flag(flag: str, metavar: str | None) -> str:
    return f"`{flag}`" if metavar is None else f"`{flag} {_cell(metavar)}`"


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value: Any = info.default
    if value is None or value in ({}, ()):
        return ""
    if isinstance(value, frozenset):
        value = sorted(value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
