"""A run of several systems, as one report for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord


def systems_in(report: RunReport) -> dict[str, RunReport]:
    """System -> the run as if it alone had been asked; empty where no test names one.

    Sums over the whole run are left out of each: they are not those of one system.
    """
    tests = (*report.results, *report.missing)
    names = report.run.in_order({test.system for test in tests})
    return {
        name: replace(
            report,
            results=_of(name, report.results),
            missing=_of(name, report.missing),
            summary=None,
            gates=(),
            baseline=None,
            mutations=None,
        )
        for name in names
        if name is not None
    }


def columns_of(runs: Sequence[tuple[str, RunReport]]) -> list[tuple[str, RunReport]]:
    """The columns of a matrix: each run, or the systems of one that has several, with their names."""
    found = []
    for name, report in runs:
        systems = systems_in(report)
        # The names of a run's systems do, unless another run may have the same.
        found += [
            (system if len(runs) == 1 else f"{name}: {system}", part) for system, part in systems.items()
        ] or [(name, report)]
    return found


def _of(name: str, tests: Sequence[TestRecord]) -> tuple[TestRecord, ...]:
    return tuple(replace(test, system=None) for test in tests if test.system == name)
