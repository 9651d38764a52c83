"""Reasons of search_rag and semantic_similarity never contradict their value."""

from __future__ import annotations

import pytest

from pytest_ragbench import RagSample, score
from tests.metrics.scripted import Scripted

SAMPLE = RagSample("When does it open?", "At nine.", ["It opens at nine."], reference="At nine.")


@pytest.mark.parametrize(
    ("grades", "message", "reason", "error_message"),
    [
        ((1, 1), "", "", ""),
        ((1, 1), "the answer is short", "", ""),
        ((0.5, 1), "", "answer_correctness is the lower grade (the judge gave no message)", ""),
        ((1, 0.9), "", "groundedness is the lower grade (the judge gave no message)", ""),
        ((0.5, 1), "the hour is wrong", "the hour is wrong", "the hour is wrong"),
    ],
)
def test_search_rag(grades: tuple[float, float], message: str, reason: str, error_message: str) -> None:
    correctness, groundedness = grades
    reply = {"answer_correctness": correctness, "groundedness": groundedness, "error_message": message}
    found = score("search_rag", SAMPLE, judge=Scripted(grade_search_rag=reply))
    assert (found.value, found.reason, found.error_message) == (min(grades), reason, error_message)


def test_similarity_says_what_it_compared() -> None:
    assert score("semantic_similarity", SAMPLE).reason == "compared with the reference: At nine."
