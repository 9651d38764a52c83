"""Hooks that exist only with xdist."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.state import RunState


def queued_tests(config: pytest.Config) -> list[int] | None:
    """In a worker: the positions of the tests that it has been dealt and not begun, in their order.

    None where xdist does not tell. It has no public way to ask; :mod:`xdist.remote` keeps them like this since 3.0.
    """
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            try:
                with plugin.torun.lock() as queue:
                    return [each for each in (plugin.nextitem_index, *queue) if isinstance(each, int)]
            except (AttributeError, TypeError):
                return None
    return None


class XdistHooks:
    """Gives each worker what it has to share with the others."""

    def __init__(self, state: RunState) -> None:
        self.state = state

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        specs = [text.rpartition("*")[2] for text in session.config.getoption("tx", None) or ()]
        # ``popen`` workers share this machine, and so the controller's loopback.
        afar = [spec for spec in specs if not spec.startswith("popen")]
        if afar and self.state.is_controller and self.state.is_configured:
            self._check_hosts(afar[0])

    def _check_hosts(self, spec: str) -> None:
        try:
            settings = self.state.settings
        except RagbenchError as error:
            raise pytest.UsageError(str(error)) from None
        kind = spec.partition("=")[0]
        if settings.record:
            raise pytest.UsageError(
                f"--ragbench-record can't be used with --tx {kind}=: each host would write a file of its own; "
                "record with -n, or without xdist"
            )
        if not str(settings.store or "").startswith(("redis:", "rediss:")):
            self.state.warn(
                f"workers on other hosts (--tx {kind}=) share no replies, call slots, rates and budget: each host has "
                'its own; store = "redis://..." makes them common to all'
            )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["ragbench_run_id"] = self.state.run_id
        node.workerinput["ragbench_columns"] = self.state.columns
        node.workerinput["ragbench_loaded"] = self.state.is_loaded
        # A worker can't see it: xdist sets its own ``dist`` to "no".
        node.workerinput["ragbench_steals"] = node.config.getoption("dist", "") == "worksteal"
        node.workerinput["ragbench_root"] = str(node.config.rootpath)
        node.workerinput["ragbench_config"] = str(self.state.config_directory or "")
        if node.gateway.spec.popen:
            node.workerinput["ragbench_controller"] = self.state.reception()
        else:  # other hosts have an engine of their own, and variables of their own
            variables = os.environ.items()
            node.workerinput["ragbench_environ"] = {k: v for k, v in variables if k.startswith("RAGBENCH_")}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        results = node.config.pluginmanager.get_plugin("ragbench-results")
        if results is not None:
            results.expect(ids)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        results = node.config.pluginmanager.get_plugin("ragbench-results")
        output = getattr(node, "workeroutput", {}).get("ragbench")  # a worker that crashed leaves none
        if results is not None and output:
            results.take_rest(output["usage"], output["warnings"], output["trials"])
            results.told(json.loads(output.get("collected", "[]")))
