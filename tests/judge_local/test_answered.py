import pytest

from pytest_ragbench import RagSample, score
from pytest_ragbench.judge.local import split_claims, verify

CHUNKS = [
    "Pets are welcome in the garden rooms. Cats are excluded from the spa.",
    "The lift does not work on Mondays. The garage costs 8 euros a night.",
    "Кошки в бассейн не допускаются. Завтрак подаётся до десяти.",
    "猫はプールに入れません。朝食は10時まで利用できます。",
]


@pytest.mark.parametrize(
    ("question", "answer", "right"),
    [
        ("Can I take a cat to the spa?", "Yes.", False),
        ("Can I take a cat to the spa?", "No.", True),
        ("Does the lift work on Mondays?", "No, it doesn't.", True),
        ("Does the lift work on Mondays?", "Yes, it does.", False),
        ("Does the garage cost 20 euros a night?", "No.", True),
        ("Does the garage cost 20 euros a night?", "Yes.", False),
        ("Does the garage cost 8 euros a night?", "Yes.", True),
        ("Does the garage cost 8 euros a night?", "No.", False),
        ("Is there a tennis court?", "No.", False),
        ("Можно ли кошкам в бассейн?", "Да.", False),
        ("Можно ли кошкам в бассейн?", "Нет.", True),
        ("猫はプールに入れますか？", "はい。", False),
        ("猫はプールに入れますか？", "いいえ。", True),
        ("朝食は10時まで利用できますか？", "はい。", True),
    ],
)
def test_a_yes_or_no_is_judged_as_the_question_answered(question: str, answer: str, right: bool) -> None:
    (claim,) = split_claims(answer, question)
    assert (verify(claim, CHUNKS, question).value >= 0.5) is right


def test_what_the_answer_goes_on_to_say_speaks_for_its_yes() -> None:
    question, chunks = "Is breakfast part of the price?", ["Breakfast is included."]
    claims = split_claims("Yes, breakfast is included.", question)
    assert [verify(claim, chunks, question, claims).value >= 0.5 for claim in claims] == [True, True]
    assert verify("Yes: Is breakfast part of the price?", chunks, question).value < 0.5


def test_the_score_counts_the_yes_and_the_evidence_shows_what_claims_nothing() -> None:
    sample = RagSample(
        "Can I take a cat to the spa?",
        answer="Yes, pets are welcome in the garden rooms. anything else?",
        contexts=CHUNKS,
    )
    found = score("faithfulness", sample, judge="local")
    assert [finding.ok for finding in found.evidence] == [False, True, None]
    assert found.evidence[2].reason == "question, not a claim"
    assert found.details["n_claims"] == 2
