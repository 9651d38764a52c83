"""One way to write money, readable from a millionth of a dollar to thousands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pytest_ragbench
from pytest_ragbench.money import dollars

AMOUNTS: list[tuple[float | None, str]] = [
    (None, "-"), (0, "$0"), (0.0, "$0"), (0.0000004, "$0.0000004"), (0.000001, "$0.000001"),
    (0.00000096, "$0.00000096"), (0.00001234, "$0.000012"), (0.00033, "$0.00033"), (0.0021, "$0.0021"),
    (0.00999999, "$0.01"), (0.01, "$0.01"), (0.0123, "$0.0123"), (0.5, "$0.50"), (0.99999, "$1.00"),
    (1, "$1.00"), (1.005, "$1.00"), (1.125, "$1.13"), (2.125, "$2.13"),
    (12.345, "$12.35"), (999.999, "$1,000.00"),
    (1234.5, "$1,234.50"), (1_234_567, "$1,234,567.00"),
]  # fmt: skip
"""As terminal, reports and HTML page write them; 1.005 is a little less in binary, 1.125 is not."""


@pytest.mark.parametrize(("cost", "shown"), AMOUNTS)
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


@pytest.mark.parametrize("cost", [1e30, 5e-324, float("inf"), float("nan")])
def test_no_amount_is_an_error(cost: float) -> None:
    assert dollars(cost).startswith("$")
