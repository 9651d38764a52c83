"""What our pages have in common: a template, one style sheet, one script, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def template(name: str) -> Template:
    """A template of the package, which escapes all that is put into it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pytest_ragbench.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(name)


def asset(name: str) -> str:
    """The text of a file of the package."""
    return (files("pytest_ragbench.report.html") / "assets" / name).read_text(encoding="utf-8")


@cache
def joined(names: Sequence[str]) -> str:
    """Scripts as one."""
    return "\n".join(asset(name) for name in names)


@dataclass(frozen=True)
class Labels:
    """Where a page that is served keeps the labels that are set on it."""

    url: str
    """Takes them, as a POST."""
    file: str
    """Its name, for people."""
    marked: Sequence[Mapping[str, Any]]
    """The lines of the file that are about this run."""


@dataclass(frozen=True)
class Served:
    """What a page is told that ``ragbench view`` serves; addresses are relative to the page's own."""

    home: str
    """Address of the list of runs."""
    labels: Labels | None = None
    """None where the page has nothing to label."""
    matrix: str | None = None
    """Address of the run's systems side by side; None where it is of one."""


def policy(script: str, css: str, *, served: bool = False) -> str:
    """Only this script and this style sheet; no image, no frame; no connection and no form but to the server that
    the page is ``served`` by.

    Style attributes are allowed, which the charts' library sets on what it draws.
    """
    own = "'self'" if served else "'none'"
    return (
        f"default-src 'none'; script-src {_hash(script)}; style-src-elem {_hash(css)}; "
        f"style-src-attr 'unsafe-inline'; connect-src {own}; base-uri 'none'; form-action {own}"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def json_text(data: Any) -> str:
    """JSON that can stand inside a script element whatever the texts are."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def write_page(path: Path, text: str) -> None:
    """Write a page, and the folder that it lies in.

    Raises
    ------
    UsageError
        The file can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise UsageError(f"{path}: can't be written: {error.strerror}") from None
