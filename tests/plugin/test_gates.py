"""Gates in real runs, with scripted judges, in every way to run pytest."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Project

# One test a question; the grade is what the answer says, "down" is a judge that can't be reached.
TESTS = """\
import pytest
import pytest_ragbench as rb

def judge(messages):
    grade = messages[1]["content"].split("Grade: ")[1].split()[0]
    if grade == "down":
        raise ConnectionError("the judge is down")
    return '{"answer_correctness": %s, "groundedness": 1, "error_message": ""}' % grade

def grades():
    with open("grades.txt", encoding="utf-8") as file:
        return file.read().split()

@pytest.mark.parametrize("place", range(len(grades())))
def test_it(place):
    answer = f"Grade: {grades()[place]} ."
    sample = rb.RagSample(f"What is {place}?", answer, ["a chunk"], id=f"q{place}", lang="en" if place % 2 else "ru")
    rb.assert_search_rag(sample, answer_correctness=">=0", judge=judge)
"""


def written(project: Project, grades: list[str]) -> Project:
    project.write(test_a_py=TESTS, grades_txt="\n".join(grades), ragbench_toml='store = "off"\n')
    return project


def test_gates_decide_alike_in_every_way_to_run(project: Project, mode: list[str]) -> None:
    written(project, ["1", "0.9", "0.8", "1", "0.7", "0.9"] * 5)
    (project.path / "ragbench.toml").write_text(
        'store = "off"\n[gates]\n"search_rag_answer_correctness" = ">= 0.8"\n'
        '"search_rag_answer_correctness[lang=ru]" = "mean >= 0.5"\npass_rate = ">= 0.9 with 95% confidence"\n'
    )
    result = project.run("--ragbench-json=out.json", "--ragbench-gate=error_rate <= 0.02", *mode)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*= gates =*",
            "PASS       search_rag_answer_correctness >= 0.8   mean 0.88 over 30 questions: with 95% confidence "
            "at least 0.853",
            "PASS       search_rag_answer_correctness?lang=ru? mean >= 0.5   mean 0.83 over 15 questions, taken*",
            "PASS       pass_rate >= 0.9 with 95% confidence   share 1.00 over 30 questions: *at least 0.905",
            "PASS       error_rate <= 0.02   share 0.00 over 30 questions*",
        ]
    )
    gates = project.report()["gates"]
    assert [gate["verdict"] for gate in gates] == ["PASS"] * 4
    assert (gates[0]["n_scored"], gates[0]["n_total"], gates[0]["value"]) == (30, 30, pytest.approx(0.883333))


@pytest.mark.parametrize(
    ("grades", "options", "code", "verdict"),
    [
        (["0.5", "0.6"] * 10, [], 1, "FAIL"),
        (["1", "0.9", "0.6", "0.9"], [], 0, "UNDECIDED"),
        (["1", "0.9", "0.6", "0.9"], ["RAGBENCH_GATING__UNDECIDED=fail"], 10, "UNDECIDED"),
        (["1"] * 30 + ["down"] * 3, [], 9, "UNDECIDED"),
        (["1"] * 30 + ["down"], [], 8, "PASS"),
        (["0.1"] * 30 + ["down"], [], 1, "FAIL"),
    ],
)
def test_exit_codes(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    grades: list[str],
    options: list[str],
    code: int,
    verdict: str,
) -> None:
    for option in options:
        monkeypatch.setenv(*option.split("=", 1))
    written(project, grades)
    result = project.run("--ragbench-gate=search_rag_answer_correctness >= 0.8", "--ragbench-json=out.json")
    assert result.ret == code
    [gate] = project.report()["gates"]
    assert gate["verdict"] == verdict
    assert project.report()["exit_code"] == code
    if verdict == "UNDECIDED":
        assert "RagbenchWarning: gate search_rag_answer_correctness >= 0.8: undecided" in result.stdout.str()


def test_a_gate_that_can_not_be_meant_ends_the_run_before_any_call(project: Project, both: list[str]) -> None:
    written(project, ["1"])
    result = project.run("--ragbench-gate=faithfullness >= 0.8", *both)
    assert result.ret == 4
    assert "did you mean 'faithfulness'" in result.stderr.str()
    assert "passed" not in result.stdout.str()


def test_a_baseline(project: Project, both: list[str]) -> None:
    written(project, ["0.9", "0.8"] * 6)
    assert project.run("--ragbench-json=old.json", *both).ret == 0
    rule = "--ragbench-gate=search_rag_answer_correctness no worse than baseline by more than 0.02"
    same = project.run("--ragbench-baseline=old.json", rule, *both)
    assert same.ret == 0
    same.stdout.fnmatch_lines(["PASS *no worse than baseline*the same as the baseline, 0.850*"])
    written(project, ["0.7", "0.6"] * 4 + ["0.9", "0.8"] * 2)
    worse = project.run("--ragbench-baseline=old.json", "--ragbench-json=new.json", rule, *both)
    assert worse.ret == 1
    worse.stdout.fnmatch_lines(
        [
            "FAIL *0.717 after 0.850, 0.133 worse, over 12 questions, 8 of them changed, and chance is no excuse*"
        ]
    )
    assert "  worse  0.90 -> 0.70  q0" in worse.stdout.str()
    new = json.loads((project.path / "new.json").read_text())
    assert new["baseline"]["metrics"][0]["metric"] == "search_rag_answer_correctness"
    assert new["gates"][0]["comparison"]["n_changed"] == 8
    missing = project.run("--ragbench-baseline=none.json", rule, *both)
    assert missing.ret == 4
    assert "none.json: can't be read" in missing.stderr.str()


VOTES = """\
import pytest
import pytest_ragbench as rb

CALLS = {}

def judge(messages):
    text = messages[1]["content"]
    name = text.split("What is ")[1][0]
    CALLS[name] = CALLS.get(name, 0) + 1
    grade = 0.2 if name == "1" and CALLS[name] == 2 else 0.9
    return '{"answer_correctness": %s, "groundedness": 1, "error_message": ""}' % grade

def strict(messages):
    return '{"answer_correctness": 0.8, "groundedness": 1, "error_message": ""}'

@pytest.mark.parametrize("place", range(3))
def test_it(place):
    sample = rb.RagSample(f"What is {place}?", "an answer", ["a chunk"], id=f"q{place}")
    rb.assert_metric("search_rag", sample, ">=0.7", judge=judge)

def test_panel():
    sample = rb.RagSample("What is 9?", "an answer", ["a chunk"], id="q9")
    rb.assert_metric("search_rag", sample, ">=0.7", judge=[judge, strict])

@pytest.mark.rag_questions([{"id": "q5", "question": "Where?"}])
def test_another(rag_question):
    rb.assert_metric("exact_match", rb.RagSample("Who?", "I", reference="I", id="q6"), 1)
"""


def test_votes_and_panels_in_a_run(project: Project, both: list[str]) -> None:
    project.write(test_a_py=VOTES, ragbench_toml='store = "off"\nvotes = 3\njudge = "local"\n')
    result = project.run("--ragbench-json=out.json", "--ragbench-preflight", *both)
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "flaky: q1 search_rag: votes 0.90, 0.20, 0.90, self-agreement 0.33",
            "panel: search_rag: judge 0.900, strict 0.800;*",
        ]
    )
    report = project.report()
    assert [each["question"] for each in report["flaky"]] == ["q1"]
    votes = {each["question_id"]: [s["votes"] for s in each["scores"]] for each in report["results"]}
    assert votes == {"q0": [2], "q1": [3], "q2": [2], "q9": [2], "q5": [1]}
    # A report with all that a run has at times only: Project.report() lets no field pass that has no model.
    assert report["panels"][0]["judges"] == ["judge", "strict"]
    assert report["preflight"]["passed"] is True
    assert report["run"]["prompts"].keys() >= {"verify_claims"}
    assert [each["questions"][0]["id"] for each in report["results"] if each["questions"]] == ["q5"]


ANCHOR = {
    "question_id": "q", "metric": "faithfulness", "claim": "It opens at nine.", "verdict": True, "human_verdict": False,
    "question": "When does it open?", "answer": "It opens at nine.", "contexts": ["It opens at nine."],
}  # fmt: skip


def test_a_failed_preflight_fails_the_run_before_any_test(project: Project, both: list[str]) -> None:
    project.write(
        test_a_py="def test_it(): open('ran.txt', 'w').close()\n",
        anchors_jsonl=json.dumps(ANCHOR),
        ragbench_toml='store = "off"\njudge = "local"\n[preflight]\nenabled = true\nanchors = "anchors.jsonl"\n',
    )
    result = project.run(*both)
    assert result.ret == 1
    assert "preflight: the judge local failed 1 of" in result.stderr.str()
    assert "anchor q faithfulness: It opens at nine." in result.stderr.str()
    assert not (project.path / "ran.txt").exists()
    project.write(anchors_jsonl=json.dumps({**ANCHOR, "human_verdict": True}))
    passing = project.run("--ragbench-json=out.json", *both)
    assert passing.ret == 0
    assert project.report()["preflight"]["passed"] is True
