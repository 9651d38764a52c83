"""Results of a report, made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def result(
    question: str,
    scores: Mapping[str, float | None],
    *,
    outcome: str = "passed",
    kind: str | None = None,
    limit: float | None = None,
    test: str = "test_a.py::test_it",
    judge: str | None = "scripted",
    text: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """What one test about one question leaves in a report."""
    sample = {"id": question, "question": text or f"What is {question}?", "relevant_ids": None, **more}
    return {
        "test": f"{test}[{question}]",
        "outcome": outcome,
        "kind": kind,
        "question_id": question,
        "samples": [sample],
        "questions": [],
        "scores": [
            {
                "metric": metric,
                "tier": "generation",
                "sample": 0,
                "value": value,
                "passed": None if limit is None or value is None else value >= limit,
                "judge": judge,
                "embedder": None,
                "usage": {"calls": 1, "cost": None},
                "error": None if value is not None else {"type": "JudgeError", "code": "timeout"},
            }
            for metric, value in scores.items()
        ],
    }


def run(values: Sequence[float | None], metric: str = "faithfulness", **more: Any) -> list[dict[str, Any]]:
    """One result a value, of the questions q0, q1 ..."""
    return [result(f"q{place}", {metric: value}, **more) for place, value in enumerate(values)]


def report(results: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "schema": "ragbench-report",
        "version": 1,
        "complete": True,
        "run": {"id": "r", "started": 1.0},
        "results": results,
        **more,
    }
