from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.http.retry_after import parse_retry_after

NOW = datetime(2026, 9, 21, 10, 0, 0, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2", 2.0),
        ("Mon, 21 Sep 2026 10:00:07 GMT", 7.0),
        ("Monday, 21-Sep-26 10:00:07 GMT", 7.0),
        ("Mon Sep 21 10:00:07 2026", 7.0),
        ("Mon, 21 Sep 2026 12:00:07 +0200", 7.0),
        ("1.5", 1.5),
        (" 3 ", 3.0),
        ("Mon, 21 Sep 2026 09:59:00 GMT", 0.0),
        ("3600", 3600.0),
        ("9" * 400, 1e9),
        ("soon", None),
        ("-5", None),
        ("1e3", None),
        ("nan", None),
        ("inf", None),
        ("٣", None),
        ("", None),
        (None, None),
    ],
)
def test_both_forms(value: str | None, seconds: float | None) -> None:
    assert parse_retry_after(value, NOW) == seconds


@given(st.text(), st.floats(0, 4e9))
def test_never_raises_and_never_negative(value: str, now: float) -> None:
    seconds = parse_retry_after(value, now)
    assert seconds is None or 0 <= seconds <= 1e9


@given(st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(microsecond=0)))
def test_any_date_is_its_distance(moment: datetime) -> None:
    aware = moment.replace(tzinfo=UTC)
    distance = max(aware.timestamp() - NOW, 0.0)
    assert parse_retry_after(format_datetime(aware, usegmt=True), NOW) == min(distance, 1e9)
