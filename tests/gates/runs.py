"""Results of a report, made up, and what gates say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ragbench.gates.baseline import Baseline
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import parse_rule
from pytest_ragbench.gates.verdicts import Conditions, Verdict, evaluate
from pytest_ragbench.model.scores import Usage
from pytest_ragbench.model.tests import ErrorRecord, Outcome, SampleRecord, ScoreRecord, TestRecord
from pytest_ragbench.report.writing import as_dict

RULE_4 = "faithfulness no worse than baseline by more than 0.02"


def result(
    question: str,
    scores: Mapping[str, float | None],
    *,
    outcome: Outcome = "passed",
    kind: str | None = None,
    limit: float | None = None,
    test: str = "test_a.py::test_it",
    judge: str | None = "scripted",
    text: str | None = None,
    **more: Any,
) -> TestRecord:
    """What one test about one question leaves in a report."""
    sample = SampleRecord(id=question, question=text or f"What is {question}?", **more)
    found = [
        ScoreRecord(
            metric=metric,
            tier="generation",
            sample=0,
            value=value,
            passed=None if limit is None or value is None else value >= limit,
            judge=judge,
            usage=Usage(calls=1),
            error=None if value is not None else ErrorRecord(type="JudgeError", code="timeout"),
        )
        for metric, value in scores.items()
    ]
    return TestRecord(
        test=f"{test}[{question}]",
        outcome=outcome,
        kind=kind,
        question_id=question,
        samples=(sample,),
        scores=tuple(found),
    )


def run(values: Sequence[float | None], metric: str = "faithfulness", **more: Any) -> list[TestRecord]:
    """One result a value, of the questions q0, q1 ..."""
    return [result(f"q{place}", {metric: value}, **more) for place, value in enumerate(values)]


def report(results: Sequence[TestRecord], **more: Any) -> dict[str, Any]:
    return {
        "schema": "ragbench-report",
        "version": 1,
        "complete": True,
        "run": {"id": "r", "started": 1.0},
        "results": [as_dict(result) for result in results],
        **more,
    }


def gate(text: str, results: Sequence[TestRecord], **conditions: Any) -> Verdict:
    [verdict] = evaluate([parse_rule(text)], Observations(results), Conditions(**conditions))
    return verdict


def paired(new: Sequence[TestRecord], old: Sequence[TestRecord], *rules: str) -> list[Verdict]:
    return evaluate(
        [parse_rule(rule) for rule in rules or (RULE_4,)],
        Observations(new),
        Conditions(baseline=Baseline(Observations(old))),
    )
