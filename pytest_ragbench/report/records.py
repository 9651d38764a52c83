"""What one test found out, in builtin types: a record of the JSON report, and JUnit properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Protocol

from pytest_ragbench.clean import clean, one_line
from pytest_ragbench.model.errors import JudgeError, Unscored
from pytest_ragbench.model.results import Result
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.model.scores import JudgeReply, plain
from pytest_ragbench.secrets import Redactor


class _Node(Protocol):
    @property
    def nodeid(self) -> str: ...


class _Report(Protocol):
    @property
    def outcome(self) -> str: ...
    @property
    def duration(self) -> float: ...
    @property
    def when(self) -> str | None: ...


_MOST_REPLIES = 50
"""Of one score: a dialogue, or a panel with votes, has many."""


def record(
    node: _Node,
    report: _Report,
    error: BaseException | None,
    kind: str | None,
    results: Sequence[Result],
    *,
    replies: int = 0,
) -> dict[str, Any]:
    """See docs/json-report.md for the fields; ``replies``: characters of each of the judge's replies, 0: none."""
    samples = list(
        {id(result.sample): result.sample for result in results if result.sample is not None}.values()
    )
    funcargs = getattr(node, "funcargs", {})
    own = funcargs.get("rag_sample")
    if isinstance(own, RagSample) and not any(own is sample for sample in samples):
        samples.append(own)
    question = funcargs.get("rag_question")
    places = {id(sample): index for index, sample in enumerate(samples)}
    found: dict[str, Any] = {
        "test": node.nodeid,
        "outcome": _outcome(report, kind),
        "kind": kind,
        "message": one_line(str(error).partition("\n")[0], 500) if error is not None and kind else None,
        "duration": float(report.duration),
        "question_id": getattr(question, "id", None) or (samples[0].id if samples else None),
        "samples": [_sample(sample) for sample in samples],
        "questions": [_question(each) for each in _not_shown(funcargs, question, samples)],
        "scores": [_score(result, places, replies) for result in results],
    }
    return plain(found)  # type: ignore[no-any-return]


def _not_shown(funcargs: Mapping[str, Any], question: Any, samples: Sequence[RagSample]) -> list[Any]:
    """Questions and samples that the test is about and ``samples`` lacks: those of a whole set, and one that
    got no answer.
    """
    from pytest_ragbench.model.sample_sets import RagSamples

    found: list[Any] = []
    if isinstance(whole := funcargs.get("rag_samples"), RagSamples):
        answers = {sample.id: sample for sample in whole.answered}
        found += [answers.get(each.id, each) for each in whole.questions]
    if isinstance(question, Question):
        found.append(question)
    shown = {sample.id for sample in samples}
    return [each for each in found if each.id not in shown]


def _question(question: Any) -> dict[str, Any]:
    location, relevant = question.location, question.relevant_ids
    return {
        "id": question.id,
        "question": question.question,
        "lang": question.lang,
        "tags": question.tags,
        "must_pass": question.must_pass,
        "session": question.session,
        "cluster": question.cluster,
        "relevant_ids": relevant if isinstance(relevant, Mapping) else None,
        "file": location.file if location else None,
        "line": location.line if location else None,
        "latency": getattr(question, "latency", None),
        "cached": getattr(question, "cached", False),
    }


def _outcome(report: _Report, kind: str | None) -> str:
    if hasattr(report, "wasxfail"):
        return "xpassed" if report.outcome == "passed" else "xfailed"
    if report.outcome != "failed":
        return report.outcome
    return "failed" if kind == "quality" or (kind is None and report.when == "call") else "error"


def _sample(sample: RagSample) -> dict[str, Any]:
    location = sample.location
    return {
        "id": sample.id,
        "question": sample.question,
        "answer": sample.answer,
        "contexts": sample.contexts,
        "context_ids": sample.context_ids,
        "context_scores": sample.context_scores,
        "reference": sample.reference,
        "reference_contexts": sample.reference_contexts,
        "relevant_ids": sample.relevance,
        "context_urls": sample.context_urls,
        "relevant_urls": sample.relevant_urls,
        "lang": sample.lang,
        "tags": sample.tags,
        "must_pass": sample.must_pass,
        "should_abstain": sample.should_abstain,
        "session": sample.session,
        "cluster": sample.cluster,
        "file": location.file if location else None,
        "line": location.line if location else None,
        "latency": sample.latency,
        "cached": sample.cached,
    }


def _score(result: Result, places: dict[int, int], most: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "metric": result.metric,
        "tier": result.tier,
        "sample": places.get(id(result.sample)),
        "count": result.count,
        "value": None,
        "threshold": result.threshold,
        "passed": result.passed,
        "band": result.band,
        "error": None,
    }
    if result.score is not None:
        fields = result.score.fields()
        entry |= {name: fields[name] for name in fields if name not in ("metric", "sample_id")}
    if result.error is not None:
        entry["error"] = {
            "type": type(result.error).__name__,
            "code": result.error.code if isinstance(result.error, Unscored) else "usage",
            "message": str(result.error),
        }
    if most and (told := _replies(result)):
        entry["replies"] = [_shortened(reply, most) for reply in told[:_MOST_REPLIES]]
    return entry


def _replies(result: Result) -> Sequence[JudgeReply]:
    if result.score is not None:
        return result.score.replies
    raw = result.error.raw if isinstance(result.error, JudgeError) else None
    return [JudgeReply(raw)] if raw else []  # what was no verdict


def _shortened(reply: JudgeReply, most: int) -> dict[str, Any]:
    told = {name: value for name, value in asdict(reply).items() if value not in ("", None, 0, False)}
    text = _redactor()(reply.text)
    return {**told, "text": text[:most], **({"cut": len(text) - most} if len(text) > most else {})}


@cache
def _redactor() -> Redactor:
    """A judge may be a function, whose replies nobody else has looked through."""
    return Redactor([])


def properties(results: Sequence[Result], kind: str | None) -> list[tuple[str, object]]:
    """Short and safe ``(name, text)`` pairs for ``<properties>`` in JUnit."""
    pairs: list[tuple[str, object]] = []
    for result in results:
        if result.score is not None:
            pairs.append((f"ragbench.{result.metric}", f"{result.score.value:.6g}"))
    if kind is not None:
        pairs.append(("ragbench.outcome", clean(kind)))
    return pairs
