"""What a run found out as spans: of the run, of each question, of its retrieval, of each score and judge's reply.

Attributes follow OpenInference (https://github.com/Arize-ai/openinference/tree/main/spec) and, of evaluations and
models, the GenAI conventions of OpenTelemetry. Made from the report's records alone, so that a run can be sent while it
goes on or from its JSON report.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_ragbench.model.report import RunInfo
from pytest_ragbench.model.tests import ReplyRecord, SampleRecord, ScoreRecord, TestRecord

Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanData:
    """One span; times in seconds since 1970, ids in hexadecimal."""

    name: str
    kind: str
    """Of OpenInference: ``CHAIN``, ``RETRIEVER``, ``LLM`` or ``EVALUATOR``."""
    trace_id: str
    span_id: str
    start: float
    end: float
    parent_id: str | None = None
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    error: str | None = None


def run_trace_id(run: RunInfo) -> str:
    """The trace of the run itself; a question has a trace of its own, with what its service did."""
    return hashlib.sha256(run.id.encode()).hexdigest()[:32]


def run_span_id(run: RunInfo) -> str:
    """The one span of that trace."""
    return run_trace_id(run)[:16]


def question_span_id(run: RunInfo, test: TestRecord, place: int) -> str:
    """The span of a test's sample; the same whenever it is asked for, so that feedback can be filed under it."""
    return _digest(run, test, place, "question")[:16]


def _digest(run: RunInfo, test: TestRecord, place: int, what: str) -> str:
    return hashlib.sha256(
        "\0".join((run.id, test.test, str(place), what)).encode("utf-8", "replace")
    ).hexdigest()


def run_span(run: RunInfo, finished: float, outcomes: Mapping[str, int]) -> SpanData:
    """The whole run."""
    told: dict[str, Any] = {"ragbench": run.ragbench, "settings": run.settings, "outcomes": dict(outcomes)}
    if run.git is not None:
        told |= {"commit": run.git.commit, "branch": run.git.branch}
    return SpanData(
        name="ragbench run",
        kind="CHAIN",
        trace_id=run_trace_id(run),
        span_id=run_span_id(run),
        start=run.started,
        end=finished,
        attributes={"session.id": run.id, "metadata": _json(told)},
    )


def spans_of(test: TestRecord, run: RunInfo, ended: float) -> Iterator[SpanData]:
    """The spans of one test that has just ``ended``."""
    for place, sample in enumerate(test.samples):
        scores = [score for score in test.scores if score.sample == place]
        yield from _question(test, place, sample, scores, run, ended)
    for score in test.scores:
        if score.sample is None:
            start = ended - score.duration
            yield from _score(
                score, run, run_trace_id(run), run_span_id(run), start, {"ragbench.test": test.test}
            )
    for lost in test.questions:
        if lost.trace_id and test.message and not test.samples:
            yield SpanData(
                name="ragbench question",
                kind="CHAIN",
                trace_id=lost.trace_id,
                span_id=_new_id(),
                start=ended - test.duration,
                end=ended,
                attributes={**_about(test, run, lost.id), "input.value": lost.question},
                error=test.message,
            )


def _question(
    test: TestRecord, place: int, sample: SampleRecord, scores: list[ScoreRecord], run: RunInfo, ended: float
) -> Iterator[SpanData]:
    # A stored answer was asked for in another trace, which is over.
    own = sample.trace_id is not None and not sample.cached
    trace_id = sample.trace_id if own and sample.trace_id else _digest(run, test, place, "trace")[:32]
    start = sample.asked if own and sample.asked else ended - test.duration
    top = question_span_id(run, test, place)
    answered = start + (sample.latency or 0.0 if own else 0.0)
    children: list[SpanData] = [
        SpanData(
            name="ragbench retrieval",
            kind="RETRIEVER",
            trace_id=trace_id,
            # The service's own spans are children of what was sent as their parent.
            span_id=sample.span_id if own and sample.span_id else _new_id(),
            parent_id=top,
            start=start,
            end=answered,
            attributes=_retrieval(sample),
        )
    ]
    for score in scores:
        children += _score(score, run, trace_id, top, answered, {"input.value": sample.question})
    yield SpanData(
        name="ragbench question",
        kind="CHAIN",
        trace_id=trace_id,
        span_id=top,
        start=start,
        end=max(ended, *(child.end for child in children)),
        attributes={
            **_about(test, run, sample.id),
            "input.value": sample.question,
            "output.value": sample.answer or "",
            "ragbench.cached": sample.cached,
            **({"ragbench.asked_in_trace": sample.trace_id} if sample.cached and sample.trace_id else {}),
        },
        # A plain assertion of the test's own leaves no message of ours.
        error=(test.message or f"the test {test.outcome}") if test.outcome in ("failed", "error") else None,
    )
    yield from children


def _about(test: TestRecord, run: RunInfo, question_id: str | None) -> dict[str, Attribute]:
    told = {"test": test.test, "outcome": test.outcome, "kind": test.kind, "question_id": question_id}
    return {"session.id": run.id, "metadata": _json(told), "ragbench.test": test.test}


def _retrieval(sample: SampleRecord) -> dict[str, Attribute]:
    told: dict[str, Attribute] = {"input.value": sample.question, "output.value": sample.answer or ""}
    for place, text in enumerate(sample.contexts or ()):
        name = f"retrieval.documents.{place}.document"
        told[f"{name}.content"] = text
        if sample.context_ids:
            told[f"{name}.id"] = sample.context_ids[place]
        if sample.context_scores:
            told[f"{name}.score"] = sample.context_scores[place]
    if sample.first_token is not None:
        told["gen_ai.server.time_to_first_token"] = sample.first_token
    return told


def _score(
    score: ScoreRecord, run: RunInfo, trace_id: str, parent: str, start: float, more: Mapping[str, Attribute]
) -> list[SpanData]:
    span_id = _new_id()
    told: dict[str, Attribute] = {"session.id": run.id, **more, "gen_ai.evaluation.name": score.metric}
    if score.value is not None:
        told |= {"gen_ai.evaluation.score.value": score.value, "output.value": f"{score.value:.6g}"}
    if score.passed is not None:
        told["gen_ai.evaluation.score.label"] = label_of(score)
    if why := explanation_of(score):
        told["gen_ai.evaluation.explanation"] = why
    if score.threshold:
        told["ragbench.threshold"] = score.threshold
    if not any(reply.prompt_tokens or reply.completion_tokens for reply in score.replies):
        # Below their own calls they would be counted twice.
        told |= _usage(score.usage.prompt_tokens, score.usage.completion_tokens, score.usage.cost)
    told["metadata"] = _json(
        {"tier": score.tier, "judge": score.judge, "votes": score.votes, "cached": score.cached}
    )
    span = SpanData(
        name=score.metric,
        kind="EVALUATOR",
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent,
        start=start,
        end=start + score.duration,
        attributes=told,
        error=score.error.message if score.error is not None else None,
    )
    spans, begun = [span], start
    for reply in score.replies:
        spans.append(_reply(reply, score, span, begun))
        begun = min(spans[-1].end, span.end)
    return spans


def _reply(reply: ReplyRecord, score: ScoreRecord, parent: SpanData, start: float) -> SpanData:
    """A call of a judge; of calls of one score that overlapped only how long each took is known."""
    provider, _, model = (reply.judge or score.judge or "").partition(":")
    told: dict[str, Attribute] = {
        "llm.model_name": model or provider,
        "llm.provider": provider,
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model or provider,
        "ragbench.task": reply.task,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": reply.text,
        "output.value": reply.text,
        "ragbench.cached": reply.cached,
    }
    for place, message in enumerate(reply.prompt):
        told[f"llm.input_messages.{place}.message.role"] = message["role"]
        told[f"llm.input_messages.{place}.message.content"] = message["content"]
    if reply.prompt:
        told["input.value"] = reply.prompt[-1]["content"]
    told |= _usage(reply.prompt_tokens, reply.completion_tokens, reply.cost)
    return SpanData(
        name=f"judge {reply.task}".strip(),
        kind="LLM",
        trace_id=parent.trace_id,
        span_id=_new_id(),
        parent_id=parent.span_id,
        start=start,
        end=start + reply.duration,
        attributes=told,
        error=score.error.message if score.error is not None else None,
    )


def _usage(prompt: int, completion: int, cost: float | None) -> dict[str, Attribute]:
    if not prompt + completion:
        return {}
    told: dict[str, Attribute] = {
        "llm.token_count.prompt": prompt,
        "llm.token_count.completion": completion,
        "llm.token_count.total": prompt + completion,
        "gen_ai.usage.input_tokens": prompt,
        "gen_ai.usage.output_tokens": completion,
    }
    return told | ({"llm.cost.total": cost} if cost is not None else {})


def label_of(score: ScoreRecord) -> str:
    """The verdict in a word; empty where nothing was asserted."""
    return "" if score.passed is None else "pass" if score.passed else "fail"


def explanation_of(score: ScoreRecord) -> str:
    return score.error_message or score.reason


def _new_id() -> str:
    return secrets.token_hex(7) + "1b"


def _json(told: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in told.items() if value is not None}, ensure_ascii=False)
