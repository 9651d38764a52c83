"""Which fields of a sample a metric needs, and what is said where one is absent."""

from __future__ import annotations

from typing import Any

from pytest_ragbench.metrics.registry import Metric
from pytest_ragbench.model.errors import UsageError, with_details
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.text import is_blank

QUESTION_FIELDS = frozenset(
    {"reference", "reference_contexts", "relevant_ids", "relevant_urls", "cluster", "session"}
)
"""Sample fields that the question file gives; the others come with the reply of the system under test."""


def lacks(sample: RagSample, name: str) -> bool:
    """Whether the sample's field ``name`` holds nothing that a metric could be computed from."""
    return _lack(name, getattr(sample, name), sample) is not None


def check_needs(metric: Metric, sample: RagSample) -> None:
    """Refuse a sample that the metric can't be computed from, before anything is asked.

    Raises
    ------
    UsageError
        Naming metric, field and sample.
    """
    for name in metric.needs:
        lack = _lack(name, getattr(sample, name), sample)
        if lack is not None:
            place = f" ({sample.location})" if sample.location else ""
            raise UsageError(with_details(f"{metric.name} needs {lack}", f"sample {sample.label}{place}"))


def _lack(name: str, value: Any, sample: RagSample) -> str | None:
    if value is None:
        return f"{name}, which the sample does not have{_how(name)}"
    # A blank answer or chunk is the system's doing, and scores; these two are the test's.
    if name in ("question", "reference") and is_blank(value):
        return f"{name}, which is blank"
    # A grade of 0 is a judgment, too: "not relevant". With those alone there is nothing to find.
    if name == "relevant_ids" and not any(grade > 0 for grade in (sample.relevance or {}).values()):
        return "relevant_ids, and none of this question's has a grade above 0"
    if name == "relevant_urls" and all(map(is_blank, value)):
        return "relevant_urls, and this question has none"
    if name == "reference_contexts" and all(map(is_blank, value)):
        return f"{name}, which is empty"
    return None


def _how(name: str) -> str:
    match name:
        case "contexts" | "context_ids":
            return (
                ": the reply had no chunks. Map them (rag.reply.contexts), or use metrics that need the "
                "answer only"
            )
        case "context_urls":
            return ": the reply names no documents of its chunks. Map them: rag.reply.context_urls"
        case "answer":
            return ": no answer was given"
        case _:
            return f": add a {name} column to its question"
