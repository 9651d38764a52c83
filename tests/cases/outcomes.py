"""What an operation came to, in the words of the case format."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_ragbench import (
    EmbeddingError,
    EndpointError,
    JudgeError,
    QualityFailure,
    QuestionFileError,
    UndefinedScore,
    Unscored,
    UsageError,
)

KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (QualityFailure, "quality_failure"),
    (JudgeError, "judge_error"),
    (EndpointError, "endpoint_error"),
    (EmbeddingError, "embedding_error"),
    (QuestionFileError, "data_error"),
    (UsageError, "usage_error"),
    (UndefinedScore, "not_applicable"),
    (Unscored, "unscored"),
)
"""Exception -> outcome; the first that fits. Anything else is a crash, which no case expects."""


@dataclass
class Outcome:
    """One result.

    Parameters
    ----------
    kind
        ``value``, ``pass``, ``property``, one of :data:`KINDS`, or ``crash``.
    value
        What was computed, where something was.
    message
        The whole text of the error.
    phrases
        What a description in ``must_name`` stands for: ``{"raw value": ["9"]}``.
    facts
        Counts that a case may ask for: ``http_calls``, ``warnings``, ``notes``.
    problems
        Which of the operation's own checks failed.
    each, parts
        Outcomes of the items of a ``*_many`` operation, and of parts that have a name (``extra``).
    """

    kind: str
    value: Any = None
    message: str = ""
    phrases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    each: list[Outcome] | None = None
    parts: dict[str, list[Outcome]] = field(default_factory=dict)

    def told(self) -> str:
        """For the line of a wrong case."""
        if self.each is not None:
            return "; ".join(item.told() for item in self.each)
        detail = repr(self.value) if self.kind in ("value", "pass") else self.message
        problems = f" ({'; '.join(self.problems)})" if self.problems else ""
        return " ".join(f"{self.kind} {detail:.160}{problems}".split())


def observe(
    run: Callable[[], Any], *, kind: str = "value", phrases: Mapping[str, Sequence[str]] | None = None
) -> Outcome:
    """Run something as a user would; ``kind`` is the outcome where it raises nothing."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = run()
        except Exception as error:
            outcome = failure(error)
        else:
            outcome = found if isinstance(found, Outcome) else Outcome(kind, found)
    outcome.phrases = {**(phrases or {}), **outcome.phrases}
    outcome.facts.setdefault("warnings", [f"{item.category.__name__}: {item.message}" for item in caught])
    return outcome


def failure(error: BaseException) -> Outcome:
    kind = next((kind for error_type, kind in KINDS if isinstance(error, error_type)), "crash")
    if kind == "crash":
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(kind, message=f"{type(error).__name__}: {error} ({where.filename}:{where.lineno})")
    return Outcome(kind, message=str(error))
