"""``pytest_ragbench/__init__.pyi``: what editors and type checkers see, made from the registry.

``python -m pytest_ragbench.assertions.stub`` writes it, and with ``--check`` says whether that has to be done.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union

from pytest_ragbench.assertions.factory import PREFIX, helper_names, signature_of
from pytest_ragbench.metrics.registry import Metric, all_metrics
from pytest_ragbench.scoring import Items, ThresholdLike

COMMAND = "python -m pytest_ragbench.assertions.stub"
PATH = Path(__file__).parents[1] / "__init__.pyi"
LINE_LENGTH = 110

_ABC = ("Callable", "Hashable", "Mapping", "Sequence")
_TYPING = ("Any", "Literal")


def stub_text(names_by_module: Mapping[str, str]) -> str:
    """The whole stub.

    Parameters
    ----------
    names_by_module
        Module (without the package) -> the public names that it defines, with spaces between them.
    """
    # Helpers that are written out win over those that would be made.
    ours = {name for names in names_by_module.values() for name in names.split()}
    metrics = {
        name: known
        for name, known in all_metrics().items()
        if PREFIX + name in helper_names() and PREFIX + name not in ours and is_built_in(known)
    }
    helpers = [_helper_text(known) for known in metrics.values()]
    public = sorted({*ours, *(PREFIX + name for name in metrics)})
    text = "\n".join(helpers)
    imports = [
        _import("collections.abc", [name for name in _ABC if re.search(rf"\b{name}\b", text)]),
        _import("typing", [name for name in _TYPING if name == "Any" or f"{name}[" in text]),
        "",
        *(
            _import(f"pytest_ragbench.{module}", names.split())
            for module, names in sorted(names_by_module.items())
        ),
    ]
    parts = [
        f'"""Made by ``{COMMAND}``: not to be edited."""\n',
        "\n".join(imports) + "\n",
        "__all__ = [\n" + "".join(f'    "{name}",\n' for name in public) + "]\n",
        "__version__: str\n",
        text,
        "# Helpers of your own metrics: made when the metric is registered.\n"
        "def __getattr__(name: str) -> Any: ...\n",
    ]
    return "\n".join(parts)


def is_built_in(metric: Metric) -> bool:
    """Whether the package brings the metric; not one of the user's, or of another package."""
    return str(inspect.unwrap(metric.compute).__module__).startswith("pytest_ragbench.")


def _helper_text(metric: Metric) -> str:
    signature = signature_of(metric)
    # Written as strings in the formula's module, where its aliases are known.
    hints = typing.get_type_hints(inspect.unwrap(metric.compute))
    lines = []
    keyword_only = False
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            lines.append("    *,")
        default = "" if parameter.default is inspect.Parameter.empty else " = ..."
        hint = parameter.annotation if not isinstance(parameter.annotation, str) else hints[name]
        lines.append(f"    {name}: {type_text(hint)}{default},")
    doc = metric.summary.replace("\\", "\\\\")
    return "\n".join([f"def {PREFIX}{metric.name}(", *lines, ") -> Score:", f'    """{doc}"""', ""])


def type_text(hint: Any) -> str:
    """A type as it is written in a stub."""
    # Aliases that users annotate with keep their names.
    if hint == ThresholdLike | None:
        return "ThresholdLike | None"
    if hint == Items:
        return "Items"
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint is None or hint is types.NoneType:
        return "None"
    if hint is Any:
        return "Any"
    if origin is Literal:
        return f"Literal[{', '.join(map(_quoted, args))}]"
    if origin in (Union, types.UnionType):
        return " | ".join(map(type_text, args))
    if origin is Callable or str(origin).endswith("abc.Callable'>"):
        return f"Callable[[{', '.join(map(type_text, args[0]))}], {type_text(args[1])}]"
    name = (origin or hint).__name__
    return f"{name}[{', '.join(map(type_text, args))}]" if args else str(name)


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _import(module: str, names: list[str]) -> str:
    ordered = sorted(names, key=lambda name: (not name[0].isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= LINE_LENGTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in ordered) + ")"


def main(arguments: Sequence[str]) -> int:
    """Write the stub; with ``--check`` only say whether it is as it should be."""
    text = stub_text(import_module("pytest_ragbench").NAMES_BY_MODULE)
    if "--check" in arguments:
        same = PATH.is_file() and PATH.read_text(encoding="utf-8") == text
        sys.stdout.write("" if same else f"{PATH} is not what the registry makes; run: {COMMAND}\n")
        return 0 if same else 1
    PATH.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
