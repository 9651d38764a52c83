"""How many questions a decision takes, and how that is said."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.statistics.bounds import share_bounds
from pytest_ragbench.statistics.planning import (
    advice,
    more_questions,
    perfect_needed,
    questions_needed,
    two_digits,
)

CHOOSING = Path(__file__).parents[2] / "docs" / "gates.md"


def test_perfect_answers_needed() -> None:
    assert [perfect_needed(share) for share in (0.8, 0.85, 0.9, 0.95)] == [14, 19, 29, 59]
    for share in (0.8, 0.85, 0.9, 0.95):
        n = perfect_needed(share)
        assert share_bounds(n, n).low >= share > share_bounds(n - 1, n - 1).low
    with pytest.raises(UsageError):
        perfect_needed(1.0)


def test_questions_needed() -> None:
    from statsmodels.stats.power import TTestPower

    wanted = {(0.2, 0.05): 99, (0.2, 0.02): 619, (0.1, 0.02): 155}
    assert {pair: questions_needed(*pair) for pair in wanted} == wanted
    n = TTestPower().solve_power(effect_size=0.25, alpha=0.05, power=0.8, alternative="larger")
    assert questions_needed(0.2, 0.05) == pytest.approx(n, abs=3)
    with pytest.raises(UndefinedScore):
        questions_needed(0.2, 0)


def test_more_questions_like_these() -> None:
    spread = [0.8, 1.0, 0.7, 0.9, 1.0] * 10
    # ((1.645 + .842) * .1178 / .02)² = 215, of which there are 50
    assert more_questions(spread, 0.86) == 170
    assert more_questions([1.0] * 18, 0.85) == 1
    assert more_questions([1.0] * 9, 0.85, clusters=[place // 3 for place in range(9)]) == 48
    assert more_questions([0.0] * 10, 0.1) == 19
    assert more_questions([0.86] * 10, 0.85) == 250
    assert more_questions([0.5], 0.5) is None
    assert more_questions([1.0], 1.0) is None
    assert more_questions([1.0, 0.0], 1.0) is None
    assert more_questions([3.0] * 10, 2.5, low=1.0, high=5.0) == 1


@given(
    st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, 5.0]), min_size=2, max_size=12),
    st.sampled_from([1.5, 2.25, 3.1, 4.4]),
    st.sampled_from([0.9, 0.95]),
)
def test_the_advice_is_the_larger_of_what_spread_and_range_take(
    values: list[float], limit: float, confidence: float
) -> None:
    mean = statistics.fmean(values)
    assume(abs(mean - limit) > 1e-6)
    share = (limit - 1) / (mean - 1) if mean > limit else (5 - limit) / (5 - mean)
    needed = max(
        questions_needed(statistics.stdev(values), abs(mean - limit), confidence=confidence),
        perfect_needed(share, confidence),
    )
    found = more_questions(values, limit, confidence=confidence, low=1.0, high=5.0)
    assert found == two_digits(max(needed - len(values), 1))


def test_ends_of_what_is_asked() -> None:
    assert questions_needed(0.0, 0.1) == 1
    with pytest.raises(UndefinedScore) as caught:
        questions_needed(0.2, -0.1)
    assert caught.value.code == "no_distance"
    for share in (0.0, 1.0, -0.5, 1.5):
        with pytest.raises(UsageError, match="between 0 and 1"):
            perfect_needed(share)
    # A million questions are too many to ask for, 12,000 are not; and the limit may lie at either end.
    assert more_questions([0.0, 1.0], 0.4999) is None
    assert more_questions([0.0, 1.0], 0.48) == 7800
    assert more_questions([0.4, 0.6], 0.0) is more_questions([0.4, 0.6], 1.0) is None
    assert [advice(1_999), advice(2_000)] == [
        "about 1,999 more questions would settle it",
        "it would take thousands of questions more to settle it",
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (1, "about 1 more question would settle it"),
        (40, "about 40 more questions would settle it"),
        (1200, "about 1,200 more questions would settle it"),
        (12_000, "it would take thousands of questions more to settle it"),
        (None, "more questions would hardly tell"),
    ],
)
def test_advice(more: int | None, said: str) -> None:
    assert advice(more) == said


def test_two_digits() -> None:
    assert [two_digits(number) for number in (1, 9.2, 38.1, 100, 101, 1234, 1200, 98_765)] == [
        1, 10, 39, 100, 110, 1300, 1200, 99_000,
    ]  # fmt: skip


def test_the_page_on_choosing_has_the_numbers_that_the_gates_go_by() -> None:
    rows = [
        line.strip("| ").split(" | ")
        for line in CHOOSING.read_text(encoding="utf-8").splitlines()
        if "|" in line
    ]
    needed = {row[0]: [int(cell) for cell in row[1:]] for row in rows if row[0] in (".1", ".2", ".3")}
    assert needed == {
        sd: [questions_needed(float(sd), distance) for distance in (0.05, 0.02)] for sd in (".1", ".2", ".3")
    }
    place = rows.index([".8", ".85", ".9", ".95"])
    assert rows[place + 2] == [str(perfect_needed(float(share))) for share in rows[place]]
