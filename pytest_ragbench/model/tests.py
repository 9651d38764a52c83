"""What a report says of one test: its samples, their scores, and what went wrong.

Part of the report's one definition: :mod:`pytest_ragbench.model.report` says what the classes are for, and why they
are plain dataclasses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pytest_ragbench.model.scores import Finding, Usage
from pytest_ragbench.model.thresholds import Direction, Scale

Outcome = Literal[
    "passed", "failed", "error", "skipped", "xfailed", "xpassed", "deselected", "crashed", "not_run"
]


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
    system: str | None = None
    """name of the retriever that was asked, in a run of several"""
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
