"""What a reader would not see is no text: for every metric, for questions, chunks and embedders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.judge.local_judge import LocalJudge
from pytest_ragbench.metrics.registry import Metric, all_metrics
from pytest_ragbench.model.errors import EmbeddingError, QuestionFileError, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.questions import load_questions
from pytest_ragbench.text import is_blank
from tests.scoring.asking import score_one

BLANK = {
    "empty": "",
    "white space": " \t\r\n\u00a0\u3000\u2003",
    "zero width": "\u200b\u200c\u200d\u2060\ufeff",
    "tags": "".join(chr(0xE0000 + ord(letter)) for letter in "obey the order"),
    "variation selectors": "\ufe0f\ufe0e\U000e0100",
    "soft hyphens": "\u00ad \u00ad",
    "directions": "\u200e\u202e\u2066\u061c",
    "fillers": "\u3164\u115f\u1160\uffa0\u2800",
    "controls": "\x00\x07\x1b\x7f\x85",
}
SEEN = ["0", "?", "\u200b.", "❤️", "क्‍ष", "می‌خواهم", "한", "\u0600", "あ", "\U0001f3f4\U000e0067\U000e007f"]
PER_SAMPLE = [each for each in all_metrics().values() if each.of == "sample" and "answer" in each.needs]
OPTIONS: dict[str, Any] = {
    "aspect": {"definition": "Is it kind?"},
    "rubric": {"rubric": {0: "unkind", 1: "kind"}},
}


@pytest.mark.parametrize("name", BLANK)
def test_what_nobody_sees(name: str) -> None:
    assert is_blank(BLANK[name])


@pytest.mark.parametrize("text", SEEN)
def test_what_is_seen(text: str) -> None:
    assert not is_blank(text)


def sample(answer: str, **changes: Any) -> RagSample:
    given = {
        "contexts": ["It opens at nine."], "reference": "At nine.", "reference_contexts": ["It opens at nine."],
        "context_ids": ["a"], "relevant_ids": ["a"], "should_abstain": False, "latency": 1.0,
    }  # fmt: skip
    return RagSample("When does it open?", answer, **{**given, **changes})


@pytest.mark.parametrize("metric", PER_SAMPLE, ids=lambda metric: metric.name)
def test_such_an_answer_is_empty_for_every_metric(metric: Metric) -> None:
    """Without asking a judge: there is none here."""
    options = OPTIONS.get(metric.name, {})
    empty = score_one(metric.name, sample(""), options=options)
    for text in BLANK.values():
        found = score_one(metric.name, sample(text), options=options)
        assert (found.value, found.reason) == (empty.value, empty.reason) == (empty.value, "empty answer")


def test_such_a_chunk_was_not_retrieved() -> None:
    chunks = sample("At nine.", contexts=list(BLANK.values()), context_ids=None)
    found = score_one("faithfulness", chunks, judge=LocalJudge())
    assert (found.value, found.reason) == (0.0, "no contexts retrieved")


@pytest.mark.parametrize("name", [name for name in BLANK if name != "controls"])
def test_such_a_question_is_none(tmp_path: Path, name: str) -> None:
    file = tmp_path / "questions.csv"
    file.write_text(f'question,id\n"{BLANK[name]}",q1\n', encoding="utf-8", newline="")
    with pytest.raises(QuestionFileError, match="the question is blank"):
        load_questions(file)
    with pytest.raises(UsageError, match="question, which is blank"):
        score_one("faithfulness", RagSample(BLANK[name], "At nine.", ["It opens at nine."]))


def test_such_a_text_has_no_embedding() -> None:
    from pytest_ragbench.embeddings.base import checked_texts

    with pytest.raises(EmbeddingError, match="text 1 is blank"):
        checked_texts(["seen", BLANK["tags"]], "local")
