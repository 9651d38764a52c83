"""The tables of docs/json-report.md, made from the model of the report.

python -m tests.docs.report_tables     # writes them into the page
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_ragbench.report.schema import report_schema

PAGE = Path(__file__).parents[2] / "docs" / "json-report.md"
START, END = "<!-- fields: made by tests/docs/report_tables.py -->", "<!-- end of fields -->"


def page_with_tables(text: str) -> str:
    """The page, its tables replaced by those of today's model."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{made()}\n{END}{after}"


def made() -> str:
    """A table for each part, in the order in which a reader of the report comes to them."""
    schema = report_schema()
    parts = {"RunReport": schema, **schema["$defs"]}
    lines: list[str] = []
    for name in _in_order(parts):
        lines += [f"### {name}", "", parts[name]["description"].partition("\n")[0], ""]
        lines += ["| field | type | |", "|---|---|---|"]
        for field, told in parts[name]["properties"].items():
            lines.append(f"| `{field}` | {_type(told)} | {_cell(told.get('description', ''))} |")
        lines.append("")
    return "\n".join(lines)


def _in_order(parts: dict[str, Any]) -> list[str]:
    found = ["RunReport"]
    for name in found:  # grows while it is read: parts of parts come behind
        found += [part for part in _referred(parts[name]["properties"]) if part not in found]
    return found


def _referred(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield _name(value["$ref"])
        for part in value.values():
            yield from _referred(part)
    elif isinstance(value, list):
        for part in value:
            yield from _referred(part)


def _type(told: Any) -> str:
    if "$ref" in told:
        name = _name(told["$ref"])
        return f"[{name}](#{name.lower()})"
    if "anyOf" in told:
        return " or ".join(_type(each) for each in told["anyOf"])
    if "const" in told:
        return f"`{told['const']!r}`".replace("'", '"')
    if "enum" in told:
        return ", ".join(f"`{each}`" for each in told["enum"])
    if told.get("type") == "array":
        return f"list of {_type(told['items'])}"
    if told.get("type") == "object":
        values = told.get("additionalProperties")
        return f"object of {_type(values)}" if isinstance(values, dict) else "object"
    kind = str(told.get("type", "any"))
    return "true or false" if kind == "boolean" else kind


def _name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page_with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
