"""Thresholds that ask for more than they say."""

from __future__ import annotations

from typing import Any

from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.few_values import FewValues
from pytest_ragbench.report.reading import part_from


def record(limit: str | None, *held: bool, **more: Any) -> TestRecord:
    value = sum(held) / len(held) if held else 1.0
    met = None if limit is None else value >= float(limit.lstrip(">="))
    score = {
        "metric": "faithfulness",
        "tier": "generation",
        "threshold": limit,
        "value": value,
        "passed": met,
        "evidence_title": "claims",
    }
    scores = [{**score, "evidence": [{"text": "c", "ok": ok} for ok in held], **more}]
    return part_from(TestRecord, {"test": "t", "outcome": "passed", "scores": scores})


def said(*records: TestRecord) -> list[tuple[str, bool]]:
    found = FewValues()
    for each in records:
        found.add(each)
    return list(found.lines())


def test_a_failure_by_one_claim_of_few_is_told() -> None:
    assert said(record(">=0.8", True, True, False), record(">=0.8", *[True] * 9)) == [
        (
            "faithfulness >=0.8 asks for all claims of 1 of 2 questions; 1 failed by one: with 3 claims a score can "
            "only be 0, 0.33, 0.67 or 1",
            True,
        )
    ]


def test_means_of_graded_verdicts_have_no_gaps_to_fall_into() -> None:
    graded = {"evidence": [{"text": "c", "ok": True, "value": 1.0}] * 3}
    assert said(*[record(">=0.8", True, True, True, **graded)] * 5) == []
    likeness = {"evidence": [{"text": "c", "ok": True, "value": 0.7}] * 3, "evidence_title": "reference"}
    [(text, _)] = said(*[record(">=0.8", True, True, True, **likeness)] * 5)
    assert "asks for all claims of the reference of 5 of 5 questions" in text
    [(one, matters)] = said(record(">=0.8", True, False))
    assert one.startswith(
        "faithfulness >=0.8 asks for all claims of 1 of 1 question; 1 failed by one: with 2 claims"
    )
    assert matters
    assert said(*[record(">=0.8", False, False)] * 5) == []  # nothing was supported: no chunks, say
    assert said(*[record(">=0.5", False)] * 5) == []  # of one claim there is nothing between all and none


def test_where_nothing_failed_it_is_told_only_if_no_threshold_means_what_it_says() -> None:
    few = record(">=0.8", True, True)
    assert said(few, few) == []
    assert said(few, few, record(">=0.8", True)) == [
        (
            "faithfulness >=0.8 asks for all claims of 3 of 3 questions: with 2 claims a score can only be 0, 0.5 or 1",
            False,
        )
    ]
    assert said(few, few, few, record(">=0.8", *[True] * 5)) == []


def test_where_a_threshold_says_what_it_means_nothing_is_told() -> None:
    for limit in ("==1", ">=1", ">=0.5", None, "<=0.2"):
        records = [
            record(limit, True, False, True) if limit not in ("==1", "<=0.2") else record(None, True)
        ] * 5
        assert said(*records) == []
    assert said(*[record(">=0.8", True, True, False, value=0.7)] * 5) == []  # no share of claims
    assert said(*[record(">=0.8", value=None)] * 5) == []
