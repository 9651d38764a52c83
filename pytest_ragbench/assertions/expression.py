"""``python: len(answer) < 200``: an expression of one line over a sample.

It is code of whoever wrote the test, and runs as that: names are limited so that slips are found early, which is no
wall against somebody who means harm. So expressions are taken from test files and calls, never from question files.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from functools import lru_cache
from types import CodeType
from typing import Any

from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample

FIELDS = (
    "question", "answer", "contexts", "context_ids", "context_urls", "context_scores", "reference",
    "relevant_ids", "id", "lang", "tags", "latency", "first_token", "metadata", "session",
)  # fmt: skip
"""Of the sample, by their own names."""

_BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        "abs", "all", "any", "bool", "dict", "enumerate", "filter", "float", "int", "isinstance", "len", "list", "map",
        "max", "min", "range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "zip",
    )
}  # fmt: skip
_NAMES: dict[str, Any] = {"re": re, "json": json, **_BUILTINS}


@lru_cache(maxsize=1024)
def compiled(text: str) -> CodeType:
    """The expression, ready to run.

    Raises
    ------
    ValueError
        It isn't an expression, has an unknown name, or an attribute that begins with an underscore.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not a Python expression: {error.msg}") from None
    nodes = list(ast.walk(tree))
    known = {*FIELDS, *_NAMES}
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id not in known | bound:
            raise ValueError(
                f"{text!r} has an unknown name {node.id!r}; {did_you_mean(node.id, sorted(known))}"
            )
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            raise ValueError(f"{text!r}: attributes that begin with '_' can't be used: {node.attr!r}")
    return compile(tree, "<python>", "eval")


def evaluated(text: str, sample: RagSample) -> bool:
    """Whether the expression is true of the sample.

    Raises
    ------
    UsageError
        It raises an error itself: a field that the sample does not have is None.
    """
    # One scope: inside a comprehension only global names are seen.
    scope = {"__builtins__": {}, **_NAMES, **{name: getattr(sample, name) for name in FIELDS}}
    try:
        return bool(eval(compiled(text), scope))  # noqa: S307 - the test's own code, see above
    except Exception as error:
        raise UsageError(
            f"python: {text!r} for sample {sample.label}: {type(error).__name__}: {error}"
        ) from None
