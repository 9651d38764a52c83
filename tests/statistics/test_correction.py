"""Errors of a judge taken out: the delta method by numeric derivatives, and what the bounds of a share allow."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.statistics.correction import Corrected, ppi_mean, rogan_gladen

REACH = statistics.NormalDist().inv_cdf(0.975)


def slope(function: Callable[..., float], at: list[float], place: int, step: float = 1e-6) -> float:
    up, down = at.copy(), at.copy()
    up[place] += step
    down[place] -= step
    return (function(*up) - function(*down)) / (2 * step)


def within(value: float, error: float) -> Corrected:
    return Corrected(
        min(max(value, 0.0), 1.0), error, max(value - REACH * error, 0.0), min(value + REACH * error, 1.0)
    )


def agree(found: Corrected, wanted: Corrected) -> None:
    assert found.to_dict() == pytest.approx(wanted.to_dict(), abs=1e-6)


rates, counts = st.floats(0.55, 0.95), st.integers(1, 500)


@given(st.floats(0.05, 0.95), rates, rates, counts, counts, counts)
def test_rogan_gladen_is_the_delta_method(
    share: float, tpr: float, tnr: float, n: int, n_positive: int, n_negative: int
) -> None:
    def corrected(share: float, tpr: float, tnr: float) -> float:
        return (share - (1 - tnr)) / (tpr - (1 - tnr))

    at = [share, tpr, tnr]
    variances = [p * (1 - p) / of for p, of in zip(at, (n, n_positive, n_negative), strict=True)]
    error = math.sqrt(
        sum(slope(corrected, at, place) ** 2 * variance for place, variance in enumerate(variances))
    )
    found = rogan_gladen(share, tpr, tnr, n=n, n_positive=n_positive, n_negative=n_negative)
    assert found.error == pytest.approx(error, rel=1e-5)
    agree(found, within(corrected(*at), found.error))


def test_a_correction_as_json_has_it() -> None:
    assert Corrected(0.5, 0.1, 0.3, 0.7).to_dict() == {
        "value": 0.5,
        "standard_error": 0.1,
        "low": 0.3,
        "high": 0.7,
    }


def test_what_cannot_be_corrected() -> None:
    counted = {"n": 1, "n_positive": 1, "n_negative": 1}
    agree(rogan_gladen(1, 1, 1, **counted), Corrected(1, 0, 1, 1))
    agree(rogan_gladen(0, 1, 1, **counted), Corrected(0, 0, 0, 0))
    for wrong in [(1.01, 1, 1), (1, 1.01, 1), (1, 1, 1.01), (-0.01, 1, 1), (1, -0.01, 1), (1, 1, -0.01)]:
        with pytest.raises(UsageError, match="shares in"):
            rogan_gladen(*wrong, **counted)
    for name in counted:
        with pytest.raises(UsageError, match="counts above 0"):
            rogan_gladen(1, 1, 1, **{**counted, name: 0})
    with pytest.raises(UndefinedScore, match="better than chance") as caught:
        rogan_gladen(0.5, 0.5, 0.5, **counted)
    assert caught.value.code == "no_information"


scores = st.floats(0, 1)


@given(
    st.lists(scores, min_size=2, max_size=30), st.lists(st.tuples(scores, scores), min_size=2, max_size=30)
)
def test_prediction_powered_mean(all_judged: list[float], labelled: list[tuple[float, float]]) -> None:
    judged, human = [one for one, _ in labelled], [other for _, other in labelled]
    off = [other - one for one, other in labelled]
    error = math.hypot(*(statistics.stdev(part) / math.sqrt(len(part)) for part in (all_judged, off)))
    wanted = within(statistics.fmean(all_judged) + statistics.fmean(off), error)
    agree(ppi_mean(all_judged, judged, human), wanted)


@pytest.mark.parametrize("few", [0, 1, 2])
def test_two_scores_and_two_labels_are_the_least(few: int) -> None:
    for judged, labelled in (([0.5] * few, [0.5] * 2), ([0.5] * 2, [0.5] * few)):
        if few == 2:
            assert ppi_mean(judged, labelled, labelled).value == 0.5
            continue
        with pytest.raises(UndefinedScore) as caught:
            ppi_mean(judged, labelled, labelled)
        assert caught.value.code == "no_pairs"
