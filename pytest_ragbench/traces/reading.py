"""Questions out of traces: OTLP-JSON, spans and annotations of Phoenix, traces, observations and scores of Langfuse."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
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


def questions_from_traces(*paths: Path, below: float = 0.5, every: bool = False) -> list[Question]:
    """Those with a score below ``below`` or bad feedback (or ``every`` one), each question once, secrets masked.

    Parameters
    ----------
    paths
        Files of one export: spans and their annotations, or observations and their scores, may stand apart.

    Raises
    ------
    UsageError
        A file can't be read or holds no traces; or scores alone were given.
    """
    found = _traces(paths)
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
            "feedback": masked(
                "; ".join(
                    f"{name} {label}".strip() if value is None else f"{name} {value:g} {label}".strip()
                    for name, value, label in asked.scores
                )
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


class _Export:
    """What several files say of the same traces; feedback may be read before what it is about."""

    def __init__(self) -> None:
        self.traces: dict[str, Asked] = {}
        self._trace_of: dict[str, str] = {}
        """Span or observation -> trace."""
        self._feedback: list[tuple[str, str, tuple[str, float | None, str]]] = []
        """Trace and span, of which one may be empty, and what was said of it."""

    def trace(self, trace_id: str, part_id: str = "") -> Asked:
        if part_id:
            self._trace_of[part_id] = trace_id
        return self.traces.setdefault(trace_id, Asked(trace_id))

    def said(self, trace_id: str, part_id: str, entry: Mapping[str, Any]) -> None:
        """One score or annotation, as any of the backends writes it."""
        result = entry.get("result")
        result = result if isinstance(result, Mapping) else entry
        value = next((result[name] for name in ("score", "value") if result.get(name) is not None), None)
        label = _either(result, "label", "stringValue", "string_value")
        number = _number(value)
        if not label and isinstance(value, str) and number is None:
            label = value
        named = str(entry.get("name") or "feedback")
        self._feedback.append((trace_id, part_id, (named, number, str(label or ""))))

    def all(self) -> list[Asked]:
        for trace_id, part_id, told in self._feedback:
            about = self.traces.get(trace_id or self._trace_of.get(part_id, ""))
            if about is not None:
                about.scores.append(told)
        return list(self.traces.values())


def _traces(paths: Sequence[Path]) -> list[Asked]:
    export = _Export()
    for path in paths:
        for entry in _loaded(path):
            if not isinstance(entry, dict):
                raise UsageError(f"{path}: an entry is a {type(entry).__name__}, not a span or trace")
            _take(entry, export, path)
    found = export.all()
    if not found and paths:
        raise UsageError(
            f"{', '.join(map(str, paths))}: no traces, only what was said of them; give the file of the spans "
            "(observations) too"
        )
    return found


def _take(entry: Mapping[str, Any], export: _Export, path: Path) -> None:
    trace_id = str(_either(entry, "trace_id", "traceId") or "")
    part_id = str(_either(entry, "span_id", "spanId", "observation_id", "observationId") or "")
    if "resourceSpans" in entry or "resource_spans" in entry:
        for span in _otlp_spans(entry):
            _take_span(span, export)
    elif "attributes" in entry:
        _take_span(_readable_span(entry), export)
    elif "name" in entry and (trace_id or part_id) and _is_feedback(entry):
        export.said(trace_id, part_id, entry)
    elif trace_id and ("type" in entry or "input" in entry):
        _take_observation(entry, export.trace(trace_id, str(entry.get("id") or "")))
    elif "input" in entry or "observations" in entry:
        _take_langfuse(entry, export)
    else:
        raise UsageError(
            f"{path}: neither OTLP-JSON, nor spans or annotations of Phoenix, nor traces, observations or scores "
            "of Langfuse"
        )


def _is_feedback(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("result"), Mapping) or any(
        name in entry for name in ("value", "stringValue", "string_value")
    )


def _either(entry: Mapping[str, Any], *names: str) -> Any:
    return next((entry[name] for name in names if entry.get(name) is not None), None)


def _otlp_spans(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in _either(entry, "resourceSpans", "resource_spans") or ():
        for scope in _either(resource, "scopeSpans", "scope_spans") or ():
            for span in scope.get("spans") or ():
                yield _readable_span(span)


def _readable_span(span: Mapping[str, Any]) -> dict[str, Any]:
    """A span with its attributes as an object and its ids under one name each.

    The collector writes attributes as a list of keys with one typed value, Phoenix' export of OTLP with all
    types, of which one is not null.
    """
    told = span.get("attributes")
    if isinstance(told, list):
        told = {str(each["key"]): _otlp_value(each.get("value")) for each in told if "key" in each}
    context = span.get("context") or {}
    return {
        **span,
        "attributes": told or {},
        "trace_id": str(context.get("trace_id") or _either(span, "trace_id", "traceId") or ""),
        "span_id": str(context.get("span_id") or _either(span, "span_id", "spanId") or ""),
        "parent_id": _either(span, "parent_id", "parentSpanId", "parent_span_id"),
    }


def _otlp_value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    kind, inner = next(((name, each) for name, each in value.items() if each is not None), ("", None))
    if isinstance(inner, Mapping) and isinstance(inner.get("values"), list):
        values = inner["values"]
        if kind.startswith("kvlist"):
            return {str(each.get("key")): _otlp_value(each.get("value")) for each in values}
        return [_otlp_value(each) for each in values]
    return inner


def _take_span(span: Mapping[str, Any], export: _Export) -> None:
    trace_id, span_id = span["trace_id"], span["span_id"]
    asked = export.trace(trace_id, span_id)
    told = dict(_flat(span["attributes"]))
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
        export.said(trace_id, span_id, note)


def _take_langfuse(trace: Mapping[str, Any], export: _Export) -> None:
    """A trace with its observations and scores inside, as the API returns it."""
    trace_id = str(trace.get("id") or "")
    asked = export.trace(trace_id)
    asked.question = _text(trace.get("input"), _QUESTION) or asked.question
    asked.answer = _text(trace.get("output"), _ANSWER) or asked.answer
    for score in trace.get("scores") or ():
        if isinstance(score, Mapping):  # in lists of traces they are ids
            export.said(trace_id, "", score)
    for part in trace.get("observations") or ():
        if isinstance(part, Mapping):
            _take_observation(part, export.trace(trace_id, str(part.get("id") or "")))


def _take_observation(part: Mapping[str, Any], asked: Asked) -> None:
    kind = str(part.get("type") or "").upper()
    output = _parsed(part.get("output"))
    if kind == "RETRIEVER":
        inner = output.get("documents", output.get("contexts", ())) if isinstance(output, Mapping) else output
        for chunk in inner if isinstance(inner, list) else ():
            asked.contexts[len(asked.contexts)] = _text(chunk, ("page_content", "content", "text"))
        return
    # The one without a parent is the whole request; others only where that says nothing.
    top = not _either(part, "parent_observation_id", "parentObservationId")
    question, answer = _text(part.get("input"), _QUESTION), _text(output, _ANSWER)
    if top:
        asked.question, asked.answer = question or asked.question, answer or asked.answer
    elif kind in ("CHAIN", "AGENT", "GENERATION"):
        asked.question, asked.answer = asked.question or question, asked.answer or answer


def _parsed(value: Any) -> Any:
    """The list or object that a string holds as JSON, as exports of Langfuse write inputs and outputs."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


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
        inner = _parsed(value)
        return value if isinstance(inner, str) else _text(inner, names) or value
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
