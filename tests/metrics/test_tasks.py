"""The prompts of the tasks in tasks_context, tasks_answer and tasks_rating."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.resources import files
from typing import Any

import pytest

from pytest_ragbench.judge.base import Task, again
from pytest_ragbench.judge.reading.fields import IntegerScale
from pytest_ragbench.judge.reading.schemas import strict_schema
from pytest_ragbench.judge.rendering import nonce_for, prompt_version, render, texts_of
from pytest_ragbench.judge.tasks import (
    CheckAspect,
    CheckCase,
    CheckConsistency,
    CompareClaims,
    ConfirmAccuracy,
    ExtractEntities,
    ExtractSentences,
    FindEntities,
    GradeEndToEnd,
    JudgeChunks,
    RateAccuracy,
    RateContextRelevance,
    RateGroundedness,
    RateRubric,
    Rephrase,
    WriteCases,
)
from pytest_ragbench.languages import language

TEXTS = {
    "en": ("How long is it?", "It is 30 days.", "The period is 30 days."),
    "ru": ("Какой срок?", "Срок — 30 дней.", "Период возврата составляет 30 дней."),
    "ja": ("期間はどのくらいですか。", "30日です。", "返品の期間は30日間です。"),
}


def tasks(lang: str) -> list[Task[Any]]:
    question, answer, chunk = TEXTS[lang]
    pair = (("question", question), ("reference", chunk), ("answer", answer))
    grounded = (("chunks", (chunk, "x")), ("question", question), ("answer", answer))
    return [
        JudgeChunks(question, answer, (chunk, "x")),
        ExtractEntities((chunk, answer)),
        FindEntities((answer, "30"), (chunk,)),
        ExtractSentences(question, (chunk,)),
        CompareClaims((answer, "x"), (chunk,), question),
        GradeEndToEnd(question, answer, chunk),
        CheckConsistency((question, question), (answer, chunk)),
        RateAccuracy(pair, scale=IntegerScale(0, 4, 2)),
        ConfirmAccuracy(pair, first=1, reason=chunk),
        RateContextRelevance((("question", question), ("chunks", (chunk,)))),
        RateGroundedness(grounded),
        CheckAspect(grounded, "Is it short?"),
        RateRubric(pair, ((1, "bad"), (3, "good"))),
        WriteCases((chunk, answer), "multi"),
        CheckCase(question, answer, (chunk,)),
        Rephrase(question),
    ]


@pytest.mark.parametrize("lang", ["en", "ru", "ja"])
def test_prompts_follow_the_language_and_hold_each_text_once(lang: str) -> None:
    for task in tasks(lang):
        system, user = (message["content"] for message in render(task))
        assert prompt_version(task).endswith(f"-{lang}")
        nonce = nonce_for(task.data())
        blocks = re.findall(rf"<(\w+)-{nonce}>\n(.*?)\n</\1-{nonce}>", user, re.DOTALL)
        assert [text for _, text in blocks] == texts_of(task.data())
        assert not re.search(r"\{\w+\}", system)  # no placeholder was forgotten
        assert "\\u" not in user
        titles = language(lang).data("prompts/common")["labels"]
        assert all(titles[label] in user for label in task.data())


@pytest.mark.parametrize("task", tasks("en"), ids=lambda task: task.name)
def test_the_form_names_all_keys_and_is_no_verdict(task: Task[Any]) -> None:
    path = files("pytest_ragbench.judge") / "prompts" / f"{task.name}.toml"
    form = tomllib.loads(path.read_text(encoding="utf-8"))["form"]
    with pytest.raises(ValueError):
        json.loads(form)
    schema = strict_schema(task.reply_schema())
    assert all(f'"{key}"' in form for key in schema["properties"])


def test_scales_and_rubrics_are_in_the_schema() -> None:
    by_name = {
        task.name: task.reply_schema()["properties"]
        for task in tasks("en")
        if "rating" in str(task.reply_schema())
    }
    assert by_name["rate_accuracy"]["rating"]["enum"] == [0, 2, 4]
    assert by_name["rate_groundedness"]["rating"]["maximum"] == 2
    assert by_name["rate_rubric"]["rating"]["enum"] == [1, 3]


def test_a_second_vote_is_the_same_task_with_another_key() -> None:
    task = tasks("en")[0]
    other = again(task, 2)
    assert (task.vote, other.vote) == (0, 2)
    assert render(task) == render(other)
    assert task == other


def test_criteria_stand_among_the_instructions_as_written() -> None:
    system = render(CheckAspect((("answer", "x"),), "Mentions {grades} & \\d+?"))[0]["content"]
    assert "Criterion: Mentions {grades} & \\d+?" in system
