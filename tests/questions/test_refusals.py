"""Files that are refused: the message names file and line, and says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.questions.files import refused


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        ("e.jsonl", "", ["e.jsonl:", "no questions"]),
        ("e.csv", " \n\n", ["e.csv:", "no questions"]),
        ("h.csv", "question,reference\n", ["h.csv:1:", "no questions"]),
        ("l.yaml", "[]\n", ["l.yaml:1:", "no questions"]),
        ("c.yaml", "# only a comment\n", ["c.yaml:", "no questions"]),
        ("l.json", "[]", ["l.json:1:", "no questions"]),
        ("w.json", '{"questions": []}', ["w.json:1:", "no questions"]),
        ("o.json", "{}", ["o.json:1:", "no questions"]),
        ("c.json", '{"question": []}', ["c.json:", "no questions"]),
        ("b.jsonl", '{"question": "a"}\n\n{"question": "b",}\n', ["b.jsonl:3:", "not JSON", "column 18"]),
        ("a.jsonl", '{"question": "a"}\n["b"]\n', ["a.jsonl:2:", "object"]),
        ("t.jsonl", '{"question": "a"} {"question": "b"}\n', ["t.jsonl:1:", "one object a line"]),
        ("n.jsonl", '{"question": "a", "x": NaN}\n', ["n.jsonl:1:", "NaN"]),
        ("i.json", '[\n{"question": "a", "x": -Infinity}]', ["i.json:2:", "Infinity"]),
        ("d.json", '[{"question": "a"},\n{"question": "a", "question": "b"}]', ["d.json:2:", "'question'"]),
        ("d.yaml", "- question: a\n  reference: b\n  reference: c\n", ["d.yaml:3:", "'reference'"]),
        ("k.json", '[{"question": "a"}\n{"question": "b"}]', ["k.json:2:", "','"]),
        ("u.json", '[{"question": "a"}', ["u.json:1:", "end of the file"]),
        ("x.json", '{"question": "a"}\n{"question": "b"}\n', ["x.json:2:", ".jsonl"]),
        ("2.json", '{"data": [{"question": "a"}],\n"tests": []}', ["2.json:2:", "'data'", "'tests'"]),
        ("y.yaml", "- question: a\n  reference: b: c\n", ["y.yaml:2:", "quotes"]),
        ("m.yaml", "- question: a\n---\n- question: b\n", ["m.yaml:2:", "---"]),
        ("s.yaml", "- just a text\n", ["s.yaml:1:", "question:"]),
        ("p.yaml", "- question: !!python/name:os.system\n", ["p.yaml:1:", "!!python/name:os.system"]),
        ("q.yaml", "- !custom\n  question: a\n", ["q.yaml:1:", "!custom"]),
        ("r.yaml", "- &x\n  question: a\n  note: *x\n", ["r.yaml:1:", "alias"]),
        ("g.yaml", "- question: a\n  note: " + "[" * 20_000, ["g.yaml:", "nest"]),
        ("g.json", "[" * 200_000, ["g.json:1:", "nested"]),
        ("0.jsonl", '{"question": " "}\n', ["0.jsonl:1:", "blank"]),
        ("1.jsonl", '{"question": null, "id": 1}\n', ["1.jsonl:1:", "blank"]),
        ("3.jsonl", '{"question": ["a", "b"]}\n', ["3.jsonl:1:", "'question'", "a list"]),
        ("4.jsonl", '{"question": "a", "reference": false}\n', ["4.jsonl:1:", "'reference'"]),
        ("5.jsonl", '{"question": "a", "contexts": ["x", 3]}\n', ["5.jsonl:1:", "'contexts'", "item 1"]),
        ("6.jsonl", '{"question": "\\ud800"}\n', ["6.jsonl:1:", "surrogate"]),
        ("7.jsonl", '{"question": "a", "thresholds": 0.8}\n', ["7.jsonl:1:", "threshold_faithfulness"]),
        ("8.jsonl", '{"question": "a", "id": true}\n', ["8.jsonl:1:", "'id'"]),
        ("9.jsonl", '{"text": "a", "n": 1}\n', ["9.jsonl:1:", "'text', 'n'", "columns="]),
        ("z.csv", "question,refernce\na,b\n", ["z.csv:1:", "'refernce'", "'reference'"]),
        ("v.csv", "question,note,note\na,b,c\n", ["v.csv:1:", "'note'"]),
        ("w.docx", "x", ["w.docx:", ".csv", "format="]),
        ("f.csv", "вопрос\nКак?\n".encode("cp1251"), ["f.csv:1:", "encoding='cp1251'"]),
    ],
)
def test_a_broken_file_is_named_with_its_line(name: str, content: str | bytes, parts: list[str]) -> None:
    message = refused(name, content)
    assert message.startswith(name)
    assert [part for part in parts if part not in message] == []


def test_all_problems_are_told_at_once_in_the_order_of_lines() -> None:
    message = refused(
        "q.jsonl",
        '{"question": "a", "contexts": [1]}\n{"question": ""}\n{"q": "x"}\n{"question": "ok"}\nnope\n',
    )
    lines = [line.strip() for line in message.splitlines()]
    assert [line.split(":")[1] for line in lines] == ["1", "2", "3", "5"]
    assert "(and 3 more)" in lines[0]
    many = refused("m.jsonl", "nope\n" * 25)
    assert len(many.splitlines()) == 11
    assert "15 more" in many.splitlines()[-1]


def test_a_column_problem_is_told_once() -> None:
    assert len(refused("q.jsonl", '{"question": "a", "refernce": "b"}\n' * 50).splitlines()) == 1


@pytest.fixture(params=["libyaml", "pure Python"])
def _yaml_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


@pytest.mark.usefixtures("_yaml_loader")
def test_no_object_of_a_yaml_tag_is_built() -> None:
    refused("q.yaml", '- question: !!python/object/apply:os.system ["touch PWNED"]\n')
    refused("r.yaml", "- question: a\n  note: !!python/object/new:os.mkdir [PWNED]\n")
    assert not Path("PWNED").exists()


@pytest.mark.usefixtures("_yaml_loader")
@pytest.mark.parametrize("depth", [500, 100_000])
def test_yaml_nested_deeply_ends_in_an_error(depth: int) -> None:
    assert "nest" in refused("q.yaml", f"- question: a\n  note: {'[' * depth}{']' * depth}\n")


@pytest.mark.usefixtures("_yaml_loader")
def test_a_yaml_bomb_is_refused_before_it_goes_off() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "aliases" in refused(
        "q.yaml", "\n".join([*levels, "questions:", "- question: Q", "  note: *a11", ""])
    )
