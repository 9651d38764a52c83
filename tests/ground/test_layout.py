from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from pytest_ragbench.assertions.failure import evidence_text
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.model.tests import SampleRecord, ScoreRecord, TestRecord
from pytest_ragbench.model.thresholds import parse_threshold
from pytest_ragbench.report.layout import aligned, cells, cut, pad
from pytest_ragbench.report.summary import Row, Summary, table
from pytest_ragbench.scoring.results import Result

MIXED = st.text(alphabet="aБ返品e\u0301👩 \u200d", max_size=40)


@given(MIXED, st.integers(1, 30))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width
    assert "\n" not in cut(text, width)


@given(st.text(alphabet="aБ返品é ", max_size=40), st.integers(1, 60))
def test_a_padded_text_has_its_width(text: str, width: int) -> None:
    for right in (False, True):
        padded = pad(text, width, right=right)
        assert padded.strip(" ") == text.strip(" ")
        assert cells(padded) == max(width, cells(text))


def test_wide_and_cyrillic_names_line_up() -> None:
    lines = aligned(
        [["name", "n"], ["返品には", "1"], ["возврат", "22"], ["refund", "333"]],
        left=("name",), drop=(), shrink="name", columns=80,
    )  # fmt: skip
    assert lines == ["name        n", "返品には    1", "возврат    22", "refund    333"]
    assert len({wcswidth(line) for line in lines}) == 1


ROWS = [
    Row("hit_rate@4", "retrieval", Fraction(72), 75, 75, 0.0, 1.0, None, 1, 75, 3, 900, 0.0123),
    Row("search_rag_answer_correctness", "end_to_end", Fraction(9.5), 10, 10, 0.5, 1.0, None, 0, 0),
]
BANDS = {"hit_rate@4": "excellent", "search_rag_answer_correctness": "good"}


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_the_table_fits_the_terminal(columns: int) -> None:
    lines = table(ROWS, BANDS, columns)
    assert all(cells(line) <= columns for line in lines)
    head = lines[0].split()
    assert {"metric", "mean", "missed"} <= set(head)
    assert ("tokens" in head) == (columns >= 120)
    assert lines[1].split()[-1] == ("excellent" if "band" in head else "1/75")


def failed(name: str, value: float, **more: Any) -> TestRecord:
    sample = SampleRecord(id=name, question=f"What is {name}?", file="q.csv", line=3)
    score = ScoreRecord(metric="mrr", tier="retrieval", value=value, passed=False, sample=0)
    told = {"test": "t", "outcome": "failed", "kind": "quality", "message": f"mrr {value}, wanted 1", **more}
    return TestRecord(**told, samples=(sample,), scores=(score,))


def test_the_worst_questions_are_named_worst_first() -> None:
    summary = Summary()
    for place in range(9):
        summary.add(failed(f"返品{place}", place / 10))
    summary.add(failed("down", 0.0, kind="judge"))
    summary.add(failed("fine", 0.0, outcome="passed", kind=None))
    assert [bad.said for bad in summary.worst] == [f"mrr {place / 10}, wanted 1" for place in range(5)]
    assert summary.worst[0].lines(80) == ["  mrr 0.0, wanted 1", "    [返品0] What is 返品0? (q.csv:3)"]
    assert all(cells(line) <= 20 for bad in summary.worst for line in bad.lines(20))


def test_evidence_of_a_passing_question() -> None:
    sample = RagSample("How long?", "30 days.", ["The window is 30 days."])
    score = Score(
        metric="faithfulness", value=1.0, evidence=(Finding("30 days.", True, "", 1),), judge="local"
    )
    text = evidence_text([Result("faithfulness", sample, "generation", parse_threshold(">=0.8"), score)])
    assert text.splitlines() == [
        "  question   How long?",
        "  answer     30 days.",
        "  faithfulness 1.00, wanted >=0.8",
        "  claims     ✓ 30 days.   chunk 1",
        "  chunks     [1] The window is 30 days.",
        "  judge      local, 1 vote, 0.0 s",
    ]
