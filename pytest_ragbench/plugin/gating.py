"""The gates of a run, on the controller: read before it, decided after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.state import RunState

if TYPE_CHECKING:
    from pytest_ragbench.gates.baseline import Baseline, Comparison
    from pytest_ragbench.gates.observations import Observations
    from pytest_ragbench.gates.rules import Rule
    from pytest_ragbench.gates.verdicts import Conditions, Verdict


def gates_of(config: pytest.Config, state: RunState) -> Gates | None:
    """The gates of the configuration and the command line; None where there are none, nor a baseline.

    Raises
    ------
    pytest.UsageError
        An unreadable rule, metric or baseline: before anything is asked.
    """
    typed: list[str] = config.getoption("ragbench_gate") or []
    unwanted = ("collectonly", "ragbench_no_gates", "ragbench_dry_run")
    if any(config.getoption(name) for name in unwanted):
        return None
    if not typed and not state.is_configured:
        return None
    try:
        settings = state.settings
        if not (typed or settings.gates or settings.gating.baseline):
            return None
        from pytest_ragbench.gates.rules import parse_rule, parse_rules

        rules = {rule.name: rule for rule in parse_rules(settings.gates)}
        named = {}
        for text in typed:
            rule = parse_rule(text)
            named[rule.name, rule.kind, rule.statistic] = rule
        replaced = {name for name, *_ in named}
        chosen = [rule for name, rule in rules.items() if name not in replaced]
        return Gates(state, [*chosen, *named.values()])
    except RagbenchError as error:
        raise pytest.UsageError(str(error)) from None


class Gates:
    """Takes the results of a run, and decides at its end."""

    def __init__(self, state: RunState, rules: list[Rule]) -> None:
        from pytest_ragbench.gates.observations import Observations

        self._settings = state.settings.gating
        self._rules = rules
        self._observed = Observations()
        self._baseline = self._read_baseline(state)
        self.preflight: str | None = None
        """What the judge said before the run, as a fingerprint."""
        self.verdicts: list[Verdict] = []
        self.comparisons: list[Comparison] = []
        self._conditions: Conditions | None = None

    @property
    def grounds(self) -> tuple[list[Rule], Observations, Conditions | None]:
        """What the verdicts rest on: to decide again for other scores."""
        return self._rules, self._observed, self._conditions

    def add(self, record: Mapping[str, Any]) -> None:
        """One result, as it comes."""
        self._observed.add(record)

    def decide(self, *, complete: bool) -> None:
        """The verdicts; a run that is not ``complete`` passes no gate."""
        from pytest_ragbench.gates.baseline import Baseline, compare_all
        from pytest_ragbench.gates.verdicts import Conditions, evaluate
        from pytest_ragbench.judge.rendering import prompt_versions

        new = Baseline(self._observed, prompt_versions() if self._baseline else {}, self.preflight)
        conditions = self._conditions = Conditions(
            max_unscored=self._settings.max_unscored,
            clusters=self._settings.clusters,
            complete=complete,
            baseline=self._baseline,
            new=new,
        )
        self.verdicts = evaluate(self._rules, self._observed, conditions)
        if self._baseline is not None:
            self.comparisons = compare_all(new, self._baseline)

    def exit_code(self, given: int, unscored: int) -> int:
        """``given``, unless nothing worse is known than what the gates say; ``unscored`` is the code of a
        run in which judge, service or embedder failed.
        """
        if given not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED, unscored):
            return given
        from pytest_ragbench.gates.verdicts import exit_code_of

        return exit_code_of(self.verdicts, given, undecided_fails=self._settings.undecided == "fail")

    def warnings(self) -> Iterator[str]:
        """What can't be told, where that does not fail the run."""
        return (text for verdict in self.verdicts if (text := verdict.warning))

    def lines(self) -> Iterator[tuple[str, str]]:
        """(outcome, line) for the terminal; no outcome for lines that only inform."""
        from pytest_ragbench.clean import clean, one_line

        for verdict in self.verdicts:
            reason = one_line(verdict.reason, 600)
            yield verdict.outcome, f"{verdict.outcome:<10} {verdict.rule.text}   {reason}"
        if self._baseline is not None:
            yield "", f"compared with {one_line(self._baseline.name, 200)}"
        for comparison in self.comparisons:
            for line in comparison.lines():
                yield "", f"  {clean(line)}"

    def to_dict(self) -> dict[str, Any]:
        """Fields of the JSON report."""
        told: dict[str, Any] = {"gates": [verdict.to_dict() for verdict in self.verdicts]}
        if self._baseline is not None:
            compared = [
                {"metric": comparison.metric, **comparison.to_dict()} for comparison in self.comparisons
            ]
            told["baseline"] = {"name": self._baseline.name, "metrics": compared}
        return told

    def _read_baseline(self, state: RunState) -> Baseline | None:
        if not self._settings.baseline:
            return None
        from pytest_ragbench.gates.baseline import read_baseline

        given, history = self._settings.baseline, state.settings.history
        return read_baseline(
            given,
            base=state.base_of("ragbench_baseline", given),
            history=state.located("ragbench_history", history) if history else None,
        )
