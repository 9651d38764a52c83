"""docs/troubleshooting.md quotes messages as the package writes them."""

from __future__ import annotations

import ast
import re

from tests.docs.test_code_blocks import ROOT


def strings() -> set[str]:
    """All that the package can say, without what it fills in."""
    found = set()
    for file in (ROOT / "pytest_ragbench").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                found.add("".join(map(str, parts)))
    return found


def test_each_message_is_one_that_the_package_writes() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    assert len(quoted) > 12
    said = "\n".join(strings())
    # ``(refused)`` is filled in: the words behind it are the message's own.
    missing = [each for each in quoted if re.sub(r"^\(\w+\): is the service", "is {}", each) not in said]
    assert missing == []
