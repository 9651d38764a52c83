"""Files that ragas 0.4.3, deepeval 4.3.1 and promptfoo 0.121.20 wrote of two questions (``data/``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ragbench import UsageError, load_questions
from pytest_ragbench.questions.writers import write_questions

DATA = Path(__file__).parent / "data"
QUESTIONS = ["Сколько дней на возврат?", "保証期間は？"]


@pytest.mark.parametrize("name", ["ragas.jsonl", "ragas.csv", "ragas_result.csv"])
def test_ragas(name: str) -> None:
    first, second = load_questions(DATA / name)
    assert [first.question, second.question] == QUESTIONS
    assert first.contexts == ("Товар можно вернуть в течение 30 дней.", "Нужен чек.")
    assert second.contexts == ('保証は"2年間"です。\n改行。',)
    assert (first.answer, first.reference) == ("30 дней.", "В течение 30 дней.")
    assert (first.context_ids, first.relevant_ids) == (("d1", "d2"), {"d1": 1.0})
    assert ("id_based_context_recall" in first.metadata) == (name == "ragas_result.csv")


@pytest.mark.parametrize("name", ["deepeval_cases.json", "deepeval_cases.csv", "deepeval_cases.jsonl"])
def test_deepeval_goldens_and_their_test_cases_are_one_question_each(name: str) -> None:
    first, second = load_questions(DATA / name)
    assert [first.question, second.question] == QUESTIONS
    assert (first.answer, first.reference) == ("30 дней.", "30 дней.")
    assert first.reference_contexts == ("Товар можно вернуть в течение 30 дней.", "Нужен чек.")
    assert second.contexts == ("保証は2年間です。", "配送は2日。")


@pytest.mark.parametrize("name", ["promptfoo.json", "promptfoo.jsonl", "promptfoo.yaml", "promptfoo.csv"])
def test_promptfoo(name: str) -> None:
    first, second = load_questions(DATA / name)
    assert [first.question, second.question] == QUESTIONS
    assert (first.answer, first.reference) == ("Товар можно вернуть в течение 30 дней.", "30 дней")
    assert second.contexts == ("保証は2年間です。",)


def test_contexts_of_deepeval_csv_are_joined_as_it_joins_them(tmp_path: Path) -> None:
    questions = load_questions(DATA / "deepeval_cases.json")
    write_questions(questions, tmp_path / "q.csv", "deepeval")
    again = load_questions(tmp_path / "q.csv")
    assert [each.contexts for each in again] == [each.contexts for each in questions]
    assert "|配送は2日。" in (tmp_path / "q.csv").read_text(encoding="utf-8")
    (tmp_path / "t.jsonl").write_text('{"question": "Which?", "contexts": ["a | b", "c"]}')
    with pytest.raises(UsageError, match="holds '|'"):
        write_questions(load_questions(tmp_path / "t.jsonl"), tmp_path / "t.csv", "deepeval")


def test_promptfoo_is_told_not_to_make_a_test_of_each_context(tmp_path: Path) -> None:
    write_questions(load_questions(DATA / "ragas.jsonl"), tmp_path / "q.yaml", "promptfoo")
    assert (tmp_path / "q.yaml").read_text(encoding="utf-8").count("disableVarExpansion: true") == 2
    assert load_questions(tmp_path / "q.yaml")[0].contexts is not None
