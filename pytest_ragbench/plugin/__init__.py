"""The pytest plugin: hooks of a few lines that delegate to the modules beside this one.

This module is imported in every pytest run of the machine, so it and what it imports stay light.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import garbage
from pytest_ragbench.plugin import collecting, outcomes
from pytest_ragbench.plugin.choosing import check_configuration
from pytest_ragbench.plugin.collected import collected_of
from pytest_ragbench.plugin.fixtures import (
    _ragbench,
    embedder,
    judge,
    rag_conversation,
    rag_question,
    rag_sample,
    rag_samples,
    rag_session,
    retriever,
)
from pytest_ragbench.plugin.options import add_options
from pytest_ragbench.plugin.state import STATE, RunState
from pytest_ragbench.plugin.stream import RunResults
from pytest_ragbench.plugin.support import support_of
from pytest_ragbench.plugin.xdist import XdistHooks


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", collecting.MARKER_HELP)
    config.addinivalue_line("markers", "rag_tier(name): the benchmark tier that a test belongs to.")
    state = RunState(config)
    config.stash[STATE] = state
    if config.getoption("ragbench_tier"):
        from pytest_ragbench.plugin import tiers

        tiers.check(config.getoption("ragbench_tier"))  # here, because a worker can't say it
    if state.is_controller:
        config.pluginmanager.register(RunResults(config, state), "ragbench-results")
    if state.is_controller and config.getoption("ragbench_dry_run"):
        from pytest_ragbench.plugin.dry_run import DryRun

        config.option.dist = "no"  # nothing is run, so there is nothing to share (xdist looks after us)
        config.pluginmanager.register(DryRun(state), "ragbench-dry-run")
    # By the second name where it was given as a module: by ``PYTEST_PLUGINS``, say.
    if any(map(config.pluginmanager.hasplugin, ("xdist", "xdist.plugin"))):
        config.pluginmanager.register(XdistHooks(state), "ragbench-xdist")


def pytest_unconfigure(config: pytest.Config) -> None:
    if state := config.stash.get(STATE, None):
        state.close()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if state := session.config.stash.get(STATE, None):
        early = exitstatus == pytest.ExitCode.INTERRUPTED or bool(session.shouldfail or session.shouldstop)
        support_of(session.config).end_look_ahead(early=early)
        if not early:
            state.try_worse_answers()
        state.hand_over(collected_of(session.config).tell_once())


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    state = session.config.stash[STATE]
    if not state.is_loaded:
        return (yield)
    with garbage.uncollected():
        collected = yield
        asks = state.asks_service(session.items)
        if asks:
            state.load_client()
        # With xdist's controller only reports come in; where pytest only lists tests, it is done but for the two
        # searches for garbage with which it ends.
        if asks or (state.is_controller and not session.items) or not state.runs_tests:
            garbage.keep()
    return collected


# Outermost, to see the tests before anybody chooses among them, and what is left of them.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    if items:
        check_configuration(config, config.stash[STATE], items)
    with collected_of(config).choosing(items):
        if config.getoption("ragbench_tier"):
            from pytest_ragbench.plugin.tiers import select

            select(config, items)
        yield
    config.stash[STATE].look_at_latency(items)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith((".yaml", ".yml")):
        return None
    if not file_path.name.endswith((".rag.yaml", ".rag.yml")):
        from pytest_ragbench.plugin.misnamed import misnamed

        return misnamed(file_path, parent)
    from pytest_ragbench.plugin.yaml_files import RagYamlFile

    return RagYamlFile.from_parent(parent, path=file_path)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    collecting.parametrize(metafunc)


# Innermost: before --lf takes out what did not fail.
@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    collecting.label(collector, report)
    collected_of(collector.config).see(report)
    return report


# Outermost, so that an xfail mark, applied by pytest's own wrapper, can't turn an outage into a pass.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    outcomes.make_writable(call)
    outcomes.shorten(item, call)
    report = yield
    outcomes.label(item, call, report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any]) -> None:
    if call.excinfo is not None and node.config.getoption("usepdb", False):
        outcomes.stop_in_the_test(call.excinfo.value)


def pytest_report_header(config: pytest.Config, start_path: Path) -> list[str]:
    return config.stash[STATE].header(start_path)


__all__ = [
    "_ragbench",
    "embedder",
    "judge",
    "rag_conversation",
    "rag_question",
    "rag_sample",
    "rag_samples",
    "rag_session",
    "retriever",
]
