"""Question files, tables and databases as lists of ``Question``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_ragbench.questions.contexts import parse_contexts
    from pytest_ragbench.questions.ids import test_id, test_ids
    from pytest_ragbench.questions.inline import question_from, questions_from
    from pytest_ragbench.questions.loader import load_questions

__all__ = ["load_questions", "parse_contexts", "question_from", "questions_from", "test_id", "test_ids"]

# Imported on first use: the plugin imports this package in every pytest run of the machine.
_MODULES = {
    "load_questions": "loader",
    "parse_contexts": "contexts",
    "question_from": "inline",
    "questions_from": "inline",
    "test_id": "ids",
    "test_ids": "ids",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
