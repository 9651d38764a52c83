"""What a run keeps in one process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_ragbench.plugin.state import RunState


def test_what_is_there_is_read_without_the_lock(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Look-ahead holds it while it waits for the engine's loop, on which a metric may score other samples."""
    monkeypatch.setenv("RAGBENCH_STORE", "off")
    state = RunState(pytestconfig)
    try:
        before = state.settings, state.engine, state.coerce("judge", "local")
        with ThreadPoolExecutor(1) as other, state.lock:  # let go first, or a failure would hang
            done = other.submit(lambda: (state.settings, state.engine, state.coerce("judge", "local")))
            assert done.result(timeout=10) == before
    finally:
        state.close()
