"""The JSON report, read: what HTML, Markdown, history and comparison are made from.

One schema (docs/json-report.md) as frozen models. Reading is lenient where an older version wrote less:
a field that it did not know has its default. What a run writes today is held to the stricter schema
file beside this module (:mod:`pytest_ragbench.report.schema`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.json_report import SCHEMA, VERSION

Outcome = Literal["passed", "failed", "error", "skipped", "xfailed", "xpassed"]
Number = float


class _Part(BaseModel):
    # Fields that a later version adds are kept out of the way, not refused.
    model_config = ConfigDict(
        frozen=True, extra="ignore", allow_inf_nan=False, json_schema_serialization_defaults_required=True
    )


class Finding(_Part):
    """One line of evidence."""

    text: str
    ok: bool | None = Field(default=None, description="true: holds; false: does not; null: only informs")
    reason: str = ""
    chunk: int | None = Field(default=None, description="number of the chunk it rests on, from 1")
    value: Number | None = None


class Usage(_Part):
    """What was asked of a provider."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Number | None = Field(default=None, description="US dollars, where a price is known")


class Reply(_Part):
    """What a judge sent, word for word, secrets masked."""

    text: str = Field(description="its beginning, where it was long")
    cut: int = Field(default=0, description="characters that are not here")
    task: str = ""
    judge: str | None = None
    vote: int = Field(default=0, description="from 1; 0: there was one only")
    cached: bool = False


class ScoreError(_Part):
    """Why there is no value."""

    type: str
    code: str = "unscored"
    message: str = ""


class Score(_Part):
    """One metric that was asked for."""

    metric: str
    tier: str
    sample: int | None = Field(default=None, description="position in samples; null: over the whole set")
    count: int = 1
    value: Number | None = None
    threshold: str | None = None
    passed: bool | None = None
    band: str | None = None
    error: ScoreError | None = None
    reason: str = ""
    error_message: str = ""
    evidence: tuple[Finding, ...] = ()
    evidence_title: str = "claims"
    judge: str | None = None
    embedder: str | None = None
    votes: int = 1
    usage: Usage = Usage()
    duration: Number = 0.0
    cached: bool = False
    details: Mapping[str, Any] = {}
    replies: tuple[Reply, ...] = Field(default=(), description="of the judge; see report_replies")


class Sample(_Part):
    """A question, and what the RAG system made of it."""

    id: str | None = None
    question: str
    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    context_scores: tuple[Number, ...] | None = None
    context_urls: tuple[str, ...] | None = None
    relevant_urls: tuple[str, ...] | None = None
    reference: str | None = None
    reference_contexts: tuple[str, ...] | None = None
    relevant_ids: Mapping[str, Number] | None = None
    lang: str | None = None
    tags: tuple[str, ...] = ()
    must_pass: bool = False
    should_abstain: bool = False
    session: str | None = None
    cluster: str | None = None
    file: str | None = None
    line: int | None = None
    latency: Number | None = Field(default=None, description="seconds")
    cached: bool = False


class Asked(_Part):
    """A question without its answer."""

    id: str | None = None
    question: str
    lang: str | None = None
    tags: tuple[str, ...] = ()
    must_pass: bool = False
    session: str | None = None
    cluster: str | None = None
    relevant_ids: Mapping[str, Number] | None = None
    file: str | None = None
    line: int | None = None
    latency: Number | None = Field(default=None, description="seconds; null: not answered")
    cached: bool = False


class Result(_Part):
    """One test."""

    test: str
    outcome: Outcome
    kind: str | None = None
    message: str | None = None
    duration: Number = 0.0
    question_id: str | None = None
    samples: tuple[Sample, ...] = ()
    questions: tuple[Asked, ...] = Field(default=(), description="what the test is about and samples lacks")
    scores: tuple[Score, ...] = ()

    def sample_of(self, score: Score) -> Sample | None:
        """What a score is about; None for one over a whole set."""
        known = score.sample is not None and 0 <= score.sample < len(self.samples)
        return self.samples[score.sample] if known and score.sample is not None else None


class Git(_Part):
    """The working tree that the run was started in."""

    commit: str
    branch: str | None = None
    dirty: bool = False
    directory: str = Field(default="", description="where the run was started, from the top of the tree")


class Run(_Part):
    """Who ran what."""

    id: str
    started: Number = Field(description="seconds since 1970")
    ragbench: str = ""
    pytest: str = ""
    python: str = ""
    platform: str = ""
    settings: str = Field(default="", description="judge, embedder, service and store, in words")
    sources: tuple[str, ...] = ()
    git: Git | None = None
    prompts: Mapping[str, str] = Field(
        default={}, description="task of the judge -> version and fingerprint of its prompt"
    )
    shards: tuple[str, ...] = Field(default=(), description="of a merged report: the files it was made from")


class MetricSummary(_Part):
    """One metric over the run."""

    metric: str
    tier: str
    mean: Number | None = None
    min: Number | None = None
    max: Number | None = None
    n_scored: int = 0
    n_total: int = 0
    n_missed: int = 0
    calls: int = 0
    tokens: int = 0
    cost: Number | None = Field(default=None, description="US dollars, where a price is known")
    band: str | None = None


class Calls(_Part):
    """The calls of one kind."""

    calls: Number = 0
    stored: Number = 0
    failed: Number = 0
    prompt_tokens: Number = 0
    completion_tokens: Number = 0
    cost: Number | None = None
    p50: Number | None = Field(default=None, description="seconds")
    p95: Number | None = Field(default=None, description="seconds")
    unpriced: int = Field(default=0, description="tokens of models whose price is not known")
    saved_tokens: int = Field(default=0, description="what stored replies took when they were asked for")
    saved_cost: Number = 0.0
    latencies: tuple[Number, ...] = Field(default=(), description="seconds of each good reply")


class ModelCalls(_Part):
    """The calls of one kind to one model."""

    kind: str
    model: str
    calls: int = 0
    stored: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Number = 0.0
    unpriced: int = 0
    saved_tokens: int = 0
    saved_cost: Number = 0.0


class Moved(_Part):
    """A question whose score changed."""

    question: str
    old: Number
    new: Number


class Comparison(_Part):
    """A run against the baseline; differences are new - old."""

    n_pairs: int = 0
    n_changed: int = 0
    mean_difference: Number | None = None
    p: Number | None = None
    method: str = ""
    incomparable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    broken: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


class Compared(Comparison):
    """One metric against the baseline."""

    metric: str


class Gate(_Part):
    """A rule over the whole run, and what it came to."""

    gate: str
    metric: str
    subset: Mapping[str, tuple[str, ...]] = {}
    rule: str = Field(default="", description="sure, confident, plain, baseline or must_pass")
    statistic: str = "mean"
    threshold: str | None = None
    verdict: Literal["PASS", "FAIL", "UNDECIDED"]
    broken: bool = False
    reason: str = ""
    value: Number | None = None
    low: Number | None = None
    high: Number | None = None
    confidence: Number | None = None
    method: str | None = None
    n_scored: int = 0
    n_total: int = 0
    n_clusters: int | None = Field(default=None, description="null: each question stands for itself")
    more_questions: int | None = None
    p: Number | None = None
    p_holm: Number | None = None
    comparison: Comparison | None = None


class BaselineSummary(_Part):
    """An earlier run that this one was held against."""

    name: str
    metrics: tuple[Compared, ...] = ()


class Summary(_Part):
    """Sums over the run."""

    outcomes: Mapping[str, int] = {}
    metrics: tuple[MetricSummary, ...] = ()
    calls: Mapping[str, Calls] = {}
    models: tuple[ModelCalls, ...] = ()


class Flaky(_Part):
    """A score whose votes disagreed."""

    question: str = Field(description="its id, or the test's")
    metric: str
    votes: tuple[Number, ...] = ()
    self_agreement: Number | None = None


class Panel(_Part):
    """How well the judges of a panel agree on a metric."""

    metric: str
    judges: tuple[str, ...] = ()
    n: int = Field(default=0, description="scores that all of it is about")
    alpha: Number | None = Field(default=None, description="Krippendorff's; null: undefined")
    kappa: Number | None = Field(
        default=None, description="Cohen's, of two judges' verdicts; null: undefined"
    )
    means: Mapping[str, Number] = {}


class PreflightCheck(_Part):
    """One thing that the judge was asked before the run."""

    name: str
    passed: bool
    said: str = ""


class Preflight(_Part):
    """What the judge said of texts whose verdicts are known."""

    judge: str
    passed: bool
    fingerprint: str | None = Field(default=None, description="of its verdicts")
    checks: tuple[PreflightCheck, ...] = ()


class MutationKind(_Part):
    """One way to change an answer, and what became of those changed so."""

    kind: str
    good: bool = Field(description="whether such a variant should still pass")
    n: int = 0
    n_unscored: int = 0
    right: int = 0
    share: Number | None = Field(default=None, description="right / n")
    low: Number | None = None
    high: Number | None = None


class Survivor(_Part):
    """A bad variant that passed, or a good one that failed."""

    kind: str
    good: bool
    id: str = Field(description="the question's")
    change: str = ""
    question: str = ""
    answer: str | None = None
    value: Number | None = None
    threshold: str = ""
    reason: str = ""


class Mutated(_Part):
    """A metric's variants."""

    metric: str
    originals: int = 0
    caught: Number | None = Field(default=None, description="share of the bad ones that failed")
    wrongly_failed: Number | None = Field(default=None, description="share of the good ones that failed")
    kinds: tuple[MutationKind, ...] = ()
    survivors: tuple[Survivor, ...] = ()


class MutatedGate(_Part):
    """What a gate says of the run if every question that can be changed so is."""

    gate: str
    kind: str
    good: bool
    n_changed: int = 0
    n_total: int = 0
    verdict: Literal["PASS", "FAIL", "UNDECIDED"]
    reason: str = ""


class Mutations(_Part):
    """Answers that passed, made worse by rule: what judge, thresholds and gates caught."""

    metrics: tuple[Mutated, ...] = ()
    gates: tuple[MutatedGate, ...] = ()


class Report(_Part):
    """A JSON report. Of a run that was killed there is neither a summary nor an exit code."""

    schema_name: Literal["ragbench-report"] = Field(alias="schema")
    version: Literal[1]
    run: Run
    results: tuple[Result, ...] = ()
    complete: bool = False
    exit_code: int | None = None
    finished: Number | None = None
    summary: Summary | None = None
    lost: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    baseline: BaselineSummary | None = None
    flaky: tuple[Flaky, ...] = ()
    panels: tuple[Panel, ...] = ()
    preflight: Preflight | None = None
    mutations: Mutations | None = None


def read_report(path: Path) -> Report:
    """The report in a file.

    Raises
    ------
    UsageError
        Naming the file: it can't be read, is no JSON, no report of this kind, or one of a version that
        this ragbench does not know.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: no JSON report: not UTF-8") from None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON report: {error}") from None
    return report_from(data, name=str(path))


def report_from(data: object, *, name: str = "report") -> Report:
    """The report in parsed JSON; ``name`` is for messages.

    Raises
    ------
    UsageError
        As :func:`read_report`.
    """
    if not isinstance(data, Mapping) or data.get("schema") != SCHEMA:
        raise UsageError(f"{name}: no report of --ragbench-json: its 'schema' is not {SCHEMA!r}")
    version = data.get("version")
    if version != VERSION:
        raise UsageError(
            f"{name}: a report of version {version!r}; this ragbench reads up to version {VERSION}"
        )
    try:
        return Report.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{name}: {place}: {first['msg']}") from None
