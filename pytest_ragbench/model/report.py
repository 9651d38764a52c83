"""A report: what a run found out, test by test, and what it came to.

These classes are the one definition of the JSON report. A run builds them where a result arises
(:mod:`pytest_ragbench.report.records`), every report format, gate and command takes them, and files are read into
them (:mod:`pytest_ragbench.report.reading`). The JSON Schema and the tables of ``docs/json-report.md`` are made from
their fields and the docstrings below each field.

Plain dataclasses, because a process that runs tests builds one for each of them and should not need pydantic for
it. Pydantic validates what comes from a file or from another process.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_ragbench.model.tests import Part, TestRecord

SCHEMA: Literal["ragbench-report"] = "ragbench-report"
VERSION: Literal[1] = 1

GateOutcome = Literal["PASS", "FAIL", "UNDECIDED"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GitRecord(Part):
    """The working tree that the run was started in."""

    commit: str
    branch: str | None = None
    dirty: bool = False
    directory: str = ""
    """where the run was started, from the top of the tree"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo(Part):
    """Who ran what."""

    id: str
    started: float
    """seconds since 1970"""
    ragbench: str = ""
    pytest: str = ""
    python: str = ""
    platform: str = ""
    settings: str = ""
    """judge, embedder, service and store, in words"""
    sources: tuple[str, ...] = ()
    """files and options that the settings come from"""
    systems: tuple[str, ...] = ()
    """of a run that asks several systems: their names, as they were given"""
    git: GitRecord | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    """task of the judge to version and fingerprint of its prompt"""
    trace_url: str | None = None
    """where traces are shown; `{trace_id}` in it is replaced"""
    spans: bool = False
    """true: the run was sent as spans by OTLP, too"""
    shards: tuple[str, ...] = ()
    """of a merged report: the files it was made from"""

    def in_order(self, names: Iterable[str | None]) -> list[str | None]:
        """Names of systems as they were given, then others by name: workers report in any order."""
        places = {name: place for place, name in enumerate(self.systems)}
        return sorted(names, key=lambda name: (places.get(name or "", len(places)), name or ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary(Part):
    """One metric over the run."""

    metric: str
    system: str | None = None
    """the one of several that it is about"""
    tier: str
    mean: float | None = None
    min: float | None = None
    max: float | None = None
    n_scored: int = 0
    n_total: int = 0
    n_missed: int = 0
    """scores below their threshold"""
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    """US dollars, where a price is known"""
    band: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSums(Part):
    """Sums over calls."""

    calls: int = 0
    """requests sent, retries included"""
    stored: int = 0
    """replies that came from the store"""
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars, where a price is known"""
    unpriced: int = 0
    """tokens of models whose price is not known"""
    saved_tokens: int = 0
    """what stored replies took when they were asked for"""
    saved_cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord(CallSums):
    """The calls of one kind: `rag`, `judge` or `embedding`."""

    p50: float | None = None
    """seconds"""
    p95: float | None = None
    """seconds"""
    latencies: tuple[float, ...] = ()
    """seconds of each good reply"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage(CallSums):
    """The calls of one kind to one model."""

    kind: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRecord(Part):
    """Sums over the run."""

    outcomes: Mapping[str, int] = field(default_factory=dict)
    """tests by kind, or by outcome where there is no kind"""
    metrics: tuple[MetricSummary, ...] = ()
    calls: Mapping[str, UsageRecord] = field(default_factory=dict)
    """by kind: `rag`, `judge`, `embedding`"""
    models: tuple[ModelUsage, ...] = ()
    judges: tuple[str, ...] = ()
    """who judged, as the scores say: a fixture may have named another than the settings"""
    embedders: tuple[str, ...] = ()
    """who embedded, as the scores say"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedRecord(Part):
    """A question whose score changed."""

    question: str
    old: float
    new: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRecord(Part):
    """A run against the baseline; differences are new - old."""

    n_pairs: int = 0
    n_changed: int = 0
    mean_difference: float | None = None
    p: float | None = None
    method: str = ""
    incomparable: tuple[str, ...] = ()
    """what makes the runs incomparable, in sentences"""
    notes: tuple[str, ...] = ()
    moved: tuple[MovedRecord, ...] = ()
    """questions that moved most"""
    broken: tuple[str, ...] = ()
    """ids of questions that met the threshold of their test, and don't now"""
    mended: tuple[str, ...] = ()
    """the other way round"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison(ComparisonRecord):
    """One metric against the baseline."""

    metric: str
    system: str | None = None
    """the one of several that it is about"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRecord(Part):
    """A rule over the whole run, and what it came to."""

    gate: str
    """as it is written: `faithfulness[lang=ru] >= 0.85`"""
    metric: str
    system: str | None = None
    """the one of several that it was decided for; `gate` begins with it"""
    subset: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """name to values"""
    rule: str = ""
    """`sure`, `confident`, `plain`, `baseline` or `must_pass`"""
    statistic: str = "mean"
    threshold: str | None = None
    verdict: GateOutcome
    broken: bool = False
    """true: the gate could not do its work, whatever the scores"""
    reason: str = ""
    """one sentence"""
    value: float | None = None
    """the mean (or what `statistic` says); null: there is no score"""
    low: float | None = None
    """one-sided lower bound of the truth; null: the rule needs none"""
    high: float | None = None
    """one-sided upper bound of the truth"""
    confidence: float | None = None
    """of each bound"""
    method: str | None = None
    """of the bounds"""
    n_scored: int = 0
    n_total: int = 0
    n_clusters: int | None = None
    """null: each question stands for itself"""
    more_questions: int | None = None
    """about how many more would settle it; null: it is settled"""
    p: float | None = None
    """of a rule against a baseline"""
    p_holm: float | None = None
    """the same, among all such rules"""
    comparison: ComparisonRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineRecord(Part):
    """An earlier run that this one was held against."""

    name: str
    metrics: tuple[MetricComparison, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyRecord(Part):
    """A score whose votes disagreed."""

    question: str
    """its id, or the test's"""
    metric: str
    votes: tuple[float, ...] = ()
    self_agreement: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelRecord(Part):
    """How well the judges of a panel agree on a metric."""

    metric: str
    judges: tuple[str, ...] = ()
    n: int = 0
    """scores that all of it is about"""
    disagreed: int = 0
    """scores of which some judges find the threshold met and others missed"""
    alpha: float | None = None
    """Krippendorff's; null: undefined"""
    kappa: float | None = None
    """Cohen's, of two judges' verdicts; null: undefined"""
    means: Mapping[str, float] = field(default_factory=dict)
    """by judge"""


@dataclass(frozen=True, slots=True)
class PreflightCheckRecord(Part):
    """One thing that the judge was asked before the run."""

    name: str
    passed: bool
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightRecord(Part):
    """What the judge said of texts whose verdicts are known."""

    judge: str
    passed: bool
    fingerprint: str | None = None
    """of its verdicts"""
    checks: tuple[PreflightCheckRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationKindRecord(Part):
    """One way to change an answer, and what became of those changed so."""

    kind: str
    good: bool
    """whether such a variant should still pass"""
    n: int = 0
    n_unscored: int = 0
    right: int = 0
    share: float | None = None
    """right / n"""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SurvivorRecord(Part):
    """A bad variant that passed, or a good one that failed."""

    kind: str
    good: bool
    id: str
    """the question's"""
    change: str = ""
    question: str = ""
    answer: str | None = None
    value: float | None = None
    threshold: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatedMetricRecord(Part):
    """A metric's variants."""

    metric: str
    originals: int = 0
    caught: float | None = None
    """share of the bad ones that failed"""
    wrongly_failed: float | None = None
    """share of the good ones that failed"""
    kinds: tuple[MutationKindRecord, ...] = ()
    survivors: tuple[SurvivorRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MutatedGateRecord(Part):
    """What a gate says of the run if every question that can be changed so is."""

    gate: str
    kind: str
    good: bool
    n_changed: int = 0
    n_total: int = 0
    verdict: GateOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationsRecord(Part):
    """Answers that passed, made worse by rule: what judge, thresholds and gates caught."""

    metrics: tuple[MutatedMetricRecord, ...] = ()
    gates: tuple[MutatedGateRecord, ...] = ()


@dataclass(slots=True, kw_only=True)
class RunReport(Part):
    """A JSON report. Of a run that was killed there is neither a summary nor an exit code.

    Not frozen: at the end of a run each of its consumers fills in its part.
    """

    schema: Literal["ragbench-report"] = SCHEMA
    version: Literal[1] = VERSION
    run: RunInfo
    results: tuple[TestRecord, ...] = ()
    """one for each test, in the order in which they ended"""
    complete: bool = False
    """false: the run was killed or ended early, or results were lost"""
    exit_code: int | None = None
    finished: float | None = None
    """seconds since 1970"""
    summary: SummaryRecord | None = None
    lost: tuple[str, ...] = ()
    """tests of which no result came back"""
    missing: tuple[TestRecord, ...] = ()
    """tests that were collected and did not run: `deselected`, `crashed` or `not_run`; gates count their questions"""
    not_chosen: tuple[str, ...] = ()
    """test files that ask for metrics and that pytest was not told to run: the run is partial"""
    warnings: tuple[str, ...] = ()
    gates: tuple[GateRecord, ...] = ()
    baseline: BaselineRecord | None = None
    """only where one was given"""
    flaky: tuple[FlakyRecord, ...] = ()
    """only where there were votes or panels"""
    panels: tuple[PanelRecord, ...] = ()
    """only where there were votes or panels"""
    preflight: PreflightRecord | None = None
    """only where there was one"""
    mutations: MutationsRecord | None = None
    """only with `--ragbench-mutate`"""
