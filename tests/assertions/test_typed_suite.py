"""That the suite with annotations, which mypy reads in strict mode, has every public name."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest_ragbench
from tests.metrics import of_other_tests


def test_every_public_name_is_in_the_typed_suite() -> None:
    module = import_module("tests.assertions.typed_suite")  # and is there at run time, too
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    public = {
        name for name in pytest_ragbench.__all__ if name not in set(map("assert_{}".format, of_other_tests()))
    }
    assert sorted(public - used) == []
