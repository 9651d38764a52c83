"""Bad quality is a failed assertion, and nothing else is."""

from __future__ import annotations

import pytest

import pytest_ragbench as rb


def test_only_bad_quality_is_a_failed_assertion() -> None:
    assert issubclass(rb.QualityFailure, AssertionError)


@pytest.mark.parametrize(
    "error",
    [
        rb.JudgeError,
        rb.EndpointError,
        rb.EmbeddingError,
        rb.UndefinedScore,
        rb.UsageError,
        rb.QuestionFileError,
    ],
)
def test_an_outage_or_a_mistake_is_none(error: type[Exception]) -> None:
    assert not issubclass(error, AssertionError)
    assert not issubclass(error, rb.QualityFailure)


@pytest.mark.parametrize("error", [rb.JudgeError, rb.EndpointError, rb.EmbeddingError, rb.UndefinedScore])
def test_what_has_no_score_is_unscored(error: type[Exception]) -> None:
    assert issubclass(error, rb.Unscored)
    assert not issubclass(error, rb.UsageError)
