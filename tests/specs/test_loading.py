from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.specs.loading import Case, load_suite
from pytest_ragbench.specs.model import json_schema


def load(path: Path, text: str) -> list[Case]:
    file = path / "a.rag.yaml"
    file.write_text(text, encoding="utf-8")
    return load_suite(file)


def given(case: Case) -> dict[str, str | None]:
    return {limit.metric: limit.threshold for limit in case.test.thresholds}


def test_the_short_form_is_one_test(tmp_path: Path) -> None:
    [case] = load(
        tmp_path, "questions: [How long?, 2024-05-01]\nthresholds: {faithfulness: 0.8, ndcg@10: good}\n"
    )
    assert (case.name, case.line) == ("a", 1)
    assert [question.question for question in case.questions or ()] == ["How long?", "2024-05-01"]
    assert given(case) == {"faithfulness": "0.8", "ndcg@10": "good"}


def test_defaults_are_added_and_a_test_wins(tmp_path: Path) -> None:
    first, second = load(
        tmp_path,
        """\
defaults:
  thresholds: {faithfulness: 0.8, rouge1: 0.5}
  expect: {not_contains: sorry}
  tags: [smoke]
  retriever: http://one
retrievers: {two: "http://two"}
tests:
  - {questions: [q], thresholds: {faithfulness: 0.9}, expect: [{contains: a}, {regex: b}], tags: nightly}
  - {questions: [q], retriever: two}
""",
    )
    assert given(first) == {"faithfulness": "0.9", "rouge1": "0.5"}
    assert [part.model_dump(exclude_none=True) for part in first.test.expect] == [
        {"not_contains": ("sorry",)},
        {"contains": ("a",)},
        {"regex": ("b",)},
    ]
    assert first.test.tags == ("smoke", "nightly")
    assert first.retrievers == {"": "http://one"}
    assert second.retrievers == {"two": "http://two"}
    assert [case.name for case in (first, second)] == ["a-1", "a-2"]


def test_every_test_runs_with_each_retriever_unless_it_says_otherwise(tmp_path: Path) -> None:
    text = """\
retrievers: {one: "http://one", two: {url: "http://two", method: POST}}
tests:
  - {questions: [q], expect: {contains: a}}
  - {questions: [q], expect: {contains: a}, retrievers: [two]}
"""
    first, second = load(tmp_path, text)
    assert list(first.retrievers) == ["one", "two"]
    assert second.retrievers == {"two": {"url": "http://two", "method": "POST"}}


def test_files_tags_and_expectations_in_them(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "question": "A?", "tags": ["x"], "expect": {"contains": "a"}},
        {"id": "b", "question": "B?"},
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    [case] = load(tmp_path, "questions: {file: q.jsonl, tags: x}\nthresholds: {faithfulness: 0.5}\n")
    assert [question.id for question in case.questions or ()] == ["a"]
    assert [part.contains for part in case.expectations("a")] == [("a",)]
    assert case.expectations("b") == ()


def test_a_table_of_a_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("CREATE TABLE asked (id INTEGER PRIMARY KEY, question, shown_url)")
        connection.execute("INSERT INTO asked VALUES (7, 'A?', 'https://w/a')")
    connection.close()
    [case] = load(tmp_path, "questions: {file: 'sqlite:///log.db', table: asked}\nover: {url_mrr: 0.5}\n")
    assert [(question.id, question.relevant_urls) for question in case.questions or ()] == [
        ("7", ("https://w/a",))
    ]


def test_json_path_values_keep_their_type(tmp_path: Path) -> None:
    [case] = load(tmp_path, "questions: [q]\nexpect:\n  json_path: {price: 30, name: '30', ok: true}\n")
    assert case.test.expect[0].json_path == {"price": 30, "name": "30", "ok": True}


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("- a\n", 1, "wanted a mapping"),
        ("questions: [\n", 2, "not YAML"),
        ("", 0, "empty"),
        ("questions: [q]\nthresholds: {fathfulness: 1}\n", 2, "did you mean 'faithfulness'"),
        ("questions: [q]\nthresholds:\n  rouge1: '<=0.1'\n", 3, "wrong way"),
        ("questions: [q]\nthresholds: {silhouette: 0.1}\n", 2, "under 'over'"),
        ("questions: [q]\nthresholds:\n  rouge1: >=0.8\n", 3, 'into quotes, as YAML has another use for >: ">=0.8"'),
        ("questions: [q]\nthresholds: {rouge1: >0.8}\n", 2, 'into quotes, as YAML has another use for >: ">0.8"'),
        ("questions: [q]\nthresholds:\n  bleu: >1\n", 3, 'into quotes, as YAML has another use for >: ">1"'),
        ("questions: [q]\nthresholds:\n  - metric: context_recall\n    unitz: claims\n", 4, "did you mean 'units'"),
        ("questions: [q]\nover:\n  answer_relevancy:\n    strictness: three\n", 4, "valid integer; got 'three'"),
        ("defaults:\n  thresholds: {ndcg: {gain: linea}}\ntests: [{questions: [q]}]\n", 2, "'linear' or 'exponential'"),
        ("questions: [q]\nthresholds: [{threshold: 0.5}]\n", 2, "no metric is named"),
        ("questions: [q]\nthresholds: {rouge1: [0.5]}\n", 2, "got a list"),
        ("questions: [q]\nthresholds: {rouge1: {coverage: 0.5}}\n", 2, "goes with 'over'"),
        ("questions:\n  - question: q\n    thresholds:\n      bleu: {lowercase: maybe}\n", 4, "valid boolean"),
        ("questions: [q]\n", 1, "asserts nothing"),
        ("questions: []\nexpect: {contains: a}\n", 1, "list is empty"),
        ("questions: nowhere.csv\nexpect: {contains: a}\n", 1, "no such question file"),
        ("questions: {fiel: q.csv}\nexpect: {contains: a}\n", 1, "fiel"),
        ("questions:\n  - question: q\n    refrence: r\nexpect: {contains: a}\n", 2, "did you mean 'reference'"),
        ("questions:\n  - q\n  - question: q\n    id: q\n    expect: {contain: a}\n", 5, "'contains'"),
        ("questions: [q]\nexpect:\n  - contains: a\n  - regex: (\n", 4, "not a regular expression"),
        ("questions: [q]\nexpect: {max_latency: 0}\n", 2, "greater than 0"),
        ("questions: [q]\nexpect: {contains: ''}\n", 2, "none of them blank"),
        ("questions: [q]\nexpect: {json_path: {'a[': 1}}\n", 2, "not a JMESPath"),
        ("questions: [q]\nexpect: {contains: a}\nexpect: {contains: b}\n", 3, "more than once"),
        ("tests:\n  - {questions: [q], expect: {contains: a}}\nquestions: [q]\n", 3, "beside 'tests'"),
        ("tests: []\n", 1, "no tests"),
        ("tests:\n- {name: n, questions: [q], over: {rouge1: 1}}\n- {name: n, questions: [q], over: {rouge1: 1}}\n",
         3, "a second test"),
        ("questions: [q]\nexpect: {contains: a}\nretrievers: [a]\n", 3, "dictionary"),
        ("tests:\n  - questions: [q]\n    expect: {contains: a}\n    judges: [x]\n", 4, "no judge 'x'"),
    ],
)  # fmt: skip
def test_errors_have_their_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(UsageError) as error:
        load(tmp_path, text)
    first = str(error.value).splitlines()[0]
    place = f"a.rag.yaml:{line}: " if line else "a.rag.yaml: "
    assert place in first
    assert said in first


VALID = [
    "questions: q.csv\nthresholds: [faithfulness]\n",
    "questions: [a, {question: b, expect: {contains: x}, thresholds: {faithfulness: 0.8}}]\nexpect: [{regex: a}]\n",
    "questions: {file: q.csv, tags: [x]}\nover: {ndcg@10: '>=0.8'}\nretriever: {url: 'http://a', method: POST}\n",
    "retrievers: {a: 'http://a'}\njudges: {b: local}\ntests: [{name: t, questions: a.csv, judges: b, skip: later}]\n",
]
INVALID = [
    "questions: q.csv\nthreshold: {a: 1}\n",
    "questions: 3\n",
    "tests: [{expect: {contain: a}}]\n",
    "expect: {max_latency: soon}\n",
]


def test_the_schema_knows_what_editors_should_mark() -> None:
    jsonschema: Any = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json_schema())
    for text in VALID:
        assert not list(validator.iter_errors(yaml.safe_load(text))), text
    for text in INVALID:
        assert list(validator.iter_errors(yaml.safe_load(text))), text


def test_a_metric_with_options_is_written_in_four_ways(tmp_path: Path) -> None:
    [case] = load(
        tmp_path,
        """\
questions:
  - question: q
    id: own
    thresholds: {answer_correctness: {threshold: 0.9, weights: [1, 0]}, rouge1: 0.2}
  - {question: other, id: other}
thresholds:
  - faithfulness
  - {metric: context_entity_recall, threshold: ">=0.8", matching: judge}
  - {metric: hit_rate, k: 3, collapse: true}
  - answer_relevancy: {strictness: 5}
  - answer_correctness: 0.5
  - aspect: Is the answer polite?
  - aspect: {definition: Does it insult the reader?, direction: lower, votes: 3}
  - rubric: {1: wrong, 2: right, threshold: ">=0.5"}
over: {ndcg@10: {threshold: good, gain: exponential, coverage: 0.9}}
""",
    )
    other = case.questions[1] if case.questions else None
    assert other is not None
    assert [(each.metric, each.threshold, dict(each.options)) for each in case.wanted(other)] == [
        ("faithfulness", None, {}),
        ("context_entity_recall", ">=0.8", {"matching": "judge"}),
        ("hit_rate@3", None, {"collapse": True}),
        ("answer_relevancy", None, {"strictness": 5}),
        ("answer_correctness", "0.5", {}),
        ("aspect", None, {"definition": "Is the answer polite?"}),
        ("aspect", None, {"definition": "Does it insult the reader?", "direction": "lower", "votes": 3}),
        ("rubric", ">=0.5", {"rubric": {1: "wrong", 2: "right"}}),
    ]
    [over] = case.test.over
    assert (over.metric, over.threshold, over.options, over.coverage) == (
        "ndcg@10", "good", {"gain": "exponential"}, 0.9,
    )  # fmt: skip
    own = {each.metric: each for each in case.wanted(case.questions[0] if case.questions else other)}
    assert own["answer_correctness"].threshold == "0.9"
    assert own["answer_correctness"].options == {"weights": (1.0, 0.0)}
    assert own["rouge1"].threshold == "0.2"


def test_a_question_that_should_not_be_answered_is_asked_for_a_refusal_alone(tmp_path: Path) -> None:
    [case] = load(
        tmp_path,
        """\
questions:
  - {question: a, id: a, should_abstain: true}
  - {question: b, id: b, should_abstain: true, thresholds: {rouge1: 0.2}}
  - {question: c, id: c, should_abstain: true, expect: {abstains: false}}
  - {question: d, id: d, expect: {abstains: true}}
  - {question: e, id: e}
thresholds: {faithfulness: 0.5, abstention: 1}
""",
    )
    asked = {each.id: [one.metric for one in case.wanted(each)] for each in case.questions or ()}
    assert asked == {
        "a": ["abstention"],
        "b": ["abstention", "rouge1"],
        "c": ["faithfulness", "abstention"],
        "d": ["abstention"],
        "e": ["faithfulness", "abstention"],
    }


def test_a_question_s_own_threshold_leaves_the_options_of_the_test_s(tmp_path: Path) -> None:
    (tmp_path / "a.rag.yaml").write_text(
        "questions: [{question: A?, thresholds: {answer_correctness: 0.9}}, {question: B?}]\n"
        "thresholds: [{metric: answer_correctness, threshold: 0.7, weights: [1, 0]}]\n"
    )
    [case] = load_suite(tmp_path / "a.rag.yaml")
    wanted = [each for question in case.questions or () for each in case.wanted(question)]
    assert [each.threshold for each in wanted] == ["0.9", "0.7"]
    assert [dict(each.options) for each in wanted] == [{"weights": (1.0, 0.0)}] * 2
