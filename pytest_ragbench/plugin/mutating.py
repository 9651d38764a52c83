"""``--ragbench-mutate``: when the tests of a process are done, what passed is made worse and judged again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.report import MutationsRecord, RunReport
from pytest_ragbench.model.scores import plain
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.mutation.outcome import outcome, text
from pytest_ragbench.mutation.running import Original, Trial, originals_in, try_out, variants_of

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.gates.deciding import RunGates
    from pytest_ragbench.scoring.results import Result

MAX_ANSWERS = 50
"""Of each metric so many answers at most are tried in a run."""


class PassedAnswers:
    """In each process that runs tests: takes their results, and tries variants of what passed."""

    def __init__(self, n_workers: int) -> None:
        self._most = math.ceil(MAX_ANSWERS / n_workers)
        self._counts = Counter[str]()
        self._kept: list[Original] = []

    def add(self, results: Sequence[Result]) -> None:
        """Keep what passed, up to the limit: how it was scored goes with the test otherwise."""
        for original in (each for result in results for each in originals_in(result)):
            if self._counts[original.name] < self._most:
                self._counts[original.name] += 1
                self._kept.append(original)

    def tried(self, engine: Engine) -> list[dict[str, Any]]:
        """The trials of all variants, in builtin types.

        Raises
        ------
        RagbenchError
            Variants can't be scored.
        """
        if not self._kept:
            return []
        return [plain(trial.to_dict()) for trial in engine.wait(try_out(variants_of(self._kept)))]


class WorseAnswers:
    """On the controller: takes the trials of all processes, and says at the end what was caught."""

    def __init__(self, gates: RunGates | None) -> None:
        self._gates = gates
        self._trials: list[Trial] = []
        self._found = MutationsRecord()

    def add_trials(self, trials: Iterable[Mapping[str, Any]]) -> None:
        self._trials += map(Trial.of, trials)

    def add(self, result: TestRecord) -> None:
        """Results are tried where the test ran; here their trials are enough."""

    def finish(self, run: RunReport) -> None:
        """The gates have decided: each is asked again what it says of worse answers."""
        gates = self._gates
        observed = gates.observed if gates is not None else None
        # Trials don't tell which of several systems gave the answer, so that no gate can be asked of one.
        grounds = (
            (gates.rules, observed, gates.conditions) if gates is not None and observed is not None else ()
        )
        self._found = run.mutations = outcome(self._trials, *grounds)

    def lines(self, columns: int) -> list[str]:
        return text(self._found, columns)
