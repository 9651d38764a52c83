"""Sums over a run: one row per metric, the outcomes, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.report import MetricSummary, RunReport, SummaryRecord
from pytest_ragbench.model.tests import ScoreRecord, SetupRecord, TestRecord
from pytest_ragbench.model.thresholds import Direction, Scale
from pytest_ragbench.money import dollars
from pytest_ragbench.report.layout import aligned, cut
from pytest_ragbench.report.usage import UsageSums, add_usage, usage_records

if TYPE_CHECKING:
    from pytest_ragbench.metrics.registry import Metric

WORST = 5
"""How many of the worst questions are named."""

_KINDS = {
    "quality": "quality failure",
    "judge": "judge error",
    "endpoint": "endpoint error",
    "embedding": "embedding error",
    "usage": "usage error",
    "budget": "budget error",
    "undefined": "undefined score",
    "unscored": "unscored",
}


@dataclass
class Row:
    """One metric over the run. ``total`` counts what was asked for, ``scored`` what has a score."""

    metric: str
    tier: str
    sum: Fraction = field(default_factory=Fraction)
    """Exact: in whatever order results come (workers, shards), it is the same."""
    scored: int = 0
    total: int = 0
    least: float | None = None
    most: float | None = None
    direction: Direction | None = None
    """Which way is better, as scores of sets say it where a report has no setup."""
    missed: int = 0
    gated: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    setup: SetupRecord | None = None
    """What the scores say of their range and direction, which may follow from an option."""
    system: str | None = None
    """The one of several that it is about."""

    @property
    def name(self) -> str:
        """The metric, and whose it is."""
        return of_system(self.metric, self.system)

    @property
    def mean(self) -> float | None:
        return float(self.sum / self.scored) if self.scored else None

    def known(self) -> Metric | None:
        """The metric, turned the way that its scores say; None for one that isn't registered here."""
        found, direction = known_metric(self.metric), self.setup.direction if self.setup else self.direction
        return found.turned(direction) if found is not None and direction is not None else found

    def scale(self) -> Scale | None:
        """Range and direction: as the scores say, else as registered; None where neither knows."""
        if self.setup is not None:
            return self.setup.scale(self.metric)
        found = self.known()
        return found.scale if found is not None else None

    def add(self, score: ScoreRecord) -> None:
        """Take in one score; the mean of a question set counts as its questions do."""
        self.setup = score.setup or self.setup
        # What failed took calls, but its usage is counted with the run's.
        if score.value is None:
            self.total += 1
            return
        details, usage = score.details, score.usage
        if details.get("direction") in ("higher", "lower"):
            self.direction = details["direction"]
        self.calls += usage.calls
        self.tokens += usage.tokens
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
        # A metric over a set without questions of its own (silhouette) counts once.
        whole_set = score.sample is None and "n_scored" in details
        count = details["n_scored"] if whole_set else 1
        low, high = (details.get(end, score.value) if whole_set else score.value for end in ("min", "max"))
        self.gated += score.passed is not None
        self.missed += score.passed is False
        self.sum += Fraction(score.value) * count
        self.scored += count
        self.total += details["n_total"] if whole_set else 1
        self.least = low if self.least is None else min(self.least, low)
        self.most = high if self.most is None else max(self.most, high)


def of_system(metric: str, system: str | None) -> str:
    """``faithfulness``, or of one of several systems ``faithfulness (small)``."""
    return f"{metric} ({system})" if system else metric


def means_of(report: RunReport) -> dict[str, float]:
    """The means that a report's summary has, by metric, of several systems by metric and system."""
    summary = report.summary.metrics if report.summary else ()
    return {of_system(each.metric, each.system): each.mean for each in summary if each.mean is not None}


def known_metric(name: str) -> Metric | None:
    """The metric of that name, also where it is one grade of several; None for one that is not registered here."""
    from pytest_ragbench.metrics.registry import find

    # Two grades of one judge call are registered as one metric.
    for candidate in (name, name.removesuffix("_answer_correctness").removesuffix("_groundedness")):
        try:
            return find(candidate)
        except RagbenchError:
            continue
    return None


class Summary:
    """Sums up results and usage as they come."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        """By metric, of several systems by metric and system."""
        self.outcomes: Counter[str] = Counter()
        self.usage: dict[str, dict[str, Any]] = {}
        self.worst: list[Worst] = []
        self._judges: dict[str, None] = {}
        self._embedders: dict[str, None] = {}

    def add(self, result: TestRecord) -> None:
        kind, outcome = result.kind, result.outcome
        # Only the worst few are kept: a run may have thousands of failures.
        if (bad := worst_of(result)) is not None:
            self.worst = sorted([*self.worst, bad])[:WORST]
        self.outcomes[kind if kind and outcome in ("failed", "error") else outcome] += 1
        for score in result.scores:
            row = Row(score.metric, score.tier, system=result.system)
            self.rows.setdefault(row.name, row).add(score)
            for names, told in ((self._judges, score.judge), (self._embedders, score.embedder)):
                names.update(dict.fromkeys(told.split(", ") if told else ()))

    @property
    def judges(self) -> tuple[str, ...]:
        """Who judged."""
        return tuple(sorted(self._judges))

    @property
    def embedders(self) -> tuple[str, ...]:
        """Who embedded."""
        return tuple(sorted(self._embedders))

    @property
    def has_results(self) -> bool:
        return bool(self.rows or self.outcomes)

    def add_usage(self, usage: UsageSums) -> None:
        add_usage(self.usage, usage)

    def finish(self, run: RunReport) -> None:
        if self.outcomes or self.usage:
            run.summary = self.record()

    def outcome_line(self) -> str:
        """``8 passed, 3 quality failures, 1 judge error``."""
        names = {"passed": "passed", "failed": "failed", "error": "error", "skipped": "skipped"}
        names |= {"xfailed": "xfailed", "xpassed": "xpassed", **_KINDS}
        parts = []
        for name, said in names.items():
            if count := self.outcomes.get(name, 0):
                plural = "s" if count != 1 and said.endswith((" failure", " error", " score")) else ""
                parts.append(f"{count} {said}{plural}")
        return ", ".join(parts)

    def ordered_rows(self, tiers: Sequence[str]) -> list[Row]:
        # Unknown tiers (of a newer version) go last instead of failing.
        rank = {tier: index for index, tier in enumerate(tiers)}
        return sorted(
            self.rows.values(), key=lambda row: (rank.get(row.tier, len(rank)), row.metric, row.system or "")
        )

    def bands(self) -> dict[str, str | None]:
        """The band of each metric's mean."""
        return {
            row.name: known.band(row.mean) if row.mean is not None and (known := row.known()) else None
            for row in self.rows.values()
        }

    def record(self) -> SummaryRecord:
        """The ``summary`` of the report."""
        bands = self.bands()
        calls, models = usage_records(self.usage)
        return SummaryRecord(
            outcomes=dict(self.outcomes),
            metrics=tuple(
                MetricSummary(
                    metric=row.metric,
                    system=row.system,
                    tier=row.tier,
                    mean=row.mean,
                    min=row.least,
                    max=row.most,
                    n_scored=row.scored,
                    n_total=row.total,
                    n_missed=row.missed,
                    calls=row.calls,
                    tokens=row.tokens,
                    cost=row.cost,
                    band=bands.get(row.name),
                )
                for row in self.rows.values()
            ),
            calls=calls,
            models=models,
            judges=self.judges,
            embedders=self.embedders,
        )


# What a narrow terminal can do without, first what it misses least.
_DROP = ("tokens", "min", "cost", "scored", "tier", "band")


def table(rows: Sequence[Row], bands: Mapping[str, str | None], columns: int = 200) -> list[str]:
    """Aligned lines: tier, metric, mean, min, n scored of n asked for, misses, tokens, dollars, band; the
    columns of tokens and dollars only where there are any, and what ``columns`` cells have room for.
    """
    tokens, costs = any(row.tokens for row in rows), any(row.cost for row in rows)
    head = ["tier", "metric", "mean", "min", "scored", "missed"]
    cells = [[*head, *["tokens"] * tokens, *["cost"] * costs, "band"]]
    tier = ""
    for row in rows:
        line = [
            row.tier.replace("_", " ") if row.tier != tier else "",
            row.name,
            # No -0.000: minus nothing is nothing.
            "-" if row.mean is None else f"{round(row.mean, 3) + 0.0:.3f}",
            "-" if row.least is None else f"{round(row.least, 3) + 0.0:.3f}",
            f"{row.scored}/{row.total}",
            f"{row.missed}/{row.gated}" if row.gated else "-",
        ]
        line += [f"{row.tokens:,}"] * tokens + [dollars(row.cost)] * costs
        cells.append([*line, bands.get(row.name) or "-"])
        tier = row.tier
    return aligned(cells, left=("tier", "metric", "band"), drop=_DROP, shrink="metric", columns=columns)


@dataclass(frozen=True, order=True)
class Worst:
    """A question that failed; sorts by how bad it is, worst first."""

    rank: float
    name: str
    said: str
    where: str

    def lines(self, columns: int) -> list[str]:
        """What is wrong, and below it which question it was."""
        place = f" ({self.where})" if self.where else ""
        return ["  " + cut(self.said, columns - 2), "    " + cut(f"{self.name}{place}", columns - 4)]


def worst_of(result: TestRecord) -> Worst | None:
    """What a result adds to the list of the worst; None where nothing is wrong with a question's quality."""
    if result.outcome != "failed" or result.kind != "quality" or not result.message:
        return None
    samples = result.samples
    # A test about a whole set has no question to point at.
    if len({sample.question for sample in samples}) != 1:
        return None
    sample = samples[0]
    lacks = [score.shortfall for score in result.scores if score.passed is False]
    where = f"{sample.file}:{sample.line}" if sample.file and sample.line else ""
    named = f"[{sample.id}] " if sample.id else ""
    named = f"{result.system}: {named}" if result.system else named
    return Worst(-sum(lacks) - len(lacks), f"{named}{sample.question}", result.message, where)
