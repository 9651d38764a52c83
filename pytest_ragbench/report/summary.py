"""Sums over a run: one row per metric, the outcomes, and what it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.report import (
    MetricSummary,
    ModelUsage,
    RunReport,
    ScoreRecord,
    SummaryRecord,
    TestRecord,
    UsageRecord,
)
from pytest_ragbench.model.thresholds import Direction
from pytest_ragbench.report.layout import aligned, cut
from pytest_ragbench.report.usage import UsageSums, add_usage
from pytest_ragbench.statistics.percentile import percentile

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
    """Where the scores say which way is better; it may follow from an option."""
    missed: int = 0
    gated: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = None

    @property
    def mean(self) -> float | None:
        return float(self.sum / self.scored) if self.scored else None

    def add(self, score: ScoreRecord) -> None:
        """Take in one score; the mean of a question set counts as its questions do."""
        if score.value is None:
            self.total += 1
            return
        details, usage = score.details, score.usage
        self.calls += usage.calls
        self.tokens += usage.tokens
        if usage.cost is not None:
            self.cost = (self.cost or 0.0) + usage.cost
        whole_set = score.sample is None and "n_scored" in details
        count = details["n_scored"] if whole_set else 1
        low, high = (details["min"], details["max"]) if whole_set else (score.value, score.value)
        if details.get("direction") in ("higher", "lower"):
            self.direction = details["direction"]
        self.gated += score.passed is not None
        self.missed += score.passed is False
        self.sum += Fraction(score.value) * count
        self.scored += count
        self.total += details["n_total"] if whole_set else 1
        self.least = low if self.least is None else min(self.least, low)
        self.most = high if self.most is None else max(self.most, high)


class Summary:
    """Sums up results and usage as they come."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.outcomes: Counter[str] = Counter()
        self.usage: dict[str, dict[str, Any]] = {}
        self.worst: list[Worst] = []

    def add(self, result: TestRecord) -> None:
        kind, outcome = result.kind, result.outcome
        if (bad := worst_of(result)) is not None:
            self.worst = sorted([*self.worst, bad])[:WORST]
        self.outcomes[kind if kind and outcome in ("failed", "error") else outcome] += 1
        for score in result.scores:
            self.rows.setdefault(score.metric, Row(score.metric, score.tier)).add(score)

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
        rank = {tier: index for index, tier in enumerate(tiers)}
        return sorted(self.rows.values(), key=lambda row: (rank.get(row.tier, len(rank)), row.metric))

    def bands(self) -> dict[str, str | None]:
        """The band of each metric's mean."""
        from pytest_ragbench.metrics.registry import find

        bands: dict[str, str | None] = {}
        for row in self.rows.values():
            base = row.metric.removesuffix("_answer_correctness").removesuffix("_groundedness")
            try:
                known = find(base)
                if row.direction is not None:
                    known = known.turned(row.direction)
                bands[row.metric] = known.band(row.mean) if row.mean is not None else None
            except RagbenchError:
                bands[row.metric] = None
        return bands

    def record(self) -> SummaryRecord:
        """The ``summary`` of the report."""
        bands = self.bands()
        kinds = {name: sums for name, sums in self.usage.items() if " " not in name}
        models = {name: sums for name, sums in self.usage.items() if " " in name}
        return SummaryRecord(
            outcomes=dict(self.outcomes),
            metrics=tuple(
                MetricSummary(
                    metric=row.metric,
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
                    band=bands.get(row.metric),
                )
                for row in self.rows.values()
            ),
            calls={kind: _usage_record(sums) for kind, sums in kinds.items()},
            models=tuple(
                ModelUsage(
                    kind=name.split(" ", 1)[0],
                    model=name.split(" ", 1)[1],
                    **{key: value for key, value in sums.items() if key in _OF_A_MODEL},
                )
                for name, sums in models.items()
            ),
        )


_OF_A_MODEL = frozenset(ModelUsage.__slots__)
_OF_A_KIND = frozenset(UsageRecord.__slots__) - {"p50", "p95", "latencies"}


def _usage_record(sums: Mapping[str, Any]) -> UsageRecord:
    latencies = sums.get("latencies", [])
    return UsageRecord(
        **{name: value for name, value in sums.items() if name in _OF_A_KIND},
        p50=percentile(latencies, 0.5) if latencies else None,
        p95=percentile(latencies, 0.95) if latencies else None,
        latencies=tuple(round(seconds, 3) for seconds in latencies),
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
            row.metric,
            "-" if row.mean is None else f"{row.mean:.3f}",
            "-" if row.least is None else f"{row.least:.3f}",
            f"{row.scored}/{row.total}",
            f"{row.missed}/{row.gated}" if row.gated else "-",
        ]
        line += [f"{row.tokens:,}"] * tokens + [_dollars(row.cost)] * costs
        cells.append([*line, bands.get(row.metric) or "-"])
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
    if len({sample.question for sample in samples}) != 1:
        return None
    sample = samples[0]
    missed = [score.value for score in result.scores if score.passed is False and score.value is not None]
    lacks = [1 - min(1.0, max(0.0, value)) for value in missed]
    where = f"{sample.file}:{sample.line}" if sample.file and sample.line else ""
    named = f"[{sample.id}] " if sample.id else ""
    return Worst(-sum(lacks) - len(lacks), f"{named}{sample.question}", result.message, where)


def call_lines(usage: UsageSums) -> list[str]:
    """``judge: 24 calls, 6 stored (saved 2,280 tokens), 9,120 tokens, p50 0.8 s, p95 2.1 s``, one line a
    kind; below it one line for each of its models where there are several; last what all cost together.
    """
    lines: list[str] = []
    kinds = [kind for kind in usage if " " not in kind]
    for kind in kinds:
        lines.append(f"{kind}: {_calls(usage[kind])}")
        models = [name for name in usage if name.startswith(f"{kind} ")]
        if len(models) > 1:
            lines += [f"  {name.split(' ', 1)[1]}: {_calls(usage[name])}" for name in models]
    cost = sum(usage[kind].get("cost", 0.0) for kind in kinds)
    saved = sum(usage[kind].get("saved_cost", 0.0) for kind in kinds)
    unpriced = sum(usage[kind].get("unpriced", 0) for kind in kinds)
    if cost or saved:
        parts = [_dollars(cost)]
        parts += [f"the store saved {_dollars(saved)}"] if saved else []
        parts += [f"{unpriced:,} tokens of models without a known price not counted"] if unpriced else []
        lines.append(f"cost: {', '.join(parts)}")
    return lines


def _calls(entries: Mapping[str, Any]) -> str:
    calls, stored, failed = (int(entries.get(name, 0)) for name in ("calls", "stored", "failed"))
    tokens = int(entries.get("prompt_tokens", 0)) + int(entries.get("completion_tokens", 0))
    saved, cost = int(entries.get("saved_tokens", 0)), entries.get("cost", 0.0)
    parts = [f"{calls} call{'s' * (calls != 1)}"]
    if stored:
        parts.append(f"{stored} stored (saved {saved:,} tokens)" if saved else f"{stored} stored")
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{tokens:,} tokens"] if tokens else []
    parts += [_dollars(cost)] if cost else []
    latencies = entries.get("latencies", [])
    if latencies:
        parts.append(f"p50 {percentile(latencies, 0.5):.2f} s, p95 {percentile(latencies, 0.95):.2f} s")
    return ", ".join(parts)


def _dollars(cost: float | None) -> str:
    if not cost:
        return "-" if cost is None else "$0"
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}" if cost >= 0.01 else f"${cost:.6f}"
