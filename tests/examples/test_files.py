"""The document base and the question files are well formed."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from rag_service.documents import Passage, language_of, load_passages

from tests.examples.conftest import EXAMPLES

LANGUAGES = ("en", "ru", "ja")


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return load_passages()


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    lines = (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_base_is_large_enough_in_every_language(passages: list[Passage]) -> None:
    counts = Counter(passage.lang for passage in passages)
    assert set(counts) == set(LANGUAGES)
    assert min(counts.values()) >= 20


def test_passages_are_two_to_five_sentences_in_their_language(passages: list[Passage]) -> None:
    from pytest_ragbench.text import sentences

    for passage in passages:
        assert passage.id.startswith(f"{passage.lang}-"), passage.id
        assert language_of(passage.text) == passage.lang, passage.id
        assert 2 <= len(sentences(passage.text, passage.lang)) <= 5, passage.id


def test_every_heading_of_a_section_has_an_id(passages: list[Passage]) -> None:
    headings = [
        line
        for path in (EXAMPLES / "documents").glob("*/*.md")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("## ")
    ]
    assert len(headings) == len(passages)


def test_no_two_passages_are_equal(passages: list[Passage]) -> None:
    assert len({passage.text for passage in passages}) == len(passages)


def test_passages_are_plain_text(passages: list[Passage]) -> None:
    for passage in passages:
        assert "`" not in passage.text
        assert "\n" not in passage.text
        assert not re.search(r"\{#|\s{2}", passage.text), passage.id


def test_a_base_without_passages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no passages"):
        load_passages(tmp_path)


@pytest.mark.parametrize(
    ("second", "message"), [("## B {#en-a}\nText.\n", "used twice"), ("## B {#en-b}\n\n", "is empty")]
)
def test_broken_documents_are_refused(tmp_path: Path, second: str, message: str) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "a.md").write_text(f"# T\n\n## A {{#en-a}}\nText.\n\n{second}", encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load_passages(tmp_path)


def test_questions_are_complete(rows: list[dict[str, Any]]) -> None:
    assert len(rows) >= 60
    assert len({row["id"] for row in rows}) == len(rows)
    assert len({row["question"] for row in rows}) == len(rows)
    for row in rows:
        assert row["question"].strip() == row["question"] != "", row["id"]
        assert row["reference"].strip() == row["reference"] != "", row["id"]
        assert language_of(row["question"]) == row["lang"] == row["id"][:2], row["id"]
        assert row["should_abstain"] == (not row["relevant_ids"]), row["id"]


def test_every_language_has_unanswerable_and_multi_passage_questions(rows: list[dict[str, Any]]) -> None:
    for lang in LANGUAGES:
        own = [row for row in rows if row["lang"] == lang]
        assert sum(row["should_abstain"] for row in own) >= 5
        assert any(len(row["relevant_ids"]) > 1 for row in own)
        assert sum("paraphrase" in row["tags"] for row in own) >= 3


def test_relevant_ids_exist_and_speak_the_language_of_the_question(
    rows: list[dict[str, Any]], passages: list[Passage]
) -> None:
    languages = {passage.id: passage.lang for passage in passages}
    yaml_rows = yaml.safe_load((EXAMPLES / "questions.ru.yaml").read_text(encoding="utf-8"))
    for row in [*rows, *yaml_rows]:
        for relevant in row.get("relevant_ids", []):
            assert languages.get(relevant) == row["lang"], (row["id"], relevant)


def test_the_founding_form_has_its_two_columns() -> None:
    rows = json.loads((EXAMPLES / "questions.search-rag.json").read_text(encoding="utf-8"))
    assert len(rows) >= 5
    assert all(set(row) == {"query", "expected_message"} for row in rows)


def test_references_of_unanswerable_questions_are_what_the_service_says(rows: list[dict[str, Any]]) -> None:
    pytest.importorskip("bm25s", reason="needs the extra 'examples'")
    from rag_service.answering import ABSTENTIONS

    for row in rows:
        if row["should_abstain"]:
            assert row["reference"] == ABSTENTIONS[row["lang"]]
