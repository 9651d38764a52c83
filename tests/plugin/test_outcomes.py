"""Whose fault it is decides the outcome, in every way to run pytest."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.plugin.conftest import Project
from tests.servers.rag_server import RagServer, rag_server

PRELUDE = """\
import pytest
import pytest_ragbench as rb

SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], id="long")

def says(grade, message=""):
    return lambda messages: (
        '{"answer_correctness": %s, "groundedness": %s, "error_message": "%s"}' % (grade, grade, message))

def down(messages):
    raise ConnectionError("the judge is down")
"""

KINDS = (
    PRELUDE
    + """
def test_passes():
    rb.assert_search_rag(SAMPLE, judge=says(0.9))

def test_quality():
    rb.assert_search_rag(SAMPLE, judge=says(0.2, "no such window"))

def test_judge():
    rb.assert_search_rag(SAMPLE, judge=down)

def test_usage():
    rb.assert_search_rag(SAMPLE, "<=0.7", judge=says(0.9))

def test_undefined():
    rb.assert_faithfulness(SAMPLE, ">=0.8", judge=lambda messages: '{"claims": []}')
"""
)


def test_the_three_kinds_of_bad_outcome(project: Project, mode: list[str]) -> None:
    project.write(test_a_py=KINDS)
    result = project.run("--junitxml=j.xml", "--ragbench-json=out.json", *mode)
    result.assert_outcomes(passed=1, failed=1, errors=3)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["1 passed, 1 quality failure, 1 judge error, 1 usage error, 1 undefined score"]
    )
    result.stdout.fnmatch_lines_random(
        [
            "FAILED test_a.py::test_quality - answer_correctness 0.20, wanted >=0.7: no such window*",
            "ERROR test_a.py::test_judge - JudgeError: *ConnectionError: the judge is down*",
            "ERROR test_a.py::test_usage - UsageError: threshold '<=0.7' *higher is better*",
            "ERROR test_a.py::test_undefined - UndefinedScore: *no statements*",
        ]
    )
    cases = {
        str(case.get("name")): [child.tag for child in case if child.tag != "properties"]
        for case in ET.parse(project.path / "j.xml").iter("testcase")
    }
    assert cases == {
        "test_passes": [],
        "test_quality": ["failure"],
        "test_judge": ["error"],
        "test_usage": ["error"],
        "test_undefined": ["error"],
    }
    kinds = {record["test"].split("::")[1]: record["kind"] for record in project.report()["results"]}
    assert kinds == {
        "test_passes": None,
        "test_quality": "quality",
        "test_judge": "judge",
        "test_usage": "usage",
        "test_undefined": "undefined",
    }


def test_how_pytest_shows_a_run_changes_no_outcome(project: Project) -> None:
    """More of pytest's options, and versions of it: ``benchmarks/pytest_options.py``."""
    project.write(test_a_py=KINDS)
    for options in (
        ["--tb=native"],
        ["--tb=native", "-n", "2"],
        ["--tb=native", "--full-trace"],
        ["--tb=line"],
        ["-p", "no:terminal"],
        ["-W", "error", "--import-mode=importlib", "--setup-show", "--capture=no"],
    ):
        result = project.run("--ragbench-json=out.json", *options)
        assert result.ret == 1, options
        assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str(), options
        kinds = {record["test"].split("::")[1]: record["kind"] for record in project.report()["results"]}
        assert list(map(kinds.get, ("test_quality", "test_judge", "test_usage", "test_undefined"))) == [
            "quality",
            "judge",
            "usage",
            "undefined",
        ], options
    text = project.run("--tb=native", "-k", "quality").stdout.str()
    assert 'test_a.py", line 17, in test_quality' in text
    assert "E   answer_correctness 0.20, wanted >=0.7: no such window" in text
    assert "assertions/" not in text
    assert "pluggy" not in text.partition("FAILURES")[2]


@pytest.mark.parametrize(
    ("chosen", "code"),
    [
        ("passes", 0),
        ("quality", 1),
        ("judge", 8),
        ("undefined", 8),
        ("usage", 4),
        ("judge or passes", 8),
        ("judge or usage", 4),
        ("judge or quality", 1),
    ],
)
def test_exit_codes(project: Project, chosen: str, code: int) -> None:
    project.write(test_a_py=KINDS)
    assert project.run("-k", chosen).ret == code


@pytest.mark.parametrize(("chosen", "code"), [("judge", 8), ("judge or usage", 4), ("judge or quality", 1)])
def test_exit_codes_with_workers(project: Project, chosen: str, code: int) -> None:
    project.write(test_a_py=KINDS)
    assert project.run("-k", chosen, "-n", "2").ret == code


def test_an_ordinary_failure_beside_an_outage_is_a_failure(project: Project, both: list[str]) -> None:
    project.write(
        test_a_py=PRELUDE
        + "\ndef test_j(): rb.assert_search_rag(SAMPLE, judge=down)\ndef test_o(): assert 0\n"
    )
    assert project.run(*both).ret == 1


def test_xfail_hides_bad_quality_but_no_outage(project: Project, mode: list[str]) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
@pytest.mark.xfail
def test_quality():
    rb.assert_search_rag(SAMPLE, judge=says(0.2))

@pytest.mark.xfail
def test_judge():
    rb.assert_search_rag(SAMPLE, judge=down)

@pytest.mark.xfail(strict=True)
def test_usage():
    rb.assert_search_rag(SAMPLE, "nonsense", judge=down)
"""
    )
    result = project.run(*mode)
    result.assert_outcomes(xfailed=1, errors=2)
    assert result.ret == 4


def test_only_outages_are_rerun_by_their_documented_name(project: Project, mode: list[str]) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
from pathlib import Path

def counted(name):
    path = Path(name)
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())

def test_quality():
    assert counted("quality.txt") == 1, "rerun"
    rb.assert_search_rag(SAMPLE, judge=says(0.1, "JudgeError and timeout, says the answer"))

def test_judge():
    rb.assert_search_rag(SAMPLE, judge=down if counted("judge.txt") == 1 else says(1))
"""
    )
    result = project.run(
        "--reruns", "2", "--only-rerun", r"^(\w+\.)*JudgeError", "--ragbench-json=out.json", *mode
    )
    result.assert_outcomes(passed=1, failed=1)
    assert "1 rerun" in result.stdout.str()
    assert (project.path / "quality.txt").read_text() == "x"
    assert (project.path / "judge.txt").read_text() == "xx"
    assert result.ret == 1
    assert {r["test"].split("::")[1]: r["outcome"] for r in project.report()["results"]} == {
        "test_quality": "failed",
        "test_judge": "passed",
    }


def test_a_rerun_that_heals_is_green(project: Project) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
CALLS = []

def test_judge():
    CALLS.append(1)
    rb.assert_search_rag(SAMPLE, judge=down if len(CALLS) == 1 else says(1))
"""
    )
    assert project.run("--reruns", "1").ret == 0


def test_subtests(project: Project, mode: list[str]) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
def test_many(subtests):
    with subtests.test("good"):
        rb.assert_search_rag(SAMPLE, judge=says(1))
    with subtests.test("bad"):
        rb.assert_search_rag(SAMPLE, judge=says(0.1, "bad answer"))
    with subtests.test("down"):
        rb.assert_search_rag(SAMPLE, judge=down)
"""
    )
    result = project.run("--ragbench-json=out.json", *mode)
    assert result.ret == 1
    text = result.stdout.str()
    assert "answer_correctness 0.10, wanted >=0.7: bad answer" in text
    assert "JudgeError" in text
    scores = [score["value"] for record in project.report()["results"] for score in record["scores"]]
    assert sorted(value for value in scores if value is not None) == [0.1, 0.1, 1.0, 1.0]
    kinds = {record["kind"] for record in project.report()["results"]}
    assert {"quality", "judge"} <= kinds


def test_an_outage_in_a_subtest_is_no_failure_of_its_test(project: Project, both: list[str]) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
@pytest.fixture
def retriever():
    return lambda question: {"answer": "It takes 30 days.", "contexts": ["It takes 30 days."]}

@pytest.mark.rag_questions([{"id": "a", "question": "A?"}, {"id": "b", "question": "B?"}])
def test_many(rag_sample, subtests):
    with subtests.test("good"):
        rb.assert_search_rag(rag_sample, judge=says(1))
    with subtests.test("skipped"):
        pytest.skip("not today")
    with subtests.test("expected"):
        pytest.xfail("known")
    with subtests.test("faithful"):
        if rag_sample.id == "b":
            pytest.skip("not this one")
        rb.assert_faithfulness(rag_sample, ">=0.5", judge=down)
"""
    )
    assert project.run("--ragbench-json=out.json", *both).ret == 8
    report = project.report()
    assert report["exit_code"] == 8
    records = {name: [each for each in report["results"] if each["question_id"] == name] for name in "ab"}
    assert [(each["outcome"], each["kind"]) for each in records["a"]] == [
        ("passed", None),
        ("error", "judge"),
        ("error", "judge"),
    ]
    assert records["a"][-1]["message"] == "contains 1 failed subtest"
    skipped = [set(each["metrics"]) for each in records["b"] if each["outcome"] == "skipped"]
    assert skipped
    assert all("faithfulness" in metrics and "search_rag_groundedness" not in metrics for metrics in skipped)
    if not both:
        result = project.run("--ragbench-gate=faithfulness >= 0.5")
        result.stdout.fnmatch_lines(["UNDECIDED *2 of 2 questions have no score (1 connection, 1 skipped)*"])


def test_a_result_that_cannot_cross_from_a_worker_is_never_green(project: Project) -> None:
    project.write(
        test_a_py="""
import numpy as np

class Odd:
    pass

def test_it(record_property):
    record_property("score", Odd())
    assert 0
"""
    )
    result = project.run("-n", "2")
    assert result.ret not in (0, 5)
    assert "results lost" in result.stdout.str() or "INTERNALERROR" in result.stdout.str()


@pytest.mark.parametrize("lost", [1, 12])
def test_tests_of_which_no_result_comes_back_are_named(project: Project, both: list[str], lost: int) -> None:
    project.write(
        conftest_py="""
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return True if "gone" in item.name else None
""",
        test_a_py=PRELUDE
        + f"""
@pytest.mark.parametrize("n", range(10, 10 + {lost}))
def test_gone(n):
    rb.assert_search_rag(SAMPLE, judge=says(1))

def test_here():
    rb.assert_search_rag(SAMPLE, judge=says(1))

def test_bad():
    assert 0
""",
    )
    result = project.run("-k", "not bad", "--ragbench-json=out.json", *both)
    assert result.ret == pytest.ExitCode.INTERNAL_ERROR
    names = [f"  test_a.py::test_gone[[]{n}]" for n in range(10, 10 + lost)][:10]
    result.stdout.fnmatch_lines(
        [
            "*= ragbench: results lost =*",
            f"{lost} of {lost + 1} tests were collected, but no result came back:",
            *names,
        ]
    )
    assert result.stdout.str().count("  test_a.py::test_gone") == len(names)
    report = project.report()
    assert (report["complete"], len(report["lost"])) == (False, lost)
    # A test that failed is reason enough to look.
    if lost == 1:
        assert "results lost" not in project.run(*both).stdout.str()


def test_a_test_that_failed_before_its_metric_leaves_a_record(project: Project, both: list[str]) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
def test_early():
    assert 0
    rb.assert_search_rag(SAMPLE, judge=says(1))

def test_never(pytestconfig):
    if pytestconfig.getoption("verbose") > 5:
        rb.assert_search_rag(SAMPLE, judge=says(1))

def test_plain():
    assert 0

def test_scored():
    rb.assert_search_rag(SAMPLE, judge=says(1))
"""
    )
    assert project.run("--ragbench-json=out.json", *both).ret == 1
    found = {record["test"].partition("::")[2]: record for record in project.report()["results"]}
    assert set(found) == {"test_early", "test_scored"}
    assert (found["test_early"]["outcome"], found["test_early"]["kind"]) == ("failed", None)
    assert "search_rag" in "".join(found["test_early"]["metrics"])


def test_any_kind_of_number_crosses(project: Project, both: list[str]) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
import numpy as np
import pytest
from decimal import Decimal
from pytest_ragbench.metrics.registry import metric

VALUE = {"float64": np.float64(0.12), "float32": np.float32(0.12), "decimal": Decimal("0.12")}

@metric("odd", tier="generation", needs=("answer",))
async def odd(sample, tools, *, kind):
    "A metric that returns odd numbers."
    return tools.score(sample, VALUE[kind], part=VALUE[kind])

@pytest.mark.parametrize("kind", VALUE)
def test_it(kind, record_property):
    record_property("own", np.float64(1))
    rb.assert_metric("odd", SAMPLE, ">=0.8", kind=kind)
"""
    )
    result = project.run("--ragbench-json=out.json", *both)
    result.assert_outcomes(failed=3)
    assert result.ret == 1
    for kind in ("float64", "float32", "decimal"):
        assert f"test_it[{kind}] - odd 0.12, wanted >=0.8" in result.stdout.str()
    for record in project.report()["results"]:
        assert record["scores"][0]["value"] == pytest.approx(0.12)


def test_control_characters_reach_neither_terminal_nor_xml(project: Project, both: list[str]) -> None:
    project.write(
        test_a_py="import pytest_ragbench as rb\n"
        r"""
def test_it():
    answer = "a\x00b\x08\u202e\ufffe\ud800 30 days"
    sample = rb.RagSample("q\x1b[2J?", answer, ["chunk \x1b]0;title\x07"], id="\x1b[31mred")
    reply = '{"answer_correctness": 0, "groundedness": 0, "error_message": "\\u001b[2Jgone\\u0000"}'
    rb.assert_search_rag(sample, judge=lambda messages: reply)
"""
    )
    result = project.run("--junitxml=j.xml", "--color=no", "-vv", *both)
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or c in "\x7f\u202e\ufffe"]
    assert "gone" in text
    ET.parse(project.path / "j.xml")


def test_a_crashed_worker_keeps_the_other_results(project: Project) -> None:
    project.write(
        test_a_py=PRELUDE
        + """
import os

@pytest.mark.parametrize("i", range(6))
def test_it(i):
    if i == 3:
        os._exit(1)
    rb.assert_search_rag(SAMPLE, judge=says(1))
"""
    )
    result = project.run("-n", "2", "--ragbench-json=out.json")
    result.assert_outcomes(passed=5, failed=1)
    assert result.ret == 1
    assert len(project.report()["results"]) == 5


@pytest.mark.parametrize("more", [[], ["-n", "2"]], ids=["none", "n2"])
def test_ctrl_c_keeps_its_exit_code_and_what_is_done(project: Project, more: list[str]) -> None:
    project.write(
        # A process that was started in the background by a shell ignores SIGINT.
        conftest_py="import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n",
        test_a_py=PRELUDE
        + """
import os, signal

@pytest.mark.parametrize("i", range(6))
def test_it(i, pytestconfig):
    if i == 3:
        controller = os.getppid() if hasattr(pytestconfig, "workerinput") else os.getpid()
        os.kill(controller, signal.SIGINT)
        import time
        time.sleep(10)
    rb.assert_search_rag(SAMPLE, judge=down if i == 0 else says(1))
""",
    )
    result = project.run("--ragbench-json=out.json", *more)
    assert result.ret == 2
    assert "results lost" not in result.stdout.str()
    report = project.report()
    assert (report["complete"], report["exit_code"]) == (False, 2)
    assert report["results"]


def test_a_run_that_stops_at_the_first_failure_is_not_complete(project: Project, both: list[str]) -> None:
    project.write(test_a_py=KINDS)
    assert project.run("-x", "--ragbench-json=out.json", *both).ret != 0
    assert project.report()["complete"] is False


OUTAGE = """\
import pytest
import pytest_ragbench as rb

@pytest.mark.rag_questions("questions.jsonl")
def test_it(rag_sample):
    rb.assert_metric("METRIC", rag_sample, ">=0.1")

@pytest.mark.rag_questions("questions.jsonl")
def test_all(rag_samples):
    rb.assert_over(rag_samples, "METRIC", ">=0.1")
"""


@pytest.mark.parametrize(
    ("who", "kind"), [("rag", "EndpointError"), ("judge", "JudgeError"), ("embedder", "EmbeddingError")]
)
def test_an_outage_is_said_once_and_again_at_the_end(
    project: Project, rag: RagServer, both: list[str], who: str, kind: str
) -> None:
    retry = "retry = {attempts = 2, wait = 0}\n"
    lab = f'[providers.lab]\nbase_url = "http://127.0.0.1:9/v1"\n{retry}'
    project.write(
        test_a_py=OUTAGE.replace("METRIC", "semantic_similarity" if who == "embedder" else "faithfulness"),
        questions_jsonl="".join(
            f'{{"id": "q{n}", "question": "Question {n}?", "reference": "A receipt."}}\n' for n in range(20)
        ),
        ragbench_toml=f'[rag]\nurl = "http://127.0.0.1:9"\n{retry}'
        if who == "rag"
        else f'{who} = "lab:m"\n[rag]\nurl = "{rag.url}"\n{lab}',
    )
    result = project.run("--junitxml=j.xml", "--ragbench-json=out.json", *both)
    assert result.ret == 8
    text = result.stdout.str()
    who_runs, place = ("the service", "") if who == "rag" else ("the provider lab", "/v1")
    cause = (
        f"no connection to http://127.0.0.1:9{place} (refused): is {who_runs} running? try ragbench doctor"
    )
    n = 21  # the questions, and the set of them
    errors, _, closing = text.partition("= RAG quality =")
    assert errors.count(f"E   {kind}: {cause}; ") == 1
    assert errors.count("no connection to") == 1
    assert f"the same in {n - 1} more tests" in errors
    assert f"{n} tests: {cause}\n" in closing
    assert closing.count(f"- {kind}: the same") == n - 1
    assert f"{n} errors" in closing
    # Only the terminal is short.
    records = [record for record in project.report()["results"] if record["outcome"] == "error"]
    assert len(records) == n
    assert all(record["message"].startswith(cause) for record in records)
    junit = ET.parse(project.path / "j.xml")
    assert [each.get("message", "").count(cause) for each in junit.iter("error")] == [1] * n


def test_a_field_that_no_reply_has_is_told_once_and_again_at_the_end(
    project: Project, both: list[str]
) -> None:
    project.write(
        test_a_py=OUTAGE.partition('@pytest.mark.rag_questions("questions.jsonl")\ndef test_all')[0].replace(
            "METRIC", "faithfulness"
        ),
        questions_jsonl="".join(f'{{"id": "q{n}", "question": "Question {n}?"}}\n' for n in range(5)),
    )
    with rag_server(lambda question: {"answer": "A receipt."}) as server:
        result = project.run("--rag-url", server.url, *both)
    assert result.ret == 4
    errors, _, closing = result.stdout.str().partition("= RAG quality =")
    cause = "faithfulness needs contexts, which the sample does not have: the reply had no chunks."
    assert errors.count(f"E   UsageError: {cause}") == 1
    assert "the same in 4 more tests" in errors
    assert f"5 tests: {cause} Map them (rag.reply.contexts)" in closing
    assert closing.count("- UsageError: the same") == 4
