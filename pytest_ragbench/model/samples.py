"""Plain data: a question as written in a file, and a sample as it comes back from the RAG system."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from pytest_ragbench.model.errors import UsageError

Relevance = Mapping[str, float]
"""Graded relevance: document id -> grade; a grade above 0 means relevant."""


def texts(value: Iterable[Any] | None, name: str) -> tuple[str, ...] | None:
    """A list of texts as a tuple; ``None`` (never given) stays ``None``.

    A bare string is refused: iterating it would make one-letter chunks.
    """
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise UsageError(f"{name} must be a list of strings, got {type(value).__name__}: {str(value)[:60]!r}")
    items = tuple(value)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise UsageError(
                f"{name}[{index}] must be a string, got {type(item).__name__}: {str(item)[:60]!r}"
            )
    return items


def ids(value: Iterable[Any] | None, name: str) -> tuple[str, ...] | None:
    """Document ids as texts: ``1`` and ``"1"`` are the same id, and so are the Unicode forms NFC and NFD."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise UsageError(f"{name} must be a list of ids, got {type(value).__name__}: {str(value)[:60]!r}")
    return tuple(map(document_id, value))


def document_id(value: object) -> str:
    """An id in the form in which ids are compared."""
    # Files hold numbers where services send strings; file names of macOS come decomposed.
    return unicodedata.normalize("NFC", str(value))


def relevance(value: Iterable[Any] | Relevance | None, name: str) -> Relevance | None:
    """Relevant ids as ``{id: grade}``; a plain list means grade 1 for each."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return MappingProxyType(dict.fromkeys(ids(value, name) or (), 1.0))
    grades: dict[str, float] = {}
    for key, grade in value.items():
        try:
            number = float(grade)
        except (TypeError, ValueError):
            # One message for what isn't a number and what isn't finite.
            number = float("nan")
        if not abs(number) < float("inf"):
            raise UsageError(f"{name}[{key!r}] must be a finite grade, got {grade!r}")
        grades[document_id(key)] = number
    return MappingProxyType(grades)


@dataclass(frozen=True, slots=True)
class Location:
    """Where a question is written: a file and a 1-based line (0 where a format has no lines)."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One row of a question file, its columns under the names of this package."""

    id: str
    question: str
    reference: str | None = None
    reference_contexts: tuple[str, ...] | None = None
    relevant_ids: Relevance | None = None
    relevant_urls: tuple[str, ...] | None = None
    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    context_ids: tuple[str, ...] | None = None
    context_urls: tuple[str, ...] | None = None
    lang: str | None = None
    must_pass: bool = False
    should_abstain: bool = False
    thresholds: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    session: str | None = None
    cluster: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    location: Location | None = None
    previous: Question | None = field(default=None, compare=False, repr=False)
    """The question asked before it in its session."""


@dataclass(frozen=True, slots=True, repr=False)
class RagSample:
    """A question with what the RAG system made of it; what every metric is computed from.

    ``None`` means "never given", an empty value means "given, but nothing in it". The two are
    different: a metric that needs contexts refuses ``contexts=None`` (the test is wrong) and scores
    ``contexts=[]`` (the retriever found nothing).

    Parameters
    ----------
    question, answer
        Texts. ``answer=None`` where only retrieval was asked.
    contexts
        Retrieved chunks, best first.
    reference
        The right answer.
    reference_contexts
        The chunks that hold the right answer.
    context_ids
        Ids of ``contexts``, same order; compared as text, NFC and NFD alike.
    relevant_ids
        Ids of the documents that answer the question: a list, or ``{id: grade}``.
    context_urls
        URLs of the documents that ``contexts`` come from, same order; ``""`` for a chunk without one.
    relevant_urls
        URLs of the documents that answer the question: what was shown to the user, say.
    context_scores
        The retriever's own scores, same order as ``contexts``; shown, never used to re-rank.
    id
        Names the sample in messages and reports.
    lang
        ``"en"``, ``"ru"``, ``"ja"`` ...; guessed from the texts where it is not given.
    latency
        Seconds that the RAG system took (successful attempt only).
    first_token
        Seconds until the first piece of a streamed answer came; None where it came as a whole.
    at_once
        The most questions that the RAG system was seen to have at a time while it answered this one, which counts;
        None: not known.
    trace_id, span_id
        Under which a service that takes part in W3C trace context files its trace of the question; hexadecimal. Of a
        stored answer: those of when it was asked for.
    asked
        When the question was sent, in seconds since 1970.
    cached
        True where the answer was not asked for again.

    Raises
    ------
    UsageError
        Where a list is a bare string, holds something other than texts, or lengths differ.
    """

    question: str
    answer: str | None = None
    contexts: Sequence[str] | None = None
    reference: str | None = None
    reference_contexts: Sequence[str] | None = None
    context_ids: Sequence[str] | None = None
    relevant_ids: Sequence[str] | Relevance | None = None
    context_scores: Sequence[float] | None = None
    context_urls: Sequence[str] | None = None
    relevant_urls: Sequence[str] | None = None
    id: str | None = None
    lang: str | None = None
    must_pass: bool = False
    should_abstain: bool = False
    thresholds: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    session: str | None = None
    cluster: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    location: Location | None = None
    latency: float | None = None
    first_token: float | None = None
    at_once: int | None = None
    trace_id: str | None = None
    span_id: str | None = None
    asked: float | None = None
    cached: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.question, str):
            raise UsageError(f"question must be a string, got {type(self.question).__name__}")
        for name in ("answer", "reference"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise UsageError(f"{name} must be a string or None, got {type(value).__name__}")
        # Frozen, and tuples within, so that threads and tests can share a sample.
        put = object.__setattr__
        put(self, "contexts", texts(self.contexts, "contexts"))
        put(self, "reference_contexts", texts(self.reference_contexts, "reference_contexts"))
        put(self, "context_ids", ids(self.context_ids, "context_ids"))
        put(self, "relevant_ids", relevance(self.relevant_ids, "relevant_ids"))
        for name in ("context_urls", "relevant_urls"):
            put(self, name, texts(getattr(self, name), name))
        put(self, "tags", tuple(self.tags))
        if self.context_scores is not None:
            put(self, "context_scores", tuple(float(score) for score in self.context_scores))
        for name in ("context_ids", "context_scores", "context_urls"):
            column = getattr(self, name)
            # Ids alone are enough for ranking metrics: then there is nothing to be as long as.
            if column is not None and self.contexts is not None and len(column) != len(self.contexts):
                raise UsageError(
                    f"{name} has {len(column)} entries for {len(self.contexts)} contexts; "
                    f"give one for each, or leave {name} out"
                )

    def __repr__(self) -> str:
        """Short: pytest prints it above each failing test, whose message has the texts."""
        chunks = "no contexts" if self.contexts is None else f"{len(self.contexts)} contexts"
        return f"<RagSample {self.label}: {self.question[:60]!r}, {chunks}>"

    @property
    def label(self) -> str:
        """How messages call this sample: its id, or the head of its question."""
        return self.id if self.id is not None else repr(self.question[:40])

    @property
    def relevance(self) -> Relevance | None:
        """``relevant_ids`` as ``{id: grade}``, or None."""
        return self.relevant_ids if isinstance(self.relevant_ids, Mapping) else None

    def with_(self, **changes: Any) -> RagSample:
        """A copy with other values: ``sample.with_(answer="...")``."""
        return replace(self, **changes)


def sample_from(question: Question, **found: Any) -> RagSample:
    """The question's own columns, completed by what the RAG system returned (which wins)."""
    known: dict[str, Any] = {
        name: getattr(question, name)
        for name in Question.__dataclass_fields__
        if name in RagSample.__dataclass_fields__
    }
    # Both are kept, since the reply's metadata know nothing of the question's.
    known["metadata"] = {**question.metadata, **found.pop("metadata", {})}
    return RagSample(**{**known, **found})
