"""Questions out of traces: OTLP-JSON, spans of Phoenix, traces of Langfuse."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import Question
from pytest_ragbench.secrets import Redactor

BAD_LABELS = frozenset(
    {
        "fail",
        "failed",
        "bad",
        "negative",
        "incorrect",
        "wrong",
        "hallucinated",
        "thumbs_down",
        "thumbs-down",
        "👎",
        "no",
    }
)
_QUESTION = ("question", "query", "input", "text", "prompt", "content", "message")
_ANSWER = ("answer", "output", "response", "text", "content", "result", "message")
_DOCUMENT = re.compile(r"retrieval\.documents\.(\d+)\.document\.content")
_KEY = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abp])[-_][\w-]{12,}|\bBearer\s+[\w.~+/-]{12,}=*", re.IGNORECASE)


@dataclass
class Asked:
    """What a trace says of one question."""

    trace_id: str = ""
    question: str = ""
    answer: str = ""
    contexts: dict[int, str] = field(default_factory=dict)
    scores: list[tuple[str, float | None, str]] = field(default_factory=list)
    """Name, value and label of each score or feedback."""

    def is_bad(self, below: float) -> bool:
        """Whether a user or a judge was not content."""
        return any(
            (value is not None and value < below) or label.casefold() in BAD_LABELS
            for _, value, label in self.scores
        )


def questions_from_traces(path: Path, *, below: float = 0.5, every: bool = False) -> list[Question]:
    """Those with a score below ``below`` or bad feedback (or ``every`` one), each question once, secrets masked.

    Raises
    ------
    UsageError
        The file can't be read, or holds no traces.
    """
    found = list(_traces(_loaded(path), path))
    redact, questions = Redactor([]), dict[str, Question]()

    def masked(text: str) -> str:
        return _KEY.sub("***", redact(text))

    for asked in found:
        key = " ".join(asked.question.casefold().split())
        if not key or key in questions or not (every or asked.is_bad(below)):
            continue
        told = {
            "trace_id": asked.trace_id,
            "answer_then": masked(asked.answer),
            "contexts_then": [masked(asked.contexts[place]) for place in sorted(asked.contexts)],
            "feedback": "; ".join(
                f"{name} {label}".strip() if value is None else f"{name} {value:g} {label}".strip()
                for name, value, label in asked.scores
            ),
        }
        questions[key] = Question(
            id=f"trace-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:12]}",
            question=masked(asked.question),
            tags=("regression",),
            metadata={name: value for name, value in told.items() if value},
        )
    return list(questions.values())


def _loaded(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: can't be read: {error}") from None
    try:
        whole = json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise UsageError(f"{path}: neither JSON nor JSON lines: {error}") from None
    inner = whole.get("data", whole) if isinstance(whole, dict) else whole
    return inner if isinstance(inner, list) else [inner]


def _traces(entries: list[Any], path: Path) -> Iterator[Asked]:
    spans: dict[str, Asked] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise UsageError(f"{path}: an entry is a {type(entry).__name__}, not a span or trace")
        if "resourceSpans" in entry:
            for span in _otlp_spans(entry):
                _take_span(span, spans)
        elif "attributes" in entry:
            _take_span(entry, spans)
        elif "input" in entry or "observations" in entry:
            yield _langfuse(entry)
        else:
            raise UsageError(f"{path}: neither OTLP-JSON, nor spans of Phoenix, nor traces of Langfuse")
    yield from spans.values()


def _otlp_spans(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in entry["resourceSpans"]:
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                told = {
                    each["key"]: next(iter(each.get("value", {}).values()), None)
                    for each in span.get("attributes", ())
                }
                yield {
                    **span,
                    "attributes": told,
                    "context": {"trace_id": span.get("traceId", "")},
                    "parent_id": span.get("parentSpanId"),
                }


def _take_span(span: Mapping[str, Any], known: dict[str, Asked]) -> None:
    context = span.get("context") or {}
    trace_id = str(context.get("trace_id") or span.get("trace_id") or "")
    told = dict(_flat(span.get("attributes") or {}))
    asked = known.setdefault(trace_id, Asked(trace_id))
    kind = told.get("openinference.span.kind") or span.get("span_kind")
    question, answer = _text(told.get("input.value"), _QUESTION), _text(told.get("output.value"), _ANSWER)
    if not span.get("parent_id"):  # the whole request is what the user saw
        asked.question, asked.answer = question or asked.question, answer or asked.answer
    elif kind in ("CHAIN", "AGENT", "RETRIEVER", "LLM"):
        asked.question, asked.answer = asked.question or question, asked.answer or answer
    for name, value in told.items():
        if place := _DOCUMENT.fullmatch(name):
            asked.contexts.setdefault(int(place[1]), str(value))
    if "gen_ai.evaluation.name" in told:
        value, label = (told.get(f"gen_ai.evaluation.score.{part}") for part in ("value", "label"))
        asked.scores.append((str(told["gen_ai.evaluation.name"]), _number(value), str(label or "")))
    for note in span.get("annotations") or ():
        result = note.get("result") or note
        asked.scores.append(
            (str(note.get("name", "feedback")), _number(result.get("score")), str(result.get("label") or ""))
        )


def _langfuse(trace: Mapping[str, Any]) -> Asked:
    asked = Asked(
        str(trace.get("id", "")), _text(trace.get("input"), _QUESTION), _text(trace.get("output"), _ANSWER)
    )
    for score in trace.get("scores") or ():
        value = score.get("value") if isinstance(score, dict) else None
        if isinstance(score, dict):
            label = score.get("stringValue") or (value if isinstance(value, str) else "")
            asked.scores.append((str(score.get("name", "score")), _number(value), str(label)))
    for part in trace.get("observations") or ():
        if isinstance(part, dict) and str(part.get("type", "")).upper() == "RETRIEVER":
            output = part.get("output")
            chunks = (
                output.get("documents", output.get("contexts", ())) if isinstance(output, dict) else output
            )
            for chunk in chunks if isinstance(chunks, list) else ():
                asked.contexts[len(asked.contexts)] = _text(chunk, ("page_content", "content", "text"))
    return asked


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}.")
        elif isinstance(inner, list) and inner and isinstance(inner[0], Mapping):
            for place, each in enumerate(inner):
                yield from _flat(each, f"{prefix}{name}.{place}.")
        else:
            yield prefix + name, inner


def _text(value: Any, names: tuple[str, ...]) -> str:
    """The text that a value holds, under one of the usual names, or of the last message."""
    if isinstance(value, str):
        if value.lstrip()[:1] in ("{", "["):
            try:
                return _text(json.loads(value), names) or value
            except ValueError:
                return value
        return value
    if isinstance(value, Mapping):
        if isinstance(value.get("messages"), list):
            return _text(value["messages"], names)
        return next((text for name in names if (text := _text(value.get(name), names))), "")
    if isinstance(value, list) and value:
        return _text(value[-1], names)
    return ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
