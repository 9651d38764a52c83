"""A report: what a run found out, test by test, and what it came to.

These classes are the one definition of the JSON report. A run builds them where a result arises
(:mod:`pytest_ragbench.report.records`), every report format, gate and command takes them, and files are read into
them (:mod:`pytest_ragbench.report.reading`). The JSON Schema and the tables of ``docs/json-report.md`` are made from
their fields and the docstrings below each field.

Plain dataclasses, because a process that runs tests builds one for each of them and should not need pydantic for
it. Pydantic validates what comes from a file or from another process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pytest_ragbench.model.scores import Finding, Usage
from pytest_ragbench.model.thresholds import Direction, Scale

SCHEMA: Literal["ragbench-report"] = "ragbench-report"
VERSION: Literal[1] = 1

Outcome = Literal[
    "passed", "failed", "error", "skipped", "xfailed", "xpassed", "deselected", "crashed", "not_run"
]
GateOutcome = Literal["PASS", "FAIL", "UNDECIDED"]


class Part:
    """What all parts of a report have in common: how pydantic reads them."""

    __slots__ = ()
    # Fields that a later version adds are kept out of the way, not refused.
    __pydantic_config__: ClassVar[Any] = {
        "extra": "ignore",
        "allow_inf_nan": False,
        "json_schema_serialization_defaults_required": True,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRecord(Part):
    """What a judge sent, word for word, secrets masked."""

    text: str
    """its beginning, where it was long"""
    cut: int = 0
    """characters that are not here"""
    task: str = ""
    judge: str | None = None
    vote: int = 0
    """from 1; 0: there was one only"""
    cached: bool = False
    duration: float = 0.0
    """seconds; with the last reply of a conversation, as tokens and cost"""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """US dollars, where a price is known"""
    prompt: tuple[Mapping[str, str], ...] = ()
    """the messages that it replied to, each as `role` and `content`; kept where spans are sent (`--ragbench-otel`)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord(Part):
    """Why there is no value."""

    type: str
    code: str = "unscored"
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRecord(Part):
    """What a score means and what it was to be measured with, as configured: whoever answered in the end."""

    direction: Direction = "higher"
    """which way is better"""
    low: float | None = None
    """lower end of the range; null: there is none"""
    high: float | None = None
    """upper end of the range; null: there is none"""
    tasks: tuple[str, ...] = ()
    """what the judge is asked, by the names of the prompts"""
    judge: str | None = None
    """also panel, cascade or confirmation; null: none was needed"""
    embedder: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    """of the metric, in words"""

    def scale(self, metric: str) -> Scale:
        """What a threshold has to know of ``metric``."""
        low = -math.inf if self.low is None else self.low
        return Scale(metric, low, math.inf if self.high is None else self.high, self.direction)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord(Part):
    """One metric that was asked for."""

    metric: str
    tier: str
    """`embedding`, `retrieval`, `generation`, `end_to_end`, `judge` or `dialogue`"""
    sample: int | None = None
    """position in `samples`; null: over the whole set"""
    count: int = 1
    """how many samples the value stands for"""
    value: float | None = None
    """a finite number; null: there is none, and `error` says why"""
    threshold: str | None = None
    """null: nothing was asserted"""
    passed: bool | None = None
    """null: nothing was asserted"""
    band: str | None = None
    """`excellent`, `good` or `attention`"""
    error: ErrorRecord | None = None
    """why there is no value"""
    reason: str = ""
    """in words"""
    error_message: str = ""
    """the judge's own words on what is wrong"""
    evidence: tuple[Finding, ...] = ()
    """claims (or chunks, questions, entities) and the verdict on each"""
    evidence_title: str = "claims"
    """what the evidence consists of"""
    judge: str | None = None
    embedder: str | None = None
    votes: int = 1
    usage: Usage = field(default_factory=Usage)
    """what the value took"""
    duration: float = 0.0
    """seconds spent waiting for judge and embedder"""
    cached: bool = False
    """true: every reply came from the store"""
    details: Mapping[str, Any] = field(default_factory=dict)
    """parts of the value by name"""
    setup: SetupRecord | None = None
    """null: the report was written before it was kept"""
    replies: tuple[ReplyRecord, ...] = ()
    """what the judge sent; see `report_replies`"""

    @property
    def shortfall(self) -> float:
        """How far the value is from the best one, 0..1; of an endless range as if it ended at 1."""
        if self.value is None:
            return 1.0
        setup = self.setup or SetupRecord(
            direction="lower" if (self.threshold or "").startswith("<") else "higher"
        )
        low = 0.0 if setup.low is None else setup.low
        share = (self.value - low) / ((1.0 if setup.high is None else setup.high) - low)
        return min(1.0, max(0.0, share if setup.direction == "lower" else 1.0 - share))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord(Part):
    """A question, and what the RAG system made of it."""

    id: str | None = None
    question: str
    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    """the retrieved chunks, best first"""
    context_ids: tuple[str, ...] | None = None
    context_scores: tuple[float, ...] | None = None
    reference: str | None = None
    reference_contexts: tuple[str, ...] | None = None
    relevant_ids: Mapping[str, float] | None = None
    """id to grade"""
    context_urls: tuple[str, ...] | None = None
    relevant_urls: tuple[str, ...] | None = None
    lang: str | None = None
    tags: tuple[str, ...] = ()
    must_pass: bool = False
    should_abstain: bool = False
    session: str | None = None
    cluster: str | None = None
    file: str | None = None
    """where the question is written"""
    line: int | None = None
    latency: float | None = None
    """seconds that the answer took"""
    first_token: float | None = None
    """seconds until the first piece of a streamed answer; null: it came as a whole"""
    at_once: int | None = None
    """the most questions that were under way at a time while this one was answered; null: not known"""
    trace_id: str | None = None
    """of the service's trace, by W3C trace context; of a stored answer, that of when it was asked for"""
    span_id: str | None = None
    """the parent of the service's first span"""
    asked: float | None = None
    """seconds since 1970"""
    cached: bool = False
    """true: the answer came from the store"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRecord(Part):
    """A question without its answer."""

    id: str | None = None
    question: str
    lang: str | None = None
    tags: tuple[str, ...] = ()
    must_pass: bool = False
    session: str | None = None
    cluster: str | None = None
    relevant_ids: Mapping[str, float] | None = None
    """id to grade"""
    file: str | None = None
    """where the question is written"""
    line: int | None = None
    latency: float | None = None
    """seconds; null: not answered"""
    first_token: float | None = None
    """seconds; null: not streamed"""
    at_once: int | None = None
    trace_id: str | None = None
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRecord(Part):
    """One test."""

    __test__: ClassVar[bool] = False  # pytest collects classes of such names

    test: str
    """pytest's node id"""
    outcome: Outcome
    kind: str | None = None
    """why it is not passed: `quality`, `judge`, `endpoint`, `embedding`, `budget`, `undefined`, `unscored`,
    `usage`; null: for a reason that is not ours"""
    message: str | None = None
    """first line of what was raised"""
    duration: float = 0.0
    """seconds of the test's call phase"""
    question_id: str | None = None
    """id of the question that the test is about"""
    samples: tuple[SampleRecord, ...] = ()
    """what was asked and answered"""
    questions: tuple[QuestionRecord, ...] = ()
    """what the test is about and `samples` lacks: the questions of a whole set, and one that got no answer"""
    scores: tuple[ScoreRecord, ...] = ()
    """one for each metric that was asked for"""
    metrics: tuple[str, ...] = ()
    """of a test that did not pass: the metrics that its source asks for; `*`: and others that it does not tell"""
    reruns: int = 0
    """attempts before the last one; what they scored is in `scores`, too"""

    def sample_of(self, score: ScoreRecord) -> SampleRecord | None:
        """What a score is about; None for one over a whole set."""
        place = score.sample
        return self.samples[place] if place is not None and 0 <= place < len(self.samples) else None


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
    git: GitRecord | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    """task of the judge to version and fingerprint of its prompt"""
    trace_url: str | None = None
    """where traces are shown; `{trace_id}` in it is replaced"""
    spans: bool = False
    """true: the run was sent as spans by OTLP, too"""
    shards: tuple[str, ...] = ()
    """of a merged report: the files it was made from"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary(Part):
    """One metric over the run."""

    metric: str
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRecord(Part):
    """A rule over the whole run, and what it came to."""

    gate: str
    """as it is written: `faithfulness[lang=ru] >= 0.85`"""
    metric: str
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
