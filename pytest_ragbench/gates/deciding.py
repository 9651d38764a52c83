"""The gates of one run: they see its results as they come, and decide at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pytest_ragbench.gates.baseline import Baseline, Comparison, compare_all, scales_of
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import Rule, ScaleOf
from pytest_ragbench.gates.verdicts import (
    BETTER_THAN_FAILED,
    EXIT_USAGE,
    Conditions,
    Verdict,
    evaluate_each,
    exit_code_of,
)
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import BaselineRecord, RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.settings import GatingSettings


class RunGates:
    """The one place that decides: for a run of pytest, for the merged shards of one, and for two runs compared."""

    def __init__(
        self,
        rules: Sequence[Rule] | None,
        settings: GatingSettings,
        baseline: Baseline | None,
        *,
        later: Callable[[ScaleOf], Sequence[Rule]] | None = None,
    ) -> None:
        self.rules: Sequence[Rule] = rules or ()
        self._systems: dict[str | None, Observations] = {}
        """What each system of the run came to; None: tests that ask no system by name, all as a rule."""
        self.verdicts: list[Verdict] = []
        self.comparisons: list[Comparison] = []
        self.conditions: Conditions | None = None
        """What held for the verdicts, once they are there."""
        self._settings = settings
        self._baseline = baseline
        # xdist's controller imports no conftest.py below the start of the run: what a metric of one ranges over
        # comes with its scores.
        self._later = later if rules is None else None

    def add(self, result: TestRecord) -> None:
        """Take in a result of the run."""
        self._systems.setdefault(result.system, Observations()).add(result)

    @property
    def observed(self) -> Observations | None:
        """The scores of the run; None in a run of several systems, which have none in common."""
        return next(iter(self._systems.values()), Observations()) if len(self._systems) < 2 else None

    def finish(self, run: RunReport) -> None:
        """Put verdicts, warnings and the exit code into the report; a run that is not complete passes no gate."""
        # They come with the report, so that merged and compared reports count the same denominator.
        for test in run.missing:
            self.add(test)
        systems = {name: self._systems[name] for name in run.run.in_order(self._systems)}
        systems = systems or {None: Observations()}
        if self._later is not None:
            try:
                self.rules = self._later(scales_of(*systems.values()))
            except UsageError as error:
                run.warnings += (f"no gate was decided: {error}",)
                run.exit_code = EXIT_USAGE if run.exit_code in BETTER_THAN_FAILED else run.exit_code
        held = {system: self._conditions(run, system, observed) for system, observed in systems.items()}
        self.conditions = next(iter(held.values()))
        self.verdicts = evaluate_each(
            (self._rules_for(system, observed), observed, held[system])
            for system, observed in systems.items()
        )
        run.gates = tuple(verdict.record() for verdict in self.verdicts)
        run.warnings += tuple(text for verdict in self.verdicts if (text := verdict.warning))
        if self._baseline is not None:
            self.comparisons = [
                replace(comparison, system=system)
                for system, conditions in held.items()
                for comparison in self._compared(conditions)
            ]
            compared = tuple(comparison.metric_record() for comparison in self.comparisons)
            run.baseline = BaselineRecord(name=self._baseline.name, metrics=compared)
        # A run that was killed has none, and gates must not invent one.
        if run.exit_code is not None:
            undecided_fails = self._settings.undecided == "fail"
            run.exit_code = exit_code_of(self.verdicts, run.exit_code, undecided_fails=undecided_fails)

    def _conditions(self, run: RunReport, system: str | None, observed: Observations) -> Conditions:
        """What holds for the gates of one system: it is held against itself in the baseline."""
        preflight = run.preflight.fingerprint if run.preflight else None
        conditions = Conditions(
            max_unscored=self._settings.max_unscored,
            max_unpaired=self._settings.max_unpaired,
            clusters=self._settings.clusters,
            complete=run.complete,
            not_chosen=run.not_chosen,
            baseline=self._baseline and self._baseline.of(system),
            new=Baseline(observed, run.run.prompts, preflight),
        )
        if self._baseline is not None and conditions.baseline is None:
            return replace(conditions, no_baseline=self._baseline.lacks(system))
        return conditions

    def _rules_for(self, system: str | None, observed: Observations) -> Sequence[Rule]:
        if system is not None:
            return [rule.for_system(system) for rule in self.rules]
        if len(self._systems) < 2:
            return self.rules
        # Beside systems, tests that ask none are held to what they were to score.
        costs = bool(observed.costs or observed.unpriced)
        return [
            rule
            for rule in self.rules
            if (costs if rule.quantity == "cost" else observed.sample(rule).n_total)
        ]

    def _compared(self, conditions: Conditions) -> list[Comparison]:
        """All metrics and not only those with a rule: a drop that no gate watches is still worth seeing."""
        if conditions.new is None or conditions.baseline is None:
            return []
        return compare_all(conditions.new, conditions.baseline, max_unpaired=self._settings.max_unpaired)

    def lines(self) -> Iterator[tuple[str, str]]:
        """(outcome, line) for people; no outcome for lines that only inform."""
        for verdict in self.verdicts:
            yield (
                verdict.outcome,
                f"{verdict.outcome:<10} {verdict.rule.text}   {' '.join(verdict.reason.split())}",
            )
        if self._baseline is not None:
            yield "", f"compared with {self._baseline.name}"
        for comparison in self.comparisons:
            for line in comparison.lines():
                yield "", f"  {line}"
