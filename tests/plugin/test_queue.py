"""What a worker of xdist has been given to run: asked of xdist's own objects, which have no public way to tell."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import execnet
import pytest

from pytest_ragbench.plugin.xdist import queued_tests

remote: Any = import_module("xdist.remote")


def config_with(*plugins: object) -> Any:
    return SimpleNamespace(pluginmanager=SimpleNamespace(get_plugins=lambda: plugins))


def interactor(*queued: Any, following: Any) -> Any:
    made = remote.WorkerInteractor.__new__(remote.WorkerInteractor)
    made.torun = remote.TestQueue(execnet.gateway_base.get_execmodel("thread"))
    for each in queued:
        made.torun.put(each)
    made.nextitem_index = following
    return made


@pytest.mark.parametrize(
    ("queued", "following", "expected"),
    [
        ([4, 5, 9], 3, [3, 4, 5, 9]),
        ([4, remote.Marker.SHUTDOWN], 3, [3, 4]),
        ([], remote.Marker.SHUTDOWN, []),
        ([], None, []),
    ],
)
def test_the_tests_that_a_worker_will_run(queued: list[Any], following: Any, expected: list[int]) -> None:
    assert queued_tests(config_with(object(), interactor(*queued, following=following))) == expected


def test_where_xdist_does_not_tell_nothing_is_known() -> None:
    other = remote.WorkerInteractor.__new__(remote.WorkerInteractor)  # without the queue that today's has
    assert queued_tests(config_with(other)) is None
    assert queued_tests(config_with()) is None
