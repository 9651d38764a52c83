"""A ✓ stands only beside a claim that a chunk supports, and the chunk that is named is the one with the evidence."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from pytest_ragbench import RagSample, score
from pytest_ragbench.assertions.failure import evidence_text
from pytest_ragbench.scoring.results import Result


class Fact(NamedTuple):
    """A sentence with a gap for its number, and the same denied."""

    said: str
    denied: str


FACTS = {
    "en": (
        Fact(
            "The trial of the Plus plan lasts {} days.", "The trial of the Plus plan does not last {} days."
        ),
        Fact("Support answers e-mails within {} hours.", "Support does not answer e-mails within {} hours."),
        Fact("A returned parcel weighs at most {} kg.", "A returned parcel may weigh more than {} kg."),
        Fact("The museum in Bergen has {} rooms.", "The museum in Bergen does not have {} rooms."),
        Fact("Students pay {} euros for a ticket.", "Students do not pay {} euros for a ticket."),
        Fact(
            "The warranty covers batteries for {} years.",
            "The warranty does not cover batteries for {} years.",
        ),
    ),
    "ru": (
        Fact(
            "Пробный период тарифа «Плюс» длится {} дней.", "Пробный период тарифа «Плюс» не длится {} дней."
        ),
        Fact("Поддержка отвечает на письма за {} часов.", "Поддержка не отвечает на письма за {} часов."),
        Fact("Посылка весит не больше {} кг.", "Посылка весит больше {} кг."),
        Fact("В музее Твери открыто {} залов.", "В музее Твери не открыто {} залов."),
        Fact("Студенты платят за билет {} рублей.", "Студенты не платят за билет {} рублей."),
        Fact("Гарантия на батареи действует {} лет.", "Гарантия на батареи не действует {} лет."),
    ),
    "ja": (
        Fact("プラスプランの試用期間は{}日間です。", "プラスプランの試用期間は{}日間ではありません。"),
        Fact("サポートはメールに{}時間以内に返信します。", "サポートはメールに{}時間以内に返信しません。"),
        Fact(
            "返品の荷物の重さは{}キログラムまでです。", "返品の荷物の重さは{}キログラムまでではありません。"
        ),
        Fact("奈良の博物館には展示室が{}室あります。", "奈良の博物館には展示室が{}室ありません。"),
        Fact("学生の入場料は{}円です。", "学生の入場料は{}円ではありません。"),
        Fact("電池の保証期間は{}年間です。", "電池の保証期間は{}年間ではありません。"),
    ),
}
KINDS = ("as it is", "negated", "another number", "unsupported")


def cases(lang: str) -> Iterator[tuple[str, str, list[str], int]]:
    """Kind, claim, chunks and the number of the chunk that the claim is about."""
    chance = random.Random(f"marks {lang}")
    facts = FACTS[lang]
    for round_ in range(16):
        for place, fact in enumerate(facts):
            others = [each for each in facts if each is not fact]
            numbers = chance.sample(range(11, 99), len(facts) + 1)
            given = chance.sample(others, 3)
            chunks = [each.said.format(number) for each, number in zip(given, numbers[2:], strict=False)]
            home = chance.randint(0, 3)
            kind = KINDS[(round_ + place) % 4]
            if kind != "unsupported":
                chunks.insert(home, fact.said.format(numbers[0]))
            claim = {
                "negated": fact.denied.format(numbers[0]),
                "another number": fact.said.format(numbers[1]),
            }.get(kind, fact.said.format(numbers[0]))
            yield kind, claim, chunks, home + 1


@pytest.mark.parametrize("lang", FACTS)
def test_a_mark_is_the_verdict_and_its_chunk_has_the_evidence(lang: str) -> None:
    told, wrong = Counter[str](), []
    for kind, claim, chunks, home in cases(lang):
        sample = RagSample("?", claim, chunks)
        found = score("faithfulness", sample, judge="local")
        [finding] = found.evidence
        shown = evidence_text([Result("faithfulness", sample, "generation", None, found)])
        marked = f"✓ {finding.value:.2f} {claim}   chunk {home} says so" in shown
        says_so = finding.reason == f"chunk {home} says so" and finding.chunk == home
        told[kind] += 1
        if {finding.ok, "✓" in shown, marked, says_so} != {kind == "as it is"}:
            wrong.append((kind, claim, chunks, finding))
    assert wrong == []
    assert min(told[kind] for kind in KINDS) > 20
