"""One function decides: a run, `ragbench compare` and `ragbench merge` say the same of the same scores."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import scipy.stats  # noqa: F401 - Pytester takes out of memory what a test imports, and numpy can't come back

from pytest_ragbench.cli import run
from tests.plugin.conftest import MODES, Project
from tests.servers.rag_server import default_answer, rag_server

OWN = """\
import pytest_ragbench as rb

@rb.metric("slips", tier="generation", needs=("answer",), high=10.0, direction="lower")
def slips(sample):
    return float(sample.answer.split()[0])
"""
# Twelve questions in two files; a number is what the answer scores. The judge's verdict is a number, too.
TESTS = """\
import os
import pytest
import pytest_ragbench as rb

def grader(messages):
    text = messages[1]["content"]
    grade = text.split("Grade: ")[1].split()[0]
    return '{"answer_correctness": %s, "groundedness": 1, "error_message": ""}' % grade

def strict(messages):
    return grader(messages)

grader.ragbench_key = os.environ.get("GRADER_KEY", "one")

@pytest.fixture(scope="session")
def judge(request):
    return grader

@pytest.mark.parametrize("n", range(FIRST, FIRST + 6))
def test_it(n):
    slips, grade = open("scores.txt").read().split()
    sample = rb.RagSample(f"What is {n}?", f"{slips} of them. Grade: {grade} .", ["a chunk"], id=f"q{n}")
    rb.assert_metric("slips", sample, "<=9")
    rb.assert_metric("search_rag", sample, ">=0")
"""
GATES = (
    "slips no worse than baseline by more than 0.1",
    "slips <= 4",
    "search_rag no worse than baseline",
    "search_rag >= 0.5 with 95% confidence",
    "pass_rate >= 0.9",
    "latency p95 <= 2",
)
TOML = """\
store = "off"
[gates]
slips = "no worse than baseline by more than 0.1"
search_rag = "no worse than baseline"
pass_rate = ">= 0.5"
[gating]
undecided = "fail"
baseline = "old.json"
"""


def written(project: Project, slips: float, grade: float, toml: str = TOML) -> None:
    project.write(
        conftest_py=OWN,
        test_a_py=TESTS.replace("FIRST", "0"),
        test_b_py=TESTS.replace("FIRST", "6"),
        scores_txt=f"{slips} {grade}",
        ragbench_toml=toml,
    )


def said_by(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any]]:
    def call(*args: str) -> tuple[int, Any]:
        capsys.readouterr()
        code = run(args)
        out, err = capsys.readouterr()
        assert code in (0, 1, 9, 10), err
        return int(code), json.loads(out)

    return call


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_a_run_compare_and_merge_decide_alike(
    project: Project, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Field by field, for a metric of the user's own of which less is better and that nobody knows here."""
    written(project, 1.0, 0.9)
    assert project.run("--ragbench-no-gates", "--ragbench-json=old.json", *MODES[mode]).ret == 0
    written(project, 1.2, 0.9)
    whole = project.run("--ragbench-json=new.json", "--ragbench-gate=slips mean <= 2", *MODES[mode])
    assert whole.ret == 0  # the gate that is typed stands in the place of the configured one
    whole = project.run("--ragbench-json=new.json", *MODES[mode])
    assert whole.ret == 1
    whole.stdout.fnmatch_lines(["FAIL *slips no worse*1.200 after 1.000, 0.200 worse, over 12 questions*"])
    for name in "ab":
        project.run(f"test_{name}.py", "--ragbench-no-gates", f"--ragbench-json={name}.json", *MODES[mode])
    report = project.report("new.json")
    project.monkeypatch.chdir(project.path)
    ask = said_by(capsys)
    compared = ask("compare", "old.json", "new.json", "--json")
    merged = ask("merge", "a.json", "b.json", "--json")
    for code, told in (compared, merged):
        assert code == 1
        assert told["gates"] == report["gates"]
    assert compared[1]["metrics"] == merged[1]["baseline"]["metrics"] == report["baseline"]["metrics"]
    assert {each["metric"] for each in compared[1]["metrics"]} == {"slips", "search_rag"}
    # Gates that are typed count, whatever is left out beside them; each alone, so that none hides another.
    for rule in GATES:
        typed = [f"--ragbench-gate={rule}", "--ragbench-no-gates", "--ragbench-json=typed.json"]
        in_run = project.run(*typed, *MODES[mode]).ret if rule == GATES[0] else None
        found = [ask("compare", "old.json", "new.json", "--json", "--no-gates", "--gate", rule)]
        found.append(ask("merge", "a.json", "b.json", "--json", "--no-gates", "--gate", rule))
        assert found[0][0] == found[1][0]
        assert found[0][1]["gates"] == found[1][1]["gates"]
        if in_run is not None:
            assert (in_run, found[0][0]) == (1, 1)
            assert project.report("typed.json")["gates"] == found[0][1]["gates"]
    # A threshold that points the wrong way is an error everywhere.
    assert run(["compare", "old.json", "new.json", "--gate", "slips >= 2"]) == 4


def test_a_gate_that_is_typed_counts_beside_no_gates(project: Project, both: list[str]) -> None:
    written(project, 1.0, 0.2, 'store = "off"\n[gates]\nslips = "<= 0.1"\n')
    done = project.run("--ragbench-no-gates", "--ragbench-gate=search_rag mean >= 0.9", *both)
    assert done.ret == 1
    done.stdout.fnmatch_lines(["FAIL *search_rag mean >= 0.9*"])
    assert "slips <= 0.1" not in done.stdout.str()
    assert project.run("--ragbench-no-gates", *both).ret == 0


def test_undecided_has_one_exit_code(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A function with another key is another judge; `gating.undecided` counts in each command."""
    written(project, 1.0, 0.9)
    project.run("--ragbench-no-gates", "--ragbench-json=old.json")
    project.monkeypatch.setenv("GRADER_KEY", "two")
    written(project, 1.0, 0.5)
    done = project.run("--ragbench-json=new.json", "-n", "2")
    assert done.ret == 10
    done.stdout.fnmatch_lines(
        ["UNDECIDED *search_rag no worse*the judge was grader (key *) and is grader (key *)*"]
    )
    project.monkeypatch.chdir(project.path)
    ask = said_by(capsys)
    decided = project.report("new.json")["gates"]
    code, told = ask("compare", "old.json", "new.json", "--json")
    assert (code, told["gates"]) == (10, decided)
    project.run("--ragbench-no-gates", "--ragbench-json=new.json")
    code, told = ask("merge", "new.json", "--json")
    assert (code, told["gates"]) == (10, decided)


CASCADE = """\
import pytest
import pytest_ragbench as rb

def scores():
    return [float(each) for each in open("scores.txt").read().split()]

def grader(messages):
    grade = messages[1]["content"].split("Grade: ")[1].split()[0]
    return '{"answer_correctness": %s, "groundedness": 1, "error_message": ""}' % grade

def strict(messages):
    down = open("down.txt").read()
    if down and down in messages[1]["content"]:
        raise ConnectionError("down")
    return grader(messages)

@pytest.mark.parametrize("n", range(8))
def test_it(n):
    from pytest_ragbench.judge.callable import callable_judge
    from pytest_ragbench.judge.panel import Panel
    members = tuple(callable_judge(each) for each in (grader, strict))
    answer = f"Grade: {scores()[n]} ."
    sample = rb.RagSample(f"What is {n}?", answer, ["a chunk"], id=f"q{n}")
    rb.assert_metric("search_rag", sample, ">=0.7", judge=Panel(members, "KIND"))
"""


@pytest.mark.parametrize("kind", ["cascade", "confirm", "panel"])
def test_which_member_answered_does_not_disarm_the_baseline(project: Project, kind: str) -> None:
    """A drop is seen although other judges answered: near the threshold, on a failure, or with one of them down."""
    rule = "--ragbench-gate=search_rag no worse than baseline by more than 0.02"
    project.write(test_a_py=CASCADE.replace("KIND", kind), ragbench_toml='store = "off"\n', down_txt="")
    project.write(scores_txt="0.95 " * 8)
    assert project.run("--ragbench-json=old.json").ret == 0
    # Within the cascade's margin, below the threshold, and with one of a panel's members down.
    project.write(scores_txt="0.75 " * 7 + "0.6", down_txt="What is 3" if kind == "panel" else "")
    done = project.run("--ragbench-json=new.json", "--ragbench-baseline=old.json", rule, "-n", "2")
    assert done.ret == 1
    done.stdout.fnmatch_lines(["FAIL *search_rag no worse*worse, over 8 questions*chance can't explain it*"])
    answered = {score["judge"] for each in project.report("new.json")["results"] for score in each["scores"]}
    assert answered != {
        score["judge"] for each in project.report("old.json")["results"] for score in each["scores"]
    }


SUITE = """\
tests:
  - name: answers
    questions: questions.csv
    thresholds:
      exact_match: ">=0"
"""


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_an_added_question_does_not_disarm_the_gate(
    project: Project, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests without Python, a run that is merged from its report, and two reports compared."""
    answered = ["yes"]

    def answer(question: str) -> Any:
        return {**default_answer(question), "answer": answered[0]}

    def rows(n: int) -> str:
        return "id,question,reference\n" + "".join(f"q{place},Is it {place}?,yes\n" for place in range(n))

    (project.path / "a.rag.yaml").write_text(SUITE, encoding="utf-8")
    project.write(questions_csv=rows(8), ragbench_toml='store = "off"\n')
    rule = "exact_match no worse than baseline by more than 0.02"
    with rag_server(answer) as server:
        url = f"--rag-url={server.url}"
        assert project.run(url, "--ragbench-json=old.json", *MODES[mode]).ret == 0
        answered[0] = "no"
        project.write(questions_csv=rows(9))
        worse = project.run(
            url, "--ragbench-json=new.json", "--ragbench-baseline=old.json", f"--ragbench-gate={rule}",
            *MODES[mode],
        )  # fmt: skip
    assert worse.ret == 1
    worse.stdout.fnmatch_lines(
        ["FAIL *1.000 worse, over 8 questions, 8 of them changed*", "*1 question added (q8)"]
    )
    gates = project.report("new.json")["gates"]
    assert gates[0]["comparison"]["notes"] == ["1 question added (q8)"]
    project.monkeypatch.chdir(project.path)
    ask = said_by(capsys)
    for command in (["compare", "old.json", "new.json"], ["merge", "new.json", "--baseline", "old.json"]):
        code, told = ask(*command, "--gate", rule, "--json")
        assert (code, told["gates"]) == (1, gates)
