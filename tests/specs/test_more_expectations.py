"""What users of promptfoo expect to be checked without a judge: language, schema, similarity, cost, an expression."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import QualityFailure, RagSample, UsageError, assert_expected
from pytest_ragbench.specs.loading import load_suite

SCHEMA = {
    "type": "object",
    "properties": {"price": {"type": "number"}, "sold": {"type": "boolean"}},
    "required": ["price"],
}
SAMPLE = RagSample(
    question="How long may I return a product?",
    answer="You have 30 days to return a product.",
    contexts=["30 days."],
    metadata={"cost": 0.002},
    latency=0.5,
)
JSON = SAMPLE.with_(answer='{"price": 30, "sold": true}')
RUSSIAN = SAMPLE.with_(question="Сколько дней на возврат?", answer="На возврат есть тридцать дней.")


@pytest.mark.parametrize(
    ("sample", "wanted"),
    [
        (SAMPLE, {"contains_all": ["30 days", "return"]}),
        (SAMPLE, {"contains-any": ["weeks", "days"]}),
        (SAMPLE, {"language": "en"}),
        (SAMPLE, {"language": "question"}),
        (RUSSIAN, {"language": "ru"}),
        (RUSSIAN, {"language": "question"}),
        (SAMPLE.with_(question="Wie lange?", lang="en"), {"language": "question"}),
        (SAMPLE.with_(answer="30"), {"language": "ja"}),
        (SAMPLE.with_(answer="返品"), {"language": "ja"}),
        (JSON, {"json_schema": True}),
        (JSON, {"json_schema": SCHEMA}),
        (SAMPLE, {"similar": {"to": ["A cat.", "You have 30 days to return a product!"],
                              "metric": "string_similarity", "threshold": 0.9}}),
        (SAMPLE, {"max_cost": 0.002}),
        (SAMPLE, {"python": "len(answer) < 80 and any('30' in chunk for chunk in contexts)"}),
        (SAMPLE, {"python": ["re.search(r'\\d+', answer)", "metadata['cost'] < 1"]}),
    ],
)  # fmt: skip
def test_what_holds(sample: RagSample, wanted: dict[str, Any]) -> None:
    assert_expected(sample, **wanted)


@pytest.mark.parametrize(
    ("sample", "wanted", "said"),
    [
        (SAMPLE, {"contains_all": ["30 days", "weeks"]}, "does not contain 'weeks'"),
        (SAMPLE, {"language": "ru"}, "is in 'en', wanted 'ru'"),
        (RUSSIAN.with_(answer=SAMPLE.answer), {"language": "question"}, "wanted 'ru', that of the question"),
        (SAMPLE.with_(answer="返品"), {"language": "ru"}, "is in 'zh', wanted 'ru'"),
        (SAMPLE, {"json_schema": True}, "is not JSON"),
        (JSON.with_(answer='{"price": "30"}'), {"json_schema": SCHEMA}, r"at \$.price: '30' is not of type 'number'"),
        (JSON.with_(answer="{}"), {"json_schema": SCHEMA}, "'price' is a required property"),
        (SAMPLE, {"similar": {"to": "A cat.", "metric": "string_similarity"}},
         r"string_similarity 0\.\d+ to 'A cat\.', wanted >=0.8"),
        (SAMPLE, {"max_cost": 0.001}, r"cost \$0.002, wanted at most \$0.001"),
        (SAMPLE, {"python": "len(answer) < 20"}, r"not true: len\(answer\) < 20"),
    ],
)  # fmt: skip
def test_what_does_not(sample: RagSample, wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(QualityFailure, match=said):
        assert_expected(sample, **wanted)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"contains": "a", "contains_all": "b"}, "given twice"),
        ({"langauge": "ru"}, "did you mean 'language'"),
        ({"json_schema": {"type": "objekt"}}, "not a JSON Schema: at"),
        ({"json_schema": False}, "holds for no answer"),
        ({"similar": {"to": "a", "metric": "faithfulness"}}, "without a judge"),
        ({"similar": {"to": "a", "metric": "token_f2"}}, "did you mean 'token_f1'"),
        ({"similar": {"to": "a", "threshold": "<=0.1"}}, "wrong way"),
        ({"max_cost": -1}, "greater than or equal to 0"),
        ({"python": "len(answer"}, "not a Python expression"),
        ({"python": "len(anser) < 3"}, "did you mean 'answer'"),
        ({"python": "import os"}, "not a Python expression"),
        ({"python": "open('x')"}, "unknown name 'open'"),
        ({"python": "answer.__class__"}, "begin with '_'"),
        ({"python": "answer.foo"}, "AttributeError"),
    ],
)
def test_a_wrong_expectation_is_a_usage_error(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        assert_expected(SAMPLE, **wanted)


def test_what_the_reply_does_not_have_is_named_with_its_cure() -> None:
    with pytest.raises(UsageError, match=r"rag.reply.metadata = '\{cost"):
        assert_expected(SAMPLE.with_(metadata={}), max_cost=1)
    short = RagSample("Wie lange?", answer="Sie können das Produkt nicht in der Filiale abgeben.")
    with pytest.raises(UsageError, match="give it a lang"):
        assert_expected(short, language="question")


def test_languages_in_latin_letters_take_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(
        UsageError, match=r"pip install 'pytest-ragbench\[language\]'; without it: en, ru, ja"
    ):
        assert_expected(SAMPLE, language="de")


def test_german_and_french_by_the_library() -> None:
    pytest.importorskip("py3langid")
    german = SAMPLE.with_(answer="Sie haben dreißig Tage, um das Gerät zurückzugeben.")
    assert_expected(german, language="de")
    with pytest.raises(QualityFailure, match="is in 'de', wanted 'fr'"):
        assert_expected(german, language="fr")
    with pytest.raises(UsageError, match="isn't the code of a known language"):
        assert_expected(german, language="klingon")


def test_an_expression_in_a_question_file_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "q", "expect": {"python": "len(answer) < 9"}}\n')
    (tmp_path / "a.rag.yaml").write_text("questions: q.jsonl\n")
    with pytest.raises(UsageError, match="q.jsonl:1: expect.python: a question file is data"):
        load_suite(tmp_path / "a.rag.yaml")


PROMPTFOO = """\
tests:
  - vars: {question: How long?}
    assert:
      - {type: icontains-any, value: [30, thirty]}
      - {type: not-contains, value: sorry}
      - {type: latency, threshold: 5000}
      - {type: is-json}
      - {type: similar, value: thirty days}
      - {type: cost, threshold: 0.01}
      - {type: context-faithfulness, threshold: 0.8}
      - {type: llm-rubric, value: Is it polite?}
"""


def test_assertions_of_promptfoo_are_understood(tmp_path: Path) -> None:
    (tmp_path / "pf.yaml").write_text(PROMPTFOO)
    (tmp_path / "a.rag.yaml").write_text("questions: pf.yaml\n")
    [case] = load_suite(tmp_path / "a.rag.yaml")
    [question] = case.questions or ()
    expected = [part.model_dump(exclude_none=True) for part in case.expectations(question.id)]
    assert expected == [
        {"contains_any": ("30", "thirty")},
        {"not_contains": ("sorry",)},
        {"max_latency": 5.0},
        {"json_schema": True},
        {"similar": {"to": ("thirty days",), "threshold": ">=0.75", "metric": "semantic_similarity"}},
        {"max_cost": 0.01},
    ]
    assert [(each.metric, each.threshold, dict(each.options)) for each in case.wanted(question)] == [
        ("faithfulness", ">=0.8", {}),
        ("aspect", None, {"definition": "Is it polite?"}),
    ]


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        ("{type: javascript, value: a}", "write it as expect: {python"),
        ("{type: contains-al, value: a}", "did you mean 'contains-all'"),
        ("{type: contains}", "'contains' without its 'value'"),
        ("{type: context-faithfulness, threshold: 8}", "outside its range"),
    ],
)
def test_what_has_no_counterpart_is_an_error_and_not_left_out(
    tmp_path: Path, assertion: str, said: str
) -> None:
    (tmp_path / "pf.yaml").write_text(f"tests:\n  - vars: {{question: q}}\n    assert: [{assertion}]\n")
    (tmp_path / "a.rag.yaml").write_text("questions: pf.yaml\n")
    with pytest.raises(UsageError) as error:
        load_suite(tmp_path / "a.rag.yaml")
    assert said in str(error.value)
    assert "pf.yaml:2: " in str(error.value)


DAYS = '{"type": "object", "properties": {"days": {"type": "integer", "minimum": 14}}, "required": ["days"]}'


def test_a_schema_stands_in_a_file_beside_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    for folder in ("schemas", "data/schemas"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "answer.json").write_text(DAYS if folder == "schemas" else '{"type": "array"}')
    (tmp_path / "data" / "q.yaml").write_text(
        "- {question: A?, expect: {json_schema: schemas/answer.json}}\n"
        "- {question: B?, expect: {json_schema: {type: object, maxProperties: 1, additionalProperties: false}}}\n"
        "- {question: C?, assert: [{type: is-json, value: 'file://schemas/answer.json'}]}\n"
        "- {question: D?, assert: [{type: is-json, value: {type: array, maxItems: 2}}]}\n"
        "- {question: E?, assert: [{type: is-json, value: 'type: array'}]}\n"
    )
    (tmp_path / "a.rag.yaml").write_text(
        "questions: data/q.yaml\nexpect: {json_schema: schemas/answer.json}\n"
    )
    [case] = load_suite(tmp_path / "a.rag.yaml")
    own = [case.expectations(each.id)[1].json_schema for each in case.questions or ()]
    assert case.test.expect[0].json_schema == json.loads(DAYS)
    assert own[0] == own[2] == {"type": "array"}
    assert own[1] == {"type": "object", "maxProperties": 1, "additionalProperties": False}
    assert own[3:] == [{"type": "array", "maxItems": 2}, {"type": "array"}]
    sample = RagSample("How long?", '{"days": 7}', ["c"])
    with pytest.raises(QualityFailure, match=r"at \$.days: 7 is less than the minimum of 14"):
        assert_expected(sample, json_schema=tmp_path / "schemas" / "answer.json")
    monkeypatch.chdir(tmp_path)
    assert_expected(sample.with_(answer='{"days": 30}'), json_schema="schemas/answer.json")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "schemas/answr.json",
            DAYS,
            r"schemas/answr.json: no such file \(seen from .*did you mean 'answer.json'",
        ),
        ("schemas/answer.json", "{\n 'type': 1}", r"schemas/answer.json:2: not JSON: "),
        ("schemas/answer.json", '{"type": "objekt"}', r"schemas/answer.json: not a JSON Schema: at \$.type"),
        ("schemas/answer.json", "3", "schemas/answer.json: must be a JSON Schema"),
    ],
)
def test_a_schema_file_that_cannot_be_is_named_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "answer.json").write_text(text)
    (tmp_path / "a.rag.yaml").write_text(f"questions: [q]\nexpect:\n  json_schema: {name}\n")
    with pytest.raises(UsageError, match=rf"a.rag.yaml:3: expect.json_schema: .*{said}"):
        load_suite(tmp_path / "a.rag.yaml")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"assert_expected: json_schema: .*{said}"):
        assert_expected(RagSample("q", "a", ["c"]), json_schema=name)
