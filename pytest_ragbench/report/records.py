"""From the outcome of a test to its record, and to properties in JUnit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal, Protocol

from pytest_ragbench.clean import clean, one_line
from pytest_ragbench.model.errors import JudgeError, Unscored
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.model.scores import Finding, JudgeReply, plain
from pytest_ragbench.model.tests import (
    ErrorRecord,
    Outcome,
    QuestionRecord,
    ReplyRecord,
    SampleRecord,
    ScoreRecord,
    TestRecord,
)
from pytest_ragbench.scoring.results import Result
from pytest_ragbench.secrets import Redactor


class _Node(Protocol):
    @property
    def nodeid(self) -> str: ...


class _Report(Protocol):
    @property
    def outcome(self) -> Literal["passed", "failed", "skipped"]: ...
    @property
    def duration(self) -> float: ...
    @property
    def when(self) -> str | None: ...


MOST_TRACES = 5
"""Of one test are shown; a test of a whole file has hundreds. All of them stand in the report."""
_MOST_REPLIES = 50
"""Of one score: a dialogue, or a panel with votes, has many."""
_MOST_OF_A_MESSAGE = 50_000
"""Characters of each message of a prompt."""


def record_of(
    node: _Node,
    report: _Report,
    error: BaseException | None,
    kind: str | None,
    results: Sequence[Result],
    *,
    reply_limit: int = 0,
    prompts: bool = False,
    collected: Sequence[Any] = (),
    metrics: tuple[str, ...] = (),
    system: str | None = None,
) -> TestRecord:
    """What a test found out.

    Parameters
    ----------
    reply_limit
        Characters of each of the judge's replies that are kept; 0: none.
    prompts
        Whether what they replied to is kept, too.
    collected
        The questions that the test is about, where its fixtures may not have been set up.
    metrics
        Those that it asks for, where it may not have come to them.
    system
        The one that it asks, of several.
    """
    samples = list(
        {id(result.sample): result.sample for result in results if result.sample is not None}.values()
    )
    funcargs = getattr(node, "funcargs", {})
    own = funcargs.get("rag_sample")
    # A test that ended before its first metric has shown its sample to nobody.
    if isinstance(own, RagSample) and not any(own is sample for sample in samples):
        samples.append(own)
    question = funcargs.get("rag_question")
    places = {id(sample): index for index, sample in enumerate(samples)}
    question_id = getattr(question, "id", None) or (samples[0].id if samples else None)
    return TestRecord(
        test=plain(node.nodeid),
        system=system,
        outcome=_outcome(report, kind),
        kind=kind,
        message=one_line(str(error).partition("\n")[0], 500) if error is not None and kind else None,
        duration=float(report.duration),
        question_id=plain(question_id),
        samples=tuple(_sample(sample) for sample in samples),
        questions=_with_trace(
            [question_record(each) for each in _not_shown(funcargs, question, samples, collected)], error
        ),
        metrics=metrics,
        scores=tuple(_score(result, places, reply_limit, prompts) for result in results),
    )


def _with_trace(
    questions: Sequence[QuestionRecord], error: BaseException | None
) -> tuple[QuestionRecord, ...]:
    """The only question of a test that got no answer has a trace all the same."""
    trace_id = getattr(error, "trace_id", None)
    if trace_id is None or len(questions) != 1:
        return tuple(questions)
    return (replace(questions[0], trace_id=trace_id),)


def traces_of(record: TestRecord, template: str | None) -> list[tuple[str, str]]:
    """Question (its id) and trace, as a URL where there is a template for it, of all that a test has asked."""
    asked: list[SampleRecord | QuestionRecord] = [*record.samples, *record.questions]
    return [(each.id or each.question, trace_url(template, each.trace_id)) for each in asked if each.trace_id]


def trace_url(template: str | None, trace_id: str) -> str:
    """Where a trace is shown; its id where nobody knows."""
    return template.replace("{trace_id}", trace_id) if template else trace_id


def with_attempt(earlier: TestRecord, last: TestRecord) -> TestRecord:
    """The record of a test that was run again: every score of it counts, those of the earlier attempt first. An error
    that the last attempt has a score for is over.
    """
    samples = list(last.samples)
    places: dict[int | None, int | None] = {None: None}
    for place, sample in enumerate(earlier.samples):
        same = [n for n, each in enumerate(samples) if _text_of(each) == _text_of(sample)]
        if not same:
            samples.append(sample)
        places[place] = same[0] if same else len(samples) - 1
    again = {(score.metric, question_of(last, score)) for score in last.scores}
    kept = [
        replace(score, sample=places.get(score.sample))
        for score in earlier.scores
        if score.value is not None or (score.metric, question_of(earlier, score)) not in again
    ]
    return replace(
        last, samples=tuple(samples), scores=(*kept, *last.scores), reruns=earlier.reruns + 1 + last.reruns
    )


def question_of(result: TestRecord, score: ScoreRecord) -> str | None:
    """The question that a score is about, whatever the answer was; None for a score over a whole set."""
    sample = result.sample_of(score)
    return None if sample is None else sample.id or sample.question


def _text_of(sample: SampleRecord) -> tuple[Any, ...]:
    return sample.id, sample.question, sample.answer, sample.contexts


def _not_shown(
    funcargs: Mapping[str, Any], question: Any, samples: Sequence[RagSample], collected: Sequence[Any]
) -> list[Any]:
    """Questions and samples that the test is about and ``samples`` lacks: those of a whole set, and one that
    got no answer.
    """
    found: list[Any] = []
    if isinstance(whole := funcargs.get("rag_samples"), RagSamples):
        answers = {sample.id: sample for sample in whole.answered}
        found += [answers.get(each.id, each) for each in whole.questions]
    if isinstance(question, Question):
        found.append(question)
    if not found:
        found += collected
    shown = {sample.id for sample in samples}
    return [each for each in found if each.id not in shown]


def _outcome(report: _Report, kind: str | None) -> Outcome:
    # Pytest itself reports an xfail as skipped.
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.outcome == "passed" else "xfailed"
    if report.outcome != "failed":
        return report.outcome
    return "failed" if kind == "quality" or (kind is None and report.when == "call") else "error"


_OF_BOTH = ("id", "question", "lang", "tags", "must_pass", "session", "cluster")
_OF_SAMPLES = (
    *_OF_BOTH, "answer", "contexts", "context_ids", "context_scores", "reference", "reference_contexts",
    "context_urls", "relevant_urls", "should_abstain", "latency", "first_token",
    "at_once", "trace_id", "span_id", "asked", "cached",
)  # fmt: skip
_HOW = ("latency", "first_token", "at_once", "trace_id")
_OF_SCORES = (
    "value", "reason", "error_message", "evidence_title", "judge", "embedder", "votes", "duration", "cached",
)  # fmt: skip


def _sample(sample: RagSample) -> SampleRecord:
    return SampleRecord(
        **_fields(sample, _OF_SAMPLES), relevant_ids=plain(sample.relevance), **_place(sample)
    )


def question_record(question: Any) -> QuestionRecord:
    """Of a question, or of a sample without its answer."""
    relevant = question.relevant_ids
    return QuestionRecord(
        **_fields(question, _OF_BOTH),
        relevant_ids=plain(relevant) if isinstance(relevant, Mapping) else None,
        **{name: plain(getattr(question, name, None)) for name in _HOW},
        cached=getattr(question, "cached", False),
        **_place(question),
    )


def _fields(source: Any, names: Sequence[str]) -> dict[str, Any]:
    """In builtin types: only those cross from a worker."""
    told = {name: plain(getattr(source, name)) for name in names}
    return {name: tuple(value) if type(value) is list else value for name, value in told.items()}


def _place(question: Any) -> dict[str, Any]:
    location = question.location
    return {"file": plain(location.file), "line": location.line} if location else {}


def _score(result: Result, places: Mapping[int, int], reply_limit: int, prompts: bool) -> ScoreRecord:
    told: dict[str, Any] = {}
    if (score := result.score) is not None:
        told = _fields(score, _OF_SCORES)
        if result.passed:
            # A judge remarks on any answer; beside a passing score it would read as why it failed.
            told["error_message"] = ""
        told["evidence"] = tuple(
            Finding(*plain((each.text, each.ok, each.reason, each.chunk, each.value)))
            for each in score.evidence
        )
        told["usage"] = score.usage
        told["details"] = _finite(plain(score.details))
    elif result.error is not None:
        told["error"] = ErrorRecord(
            type=type(result.error).__name__,
            code=result.error.code if isinstance(result.error, Unscored) else "usage",
            message=plain(str(result.error)),
        )
    if reply_limit and (replies := _replies(result)):
        told["replies"] = tuple(_shortened(reply, reply_limit, prompts) for reply in replies[:_MOST_REPLIES])
    return ScoreRecord(
        metric=plain(result.metric),
        tier=result.tier,
        sample=places.get(id(result.sample)),
        count=result.count,
        threshold=result.threshold.text if result.threshold else None,
        passed=result.passed,
        band=result.band,
        setup=result.setup,
        **told,
    )


def _finite(value: Any) -> Any:
    """Details may hold what is undefined of a part, which JSON has no number for."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _replies(result: Result) -> Sequence[JudgeReply]:
    if result.score is not None:
        return result.score.replies
    raw = result.error.raw if isinstance(result.error, JudgeError) else None
    return [JudgeReply(raw)] if raw else []  # what was no verdict


def _shortened(reply: JudgeReply, limit: int, prompts: bool) -> ReplyRecord:
    redact = _redactor()
    text = redact(reply.text)
    told = _fields(reply, ("task", "judge", "vote", "cached", "duration"))
    told |= _fields(reply.usage, ("prompt_tokens", "completion_tokens", "cost"))
    if prompts and reply.prompt is not None:
        told["prompt"] = tuple(
            {"role": message["role"], "content": plain(redact(message["content"])[:_MOST_OF_A_MESSAGE])}
            for message in reply.prompt()
        )
    return ReplyRecord(text=plain(text[:limit]), cut=max(0, len(text) - limit), **told)


@cache
def _redactor() -> Redactor:
    """A judge may be a function, whose replies nobody else has looked through."""
    return Redactor([])


def properties(
    results: Sequence[Result], kind: str | None, traces: Sequence[tuple[str, str]] = ()
) -> list[tuple[str, object]]:
    """Short and safe ``(name, text)`` pairs for ``<properties>`` in JUnit."""
    pairs: list[tuple[str, object]] = []
    for result in results:
        if result.score is not None:
            pairs.append((f"ragbench.{result.metric}", f"{result.score.value:.6g}"))
    if kind is not None:
        pairs.append(("ragbench.outcome", clean(kind)))
    pairs += [("ragbench.trace", clean(where)) for _, where in traces[:MOST_TRACES]]
    return pairs
