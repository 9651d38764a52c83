"""No bytes crash the loader, make a file, or become a question that they don't hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragbench import Question, QuestionFileError, UsageError, load_questions
from pytest_ragbench.questions import ids as naming
from pytest_ragbench.questions import parse_contexts
from pytest_ragbench.text import is_blank
from tests.fuzz import strategies as fuzz
from tests.fuzz.conftest import FUZZ, says_why

FLAGS = ("question", "reference", "answer")


def load(folder: Path, name: str, content: bytes) -> list[Question]:
    path = folder / name
    path.write_bytes(content)
    try:
        return load_questions(path)
    finally:
        assert [entry.name for entry in folder.iterdir()] == [name]
        path.unlink()


@FUZZ
@given(fuzz.question_files())
@example(("q.yaml", b'- question: !!python/object/apply:os.system ["touch PWNED"]\n'))
@example(("q.yaml", b"a: &a [*a]\n"))
@example(("q.yaml", b"- &a {question: x}\n- <<: *a\n"))
@example(("q.json", b"[" * 100_000))
@example(("q.json", b'[{"question": "x", "relevant_ids": {"a": 1e999}}]'))
@example(("q.csv", b'question\n"a\n'))
@example(("q.jsonl", b'{"question": "x", "": "y"}'))
@example(("q.csv", b"question\x00\nx\x00\n"))
def test_any_file_is_questions_or_an_error_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, file: tuple[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    try:
        questions = load(folder, *file)
    except QuestionFileError as error:
        says_why(error, file[0])
        return
    assert questions
    assert not any(is_blank(question.question) for question in questions)
    names = naming.test_ids(questions)
    assert len(set(names)) == len(names)
    for question in questions:
        assert question.contexts is None or all(isinstance(text, str) for text in question.contexts)


@FUZZ
@given(
    st.lists(st.tuples(fuzz.words, fuzz.texts), min_size=1, max_size=4, unique_by=lambda row: row[0]),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_a_written_table_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str, encoding: str
) -> None:
    rows = [(question, answer) for question, answer in rows if not is_blank(question)]
    table = [{"question": question, "reference": answer} for question, answer in rows]
    if not table:
        return
    text = fuzz._csv(table, delimiter)
    try:
        content = text.encode(encoding)
    except UnicodeEncodeError:
        return
    try:
        found = load(tmp_path_factory.mktemp("tables"), "q.csv", content)
    except QuestionFileError:
        return
    assert [question.question for question in found] == [question for question, _ in rows]
    for question, (_, answer) in zip(found, rows, strict=True):
        assert question.reference == (None if is_blank(answer) else answer)


@FUZZ
@given(fuzz.texts)
@example("[" * 50_000)
@example("['a' 'b', 'c']")
@example("(" * 50_000)
def test_a_cell_of_contexts_never_loses_or_joins_texts(cell: str) -> None:
    try:
        found = parse_contexts(cell)
    except QuestionFileError:
        return
    assert all(isinstance(text, str) for text in found)
    assert found == [cell] or "[" in cell or "(" in cell or is_blank(cell)


@FUZZ
@given(st.lists(fuzz.texts, min_size=1, max_size=5, unique=True))
def test_any_ids_make_node_ids(ids: list[str]) -> None:
    questions = [Question(id=one, question="q?") for one in ids]
    names = naming.test_ids(questions)
    assert len(set(names)) == len(names)
    for name in names:
        assert name
        assert name.isprintable()
        assert not set("/[]:\\ ") & set(name)
    assert [naming.test_id(one) for one in ids] == [naming.test_id(one) for one in ids]


@FUZZ
@given(st.dictionaries(fuzz.names, fuzz.json_values, max_size=5))
def test_any_columns_of_a_test(columns: dict[str, object]) -> None:
    from pytest_ragbench.questions import question_from

    try:
        question = question_from(columns, default_id="a")
    except UsageError:
        return
    assert not is_blank(question.question)
