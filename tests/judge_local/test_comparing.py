"""An answer against a reference: what the question says is no news."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import RagSample, score

PAIRS = Path(__file__).parents[1] / "metrics" / "data" / "reference_pairs.jsonl"
ROWS: list[Mapping[str, Any]] = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
RIGHT_FROM = 0.7


def of(row: Mapping[str, Any]) -> RagSample:
    return RagSample(row["question"], row["answer"], reference=row["reference"])


def test_the_table_is_balanced() -> None:
    """Half of the rows were written before the rules, the other half after them; 28 of those 30 were right at once."""
    for half in (1, 2):
        for lang in ("en", "ru", "ja"):
            found = [row["right"] for row in ROWS if (row["half"], row["lang"]) == (half, lang)]
            assert (len(found), sum(found)) == (10, 5)


@pytest.mark.parametrize("metric", ["answer_correctness", "factual_correctness"])
def test_right_answers_pass_and_wrong_ones_do_not(metric: str) -> None:
    wrong = []
    for row in ROWS:
        found = score(metric, of(row), judge="local")
        if (found.value >= RIGHT_FROM) != row["right"]:
            wrong.append((row["answer"], row["reference"], found.value, found.reason))
    assert len(ROWS) == 60
    assert wrong == []


@pytest.mark.parametrize(
    ("question", "answer", "reference"),
    [
        ("What warranty does the K7 have?", "The K7 has a warranty of 24 months.", "24 months."),
        ("How long does a litre take to boil?", "A litre boils in 3 minutes.", "3 minutes."),
        ("Сколько кипятится литр воды?", "Литр воды кипятится 3 минуты.", "3 минуты."),
        ("K7の保証期間は何か月ですか。", "K7の保証期間は24か月です。", "24か月。"),
        ("Is the lid red or blue?", "The lid is blue.", "Blue."),
    ],
)
def test_a_full_sentence_around_the_reference_is_right(question: str, answer: str, reference: str) -> None:
    for said, wanted in ((answer, reference), (reference, answer)):
        sample = RagSample(question, said, reference=wanted)
        assert score("factual_correctness", sample, judge="local").value == 1.0
        assert score("answer_correctness", sample, judge="local").value >= RIGHT_FROM


@pytest.mark.parametrize(
    ("question", "answer", "reference", "why"),
    [
        ("What warranty does the K7 have?", "The K7 has a warranty of 12 months.", "24 months.", "12"),
        ("Is the lid red or blue?", "The lid is red.", "Blue.", "the reference does not say so"),
        ("When was the old bridge rebuilt?", "The old bridge was rebuilt in 1987.", "In 1978.", "1987"),
        ("Who repaired the old bridge over the river?", "The owner repaired the old bridge over the river.",
         "The volunteers.", "owner"),
        ("Is parking free?", "Parking is not free.", "Yes.", "the reference says yes"),
    ],
)  # fmt: skip
def test_words_of_the_question_do_not_make_another_fact_right(
    question: str, answer: str, reference: str, why: str
) -> None:
    for metric in ("answer_correctness", "factual_correctness"):
        found = score(metric, RagSample(question, answer, reference=reference), judge="local")
        assert found.value < 0.5
        assert why in " ".join(finding.reason for finding in found.evidence)


def test_a_further_detail_costs_what_the_mode_says() -> None:
    answer = "The capital of France is Paris. It lies on the Seine."
    sample = RagSample("What is the capital of France?", answer, reference="Paris.")

    def value(metric: str, **options: Any) -> float:
        return score(metric, sample, judge="local", **options).value

    # One claim of two is not in the reference, which is covered whole.
    assert value("answer_correctness", weights=(1, 0)) == pytest.approx(2 / 3)
    assert value("factual_correctness") == pytest.approx(2 / 3)
    assert value("factual_correctness", mode="precision") == 0.5
    assert value("factual_correctness", mode="recall") == 1.0


def test_an_answer_that_only_the_reference_bears_out_is_no_hallucination() -> None:
    sample = RagSample(
        "What warranty does the K7 have?", "The K7 has a warranty of 24 months.", ["Delivery is free."],
        reference="24 months.",
    )  # fmt: skip
    assert score("hallucination", sample, judge="local").value == 0.0


@pytest.mark.parametrize(
    ("question", "answer", "reference", "right"),
    [
        ("How long is the warranty?", "Every product has a warranty of two years.", "Two years.", True),
        ("How long is the warranty?", "Every product has a warranty of three years.", "Two years.", False),
        ("How long is the warranty?", "The warranty is not two years.", "Two years.", False),
        ("How long is the warranty?", "The return period is two years.", "Two years.", False),
        ("How long is the warranty?", "The warranty is almost two years.", "Two years.", False),
        ("What colour is the logo?", "The logo has been green since the relaunch.", "Green.", True),
        ("What colour is the logo?", "The logo is no longer green.", "Green.", False),
        (
            "Who founded the company?",
            "The company was founded by Ivan, a brother of Anna Petrova.",
            "Anna Petrova",
            False,
        ),
        ("Сколько длится гарантия?", "Гарантия на любой товар составляет два года.", "Два года.", True),
        ("Сколько длится гарантия?", "Гарантия не действует два года.", "Два года.", False),
        ("Кто основал компанию?", "Компанию основала Анна Петрова вместе с друзьями.", "Анна Петрова", True),
        ("Кто основал компанию?", "Анна Петрова не основала компанию.", "Анна Петрова", False),
        ("返品は何日以内ですか。", "ご購入から30日以内であれば返品できます。", "30日以内", True),
        ("返品は何日以内ですか。", "ご購入から60日以内であれば返品できます。", "30日以内", False),
    ],
)
def test_a_whole_sentence_around_a_short_reference(
    question: str, answer: str, reference: str, right: bool
) -> None:
    sample = RagSample(question=question, answer=answer, reference=reference)
    value = score("factual_correctness", sample, judge="local").value
    assert value is not None
    assert (value >= 0.6) is right


@pytest.mark.parametrize(
    ("question", "answer", "reference", "opposed"),
    [
        (
            "Where is it?",
            "In the cool dark cellar beneath.",
            "It is not stored in the cool dark cellar beneath.",
            True,
        ),
        (
            "Где она?",
            "В маленькой красной жестяной коробке.",
            "Она не лежит в маленькой красной жестяной коробке.",
            True,
        ),
        # In a longer one a denial may be of something else.
        (
            "Where are the keys?",
            "In the small red tin box upstairs.",
            "They lie in the small red tin box upstairs, not on the hook.",
            False,
        ),
        (
            "Где ключи?",
            "Наверху в маленькой красной жестяной коробке.",
            "Они лежат наверху в маленькой красной жестяной коробке, а не на крючке.",
            False,
        ),
    ],
)
def test_a_denial_opposes_answers_of_up_to_four_words(
    question: str, answer: str, reference: str, opposed: bool
) -> None:
    value = score(
        "factual_correctness", RagSample(question, answer, reference=reference), judge="local"
    ).value
    assert (value == 0.0) is opposed
