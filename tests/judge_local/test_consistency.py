"""Two answers of one conversation: which can't both be true."""

from __future__ import annotations

import pytest

from pytest_ragbench import RagSample, score_over
from pytest_ragbench.judge.local import contradiction


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The warranty lasts two years.", "The warranty lasts three years."),
        ("Returns are accepted without a receipt.", "Returns are not accepted without a receipt."),
        ("The office is open on Sunday.", "The office is closed on Sunday."),
        ("Гарантия действует два года.", "Гарантия действует три года."),
        ("Возврат без чека возможен.", "Возврат без чека невозможен."),
        ("Офис работает с 10 до 18.", "Офис работает с 9 до 18."),
        ("保証期間は2年です。", "保証期間は3年です。"),
    ],
)
def test_contradictions(earlier: str, later: str) -> None:
    found = contradiction(later, ["Thank you for asking.", earlier])
    assert found is not None
    assert found.turn == 2
    assert found.reason.startswith("answer 2 ")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The warranty lasts two years.", "The warranty lasts two years and covers the battery."),
        ("Products can be returned.", "You can return it within 30 days."),
        ("The warranty covers the battery.", "The warranty covers the battery for 2 years."),
        ("Гарантия распространяется на батарею.", "Гарантия распространяется на батарею 2 года."),
        ("Delivery is free above 50 euro.", "Delivery takes 5 days."),
        ("The warranty lasts two years.", "I don't know how long the warranty is."),
        ("Товар можно вернуть в течение 14 дней.", "Товар можно вернуть в течение 14 дней, нужен чек."),
        ("Гарантия действует два года.", "Доставка занимает пять дней."),
        ("返品は30日以内にできます。レシートが必要です。", "返品は30日以内にできます。"),
        ("保証期間は2年です。", "送料は無料です。"),
        ("", "The warranty lasts two years."),
    ],
)
def test_more_detail_and_other_subjects_are_none(earlier: str, later: str) -> None:
    assert contradiction(later, [earlier]) is None


def test_consistency_without_a_model() -> None:
    answers = ["Гарантия действует два года.", "Доставка занимает пять дней.", "Гарантия действует три года."]
    talk = [RagSample("Как?", answer, session="s") for answer in answers]
    found = score_over(talk, "multi_turn_consistency", judge="local")
    assert found.value == 0.5
    assert "contradicts answer 1" in found.reason
