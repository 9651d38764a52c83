"""Gates in real runs, with scripted judges, in every way to run pytest."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from pytest_ragbench.gates.rules import parse_rule
from pytest_ragbench.gates.verdicts import Verdict, exit_code_of
from tests.calibration.test_preflight import obeying
from tests.plugin.conftest import MODES, Project
from tests.servers.openai_server import OpenAIServer, error

# One test a question; the grade is what the answer says, "down" is a judge that can't be reached.
TESTS = """\
import pytest
import pytest_ragbench as rb
from pytest_ragbench.model.samples import Location

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
    sample = rb.RagSample(
        f"What is {place}?", answer, ["a chunk"], id=f"q{place}", lang="en" if place % 2 else "ru",
        tags=["odd"] if place % 2 else [], must_pass=place < 3, latency=0.2, location=Location("data/grades.csv"),
    )
    rb.assert_search_rag(sample, ">=0", judge=judge)
"""


def written(project: Project, grades: list[str]) -> Project:
    project.write(test_a_py=TESTS, grades_txt="\n".join(grades), ragbench_toml='store = "off"\n')
    return project


# Every kind of rule, half of them in the configuration and half on the command line.
CONFIGURED = """\
store = "off"
[gates]
search_rag_answer_correctness = ">= 0.75"
"search_rag_answer_correctness[lang=ru]" = "mean >= 0.5"
"search_rag_answer_correctness[tag=odd, tier=end_to_end]" = "p10 >= 0.7 with 95% confidence"
pass_rate = ">= 0.9 with 95% confidence"
latency = "p95 <= 2"
cost = "<= 1"
"""
TYPED = (
    "error_rate <= 0.02",
    "search_rag_groundedness median >= 0.9",
    "search_rag_groundedness pass_rate >= 0.9 with 95% confidence",
    "search_rag_answer_correctness[file=grades.csv] min >= 0.8",
    "must_pass",
)


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_gates_decide_alike_in_every_way_to_run(project: Project, mode: str) -> None:
    written(project, ["1", "0.9", "0.8", "1", "0.7", "0.9"] * 5)
    project.write(ragbench_toml=CONFIGURED)
    typed = [f"--ragbench-gate={rule}" for rule in TYPED]
    result = project.run("--ragbench-json=out.json", *typed, *MODES[mode])
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*= gates =*",
            "PASS       search_rag_answer_correctness >= 0.75   mean 0.88 over 30 questions: with 95% confidence "
            "at least 0.793",
            "PASS       search_rag_answer_correctness?lang=ru? mean >= 0.5   mean 0.83 over 15 questions, taken*",
            "FAIL       search_rag_answer_correctness?tag=odd, tier=end_to_end? p10 >= 0.7 with 95% confidence   p10 "
            "0.90 over 15 questions: with 95% confidence 81.9% of all can be vouched for, 0.081 short",
            "PASS       pass_rate >= 0.9 with 95% confidence   share 1.00 over 30 questions: *at least 0.905",
            "PASS       latency p95 <= 2   p95 0.2*",
            "UNDECIDED  cost <= 1   no price is known for judge*",
            "PASS       error_rate <= 0.02   share 0.00 over 30 questions*",
            "PASS       search_rag_groundedness median >= 0.9   median 1.00 over 30 questions*",
            "PASS       search_rag_groundedness pass_rate >= 0.9 with 95% confidence   share that passed 1.00*",
            "FAIL       search_rag_answer_correctness?file=grades.csv? min >= 0.8   min 0.70*",
            "PASS       must_pass   all 3 questions that must pass do",
        ]
    )
    report = project.report()
    gates = report["gates"]
    assert len(gates) == 11
    assert (gates[0]["n_scored"], gates[0]["n_total"], gates[0]["value"]) == (30, 30, pytest.approx(0.883333))
    assert gates[0]["n_clusters"] is None
    votes = [each["scores"][0]["votes"] for each in report["results"]]
    assert sorted(votes) == [1] * 27 + [2] * 3  # those that must pass: best of three, which agree after two


def test_a_gate_that_can_not_work_has_its_own_exit_code(project: Project) -> None:
    result = written(project, ["1"] * 10 + ["down"]).run(
        "--ragbench-gate=search_rag_answer_correctness >= 0.8", "--ragbench-json=out.json"
    )
    assert (result.ret, project.report()["exit_code"]) == (9, 9)
    assert project.report()["gates"][0]["verdict"] == "UNDECIDED"
    assert "RagbenchWarning: gate search_rag_answer_correctness >= 0.8: undecided" in result.stdout.str()


@pytest.mark.parametrize(
    ("verdicts", "undecided", "given", "code"),
    [
        ([("PASS", False)], "fail", 0, 0),
        ([("PASS", False)], "warn", 8, 8),
        ([("FAIL", False)], "warn", 0, 1),
        ([("FAIL", False)], "warn", 8, 1),
        ([("FAIL", False)], "warn", 5, 1),
        ([("FAIL", False)], "warn", 2, 2),
        ([("FAIL", False)], "warn", 4, 4),
        ([("UNDECIDED", True), ("FAIL", False)], "warn", 0, 1),
        ([("UNDECIDED", True)], "warn", 0, 9),
        ([("UNDECIDED", True)], "warn", 8, 9),
        ([("UNDECIDED", True)], "warn", 1, 1),
        ([("UNDECIDED", True)], "fail", 5, 5),
        ([("UNDECIDED", False)], "warn", 0, 0),
        ([("UNDECIDED", False)], "warn", 8, 8),
        ([("UNDECIDED", False)], "fail", 0, 10),
        ([("UNDECIDED", False)], "fail", 8, 8),
    ],
)
def test_exit_codes(verdicts: list[tuple[Any, bool]], undecided: str, given: int, code: int) -> None:
    rule = parse_rule("faithfulness >= 0.8")
    found = [Verdict(rule, outcome, "so", broken=broken) for outcome, broken in verdicts]
    assert exit_code_of(found, given, undecided_fails=undecided == "fail") == code


def test_a_gate_that_can_not_be_meant_ends_the_run_before_any_call(project: Project) -> None:
    written(project, ["1"])
    result = project.run("--ragbench-gate=faithfullness >= 0.8", "-n", "2")
    assert result.ret == 4
    assert "did you mean 'faithfulness'" in result.stderr.str()
    assert "passed" not in result.stdout.str()


def test_no_gate_decides_where_no_test_is_run(project: Project, both: list[str]) -> None:
    written(project, ["0.9"] * 3)
    result = project.run(
        "--ragbench-gate=faithfulness >= 0.8", "--collect-only", "--ragbench-json=out.json", *both
    )
    assert result.ret == 0
    assert "gates" not in result.stdout.str()
    assert "undecided" not in result.stdout.str()
    assert not (project.path / "out.json").exists()
    # An editor still finds the tests of a project whose baseline is not there.
    assert project.run("--ragbench-baseline=nowhere.json", "--collect-only", *both).ret == 0
    assert project.run("--ragbench-baseline=nowhere.json", *both).ret == 4


def test_a_baseline(project: Project, both: list[str]) -> None:
    """In a file, or the last run of a branch; one is taken in one process, the other in two."""
    for command in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "one"]):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=project.path, check=True
        )
    written(project, ["0.9", "0.8"] * 6)
    assert project.run("--ragbench-json=old.json", "--ragbench-history=runs.sqlite", *both).ret == 0
    rule = "--ragbench-gate=search_rag_answer_correctness no worse than baseline by more than 0.02"
    written(project, ["0.7", "0.6"] * 4 + ["0.9", "0.8"] * 2)
    earlier = (
        ["--ragbench-baseline=main", "--ragbench-history=runs.sqlite"]
        if both
        else ["--ragbench-baseline=old.json"]
    )
    worse = project.run(*earlier, "--ragbench-json=new.json", "--ragbench-html=page.html", rule, *both)
    assert worse.ret == 1
    worse.stdout.fnmatch_lines(
        [
            "FAIL *0.717 after 0.850, 0.133 worse, over 12 questions, 8 of them changed, and chance can't explain it*",
            "compared with main (run of 20*, commit *)" if both else "compared with *old.json",
        ]
    )
    assert "  worse  0.90 -> 0.70  q0" in worse.stdout.str()
    new = json.loads((project.path / "new.json").read_text())
    assert new["baseline"]["metrics"][0]["metric"] == "search_rag_answer_correctness"
    assert new["gates"][0]["comparison"]["n_changed"] == 8
    if not both:
        # Without any report, too, the run knows its prompts.
        old = json.loads((project.path / "old.json").read_text())
        old["run"]["prompts"]["grade_search_rag"] = "0-earlier"
        (project.path / "other.json").write_text(json.dumps(old))
        changed = project.run("--ragbench-baseline=other.json", rule)
        changed.stdout.fnmatch_lines(
            ["UNDECIDED *not comparable: the judge's prompt changed (grade_search_rag)*"]
        )
        unknown = project.run("--ragbench-baseline=release", "--ragbench-history=runs.sqlite", rule)
        assert unknown.ret == 4
        assert "no complete run of a branch release with scores; it has: main" in unknown.stderr.str()


VOTES = """\
import pytest
import pytest_ragbench as rb
from pytest_ragbench.model.samples import Location

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


def test_votes_and_panels_in_a_run(project: Project) -> None:
    project.write(test_a_py=VOTES, ragbench_toml='store = "off"\nvotes = 3\njudge = "local"\n')
    result = project.run("--ragbench-json=out.json", "--ragbench-preflight", "-n", "2")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(
        [
            "flaky: q1 search_rag: votes 0.90, 0.20, 0.90, spread 0.70, self-agreement 0.33",
            "panel: search_rag: judge 0.900, strict 0.800;*",
        ]
    )
    report = project.report()
    assert [each["question"] for each in report["flaky"]] == ["q1"]
    votes = {each["question_id"]: [s["votes"] for s in each["scores"]] for each in report["results"]}
    assert votes == {"q0": [2], "q1": [3], "q2": [2], "q9": [2], "q5": [1]}
    replies = {each["question_id"]: each["scores"][0].get("replies", []) for each in report["results"]}
    assert [(each["task"], each["judge"], each["vote"]) for each in replies["q1"]] == [
        ("grade_search_rag", "judge", vote) for vote in (1, 2, 3)
    ]
    assert {each["judge"] for each in replies["q9"]} == {"judge", "strict"}
    assert replies["q5"] == []
    # A report with all that a run has at times only: Project.report() lets no field pass that has no model.
    assert report["panels"][0]["judges"] == ["judge", "strict"]
    assert report["preflight"]["passed"] is True
    assert report["run"]["prompts"].keys() >= {"verify_claims"}
    assert [each["questions"][0]["id"] for each in report["results"] if each["questions"]] == ["q5"]


ANCHOR = {
    "question_id": "q", "metric": "faithfulness", "claim": "It opens at nine.", "verdict": True, "human_verdict": False,
    "question": "When does it open?", "answer": "It opens at nine.", "contexts": ["It opens at nine."],
}  # fmt: skip


YES_MAN = """\
import json
import pytest
import pytest_ragbench as rb

@pytest.fixture(scope="module")
def judge():
    def yes_man(messages):
        with open("calls.txt", "a") as file:
            file.write("x")
        if "<claim-" not in messages[1]["content"]:
            return json.dumps({"reason": "r", "grade": 0})
        return json.dumps({"verdicts": {"1": {"reason": "r", "chunk": 1, "verdict": True}}})
    return yes_man

@pytest.mark.parametrize("n", range(2))
def test_it(n):
    rb.assert_metric("answer_relevancy_holistic", rb.RagSample(f"{n}?", "an answer"), ">=0")
"""


def test_a_failed_preflight_fails_the_run_before_any_test(project: Project) -> None:
    project.write(
        test_a_py="def test_it(): open('ran.txt', 'w').close()\n",
        anchors_jsonl=json.dumps(ANCHOR),
        ragbench_toml='store = "off"\njudge = "local"\n[preflight]\nenabled = true\nanchors = "anchors.jsonl"\n',
    )
    result = project.run("-n", "2")
    assert result.ret == 1
    assert "preflight: the judge local failed 1 of" in result.stderr.str()
    assert "anchor q faithfulness: It opens at nine." in result.stderr.str()
    assert not (project.path / "ran.txt").exists()
    # A fixture's own judge has a preflight of its own, before the first test that asks it.
    project.write(anchors_jsonl=json.dumps({**ANCHOR, "human_verdict": True}), test_b_py=YES_MAN)
    passing = project.run("--ragbench-json=out.json", "-p", "no:xdist")
    passing.assert_outcomes(passed=1, errors=2)
    assert passing.ret == 8
    assert project.report()["preflight"]["passed"] is True
    said = "preflight: the judge yes_man failed 9 of 18 checks, so it judges nothing"
    assert passing.stdout.str().count(f"E   JudgeError: {said}") == 1
    assert "the same in 1 more test" in passing.stdout.str()
    assert (project.path / "calls.txt").read_text().count("x") == 24
    # Each rating twice, since this judge gives none; and without orders, once in each language.


def test_the_kind_of_orders_that_a_judge_obeyed_is_said(
    project: Project, both: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KEY", "k")
    project.write(
        ragbench_toml='judge = "lab"\nstore = "off"\n[preflight]\nenabled = true\n[providers.lab]\n'
        'base_url = "{url}"\nmodel = "m"\napi_key_env = "FAKE_KEY"\n',
        test_a_py="def test_it(): pass\n",
    )
    toml = (project.path / "ragbench.toml").read_text()
    for kind, ret in (("base64", 1), (None, 0)):
        with OpenAIServer(obeying(kind)) as server:
            (project.path / "ragbench.toml").write_text(toml.replace("{url}", server.url))
            result = project.run(*both)
        assert result.ret == ret
        told = result.stderr.str() + result.stdout.str()
        assert ("orders in the answer en (obeyed: base64)   the judge said yes" in told) == (kind == "base64")
    with OpenAIServer([error(500, "down")]) as server:
        (project.path / "ragbench.toml").write_text(
            toml.replace("{url}", server.url) + "retry = {attempts = 1}\n"
        )
        assert project.run(*both).ret == 8


MUTATED = """\
import pytest
import pytest_ragbench as rb

@pytest.mark.parametrize("place", range(6))
def test_it(place):
    answer = f"Parcel {place} weighs {place + 20} kg. It goes through Osaka."
    names = [f"{place}{letter}" for letter in "abcd"]
    chunks = [f"Something else, {place}.", answer, f"Another, {place}.", f"And one more, {place}."]
    sample = rb.RagSample(
        f"Where is {place}?", answer, chunks, id=f"q{place}", context_ids=names, relevant_ids=[names[0]]
    )
    rb.assert_quality(sample, {"faithfulness": ">=0.9", "mrr": ">=0.5"})

def test_all():
    samples = [
        rb.RagSample(f"And {n}?", context_ids=[f"{n}{x}" for x in "abcd"], relevant_ids=[f"{n}a"], id=f"r{n}")
        for n in range(4)
    ]
    rb.assert_over(samples, "ndcg@2", ">=0.8")

def test_bad():
    rb.assert_faithfulness(rb.RagSample("?", "It is 5 kg.", ["It is 9 kg."], id="bad"), ">=0.9")
"""


def test_worse_answers_after_a_run(project: Project, both: list[str]) -> None:
    project.write(test_a_py=MUTATED, ragbench_toml='judge = "local"\n[gates]\nfaithfulness = "mean >= 0.8"\n')
    result = project.run("--ragbench-mutate", "--ragbench-json=out.json", *both)
    assert result.ret == 1  # of the test that fails; worse answers decide nothing
    result.stdout.fnmatch_lines(
        ["*= worse answers =*", "faithfulness: variants of 6 answers that passed", "*number *is caught *6/6*",
         "mrr: variants of 6 answers that passed", "*ranking_reversed *6/6*", "gates, if every question*",
         "*FAIL * faithfulness mean >= 0.8 * number 6/7*"]
    )  # fmt: skip
    told = project.report()["mutations"]
    kinds = {each["metric"]: {row["kind"]: row["right"] for row in each["kinds"]} for each in told["metrics"]}
    assert kinds["mrr"] == {
        "other_contexts": 6,
        "without_support": 6,
        "ranking_reversed": 6,
        "tail_reversed": 6,
    }
    assert kinds["ndcg@2"] == {
        "other_contexts": 4,
        "without_support": 4,
        "ranking_reversed": 4,
        "tail_reversed": 4,
    }
    assert kinds["faithfulness"].keys() >= {"number", "unit", "name", "added_claim", "chunks_reversed"}
    assert all(each["caught"] > 0.5 for each in told["metrics"])
