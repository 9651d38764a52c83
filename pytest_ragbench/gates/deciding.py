"""The gates of one run: they see its results as they come, and decide at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pytest_ragbench.gates.baseline import Baseline, Comparison, compare_all, scales_of
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import Rule, ScaleOf
from pytest_ragbench.gates.verdicts import (
    BETTER_THAN_FAILED,
    EXIT_USAGE,
    Conditions,
    Verdict,
    evaluate,
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
        self.observed = Observations()
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
        self.observed.add(result)

    def finish(self, run: RunReport) -> None:
        """Put verdicts, warnings and the exit code into the report; a run that is not complete passes no gate."""
        # They come with the report, so that merged and compared reports count the same denominator.
        for test in run.missing:
            self.observed.add(test)
        if self._later is not None:
            try:
                self.rules = self._later(scales_of(self.observed))
            except UsageError as error:
                run.warnings += (f"no gate was decided: {error}",)
                run.exit_code = EXIT_USAGE if run.exit_code in BETTER_THAN_FAILED else run.exit_code
        preflight = run.preflight.fingerprint if run.preflight else None
        new = Baseline(self.observed, run.run.prompts, preflight)
        self.conditions = Conditions(
            max_unscored=self._settings.max_unscored,
            max_unpaired=self._settings.max_unpaired,
            clusters=self._settings.clusters,
            complete=run.complete,
            not_chosen=run.not_chosen,
            baseline=self._baseline,
            new=new,
        )
        self.verdicts = evaluate(self.rules, self.observed, self.conditions)
        run.gates = tuple(verdict.record() for verdict in self.verdicts)
        run.warnings += tuple(text for verdict in self.verdicts if (text := verdict.warning))
        if self._baseline is not None:
            # All metrics and not only those with a rule: a drop that no gate watches is still worth seeing.
            self.comparisons = compare_all(new, self._baseline, max_unpaired=self._settings.max_unpaired)
            compared = tuple(comparison.metric_record() for comparison in self.comparisons)
            run.baseline = BaselineRecord(name=self._baseline.name, metrics=compared)
        # A run that was killed has none, and gates must not invent one.
        if run.exit_code is not None:
            undecided_fails = self._settings.undecided == "fail"
            run.exit_code = exit_code_of(self.verdicts, run.exit_code, undecided_fails=undecided_fails)

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
