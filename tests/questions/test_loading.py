"""From files to questions: values, lines, order, and errors that name file and line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.model.samples import Question, sample_from
from pytest_ragbench.questions import load_questions
from pytest_ragbench.text import is_blank
from tests.questions.files import load, refused


def places(questions: list[Question]) -> list[str]:
    return [str(question.location) for question in questions]


# -- values --


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", 'id,question,reference,contexts\nq1,Почему?,Потому.,"[""a"", ""b""]"\n'),
        ("q.tsv", "id\tquestion\treference\tcontexts\nq1\tПочему?\tПотому.\t['a', 'b']\n"),
        ("q.jsonl", '{"id": "q1", "question": "Почему?", "reference": "Потому.", "contexts": ["a", "b"]}'),
        ("q.json", '[{"id": "q1", "question": "Почему?", "reference": "Потому.", "contexts": ["a", "b"]}]'),
        ("q.yaml", "- id: q1\n  question: Почему?\n  reference: Потому.\n  contexts: [a, b]\n"),
        ("Q.YML", "questions:\n- {id: q1, question: Почему?, reference: Потому., contexts: [a, b]}\n"),
    ],
)
def test_every_format_gives_the_same_question(name: str, content: str) -> None:
    (question,) = load(name, content)
    assert question.id == "q1"
    assert question.question == "Почему?"
    assert question.reference == "Потому."
    assert question.contexts == ("a", "b")
    assert question.answer is None
    assert question.location is not None
    assert question.location.file == name


def test_all_columns_of_a_csv() -> None:
    (first, second) = load(
        "q.csv",
        "question,must_pass,answerable,tags,relevant_ids,threshold_faithfulness,thresholds.ndcg@10,note,session\n"
        'a?,Да,no,"smoke, регресс; smoke","007; d2",0.80,>=0.5,привет,s1\n'
        "b?,,,,,,,,\n",
    )
    assert first.must_pass is True
    assert first.should_abstain is True
    assert first.tags == ("smoke", "регресс")
    assert first.relevant_ids == {"007": 1.0, "d2": 1.0}
    assert first.thresholds == {"faithfulness": "0.80", "ndcg@10": ">=0.5"}
    assert first.metadata == {"note": "привет"}
    assert first.session == "s1"
    assert (second.must_pass, second.should_abstain, second.tags) == (False, False, ())
    assert second.relevant_ids is None
    assert second.thresholds == {}
    assert second.reference is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (["007", 8], {"007": 1.0, "8": 1.0}),
        ({"d1": 2, "d2": 0.5}, {"d1": 2.0, "d2": 0.5}),
        ("a;b", {"a": 1.0, "b": 1.0}),
        ("a, b", {"a": 1.0, "b": 1.0}),
        ("a|b", {"a": 1.0, "b": 1.0}),
        ("a, 1; b, 2", {"a, 1": 1.0, "b, 2": 1.0}),
        ("['a', 'b']", {"a": 1.0, "b": 1.0}),
        ('{"a": 3}', {"a": 3.0}),
        ("007", {"007": 1.0}),
        ([], {}),
        (None, None),
    ],
)
def test_relevant_ids(value: Any, expected: Mapping[str, float] | None) -> None:
    (question,) = load("q.jsonl", json.dumps({"question": "Q", "relevant_ids": value}))
    assert question.relevant_ids == expected


@pytest.mark.parametrize(
    "value", [["a", None], ["a", True], [["a"]], {"a": "much"}, {"a": True}, True, "['a' 'b']"]
)
def test_relevant_ids_that_are_none(value: Any) -> None:
    message = refused("q.jsonl", json.dumps({"question": "Q", "relevant_ids": value}))
    assert message.startswith("q.jsonl:1: column 'relevant_ids'")


@pytest.mark.parametrize("word", ["true", "Yes", "1", "1.0", "ДА", "истина", " はい "])
def test_yes(word: str) -> None:
    assert load("q.csv", f"question,must_pass\nq,{word}\n")[0].must_pass is True


@pytest.mark.parametrize("word", ["maybe", "2", "-1", "x", "да?", "None"])
def test_neither_yes_nor_no(word: str) -> None:
    assert refused("q.csv", f"question,must_pass\nq,{word}\n").startswith("q.csv:2: column 'must_pass'")


def test_none_and_empty_are_different_things() -> None:
    first, second, third = load(
        "q.jsonl",
        '{"question": "1", "answer": "", "contexts": [], "reference": ""}\n'
        '{"question": "2", "answer": null, "contexts": null, "reference": null}\n'
        '{"question": "3"}\n',
    )
    assert (first.answer, first.contexts, first.reference) == ("", (), "")
    assert (second.answer, second.contexts, second.reference) == (None, None, None)
    assert (third.answer, third.contexts, third.reference) == (None, None, None)


def test_a_blank_cell_of_a_csv() -> None:
    first, second = load("q.csv", 'question,answer,contexts,reference\na?,,,\nb?,да,"[]",x\n')
    assert first.answer == ""  # the column is a record of answers, and this one is blank
    assert first.contexts is None
    assert first.reference is None
    assert second.contexts == ()
    (unfilled,) = load("unfilled.csv", "question,answer\na?,\n")
    assert unfilled.answer is None  # nobody filled this column


@pytest.mark.parametrize("column", ["reference", "question", "contexts", "answer"])
def test_nan_in_a_csv_is_no_text(column: str) -> None:
    content = f"id,question,{column}\n1,a?,nan\n" if column != "question" else "id,question\n1,nan\n"
    assert refused("q.csv", content).startswith(f"q.csv:2: column '{column}'")


def test_spaces_of_a_question_reach_the_wire() -> None:
    for name, content in [
        ("q.csv", " id , question \n 7 ,  пробел  \n"),
        ("q.jsonl", '{"id": " 7 ", "question": "  пробел  "}'),
        ("q.yaml", "- id: ' 7 '\n  question: '  пробел  '\n"),
    ]:
        (question,) = load(name, content)
        assert question.question == "  пробел  "
        assert question.id == "7"


def test_numbers_keep_the_digits_that_were_written() -> None:
    (question,) = load("q.json", '[{"question": 42, "reference": 1.10, "score": 1.10, "id": 7}]')
    assert (question.question, question.reference, question.id) == ("42", "1.10", "7")
    assert question.metadata == {"score": 1.1}
    assert type(question.metadata["score"]) is float  # what xdist can send


def test_yaml_scalars_stay_what_the_author_wrote() -> None:
    written = [
        "no",
        "NO",
        "2024-05-01",
        "1_000",
        "12:30",
        "1.10",
        "0123",
        "0x1F",
        "1e3",
        ".nan",
        "on",
        "=",
        "+7",
    ]
    questions = load(
        "q.yaml", "".join(f"- {{id: q{n}, question: Q, reference: {w}}}\n" for n, w in enumerate(written))
    )
    assert [question.reference for question in questions] == written
    nulls = load("n.yaml", "- {id: a, question: Q, reference: null}\n- {id: b, question: Q, reference: ~}\n")
    assert [question.reference for question in nulls] == [None, None]
    quoted = load(
        "s.yaml",
        "- question: Q\n  reference: 'null'\n  must_pass: yes\n  answerable: no\n",
    )
    assert (quoted[0].reference, quoted[0].must_pass, quoted[0].should_abstain) == ("null", True, True)


def test_yaml_aliases_and_merges() -> None:
    first, second = load(
        "q.yaml",
        "- &base\n  question: Первый?\n  reference: да\n  must_pass: true\n"
        "- <<: *base\n  question: Второй?\n",
    )
    assert (second.question, second.reference, second.must_pass) == ("Второй?", "да", True)
    assert first.question == "Первый?"


def test_a_question_becomes_a_sample() -> None:
    (question,) = load(
        "q.jsonl", '{"question": "Q", "answer": "A", "contexts": ["C"], "relevant_ids": ["d"], "x": 1}'
    )
    sample = sample_from(question)
    assert sample.answer == "A"
    assert sample.relevant_ids == {"d": 1.0}
    assert sample.metadata == {"x": 1}


def test_other_shapes_of_json() -> None:
    founding = load("f.json", '[{"query": "Q?", "expected_message": "E"}]')
    assert (founding[0].question, founding[0].reference) == ("Q?", "E")
    for name in ("questions", "data", "examples", "samples"):
        assert load("w.json", json.dumps({"version": 1, name: [{"question": "Q"}]}))[0].question == "Q"
    columns = load("c.json", '{"question": ["a", "b"], "answer": ["x", null]}')
    assert [(q.question, q.answer) for q in columns] == [("a", "x"), ("b", None)]
    pandas = load("p.json", '{"question": {"0": "a"}, "answer": {"0": "x"}}')
    assert pandas[0].answer == "x"
    langsmith = load("l.json", '[{"inputs": {"question": "Q"}, "outputs": {"answer": "R"}}]')
    assert (langsmith[0].question, langsmith[0].reference, langsmith[0].answer) == ("Q", "R", None)
    mapped = load("m.json", '[{"item": {"text": "Q"}}]', columns={"question": "item.text"})
    assert mapped[0].question == "Q"


# -- CSV --


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    rows = [["id", "question", "reference"], ["q1", "Где, когда; как | почему\tздесь?", "1,5 млн"]]
    content = "\r\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    (question,) = load("q.csv", content)
    assert question.question == rows[1][1]
    assert question.reference == "1,5 млн"


@given(
    st.lists(
        st.tuples(*[st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)] * 2),
        min_size=1,
        max_size=6,
        unique_by=lambda row: row[0],
    ),
    st.sampled_from([",", ";", "\t", "|"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_pythons_csv_writes_comes_back_as_it_was(rows: list[tuple[str, str]], delimiter: str) -> None:
    import csv

    rows = [row for row in rows if not is_blank(row[0]) and row[0].strip().casefold() not in ("nan", "<na>")]
    rows = [row for row in rows if row[1].strip().casefold() not in ("nan", "<na>")]
    if not rows:
        return
    with open("q.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerow(["id", "question", "reference"])
        writer.writerows([f"q{number}", *row] for number, row in enumerate(rows))
    questions = load_questions("q.csv")
    assert [question.question for question in questions] == [row[0] for row in rows]
    assert [question.reference or "" for question in questions] == [
        "" if is_blank(row[1]) else row[1] for row in rows
    ]


def test_physical_lines_of_a_csv() -> None:
    questions = load("q.csv", 'question,reference\n"две\nстроки?",a\n\nb?,"x\r\ny"\nc?,z\n')
    assert places(questions) == ["q.csv:2", "q.csv:5", "q.csv:7"]
    assert questions[0].question == "две\nстроки?"
    assert questions[1].reference == "x\r\ny"


def test_ragged_rows() -> None:
    message = refused("q.csv", 'id,question,reference\n1,"a\nb",x\n2,b\n3,c,d,e\n')
    assert "q.csv:4: 2 cells under a header of 3" in message
    assert "q.csv:5: 4 cells under a header of 3" in message


def test_an_open_quote_is_named_where_it_opens() -> None:
    assert refused("q.csv", 'question,reference\na,b\n"open,1\nb,2\n').startswith("q.csv:3: not CSV")


def test_a_lone_column() -> None:
    assert [q.question for q in load("q.csv", "question\nГде, когда?\nДа\n")] == ["Где, когда?", "Да"]
    assert "name all columns" in refused("q.csv", "question\na;b\nc;d\n")


def test_what_excel_and_pandas_leave_in_a_csv() -> None:
    assert load("x.csv", "sep=;\r\nquestion;reference\r\na,b;c\r\n,;\r\n;\r\n")[0].question == "a,b"
    pandas = load("p.csv", ",question\n0,a?\n1,b?\n")
    assert [question.question for question in pandas] == ["a?", "b?"]
    assert "no name" in refused("n.csv", "question,\na?,text\n")
    long = load("l.csv", f"question,contexts\na?,{'x' * 300_000}\n")
    assert long[0].contexts == ("x" * 300_000,)


def test_options_of_the_caller_win() -> None:
    content = "Текст;reference;мой эталон\nКак?;старый;новый\n".encode("cp1251")
    (question,) = load(
        "q.txt",
        content,
        encoding="cp1251",
        delimiter=";",
        format="csv",
        columns={"question": "текст", "reference": "мой эталон"},
    )
    assert (question.question, question.reference) == ("Как?", "новый")
    assert question.metadata == {"reference": "старый"}


# -- ids --


def test_an_id_given_twice() -> None:
    content = '{"id": "1", "question": "a?"}\n{"id": 1, "question": "b?"}\n{"id": "10", "question": "c?"}\n'
    assert refused("q.jsonl", content) == "q.jsonl: id '1' is given more than once: lines 1 and 2"
    Path("d").mkdir()
    Path("d/a.csv").write_text("id,question\nx,a?\n", encoding="utf-8")
    Path("d/b.csv").write_text("id,question\n\nx,b?\n", encoding="utf-8")
    with pytest.raises(QuestionFileError, match=r"'x'.*d/a\.csv:2 and d/b\.csv:3"):
        load_questions("d")


def test_a_question_written_twice_without_ids() -> None:
    message = refused("q.csv", "question\nКак?\nЧто?\nКак?\n")
    assert "'Как?'" in message
    assert "lines 2 and 4" in message
    assert len(load("ids.csv", "id,question\n1,Как?\n2,Как?\n")) == 2


def test_ids_made_from_the_text_do_not_depend_on_neighbours() -> None:
    alone = {q.question: q.id for q in load("a.csv", "question\nКак вернуть товар?\nWhat is Pro?\n")}
    among = {
        q.question: q.id for q in load("b.csv", "question\nЧто ещё?\nWhat is Pro?\nКак вернуть товар?\n")
    }
    assert alone.items() <= among.items()
    assert alone == {"Как вернуть товар?": "Как-вернуть-товар", "What is Pro?": "What-is-Pro"}


def test_ids_of_texts_that_differ_in_punctuation_or_equal_a_given_id() -> None:
    alike = load("q.csv", "id,question\n,C++!\n,C++?\nWhy,Because?\n,Why?\n")
    assert len({question.id for question in alike}) == 4
    assert alike[2].id == "Why"


# -- paths --


def test_a_directory_and_a_pattern_are_read_by_name() -> None:
    Path("d/sub").mkdir(parents=True)
    for name in ("b.jsonl", "a.jsonl", "c.jsonl", "sub/e.jsonl"):
        Path("d", name).write_text(f'{{"question": "{name}?"}}\n', encoding="utf-8")
    Path("d/README.md").write_text("not a question file", encoding="utf-8")
    Path("d/.hidden.csv").write_text("x", encoding="utf-8")
    assert places(load_questions("d")) == ["d/a.jsonl:1", "d/b.jsonl:1", "d/c.jsonl:1"]
    assert places(load_questions("d/[ab].jsonl")) == ["d/a.jsonl:1", "d/b.jsonl:1"]
    assert len(load_questions(Path("d") / "**" / "*.jsonl")) == 4


def test_a_name_with_brackets_is_a_file_first() -> None:
    assert load("q[1].csv", "question\na?\n")[0].question == "a?"


def test_paths_without_questions() -> None:
    Path("empty").mkdir()
    Path("questions.csv").write_text("question\na?\n", encoding="utf-8")
    with pytest.raises(QuestionFileError, match=r"no_such_file\.jsonl"):
        load_questions("no_such_file.jsonl")
    with pytest.raises(QuestionFileError, match=r"question\.csv: no such.*did you mean 'questions\.csv'"):
        load_questions("question.csv")
    with pytest.raises(QuestionFileError, match="empty: no questions"):
        load_questions("empty")
    with pytest.raises(QuestionFileError, match=r"x\*\.csv: no questions"):
        load_questions("x*.csv")


def test_one_empty_file_of_several_is_named() -> None:
    Path("d").mkdir()
    Path("d/a.csv").write_text("question\na?\n", encoding="utf-8")
    Path("d/b.csv").write_text("question\n", encoding="utf-8")
    with pytest.raises(QuestionFileError, match=r"^d/b\.csv:1: .*no questions"):
        load_questions("d")


# -- arguments --


def test_needs() -> None:
    assert load("q.csv", "question,reference\na,b\n", needs=["reference"])
    assert refused("n.csv", "question,note\na,b\n", needs={"reference"}).startswith(
        "n.csv:1: no column for the reference; columns found: 'question', 'note'"
    )
    assert refused("r.csv", "question,reference\na,b\nc,\n", needs={"reference"}).startswith(
        "r.csv:3: no reference"
    )
    assert "columns={'reference': 'answer'}" in refused(
        "a.csv", "question,answer\na,b\n", needs={"reference"}
    )
    assert load("ans.csv", "question,answer\na,b\n", needs=["reference"], columns={"reference": "answer"})


def test_a_mapping_to_a_column_that_is_not_there() -> None:
    message = refused("q.csv", "question,x\na,b\n", columns={"reference": "y"})
    assert message.startswith("q.csv:1:")
    assert "'question', 'x'" in message


@pytest.mark.parametrize(
    "options",
    [
        {"columns": {"refernce": "x"}},
        {"columns": {"reference": ""}},
        {"needs": "reference"},
        {"needs": ["ground_truth"]},
        {"delimiter": ";;"},
        {"delimiter": '"'},
        {"format": "parkett"},
    ],
)
def test_arguments_that_make_no_sense(options: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError):
        load("q.csv", "question\na\n", **options)
    with pytest.raises(UsageError):
        load_questions("")
