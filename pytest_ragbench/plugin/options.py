"""Command-line and ini options."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench.options import OPTIONS


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("ragbench", "RAG quality (pytest-ragbench)")
    for option in OPTIONS:
        kind: dict[str, Any] = {"action": "store_true"}
        if option.metavar is not None:
            kind = {"action": "append" if option.repeats else "store", "metavar": option.metavar}
        # argparse fills "%(default)s" and the like into help texts.
        group.addoption(option.flag, help=option.help.replace("%", "%%"), **kind)
    parser.addini(
        "ragbench_questions", "Question file for tests whose rag_questions mark names none.", default=""
    )


def given_settings(config: pytest.Config) -> dict[str, Any]:
    """Dotted key of a setting -> what its option was given; None where it was not given."""
    return {option.setting: config.getoption(option.dest) for option in OPTIONS if option.setting}
