"""A cell that holds contexts: one context, or the text of a list that JSON, Python or numpy wrote."""

from __future__ import annotations

import ast
import json
import re
import warnings
from typing import Any

from pytest_ragbench.model.errors import QuestionFileError

_LITERAL = r"""[uU]?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_NUMPY = re.compile(rf"\[\s*{_LITERAL}(?:\s*{_LITERAL})+\s*\]", re.DOTALL)
# How a list of strings begins when Python, JSON or numpy wrote it.
_LIST_START = re.compile(r"""\[(?:\s*\[)*\s*(?:[uUbBrR]?['"]|(?:None|nan|NaN|null)\b\s*[,\]])""")
_LIST_THEN_TEXT = re.compile(rf"\[\s*{_LITERAL}(?:\s*,\s*{_LITERAL})*\s*\]\s*\S", re.DOTALL)
_ARRAY = re.compile(r"array\(\[.*\](?:,\s*dtype=[\w<>|']+)?\)", re.DOTALL)
# What Python, JSON and pandas write for a missing value.
_MISSING = {"none", "null", "nan", "<na>"}


def parse_contexts(cell: str) -> list[str]:
    """The contexts in one cell of text, best first.

    ==============================  ====================================================
    cell                            contexts
    ==============================  ====================================================
    ``""``, ``[]``                  none: ``[]``
    ``["a", "b"]``                  two: a list written as JSON
    ``['a', "b's"]``                two: a list (or tuple) written by Python
    ``['a' 'b']``                   two: an array written by numpy, without commas
    ``Text``, ``[1] A footnote``    one: the cell as it is
    ==============================  ====================================================

    Separators inside a context (``|``, ``;``, line ends) never split it.

    Raises
    ------
    QuestionFileError
        A list that is cut off, holds something other than strings, or lacks a comma; an array
        shortened by numpy (``...``); a missing value written as ``None`` or ``nan``.
    """
    content = cell.strip()
    if not content:
        return []
    if content.casefold() in _MISSING:
        raise QuestionFileError(
            f"contexts {content!r}: a missing value written as text; leave the cell blank"
        )
    if _ARRAY.fullmatch(content):
        raise QuestionFileError("contexts are an array written by numpy: write a list (.tolist()) as JSON")
    # A sentence in brackets is text; only a tuple that Python can read is a list.
    if content[0] == "(" and content[-1] == ")":
        value = literal(content)
        return _texts(list(value)) if isinstance(value, tuple) and value else [cell]
    if content[0] != "[":
        return [cell]
    return _bracketed(content, cell)


def _bracketed(content: str, cell: str) -> list[str]:
    try:
        value = json.loads(content, strict=False)  # strict would refuse line ends inside a string
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list):
        return _texts(value)
    # Before Python's own reading, which would join the strings of an array into one.
    if _NUMPY.fullmatch(content):
        return _numpy(content)
    value = literal(content)
    if isinstance(value, list):
        if _joined(content, value):
            raise QuestionFileError(
                "contexts: a comma is missing between two strings of the list, which Python would join into one"
            )
        return _texts(value)
    # A footnote as "[1] See below" is text; a list that can't be read is an error, or half of it would be scored.
    if _LIST_START.match(content) and not _LIST_THEN_TEXT.match(content):
        raise QuestionFileError(
            f"contexts begin like a list that can't be read to its end: {content[:40]!r}... Is it cut off, "
            "or shortened by numpy? Write a JSON list"
        )
    return [cell]


def _texts(items: list[Any]) -> list[str]:
    for number, item in enumerate(items):
        if not isinstance(item, str):
            raise QuestionFileError(
                f"contexts[{number}] must be a string, got {type(item).__name__}: {item!r:.60}"
            )
    return items


def _numpy(content: str) -> list[str]:
    values = [literal(part) for part in re.findall(_LITERAL, content, re.DOTALL)]
    if not all(isinstance(value, str) for value in values):
        raise QuestionFileError("contexts: an array written by numpy that can't be read; write a JSON list")
    return [str(value) for value in values]


def _joined(content: str, value: list[Any]) -> bool:
    """Whether Python joined adjacent literals: then the list has more literals than strings."""
    return len(re.findall(_LITERAL, content, re.DOTALL)) > sum(isinstance(item, str) for item in value)


def literal(text: str) -> Any:
    """The value of a Python literal; None where the text isn't one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unknown escapes, which stay as written
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
