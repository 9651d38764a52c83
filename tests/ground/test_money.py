"""One way to write money, readable from a millionth of a dollar to thousands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pytest_ragbench
from pytest_ragbench.money import dollars


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "-"), (0, "$0"), (0.0, "$0"), (0.0000004, "$0.0000004"), (0.000001, "$0.000001"),
        (0.00001234, "$0.000012"), (0.00033, "$0.00033"), (0.0021, "$0.0021"), (0.01, "$0.01"), (0.0123, "$0.0123"),
        (0.5, "$0.50"), (1, "$1.00"), (12.345, "$12.35"), (1234.5, "$1,234.50"), (1_234_567, "$1,234,567.00"),
    ],
)  # fmt: skip
def test_an_amount_has_as_many_digits_as_it_takes(cost: float | None, shown: str) -> None:
    assert dollars(cost) == shown


def test_nobody_else_writes_money() -> None:
    root = Path(pytest_ragbench.__file__).parent
    own = re.compile(r"\$\{[^}]*:[^}]*\.\d+f\}|:\.\d+f\}[^\n\"]*dollars")
    found = [
        path.name
        for path in root.rglob("*.py")
        if path.name != "money.py" and own.search(path.read_text("utf-8"))
    ]
    assert found == []
