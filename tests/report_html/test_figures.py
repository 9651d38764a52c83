from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.report.figures import Interval, figures, mean_interval
from pytest_ragbench.report.summary import Row
from pytest_ragbench.statistics.bounds import mean_bounds
from tests.report_html.pages import a_report, a_result, a_score

VALUES = [0.9, 0.8, 1.0, 0.7, 0.95, 0.85, 0.9, 0.6, 1.0, 0.9]


def test_interval_of_the_mean() -> None:
    faithfulness = Row("faithfulness", "generation").scale()
    found = mean_interval(VALUES, faithfulness)
    bounds = mean_bounds(VALUES, confidence=0.975)
    assert found == Interval(bounds.low, bounds.high)
    alone = mean_interval([0.5], faithfulness)
    assert alone is not None
    assert [alone.low, alone.high] == pytest.approx([0.0125, 0.9875])
    assert mean_interval([], faithfulness) is None
    assert mean_interval(VALUES, Row("judge_latency", "judge").scale()) is None
    assert mean_interval(VALUES, Row("own_of_theirs", "judge").scale()) is None


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_every_value_is_in_one_bucket(values: list[float]) -> None:
    [figure] = figures(a_report([a_result(str(place), value) for place, value in enumerate(values)]))
    assert sum(figure.counts) == len(values)
    assert figure.mean == pytest.approx(math.fsum(values) / len(values))
    assert figure.missed == sum(value < 0.8 for value in values)
    for place, count in enumerate(figure.counts):
        low, high = figure.edges[place], figure.edges[place + 1]
        assert count <= sum(low - 1e-6 <= value <= high + 1e-6 for value in values)


def test_sets_count_as_their_questions_do_and_axes_hold_all_values() -> None:
    whole = a_score(0.5, sample=None, metric="mrr", tier="retrieval", details={"n_scored": 3, "n_total": 4})
    slow = a_score(7.5, metric="judge_latency", tier="judge", threshold="<=9", passed=True)
    one = a_score(1.0, metric="mrr", tier="retrieval")
    none = a_score(None, metric="mrr", tier="retrieval", error={"type": "JudgeError"})
    mrr, latency = figures(a_report([{**a_result("a"), "scores": [whole, slow, one, none]}]))
    assert (mrr.mean, mrr.scored, mrr.total, mrr.interval) == (0.625, 4, 6, None)
    assert (latency.low, latency.high, latency.band) == (0.0, 7.5, None)
    assert (
        figures(a_report([{**a_result("a"), "scores": [a_score(0.5, metric="own_of_theirs")]}]))[0].band
        is None
    )
