import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.judge.local import is_abstention, split_claims


@pytest.mark.parametrize(
    ("answer", "claims"),
    [
        (
            "Hello! According to the documentation, refunds take 5 days. You need a receipt. Hope this helps!",
            ["Refunds take 5 days.", "You need a receipt."],
        ),
        ("The steps are as follows:\n1. Open the menu.\n2. Choose Save.", ["Open the menu.", "Choose Save."]),
        (
            "The electric oven heats up in ten minutes, and it cools down slowly in thirty minutes.",
            ["The electric oven heats up in ten minutes", "it cools down slowly in thirty minutes."],
        ),
        ("Mario and Zelda are popular games.", ["Mario and Zelda are popular games."]),
        ("I'm not sure, but the shop opens at nine.", ["The shop opens at nine."]),
        ("Согласно документации, возврат занимает 5 дней. Обращайтесь!", ["Возврат занимает 5 дней."]),
        ("はい、返金には5日かかります。お気軽にお問い合わせください。", ["返金には5日かかります。"]),
        ("Would you like to know more?", []),
    ],
)
def test_statements_are_kept_and_courtesies_are_not(answer: str, claims: list[str]) -> None:
    assert split_claims(answer) == claims


def test_a_bare_yes_is_read_with_its_question() -> None:
    assert split_claims("Yes.", "Is the pool heated?") == ["Yes: Is the pool heated?"]
    assert split_claims("Нет.", "Есть ли парковка?") == ["Нет: Есть ли парковка?"]
    assert split_claims("Yes.") == []


ABSTENTIONS = [
    "I don't know.",
    "I'm sorry, but I cannot answer that question.",
    "The documentation does not mention a refund period.",
    "There is no information about this in the provided context.",
    "Я не знаю.",
    "В документации нет ответа на этот вопрос.",
    "К сожалению, в тексте это не указано.",
    "分かりません。",
    "提供された文書には記載がありません。",
    "申し訳ありませんが、お答えできません。",
]


@pytest.mark.parametrize("answer", ABSTENTIONS)
def test_an_abstention_is_told_and_makes_no_claim(answer: str) -> None:
    assert is_abstention(answer)
    assert split_claims(answer) == []


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "The warranty is two years.",
        "I don't know the price, but the warranty covers two full years of use.",
        "Refunds are not possible after 30 days.",
        "Возврат после 30 дней невозможен.",
        "30日を過ぎると返品できません。",
    ],
)
def test_an_answer_is_no_abstention(answer: str) -> None:
    assert not is_abstention(answer)


@given(st.text(max_size=100), st.text(max_size=30))
def test_any_text_can_be_split(answer: str, question: str) -> None:
    claims = split_claims(answer, question)
    assert all(claim.strip() for claim in claims)
    assert len(set(claims)) == len(claims)
