"""Several runs of the same questions side by side: who answered what, who is better at what, and whether by chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pytest_ragbench.gates.baseline import Baseline, Comparison, baseline_of, compare, p_said, scales_of
from pytest_ragbench.gates.observations import Observations, fingerprint
from pytest_ragbench.gates.rules import Rule
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.thresholds import TOLERANCE, Scale
from pytest_ragbench.report.rows import Row, rows_of
from pytest_ragbench.statistics.paired import FEWEST, LEVEL, holm


@dataclass(frozen=True)
class Cell:
    """What one system made of one question."""

    answer: str | None
    outcome: str
    """As a question's row in the HTML report has it: ``"passed"``, ``"failed"``, ``"error"`` ..."""
    scores: Mapping[str, float]
    """Metric -> value; without those that have no score."""
    message: str | None = None
    """Why its test did not pass, first line."""
    answers: int = 1
    """Different answers to this question in the run; the first one is shown."""
    latency: float | None = None
    """Seconds that the answer took."""


@dataclass(frozen=True)
class Line:
    """One question, across the systems."""

    name: str
    question: str
    reference: str | None
    cells: tuple[Cell | None, ...]
    """One for each system; None where it was not asked this."""
    spread: float
    """Largest difference of a metric between two systems, as a share (0..1) of the metric's range."""


@dataclass(frozen=True)
class Duel:
    """Two systems at one metric."""

    better: int
    worse: int
    """Places of the systems."""
    difference: float
    """Of the means over the questions of both, 0 or more."""
    p: float | None
    """Two-sided, that chance alone makes such a difference, Holm's correction for all pairs of systems made;
    None where too few questions differ for any test, or the runs can't be compared."""
    why_not: str = ""
    """What makes the two incomparable."""

    @property
    def is_real(self) -> bool:
        """Whether the difference is more than chance (p < 0.05)."""
        return self.p is not None and self.p < LEVEL


@dataclass(frozen=True)
class Contest:
    """All systems at one metric."""

    metric: str
    higher: bool
    means: tuple[float | None, ...]
    """One for each system, over the questions that all of those with this metric scored."""
    n: int
    """So many questions."""
    wins: tuple[int, ...]
    """Questions at which a system alone is best."""
    duels: tuple[Duel, ...]

    @property
    def best(self) -> int | None:
        """The system with the best mean; None where two have it."""
        known = [
            (mean if self.higher else -mean, place)
            for place, mean in enumerate(self.means)
            if mean is not None
        ]
        top = max(value for value, _ in known) if known else 0.0
        places = [place for value, place in known if top - value <= TOLERANCE]
        return places[0] if len(places) == 1 and len(known) > 1 else None


@dataclass(frozen=True)
class System:
    """A run, as a column."""

    name: str
    report: RunReport
    passed: int
    questions: int
    cost: float | None
    """Dollars of all calls; None where a price isn't known."""
    latency: float | None
    """Seconds of an answer, the median; None where none was measured."""


@dataclass(frozen=True)
class Matrix:
    """Questions down, systems across."""

    systems: tuple[System, ...]
    contests: tuple[Contest, ...]
    lines: tuple[Line, ...]
    """Those at which the systems differ most first."""

    def said(self, contest: Contest) -> str:
        """One sentence: who is ahead of whom, and what can't be told."""
        names = [system.name for system in self.systems]
        real = [duel for duel in contest.duels if duel.is_real]
        told = [
            f"{names[duel.better]} is better than {names[duel.worse]} by {duel.difference:.3f} ({p_said(duel.p or 0)})"
            for duel in real
        ]
        open_ones = [duel for duel in contest.duels if not duel.is_real and not duel.why_not]
        if open_ones and not real and len(contest.duels) == len(open_ones):
            told.append("no difference that chance could not make")
        else:
            told += [
                f"{names[duel.better]} and {names[duel.worse]} can't be told apart" for duel in open_ones
            ]
        told += [
            f"{names[duel.better]} and {names[duel.worse]} can't be compared: {duel.why_not}"
            for duel in contest.duels
            if duel.why_not
        ]
        return "; ".join(told)


def matrix_of(runs: Sequence[tuple[str, RunReport]], metrics: Sequence[str] = ()) -> Matrix:
    """Put runs side by side.

    Parameters
    ----------
    runs
        Two or more, each with the name of its system.
    metrics
        Only these; default: all that at least two runs have.

    Raises
    ------
    UsageError
        Fewer than two runs, a name given twice, no question or metric in common.
    """
    names = [name for name, _ in runs]
    if len(names) < 2:
        raise UsageError("a matrix takes two runs or more")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two runs are called {twice!r}; give names: NAME=FILE")
    sides = [baseline_of(report, name=name) for name, report in runs]
    counts = {
        metric: sum(metric in side.observed.metrics for side in sides)
        for side in sides
        for metric in side.observed.metrics
    }
    if unknown := next((metric for metric in metrics if metric not in counts), None):
        raise UsageError(f"no run has scores of {unknown!r}; they have: {', '.join(sorted(counts))}")
    chosen = sorted(
        metric for metric, count in counts.items() if count > 1 and (not metrics or metric in metrics)
    )
    if not chosen:
        raise UsageError("no metric is in two of the runs")
    rules = {metric: _rule(metric, sides) for metric in chosen}
    values = [{metric: _values(side, rule) for metric, rule in rules.items()} for side in sides]
    return Matrix(
        systems=tuple(
            _system(name, report, side.observed) for (name, report), side in zip(runs, sides, strict=True)
        ),
        contests=tuple(
            _contest(rule, sides, [each[metric] for each in values]) for metric, rule in rules.items()
        ),
        lines=_lines([report for _, report in runs], values, rules),
    )


def _rule(metric: str, sides: Sequence[Baseline]) -> Rule:
    try:
        scale = scales_of(*(side.observed for side in sides))(metric)
    except UsageError:
        scale = Scale(metric)
    return Rule(metric, metric, "baseline", scale)


def _values(side: Baseline, rule: Rule) -> dict[str, float]:
    """Question (its id, or the fingerprint of its text where it has none) -> the mean of its scores."""
    found = side.observed.sample(rule).values
    return {
        key[1] if key in side.observed.unnamed and key[1] else key[0]: value for key, value in found.items()
    }


def _contest(rule: Rule, sides: Sequence[Baseline], values: Sequence[Mapping[str, float]]) -> Contest:
    playing = [place for place, each in enumerate(values) if each]
    common = sorted(set.intersection(*(set(values[place]) for place in playing)))
    means = tuple(
        math.fsum(each[key] for key in common) / len(common) if place in playing and common else None
        for place, each in enumerate(values)
    )
    wins = [0] * len(values)
    for key in common:
        ranked = sorted(
            ((values[place][key] * (1 if rule.higher else -1), place) for place in playing), reverse=True
        )
        if len(ranked) > 1 and ranked[0][0] - ranked[1][0] > TOLERANCE:
            wins[ranked[0][1]] += 1
    pairs = [
        (one, other, compare(rule, new, old, called=(f"in {old.name}", f"in {new.name}")))
        for one, other in combinations(playing, 2)
        for old, new in [(sides[one], sides[other])]
    ]
    raw = [_two_sided(compared) for _, _, compared in pairs]
    tested = iter(holm([p for p in raw if p is not None]))
    duels = []
    for (one, other, compared), p in zip(pairs, raw, strict=True):
        ahead = compared.drop < 0
        duels.append(
            Duel(
                better=other if ahead else one,
                worse=one if ahead else other,
                difference=abs(compared.mean),
                p=None if p is None else next(tested),
                why_not=compared.differences_said,
            )
        )
    return Contest(rule.name, rule.higher, means, len(common), tuple(wins), tuple(duels))


def _two_sided(compared: Comparison) -> float | None:
    # Nobody said beforehand which of the two is to be the better one.
    if compared.differences or compared.n_changed < FEWEST or compared.p is None or compared.p_better is None:
        return None
    return min(1.0, 2 * min(compared.p, compared.p_better))


def _system(name: str, report: RunReport, observed: Observations) -> System:
    rows = rows_of(report)
    if report.summary is not None:
        costs = [entry.cost for entry in report.summary.calls.values() if entry.calls]
    else:  # one system of a run, whose sums are of all: what its scores took
        costs = [*observed.costs, *([None] if observed.unpriced else [])]
    latencies = sorted(row.sample.latency for row in rows if row.sample.latency is not None)
    return System(
        name=name,
        report=report,
        passed=sum(row.outcome in ("passed", "xpassed", "scored") for row in rows),
        questions=len({_key(row) for row in rows}),
        cost=math.fsum(cost for cost in costs if cost is not None) if None not in costs else None,
        latency=latencies[len(latencies) // 2] if latencies else None,
    )


def _key(row: Row) -> str:
    return row.sample.id if row.sample.id is not None else fingerprint(row.sample.question)


def _lines(
    reports: Sequence[RunReport],
    values: Sequence[Mapping[str, Mapping[str, float]]],
    rules: Mapping[str, Rule],
) -> tuple[Line, ...]:
    sides: list[dict[str, list[Row]]] = []
    for report in reports:
        side: dict[str, list[Row]] = {}
        for row in rows_of(report):
            side.setdefault(_key(row), []).append(row)
        sides.append(side)
    lines = []
    for key in dict.fromkeys(key for side in sides for key in side):
        cells = tuple(
            _cell(side[key], {metric: each[metric][key] for metric in rules if key in each[metric]})
            if key in side
            else None
            for side, each in zip(sides, values, strict=True)
        )
        sample = next(side[key][0].sample for side in sides if key in side)
        name = sample.id if sample.id is not None else sample.question
        lines.append(Line(name, sample.question, sample.reference, cells, _spread(cells, rules)))
    return tuple(sorted(lines, key=lambda line: -line.spread))


def _cell(rows: Sequence[Row], scores: Mapping[str, float]) -> Cell:
    messages = [test.message for row in rows for test in row.tests if test.message]
    worst = max(rows, key=lambda row: row.shortfall)
    return Cell(
        answer=rows[0].sample.answer,
        outcome=worst.outcome,
        scores=scores,
        message=messages[0] if messages else None,
        answers=len({row.sample.answer for row in rows}),
        latency=rows[0].sample.latency,
    )


def _spread(cells: Sequence[Cell | None], rules: Mapping[str, Rule]) -> float:
    widest = 0.0
    for metric, rule in rules.items():
        found = [cell.scores[metric] for cell in cells if cell is not None and metric in cell.scores]
        if len(found) > 1:
            reach = rule.scale.high - rule.scale.low
            # A metric without an end, seconds say, is measured by its own largest value.
            reach = reach if math.isfinite(reach) else max(map(abs, found)) or 1.0
            widest = max(widest, (max(found) - min(found)) / reach)
    return widest
