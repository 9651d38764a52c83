from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import UsageError
from pytest_ragbench.model.thresholds import Scale, Threshold, parse_threshold

NOISE = Scale("noise_sensitivity", direction="lower")
COSINE = Scale("semantic_similarity", low=-1.0)
BANDED = Scale("faithfulness", bands={"excellent": 0.9, "good": 0.7})


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        (">=0.8", (0.8, math.inf)),
        (">= 0.8", (0.8, math.inf)),
        (" >=0.8 ", (0.8, math.inf)),
        ("≥0.8", (0.8, math.inf)),
        (">0.8", (0.8, math.inf)),
        ("0.8", (0.8, math.inf)),
        (0.8, (0.8, math.inf)),
        (1, (1.0, math.inf)),
        ("0.7..0.9", (0.7, 0.9)),
        ("0.7 .. 0.9", (0.7, 0.9)),
        ("==1", (1.0, 1.0)),
    ],
)
def test_forms(text: str | float, limits: tuple[float, float]) -> None:
    threshold = parse_threshold(text)
    assert (threshold.low, threshold.high) == limits


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("=>0.8", "'=>0.8'"),
        ("0,8", "'0,8'.*decimal point"),
        (">=80%", "80%.*0.8"),
        ("", "threshold"),
        (">=1.2", "1.2.*0..1"),
        (">=-0.1", "-0.1.*0..1"),
        (">=nan", "nan.*finite"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("~0.8", "~0.8"),
        ("<0.8 and >0.2", "unreadable"),
        ("0.9..0.7", "empty"),
        ("0.5..1.5", "1.5"),
        ("great", "not a band"),
        (">1", "never be met"),
        ("<=0.8", "higher is better.*'>=0.8'"),
        (True, "True"),
        (None, "None"),
        (float("nan"), "nan"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_threshold(text, Scale("faithfulness"))  # type: ignore[arg-type]


def test_lower_is_better() -> None:
    assert parse_threshold(0.3, NOISE).met(0.2)
    assert not parse_threshold("0.3", NOISE).met(0.9)
    assert parse_threshold("<=0.3", NOISE).met(0.3)
    with pytest.raises(UsageError, match="lower is better.*'<=0.3'"):
        parse_threshold(">=0.3", NOISE)


def test_bands() -> None:
    assert parse_threshold("good", BANDED).low == 0.7
    assert parse_threshold("Excellent", BANDED).low == 0.9
    with pytest.raises(UsageError, match=r"excellent \(0.9\), good \(0.7\)"):
        parse_threshold("fine", BANDED)


def test_range_of_the_metric() -> None:
    assert parse_threshold(">=-0.2", COSINE).met(0)
    assert parse_threshold(">=20", Scale("bleu", high=100)).met(34.3)


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        (">=0.8", sum([0.7, 0.8, 0.9]) / 3, True),
        (">=0.8", 0.1 + 0.7, True),
        (">=0.8", 0.79999, False),
        (">0.8", sum([0.9, 0.8, 0.7]) / 3, False),
        (">0.8", 0.8, False),
        ("==1", 1 - 1e-12, True),
        (">=0.8", math.nan, False),
        ("0.7..0.9", math.nan, False),
    ],
)
def test_float_noise_decides_nothing(text: str, value: float, met: bool) -> None:
    assert parse_threshold(text).met(value) is met


def test_a_miss_shows_the_digits_that_make_it_one() -> None:
    assert parse_threshold(">=0.8").shown(0.79999) == "0.79999"
    assert parse_threshold(">=0.8").shown(0.5) == "0.50"
    assert parse_threshold(">0.8").shown(0.8) == "0.80"


@given(st.floats(0, 1), st.floats(0, 1))
def test_shown_and_met_agree(limit: float, value: float) -> None:
    threshold = parse_threshold(limit)
    assert threshold.met(float(threshold.shown(value))) == threshold.met(value)


@given(st.floats(0, 1))
def test_text_round_trips(limit: float) -> None:
    threshold = parse_threshold(limit)
    assert parse_threshold(threshold.text).low == pytest.approx(threshold.low, abs=1e-11)


@given(st.text(max_size=12))
def test_any_text_is_a_threshold_or_a_usage_error(text: str) -> None:
    try:
        threshold = parse_threshold(text)
    except UsageError as error:
        assert "score" in str(error)  # noqa: PT017
    else:
        assert isinstance(threshold, Threshold)
        assert math.isfinite(threshold.low) or math.isfinite(threshold.high)
