"""Tests of metrics."""

from __future__ import annotations

from pytest_ragbench.metrics.registry import all_metrics


def of_other_tests() -> set[str]:
    """Names of metrics that tests of the same process have registered: their own, and ours under another name."""
    return {
        name
        for name, metric in all_metrics().items()
        if not metric.compute.__module__.startswith("pytest_ragbench.") or name.startswith("test_")
    }
