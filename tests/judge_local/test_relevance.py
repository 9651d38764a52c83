import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.judge.local import addresses


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How long do I have to return a product?", "You have 30 days to return a product."),
        ("How many seats does the free plan have?", "Two seats."),
        ("When was the museum founded?", "In 1903."),
        ("Who designed the bridge?", "Maria Keller designed the bridge."),
        ("Is the pool heated?", "Yes."),
        ("How do I reset my password?", "Open Settings and choose Reset password."),
        ("Сколько дней на возврат товара?", "На возврат товара есть 30 дней."),
        ("Когда основан музей?", "Музей основан в 1903 году."),
        ("返品は何日以内ですか？", "返品は30日以内です。"),
        ("橋を設計したのは誰ですか？", "マリア・ケラーが設計しました。"),
    ],
)
def test_an_answer_to_the_question(question: str, answer: str) -> None:
    assert addresses(question, answer).value >= 0.5


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("How long do I have to return a product?", "", "empty answer"),
        ("How long do I have to return a product?", "I don't know.", "says that it can't answer"),
        ("Когда основан музей?", "В документации нет ответа.", "says that it can't answer"),
        ("返品は何日以内ですか？", "分かりません。", "says that it can't answer"),
        (
            "How long do I have to return a product?",
            "Bring the product and the receipt to any shop.",
            "the question asks for a duration, the answer has none",
        ),
        (
            "How do I reset my password?",
            "The cafeteria serves soup on weekdays near the old gate.",
            "off the topic",
        ),
    ],
)
def test_no_answer_to_the_question(question: str, answer: str, reason: str) -> None:
    support = addresses(question, answer)
    assert support.value < 0.5
    assert support.reason.startswith(reason)
    assert support.chunk is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_texts_give_a_value(question: str, answer: str) -> None:
    support = addresses(question, answer)
    assert 0.0 <= support.value <= 1.0
    assert support.reason
