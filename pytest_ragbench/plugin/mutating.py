"""``--ragbench-mutate``: when the tests of a process are done, what passed is made worse and judged again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.report import MutationsRecord, RunReport, TestRecord
from pytest_ragbench.model.scores import plain
from pytest_ragbench.mutation.outcome import outcome, text
from pytest_ragbench.mutation.running import Trial, original_of, try_out, variants_of
from pytest_ragbench.plugin.state import RunState
from pytest_ragbench.report.reading import part_from

if TYPE_CHECKING:
    from pytest_ragbench.gates.deciding import RunGates

ANSWERS = 50
"""Of each metric so many answers at most are tried in a run."""


def try_worse_answers(state: RunState) -> None:
    """Leave the trials in ``state.trials``, in builtin types."""
    kept, counts = [], Counter[str]()
    for passed in state.passed or ():
        original = original_of(passed)
        if original is not None and counts[original.name] < math.ceil(ANSWERS / state.n_workers):
            counts[original.name] += 1
            kept.append(original)
    if not kept:
        return
    try:
        trials = state.engine.wait(try_out(variants_of(kept)))
    except RagbenchError as error:
        state.warn(f"--ragbench-mutate: {error}")
        return
    state.trials = [plain(trial.to_dict()) for trial in trials]


class WorseAnswers:
    """On the controller: takes the trials of all processes, and says at the end what was caught."""

    def __init__(self, gates: RunGates | None) -> None:
        self._gates = gates
        self._trials: list[dict[str, Any]] = []
        self._found: dict[str, Any] | None = None

    def add_trials(self, trials: Iterable[dict[str, Any]]) -> None:
        self._trials += trials

    def add(self, result: TestRecord) -> None:
        """Results are tried where the test ran; here their trials are enough."""

    def finish(self, run: RunReport) -> None:
        """The gates have decided: each is asked again what it says of worse answers."""
        trials, gates = [Trial.of(told) for told in self._trials], self._gates
        grounds = (gates.rules, gates.observed, gates.conditions) if gates is not None else ()
        self._found = outcome(trials, *grounds)
        run.mutations = part_from(MutationsRecord, self._found, name="worse answers")

    def lines(self, columns: int) -> list[str]:
        return text(self._found, columns) if self._found is not None else []
