"""The gates hold what they promise: the simulation of ``benchmarks``, with few suites and their error allowed for."""

from __future__ import annotations

import pytest

from benchmarks import gates_simulation as simulation


def test_a_small_simulation_holds(capsys: pytest.CaptureFixture[str]) -> None:
    parts = ("--only", "absolute", "--only", "power", "--only", "documents")
    assert simulation.main(["--suites", "60", "--documents", "25", *parts]) == 0
    assert "outside its promise" not in capsys.readouterr().out


def test_regression_rules_and_advice(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        simulation.main(["--suites", "200", "--runs", "30", "--only", "regression", "--only", "advice"]) == 0
    )
    assert "any fails" in capsys.readouterr().out


def test_a_broken_promise_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mean itself for a bound: half of all suites pass."""
    monkeypatch.setattr(simulation, "reaches", lambda suites: suites.mean(axis=1))
    assert simulation.main(["--suites", "20", "--only", "absolute"]) == 1
    assert "outside its promise: thirds, t 0.8, n 100" in capsys.readouterr().out
