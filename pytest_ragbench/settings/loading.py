"""Reads the layers of the configuration, and says of a bad value where it stands.

Why not pydantic-settings: it costs 30 to 80 ms of CPU in each process, does not know of a misspelt variable,
and its messages name the field but not the file, variable or option that set it.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_ragbench.config_files import Folders, line_of_key, merged, tables_in
from pytest_ragbench.extensions import did_you_mean, installed_points
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.options import PREFIX, SHORT_VARIABLES, setting_variables
from pytest_ragbench.settings.keys import known_keys, read_text, type_at
from pytest_ragbench.settings.model import Settings
from pytest_ragbench.settings.systems import systems_of


@dataclass(frozen=True)
class _Layer:
    name: str
    values: Mapping[str, Any] = field(repr=False)  # headers may hold a key
    names: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """Where each key of a layer has a name of its own, as the variables have: key -> its name."""

    def origin_of(self, path: Sequence[str]) -> str | None:
        """Who set the key ``path``, or the table that holds it; None if not this layer."""
        node: Any = self.values
        found = None
        for depth, part in enumerate(path, 1):
            if not isinstance(node, Mapping) or part not in node:
                # pydantic adds the branch of a union to the key.
                return found if not isinstance(node, Mapping) else None
            node = node[part]
            found = self.names.get(tuple(path[:depth]), found or self.name)
        return found


def load_settings(
    directory: Path | None = None,
    *,
    root: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Settings:
    """Read and merge all layers.

    Parameters
    ----------
    directory
        Where to start looking for the configuration files; the nearest directory upwards, to
        ``root``, that holds one is taken.
    environ
        The variables; default: those of this process.
    options
        Dotted keys from the command line: ``{"rag.url": "http://..."}``; None values are left out.
    flags
        What the options of these keys are called, for messages: ``{"rag.url": "--rag-url"}``.

    Raises
    ------
    UsageError
        Naming the key and the file, variable or option it came from.
    """
    start = (directory or Path.cwd()).resolve()
    folder = Folders().nearest(start, (root or start).resolve())
    layers = [_Layer(name, table) for name, table in tables_in(folder)] if folder is not None else []
    layers.append(_environment(os.environ if environ is None else environ, layers))
    given = {tuple(key.split(".")): value for key, value in (options or {}).items() if value is not None}
    names = {tuple(key.split(".")): flag for key, flag in (flags or {}).items()}
    # Last, since later layers win.
    layers.append(_Layer("command line", _nested(given), names))
    for layer in layers:
        _refuse_rivals(layer)
    try:
        settings = Settings.model_validate(merged(*(_without_rival(layer.values) for layer in layers)))
    except ValidationError as error:
        # Not chained: pydantic's message repeats the value, which may hold a key.
        raise UsageError(_explain(error, layers)) from None
    try:
        systems_of(settings)
    except UsageError as error:
        raise UsageError(f"{_place(('rag', 'retrievers'), layers)}: rag.retrievers: {error}") from None
    paths = [
        ("metrics", name, *key) for name, each in settings.metrics.items() for key in ((), *zip(each.options))
    ]
    places = {path: _place(path, layers) for path in paths}
    return settings.read_from(tuple(layer.name for layer in layers if layer.values), places, folder)


def _place(path: tuple[str, ...], layers: Sequence[_Layer]) -> str:
    """Who set a key last: a file with the line, a variable."""
    for layer in reversed(layers):
        if origin := layer.origin_of(path):
            file = origin.removesuffix(" [tool.ragbench]")
            line = line_of_key(Path(file), path) if file.endswith(".toml") else 0
            return f"{file}:{line}" if line else origin
    return "configuration"


def _refuse_rivals(layer: _Layer) -> None:
    """One place that says both, a URL and an object in place of a service, doesn't say which is to be asked."""
    rag = layer.values.get("rag")
    if not isinstance(rag, Mapping) or rag.get("url") is None or not isinstance(rag.get("retriever"), str):
        return
    # Another package's retriever may well be one that asks the URL.
    name = rag["retriever"].partition(":")[0]
    if any(point.name == name for point in installed_points("ragbench.retrievers")):
        return
    raise UsageError(
        f"{_place(('rag', 'url'), [layer])}: [rag] has a url and retriever = {rag['retriever']!r}: "
        "remove the one that isn't to be asked"
    )


def _without_rival(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """A layer that gives the service's URL, and no retriever, takes the place of an earlier layer's retriever or
    retrievers.
    """
    rag = values.get("rag")
    if isinstance(rag, Mapping) and rag.get("url") is not None and not {"retriever", "retrievers"} & set(rag):
        return {**values, "rag": {**rag, "retriever": None, "retrievers": ()}}
    return values


def _environment(environ: Mapping[str, str], below: Sequence[_Layer]) -> _Layer:
    values: dict[tuple[str, ...], Any] = {}
    names: dict[tuple[str, ...], str] = {}
    unknown: list[str] = []
    for name in sorted(setting_variables(environ)):
        # Set but empty is unset: CI systems hand over a missing secret so.
        if not environ[name]:
            continue
        path = _path_of(name, below)
        kind = type_at(Settings, path)
        if kind is None:
            unknown.append(name)
            continue
        try:
            values[path] = read_text(environ[name], kind)
        except ValueError as error:
            raise UsageError(f"{name}: {'.'.join(path)}: {error}") from None
        names[path] = name
    nested = _nested(values)
    keys = _named_variables([*(layer.values for layer in below), nested])
    if wrong := [name for name in unknown if name not in keys]:
        raise UsageError(
            "\n".join(f"{name}: unknown variable{_near_variable(name, below)}" for name in wrong)
        )
    return _Layer("environment", nested, names)


def _path_of(variable: str, below: Sequence[_Layer]) -> tuple[str, ...]:
    """``RAGBENCH_RAG__TIMEOUT`` -> ``("rag", "timeout")``; names that a file has in other case are found."""
    upper = variable.upper()
    if upper in SHORT_VARIABLES:
        return tuple(SHORT_VARIABLES[upper].split("."))
    path: list[str] = []
    nodes: list[Any] = [layer.values for layer in below]
    for part in upper[len(PREFIX) :].split("__"):
        known = {key.upper(): key for node in nodes if isinstance(node, Mapping) for key in node}
        path.append(known.get(part, part.lower()))
        nodes = [node.get(path[-1]) for node in nodes if isinstance(node, Mapping)]
    return tuple(path)


def _named_variables(tables: Sequence[Any]) -> set[str]:
    """Variables that a configuration names as holding a key: they may be called as their owner likes."""
    found: set[str] = set()
    for table in tables:
        for name, value in table.items() if isinstance(table, Mapping) else ():
            if name in ("api_key_env", "auth_env") and isinstance(value, str):
                found.add(value)
            found |= _named_variables([value])
    return found


def _near_variable(name: str, below: Sequence[_Layer]) -> str:
    path = _path_of(name, below)
    # The first part that no table has; what comes after it may be right.
    wrong = next(n for n in range(len(path)) if type_at(Settings, path[: n + 1]) is None)
    known = known_keys(Settings, path[:wrong])
    if close := difflib.get_close_matches(path[wrong], known, n=1):
        meant = "__".join([*path[:wrong], close[0], *path[wrong + 1 :]])
        return f"; did you mean {PREFIX}{meant.upper()}?"
    if wrong:
        return f"; known there: {', '.join(sorted(known))}"
    return f"; only settings may begin with {PREFIX}"


def _nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    # Tables before their keys, so that RAGBENCH_RAG='{...}' and RAGBENCH_RAG__URL add up.
    for path, value in sorted(values.items(), key=lambda pair: len(pair[0])):
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return tree


def _explain(error: ValidationError, layers: Sequence[_Layer]) -> str:
    lines = []
    for problem in error.errors():
        path = [str(part) for part in problem["loc"]]
        # The last layer that set a key is the one to be mended.
        origins = (layer.origin_of(path) for layer in reversed(layers))
        origin = next((origin for origin in origins if origin), "configuration")
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = f"unknown key{_near(path)}"
        lines.append(f"{origin}: {'.'.join(path)}: {message}" if path else f"{origin}: {message}")
    return "\n".join(lines)


def _near(path: Sequence[str]) -> str:
    known = known_keys(Settings, path[:-1])
    return f"; {did_you_mean(path[-1], sorted(known))}"
