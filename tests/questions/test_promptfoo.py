"""promptfoo's configuration as a question file, merged as promptfoo merges it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.questions import load_questions
from pytest_ragbench.specs.loading import load_suite

CONFIG = """\
prompts: ["{{question}}"]
providers: [echo]
defaultTest:
  vars: {context: [A chunk., Another.], reference: Nothing.}
  metadata: {team: support, level: low}
  assert:
    - {type: not-contains, value: sorry}
    - {type: context-faithfulness, threshold: 0.8}
tests:
  - vars: {question: How long?, reference: 30 days.}
    metadata: {level: high}
    assert: [{type: contains, value: 30}]
  - vars: {question: How much?}
    options: {disableDefaultAsserts: true}
    assert: [{type: contains, value: $5}]
  - file://more/*.yaml
  - path: file://more.csv
  - {vars: {question: Why?}}
"""


def written(folder: Path, config: str = CONFIG) -> Path:
    (folder / "more").mkdir()
    (folder / "more" / "one.yaml").write_text(
        "vars: {question: Who?}\nassert: [{type: contains, value: Ann}]\n"
    )
    (folder / "more" / "two.yaml").write_text("# two\n- {vars: {question: When?, reference: Now.}}\n")
    (folder / "more.csv").write_text("question,reference\nWhere?,Here.\n")
    file = folder / "promptfooconfig.yaml"
    file.write_text(config)
    return file


def test_vars_metadata_and_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = load_questions(written(tmp_path))
    assert [(each.question, each.reference, str(each.location)) for each in found] == [
        ("How long?", "30 days.", "promptfooconfig.yaml:10"),
        ("How much?", "Nothing.", "promptfooconfig.yaml:13"),
        ("Who?", "Nothing.", "more/one.yaml:1"),
        ("When?", "Now.", "more/two.yaml:2"),
        ("Where?", "Here.", "more.csv:2"),
        ("Why?", "Nothing.", "promptfooconfig.yaml:18"),
    ]
    assert all(each.contexts == ("A chunk.", "Another.") for each in found)
    assert [dict(each.metadata)["level"] for each in found] == ["high", "low", "low", "low", "low", "low"]
    assert {dict(each.metadata)["team"] for each in found} == {"support"}


def test_assertions_of_the_default_come_first_and_can_be_dropped(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "a.rag.yaml").write_text("questions: promptfooconfig.yaml\n")
    [case] = load_suite(tmp_path / "a.rag.yaml")
    told = {}
    for each in case.questions or ():
        expected: list[Any] = [part.model_dump(exclude_none=True) for part in case.expectations(each.id)]
        told[each.question] = (expected, [(one.metric, one.threshold) for one in case.wanted(each)])
    default, metric = {"not_contains": ("sorry",)}, ("faithfulness", ">=0.8")
    assert told == {
        "How long?": ([default, {"contains": ("30",)}], [metric]),
        "How much?": ([{"contains": ("$5",)}], []),
        "Who?": ([default, {"contains": ("Ann",)}], [metric]),
        "When?": ([default], [metric]),
        "Where?": ([default], [metric]),
        "Why?": ([default], [metric]),
    }


def test_a_default_in_a_file_of_its_own_and_tests_of_one_file(tmp_path: Path) -> None:
    (tmp_path / "default.yaml").write_text("vars: {reference: Nothing.}\n")
    (tmp_path / "tests.json").write_text(json.dumps([{"vars": {"question": "How long?"}}]))
    for name, text in {
        "a.yaml": "defaultTest: file://default.yaml\ntests: tests.json\n",
        "b.json": json.dumps(
            {"tests": "file://tests.json", "defaultTest": {"vars": {"reference": "Nothing."}}}
        ),
        "c.json": json.dumps(
            {
                "defaultTest": {"vars": {"reference": "Nothing."}},
                "tests": [{"vars": {"question": "How long?"}}],
            }
        ),
    }.items():
        (tmp_path / name).write_text(text)
        [question] = load_questions(tmp_path / name)
        assert (question.question, question.reference) == ("How long?", "Nothing."), name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tests:\n  - tests.py:make\n", "pf.yaml:2: tests: tests.py:make is code, or not a file"),
        (
            "tests: huggingface://datasets/a/b\n",
            "pf.yaml:1: tests: huggingface://datasets/a/b is code, or not",
        ),
        (
            "tests:\n- {vars: {question: q}}\n- mor.csv\n",
            "pf.yaml:3: tests: .*mor.csv: no such.*did you mean 'more.csv'",
        ),
        ("defaultTest: [a]\ntests: [{vars: {question: q}}]\n", "pf.yaml:1: defaultTest: wanted a mapping"),
        (
            "defaultTest:\n  assert: a\ntests: [{vars: {question: q}}]\n",
            "pf.yaml:1: defaultTest: assert: wanted",
        ),
        (
            "tests: more.csv\ndefaultTest: file://d.yaml\n",
            "pf.yaml:2: defaultTest: file://d.yaml: no such file",
        ),
        ("tests: more.csv\nscenarios:\n- {}\n", "pf.yaml:2: scenarios are not read"),
    ],
)
def test_what_is_not_read_is_an_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "more.csv").write_text("question\nq\n")
    (tmp_path / "pf.yaml").write_text(text)
    with pytest.raises(QuestionFileError, match=said):
        load_questions(tmp_path / "pf.yaml")


def test_an_assertion_of_the_default_without_a_counterpart_is_an_error(tmp_path: Path) -> None:
    default = "defaultTest: {assert: [{type: javascript, value: a}]}\n"
    (tmp_path / "pf.yaml").write_text(f"{default}tests:\n- {{vars: {{question: q}}}}\n")
    (tmp_path / "a.rag.yaml").write_text("questions: pf.yaml\n")
    with pytest.raises(UsageError, match="pf.yaml:3: .*'javascript' has no counterpart"):
        load_suite(tmp_path / "a.rag.yaml")
