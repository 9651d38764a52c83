"""The denominator of the gates is what was collected, in every way to run pytest."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.plugin.conftest import MODES, Project

CONFTEST = """\
import os
import pytest

@pytest.fixture(scope="session")
def retriever():
    return lambda question: {"answer": "yes", "contexts": ["a chunk"]}

@pytest.fixture
def own(request):
    if request.getfixturevalue("rag_question").id in os.environ.get("BROKEN", "").split():
        raise KeyError("a fixture of the user's")
    if request.getfixturevalue("rag_question").id in os.environ.get("SKIPPED", "").split():
        pytest.skip("in a fixture")
"""
# Every test would score 1 where it came to that.
TESTS = """\
import os
import pytest
from pytest_ragbench import assert_metric

ROWS = [
    {"id": f"q{n}", "question": f"Is it {n}?", "reference": "yes", "tags": ["few"] if n < 6 else ["most"],
     "must_pass": n == 0}
    for n in range(30)
]
WHAT = dict(pair.split("=") for pair in os.environ.get("WHAT", "").split())

@pytest.mark.rag_questions(ROWS)
def test_it(rag_sample, own):
    match WHAT.get(rag_sample.id):
        case "skip":
            pytest.skip("not today")
        case "xfail":
            pytest.xfail("known to be bad")
        case "error":
            raise ZeroDivisionError
        case "crash":
            os._exit(3)
        case "exit":
            pytest.exit("enough", returncode=0)
    assert_metric("exact_match", rag_sample, 1)

@pytest.mark.skip(reason="no other test asks for this metric")
@pytest.mark.rag_questions(ROWS[1:7])
def test_skipped(rag_sample):
    assert_metric("token_f1", rag_sample, 1)
"""
PLAIN = """\
import os
import pytest
import pytest_ragbench as rb

BAD = os.environ.get("PLAIN", "").split()

@pytest.mark.parametrize("place", range(20))
def test_plain(place):
    if str(place) in BAD:
        pytest.skip("a test without our fixtures")
    rb.assert_metric("bleu", rb.RagSample(f"{place}?", "the same words again", reference="the same words again"), ">=1")
"""
GATES = {"exact_match": "mean >= 0.5", "exact_match[tag=few]": "mean >= 0.5", "token_f1": "mean >= 0.1",
         "bleu": "mean >= 1", "must_pass": True, "latency": "p95 <= 9"}  # fmt: skip


@pytest.fixture
def suite(project: Project) -> Project:
    gates = "".join(f'"{name}" = {"true" if rule is True else repr(rule)}\n' for name, rule in GATES.items())
    project.write(
        conftest_py=CONFTEST,
        test_a_py=TESTS,
        test_b_py=PLAIN,
        ragbench_toml=f'store = "off"\n[gates]\n{gates}',
    )
    return project


def decided(project: Project, *args: str, **environ: str) -> tuple[int, dict[str, tuple[str, int, int]], Any]:
    """Exit code; gate -> (verdict, scored, collected); report."""
    with project.monkeypatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        result = project.run("--ragbench-json=out.json", *args)
    report = project.report()
    return result.ret, verdicts(report), report


def verdicts(report: Any) -> dict[str, tuple[str, int, int]]:
    return {
        each["gate"].partition(" ")[0]: (each["verdict"], each["n_scored"], each["n_total"])
        for each in report["gates"]
    }


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_what_has_no_score_stays_in_the_denominator(suite: Project, mode: str) -> None:
    how = MODES[mode]
    ids = [f"q{n}" for n in range(30)]
    code, gates, report = decided(suite, *how)
    assert (code, gates["exact_match"], gates["bleu"]) == (9, ("PASS", 30, 30), ("PASS", 20, 20))
    assert gates["token_f1"] == ("UNDECIDED", 0, 6)
    assert (gates["must_pass"], gates["latency"]) == (("PASS", 1, 1), ("PASS", 30, 30))
    what = " ".join(
        f"{name}={word}" for name, word in zip(ids[6:], ["skip", "xfail", "error"] * 4, strict=False)
    )
    code, gates, report = decided(suite, *how, WHAT=what, BROKEN="q1", SKIPPED="q2", PLAIN="1 2 3")
    assert code == 1
    assert gates["exact_match"] == ("UNDECIDED", 16, 30)
    assert gates["exact_match[tag=few]"] == ("UNDECIDED", 4, 6)
    assert gates["bleu"] == ("UNDECIDED", 17, 20)
    assert report["complete"] is True
    reason = next(each["reason"] for each in report["gates"] if each["gate"].startswith("exact_match "))
    for said in (
        "5 skipped",
        "4 xfailed",
        "4 whose test failed before",
        "1 ended by an error of the test's own",
    ):
        assert said in reason


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_a_run_that_ends_halfway_passes_nothing(suite: Project, mode: str) -> None:
    """By pytest.exit, by a crash (where there are workers), by the first failure."""
    how = MODES[mode]
    code, gates, report = decided(suite, *how, WHAT="q15=exit")
    assert code != 0
    assert report["complete"] is False
    verdict, scored, total = gates["exact_match"]
    assert (verdict, total) == ("UNDECIDED", 30)
    assert 10 < scored < 30
    assert gates["bleu"][0] == "UNDECIDED"
    if mode == "n2":
        code, gates, report = decided(suite, *how, WHAT="q0=crash")
        assert (code, report["complete"]) == (1, False)
        assert gates["exact_match"] == ("UNDECIDED", 29, 30)
        assert gates["must_pass"] == ("FAIL", 0, 1)
        assert [(each["test"], each["outcome"]) for each in report["missing"]] == [
            ("test_a.py::test_it[q0]", "crashed")
        ]
    else:
        code, gates, report = decided(suite, *how, "-x", WHAT="q15=error")
        assert (code, gates["exact_match"]) == (1, ("UNDECIDED", 15, 30))


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_a_run_of_a_part_passes_no_gate_of_the_whole(suite: Project, mode: str) -> None:
    how = MODES[mode]
    code, gates, report = decided(suite, *how, "-k", "test_it and not q29")
    assert (code, gates["exact_match"]) == (9, ("UNDECIDED", 29, 30))
    assert gates["exact_match[tag=few]"] == ("PASS", 6, 6)
    said = next(each["reason"] for each in report["gates"] if each["gate"].startswith("exact_match "))
    assert "the run is partial (1 question deselected)" in said
    code, gates, report = decided(suite, *how, *(f"test_a.py::test_it[q{n}]" for n in range(1, 6)))
    assert (code, gates["exact_match"]) == (1, ("UNDECIDED", 5, 30))
    assert (gates["must_pass"], gates["exact_match[tag=few]"]) == (("FAIL", 0, 1), ("UNDECIDED", 5, 6))


def merged(project: Project, *names: str) -> tuple[int, dict[str, tuple[str, int, int]]]:
    """In a process of its own, as what runs inside a test here unloads modules after it."""
    command = [sys.executable, "-m", "pytest_ragbench.cli", "merge", *names, "-o", "merged.json"]
    result = project.pytester.run(*command, timeout=60)
    return result.ret, verdicts(project.report("merged.json"))


def test_shards_make_one_run(suite: Project) -> None:
    """What one leaves out another has; what none of them ran is missing."""

    def shard(name: str, chosen: str, plain: str = "") -> None:
        suite.monkeypatch.setenv("PLAIN", plain)
        suite.run(f"--ragbench-json={name}.json", "--ragbench-no-gates", "-k", chosen)

    shard("one", "test_it and not q2")
    shard("two", "q2 or test_plain or test_skipped")
    code, _, report = decided(suite, "-p", "no:xdist")
    assert merged(suite, "one.json", "two.json") == (code, verdicts(report))
    shard("two", "q21 or test_plain", plain="1")
    code, gates = merged(suite, "one.json", "two.json")
    assert (code, gates["exact_match"], gates["bleu"]) == (9, ("UNDECIDED", 20, 30), ("PASS", 19, 20))


RERUN = """\
import pytest
from pytest_ragbench import RagSample, assert_metric

TRIES = {}

@pytest.mark.parametrize("place", range(20))
def test_it(place):
    TRIES[place] = TRIES.get(place, 0) + 1
    right = place % 2 == 0 or TRIES[place] > 3
    sample = RagSample(f"{place}?", "a" if right else "b", reference="a", id=f"q{place}", must_pass=place == 1)
    assert_metric("exact_match", sample, 1)
"""


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_reruns_are_votes(project: Project, mode: str) -> None:
    """Half of the questions are answered rightly at the fourth attempt only: .25 each, .625 together."""
    project.write(test_a_py=RERUN, ragbench_toml='store = "off"\n')
    rules = (
        "exact_match >= 0.9 with 95% confidence",
        "exact_match mean >= 0.62",
        "pass_rate >= 0.9",
        "must_pass",
    )
    gates = [f"--ragbench-gate={rule}" for rule in rules]
    result = project.run("--reruns", "8", "--ragbench-json=out.json", *gates, *MODES[mode])
    assert result.ret == 1
    result.assert_outcomes(passed=20)
    report = project.report()
    assert [each["verdict"] for each in report["gates"]] == ["FAIL", "PASS", "FAIL", "FAIL"]
    assert report["gates"][1]["value"] == pytest.approx(0.625)
    assert report["gates"][2]["value"] == pytest.approx(0.625)
    assert sorted(each.get("reruns", 0) for each in report["results"]) == [0] * 10 + [3] * 10
    told = "rerun: q1 exact_match: 0.00, then 0.00, then 0.00, then 1.00; each counts, so its score is 0.25"
    assert told in result.stdout.str()


YAML = """\
tests:
  - name: skipped
    questions: [{id: y1, question: "Is it 1?", reference: "yes", must_pass: true}, {question: "2?", reference: "yes"}]
    thresholds: {exact_match: 1}
    skip: not now
  - name: asked
    questions: [{id: y3, question: "Is it 3?", reference: "yes"}, {id: y4, question: "Is it 4?", reference: "yes"}]
    thresholds: {exact_match: 1}
"""
SETS = """\
import os
import pytest
from pytest_ragbench import assert_metric, assert_over

ROWS = [{"id": f"s{n}", "question": f"Set {n}?", "reference": "yes"} for n in range(10)]

@pytest.mark.rag_questions(ROWS[:5])
def test_set(rag_samples):
    assert_over(rag_samples, "exact_match", ">=0.5")

@pytest.mark.rag_questions(ROWS[5:])
def test_other_set(rag_samples):
    pytest.skip("not today")
    assert_over(rag_samples, "exact_match", ">=0.5")

@pytest.mark.rag_questions([{"id": "z", "question": "The last one?", "reference": "yes"}])
def test_z(rag_sample):
    if os.environ.get("WHAT"):
        raise KeyboardInterrupt
    assert_metric("exact_match", rag_sample, 1)
"""


@pytest.mark.parametrize("mode", ["none", "n2", "no-xdist"])
def test_tests_in_yaml_and_whole_sets_count_each_question(project: Project, mode: str) -> None:
    gates = '[gates]\nexact_match = "mean >= 0.5"\nmust_pass = true\n'
    project.write(conftest_py=CONFTEST, test_b_py=SETS, ragbench_toml=f'store = "off"\n{gates}')
    (project.path / "a.rag.yaml").write_text(YAML)
    code, found, _ = decided(project, *MODES[mode])
    assert (code, found["exact_match"], found["must_pass"]) == (1, ("UNDECIDED", 8, 15), ("FAIL", 0, 1))
    code, found, report = decided(project, *MODES[mode], WHAT="Ctrl-C")
    assert (code, report["complete"], found["exact_match"]) == (2, False, ("UNDECIDED", 7, 15))
