"""A kind of what the claim names supports it, and a word of the same meaning; not the other way round."""

from __future__ import annotations

import re

import pytest

from pytest_ragbench.judge.local import verify
from pytest_ragbench.languages import language

WIDER_AND_KIND = [
    ("An animal is asleep in the basket.", "A dog is asleep in the basket."),
    ("The vehicle is parked behind the house.", "The truck is parked behind the house."),
    ("В корзине спит животное.", "В корзине спит собака."),
    ("男性が楽器を弾いている。", "男性がギターを弾いている。"),
    ("黒い犬が昆虫を見ている。", "黒い犬がハエを見ている。"),
]


@pytest.mark.parametrize(("wider", "kind"), WIDER_AND_KIND)
def test_a_kind_supports_the_wider_word_and_not_the_reverse(wider: str, kind: str) -> None:
    assert verify(wider, [kind]).value >= 0.5 > verify(kind, [wider]).value


@pytest.mark.parametrize(
    ("claim", "chunk"),
    [
        ("The coach waits behind the cemetery.", "The coach waits behind the graveyard."),
        ("猫が路上で遊んでいる。", "猫が道路で遊んでいる。"),
    ],
)
def test_words_of_one_meaning_support_each_other(claim: str, chunk: str) -> None:
    assert min(verify(claim, [chunk]).value, verify(chunk, [claim]).value) >= 0.5


@pytest.mark.parametrize(
    ("wider", "kind"),
    [
        ("No animals are allowed in the garden.", "No dogs are allowed in the garden."),
        ("All animals must be kept on a lead.", "All dogs must be kept on a lead."),
        ("Все животные должны быть на поводке.", "Все собаки должны быть на поводке."),
        ("すべての動物は公園に入れる。", "すべての犬は公園に入れる。"),
    ],
)
def test_all_and_no_say_more_of_the_wider_word_than_of_a_kind(wider: str, kind: str) -> None:
    assert verify(wider, [kind]).value < 0.5


def test_a_kind_counts_in_a_sentence_that_is_about_the_claim_only() -> None:
    claim = "The animal was sold at an auction in Bergen."
    assert verify(claim, ["The horse was sold at an auction in Bergen."]).value >= 0.5
    apart = verify(claim, ["The horse likes hay. An auction was cancelled."])
    assert apart.value == verify(claim, ["The gate likes hay. An auction was cancelled."]).value


def test_a_loan_word_is_not_found_within_a_longer_one() -> None:
    # パンダ is a panda, パンダグラフ (a misspelt pantograph) no animal.
    assert verify("庭で動物が眠っている。", ["庭でパンダが眠っている。"]).value >= 0.5
    assert verify("庭で動物が眠っている。", ["庭でパンダグラフが眠っている。"]).value < 0.5


@pytest.mark.parametrize("lang", ["en", "ru", "ja"])
def test_the_data_are_words(lang: str) -> None:
    tree = language(lang).data("kinds")["tree"]
    assert len(tree.split()) > 5000
    assert re.search(r"[\d_'\"#.,-]", tree) is None
