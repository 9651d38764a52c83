from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine, and what else runs on it, than about the code.
settings.register_profile(
    "tests", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")

_OF_THE_OUTER_RUN = ("PYTEST_", "COV_CORE_", "COVERAGE_", "RAGBENCH_", "OPENAI_", "RAG_SERVICE_", "GITHUB_")
_AS_WELL = ("CI", "BUILD_NUMBER", "NO_COLOR", "FORCE_COLOR", "PY_COLORS")
_KEPT = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "RAGBENCH_TEST_POSTGRES", "RAGBENCH_TEST_PHOENIX")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Examples made by Hypothesis run unmeasured: twice as fast, and what they reach other tests reach too.

    Not so where it is asked which test reaches what (``benchmarks/mutants.py contexts``).
    """
    if config.pluginmanager.hasplugin("_cov") and not config.getoption("cov_context"):
        for item in items:
            if item.get_closest_marker("hypothesis"):
                item.add_marker("no_cover")


@pytest.fixture(scope="session", autouse=True)
def outer_environment() -> Iterator[Mapping[str, str]]:
    """What the outer run's environment said that must not reach a process that a test starts.

    Options, coverage, a judge and keys of whoever runs the tests: a test that wants one sets it. Processes
    of tests start unmeasured; ``Project.run`` hands the variables of coverage back to those worth it.
    """
    found = {
        name: value
        for name, value in os.environ.items()
        if (name.startswith(_OF_THE_OUTER_RUN) or name in _AS_WELL) and name not in _KEPT
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in found:
            patch.delenv(name)
        yield found
