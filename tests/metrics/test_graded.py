"""Verdicts that the local judge grades: what counts, what is unsure, and what a cascade passes on."""

from __future__ import annotations

import pytest

from pytest_ragbench import RagSample, score
from pytest_ragbench.metrics.steps import unsure_of
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.model.thresholds import Scale, parse_threshold
from pytest_ragbench.scoring.voting import Limits

SAMPLE = RagSample(
    "When does the ferry leave?",
    answer="The ferry leaves at nine. The captain lives on the second island.",
    contexts=["The ferry leaves at nine.", "The captain has a house on the islands."],
)


def test_faithfulness_is_the_mean_of_the_probabilities_unless_asked_otherwise() -> None:
    graded, counted = score("faithfulness", SAMPLE), score("faithfulness", SAMPLE, verdicts="json")
    values = [finding.value for finding in graded.evidence]
    assert graded.value == pytest.approx(sum(filter(None, values)) / 2)
    assert counted.value == sum(bool(finding.ok) for finding in counted.evidence) / 2
    assert score("faithfulness", SAMPLE, verdicts="probability").value == graded.value
    assert (graded.judge, "verdicts" in graded.details) == ("local", False)


def test_a_claim_that_stands_in_a_chunk_word_for_word_is_sure() -> None:
    assert score("faithfulness", SAMPLE).evidence[0].value == 1.0


def test_unsure_claims_are_counted_with_the_scores_at_either_end() -> None:
    findings = [Finding("a", True, value=0.9), Finding("b", False, value=0.4), Finding("c", True, value=0.6)]
    assert [finding.unsure for finding in findings] == [False, True, True]
    assert unsure_of(findings) == {
        "n_unsure": 2, "lowest": pytest.approx(0.3), "highest": pytest.approx(2.9 / 3),
    }  # fmt: skip
    assert unsure_of(findings[:1]) == {}
    # A cosine beside a line that only informs is no probability.
    assert not Finding("d", None, value=0.5).unsure


@pytest.mark.parametrize(("low", "high", "asked"), [(0.5, 0.9, True), (0.82, 0.9, False), (0.1, 0.7, False)])
def test_a_cascade_goes_on_where_unsure_claims_decide(low: float, high: float, asked: bool) -> None:
    limit = parse_threshold(">=0.8", Scale(low=0, high=1, direction="higher"))
    found = Score(metric="faithfulness", value=0.7, details={"lowest": low, "highest": high})
    assert Limits(limit).open(found) is asked
    assert not Limits(limit).open(Score(metric="faithfulness", value=0.7))
