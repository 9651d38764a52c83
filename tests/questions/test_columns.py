"""Which columns are understood, and which are too close to one to be passed over."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pytest_ragbench.languages import Catalog
from pytest_ragbench.questions import cells, columns, load_questions
from tests.questions.files import load, refused


@pytest.mark.parametrize(
    ("names", "fields"),
    [
        (
            ["question", "answer", "contexts", "ground_truth"],
            ["question", "answer", "contexts", "reference"],
        ),
        (
            ["user_input", "response", "retrieved_contexts", "reference", "reference_contexts"],
            ["question", "answer", "contexts", "reference", "reference_contexts"],
        ),
        (
            ["userInput", "response", "retrievedContexts", "referenceContexts"],
            ["question", "answer", "contexts", "reference_contexts"],
        ),
        (
            ["input", "actual_output", "expected_output", "context", "retrieval_context"],
            ["question", "answer", "reference", "reference_contexts", "contexts"],
        ),
        (["query", "expected_message"], ["question", "reference"]),
        (["question", "context"], ["question", "contexts"]),
        (["inputs.question", "outputs.answer"], ["question", "reference"]),
        (
            ["inputs.question", "outputs.answer", "reference_outputs.answer"],
            ["question", "answer", "reference"],
        ),
        (["vars.query", "vars.city"], ["question", "metadata.city"]),
        (["Вопрос", "Эталонный ответ", "Ответ", "Контекст"], ["question", "reference", "answer", "contexts"]),
        (["質問", "正解", "回答", "文脈"], ["question", "reference", "answer", "contexts"]),
        (["\ufeffQUESTION ", "Must-Pass", "Relevant IDs"], ["question", "must_pass", "relevant_ids"]),
        (
            ["question", "threshold_faithfulness", "thresholds.ndcg@10", "Threshold: rougeL"],
            ["question", "thresholds.faithfulness", "thresholds.ndcg@10", "thresholds.rougeL"],
        ),
        (
            ["question", "__expected", "faithfulness"],
            ["question", "metadata.__expected", "metadata.faithfulness"],
        ),
    ],
)
def test_names_of_other_tools(names: list[str], fields: list[str]) -> None:
    resolution = columns.resolve(names, {})
    assert resolution.problems == ()
    assert [resolution.fields[name] for name in names] == fields


def test_no_name_stands_for_two_fields() -> None:
    every = [columns.normal(name) for names in columns.known_names().values() for name in names]
    assert len(every) == len(set(every))


def test_every_field_understands_its_own_name() -> None:
    for field in columns.FIELDS:
        assert columns.resolve([field], {}).fields == {field: field}


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        ("retreived_contexts", "retrieved_contexts"),
        ("RetreivedContexts", "retrieved_contexts"),
        ("refernce", "reference"),
        ("grund_truth", "ground_truth"),
        ("groundtruht", "ground_truth"),
        ("anwser", "answer"),
        ("questions", "question"),
        ("relevant_id", "relevant_ids"),
        ("must_pas", "must_pass"),
        ("вопорс", "вопрос"),
        ("конткест", "контекст"),
        ("thershold_faithfulness", "threshold_faithfulness"),
    ],
)
def test_a_misspelt_name_is_a_problem(name: str, likely: str) -> None:
    (problem,) = columns.resolve(["id", name], {}).problems
    assert repr(name) in problem
    assert repr(likely) in problem


@pytest.mark.parametrize(
    "name",
    [
        *(
            "question_no",
            "question_type",
            "reference_url",
            "user_id",
            "source",
            "category",
            "content",
            "document",
        ),
        *(
            "score",
            "comment",
            "topic",
            "chunk_size",
            "answer_start",
            "input_tokens",
            "тема",
            "источник",
            "質問者",
        ),
    ],
)
def test_a_name_of_its_own_is_metadata(name: str) -> None:
    resolution = columns.resolve(["question", name], {})
    assert resolution.problems == ()
    assert resolution.fields[name] == f"metadata.{name}"


def test_two_columns_for_one_field() -> None:
    (problem,) = columns.resolve(["question", "reference", "ground_truth"], {}).problems
    assert "'reference' and 'ground_truth'" in problem
    (problem,) = columns.resolve(["question", "answerable", "should_abstain"], {}).problems
    assert "'answerable' and 'should_abstain'" in problem


def test_a_mapping_settles_it() -> None:
    resolution = columns.resolve(["question", "reference", "ground_truth"], {"reference": "ground_truth"})
    assert resolution.problems == ()
    assert resolution.fields["ground_truth"] == "reference"
    assert resolution.fields["reference"] == "metadata.reference"
    kept = columns.resolve(["question", "refernce"], {"metadata.note": "refernce"})
    assert kept.problems == ()
    assert kept.fields["refernce"] == "metadata.note"


@pytest.mark.parametrize("column", ["question", "answer", "reference", "session", "note"])
@pytest.mark.parametrize(
    "cell", ['{"total": 3}', '["30 days"]', '{"question": "Another?"}', "{name} asks", "[1]"]
)
def test_cells_that_look_like_json_stay_text(column: str, cell: str) -> None:
    """An answer may well be JSON: only columns of lists and objects are parsed."""
    rest = {"question": "How long?"} | {column: cell}
    table = io.StringIO()
    csv.writer(table).writerows([rest.keys(), rest.values()])
    [one] = load("q.csv", table.getvalue())
    found = one.metadata["note"] if column == "note" else getattr(one, column)
    assert found == cell
    assert set(one.metadata) == ({"note"} if column == "note" else set())


@pytest.mark.parametrize(
    ("column", "cell", "expected"),
    [
        ("contexts", '["a", "b"]', ("a", "b")),
        ("contexts", '{"a": "b"}', ('{"a": "b"}',)),
        ("reference_contexts", '["a"]', ("a",)),
        ("context_ids", '["a", "b"]', ("a", "b")),
        ("relevant_ids", '{"a": 2, "b": 0}', {"a": 2.0, "b": 0.0}),
        ("context_urls", '["http://x/a"]', ("http://x/a",)),
        ("tags", '["a", "b"]', ("a", "b")),
        ("thresholds", '{"faithfulness": ">=0.8"}', {"faithfulness": ">=0.8"}),
        ("metadata", '{"a": [1]}', {"a": [1]}),
    ],
)
def test_cells_of_lists_and_objects_are_parsed(column: str, cell: str, expected: object) -> None:
    table = io.StringIO()
    csv.writer(table).writerows([["question", column], ["How long?", cell]])
    [one] = load("q.csv", table.getvalue())
    assert getattr(one, column) == expected


@pytest.mark.parametrize(
    ("column", "cell", "question", "metadata"),
    [
        ("inputs", '{"question": "How long?", "city": "Rome"}', "How long?", {"city": "Rome"}),
        ("vars", '{"question": "How long?"}', "How long?", {}),
        ("inputs", "{name} asks: how long?", "{name} asks: how long?", {}),
        ("inputs", '["How long?"]', '["How long?"]', {}),
        ("inputs", '{"question": "How long?"', '{"question": "How long?"', {}),
    ],
)
def test_objects_of_langsmith_and_promptfoo_are_opened(
    column: str, cell: str, question: str, metadata: dict[str, str]
) -> None:
    table = io.StringIO()
    csv.writer(table).writerows([[column], [cell]])
    [one] = load("q.csv", table.getvalue())
    assert (one.question, dict(one.metadata)) == (question, metadata)


def test_a_language_brings_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "de"
    folder.mkdir()
    (folder / "language.toml").write_text('name = "German"\nscripts = "LATIN"\n', "utf-8")
    (folder / "questions.toml").write_text(
        'yes = ["ja"]\nno = ["nein"]\n[columns]\nquestion = ["Frage"]\nmust_pass = ["Pflicht"]\n'
        'thresholds = ["Grenze"]\n',
        "utf-8",
    )
    spoken = Catalog({"de": folder})
    for module in (columns, cells):
        monkeypatch.setattr(module, "catalog", lambda: spoken)
    cached = (columns.known_names, columns._field_of, columns._threshold)
    for function in cached:
        function.cache_clear()
    try:
        [one] = load("q.csv", "Frage;Pflicht;Grenze_faithfulness\nWie lange?;ja;>=0.8\n")
        assert (one.question, one.must_pass, dict(one.thresholds)) == (
            "Wie lange?",
            True,
            {"faithfulness": ">=0.8"},
        )
        assert "1/0, yes/no, да/нет, はい/いいえ, ja/nein" in refused("q.csv", "Frage;Pflicht\nWie?;oui\n")
    finally:
        for function in cached:
            function.cache_clear()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "inputs.question,expectations.expected_response,outputs\nWhat?,That.,This.\n"),
        (
            "a.csv",
            'inputs,expectations,outputs\n"{""question"": ""What?""}","{""expected_response"": ""That.""}",This.\n',
        ),
        (
            "a.jsonl",
            '{"inputs": {"question": "What?"}, "expectations": {"expected_response": "That."}, '
            '"outputs": "This."}',
        ),
        (
            "a.jsonl",
            '{"inputs": {"query": "What?"}, "outputs": {"response": "This."}, '
            '"expectations": {"expected_response": "That.", "expected_facts": ["a"]}}',
        ),
    ],
)  # fmt: skip
def test_a_table_of_mlflow(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    [question] = load_questions(file)
    assert (question.question, question.reference, question.answer) == ("What?", "That.", "This.")
