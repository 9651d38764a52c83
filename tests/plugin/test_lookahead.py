"""Calls of the tests to come, under way while a test waits; each made once, none for what is not run."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.servers.openai_server import OpenAIServer, Reply
from tests.servers.rag_server import RagServer, default_answer, rag_server

N = 8
TESTS = """
import pytest
from pytest_ragbench import assert_metric

@pytest.mark.rag_questions("q.jsonl")
def test_answer(rag_sample):
    assert_metric("faithfulness_holistic", rag_sample, ">=0.5")
    assert_metric("answer_relevancy_holistic", rag_sample, ">=0.5")
"""
LOADING = (
    TESTS
    + """
@pytest.fixture(scope="module", autouse=True)
def loaded(request):
    request.path.with_name("loaded-{0}").touch()
    yield
    request.path.with_name("loaded-{0}").unlink(missing_ok=True)
"""
)
TOML = """
[rag]
max_concurrency = 4
[providers.openai]
base_url = "{url}"
api_key_env = "FAKE_KEY"
model = "m"
max_concurrency = 4
[providers.openai.retry]
attempts = 2
wait = 0
"""


def grade(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Any:
    """Full marks for whatever is asked."""
    wanted = (schema or {})["properties"]
    return {name: "" if part.get("type") == "string" else 1.0 for name, part in wanted.items()}


class Crowd:
    """A handler that holds the first ``wanted`` calls until all of them are there (or the time is up)."""

    def __init__(self, wanted: int, reply: Any) -> None:
        self.barrier = threading.Barrier(wanted)
        self.reply = reply
        self.met = False

    def __call__(self, *args: Any) -> Any:
        if not self.met and not self.barrier.broken:
            try:
                self.barrier.wait(timeout=10)
                self.met = True
            except threading.BrokenBarrierError:
                pass
        return self.reply(*args)


@pytest.fixture
def judge() -> Iterator[OpenAIServer]:
    with OpenAIServer(grade) as server:
        yield server


@pytest.fixture
def job(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    rows = [json.dumps({"id": f"q{number}", "question": f"Question {number}?"}) for number in range(N)]
    project.write(q_jsonl="\n".join(rows), test_job_py=TESTS)
    monkeypatch.setenv("FAKE_KEY", "sk-fake")
    return project


def run(job: Project, rag: RagServer, judge: OpenAIServer, *args: str, slots: int = 4) -> pytest.RunResult:
    toml = TOML.replace("max_concurrency = 4", f"max_concurrency = {slots}")
    job.write(ragbench_toml=toml.format(url=judge.url))
    return job.run("--rag-url", rag.url, "--ragbench-json=out.json", "-p", "no:asyncio", *args)


def most(judge: OpenAIServer) -> int:
    return max(Counter(json.dumps(request["messages"]) for request in judge.requests).values(), default=0)


def test_calls_overlap_and_each_is_made_once(job: Project, mode: list[str]) -> None:
    answer, grades = Crowd(4, default_answer), Crowd(4, grade)
    with rag_server(answer) as rag, OpenAIServer(grades) as judge:
        result = run(job, rag, judge, *mode)
    result.assert_outcomes(passed=N)
    assert answer.met
    assert grades.met
    assert sorted(rag.questions) == [f"Question {number}?" for number in range(N)]
    assert (len(judge.requests), most(judge)) == (2 * N, 1)
    each_is_paid_by_its_test(job)


def test_the_calls_of_tests_in_yaml_overlap_too(job: Project, both: list[str]) -> None:
    (job.path / "test_job.py").unlink()
    limits = "{faithfulness_holistic: 0.5, answer_relevancy_holistic: 0.5}"
    (job.path / "job.rag.yaml").write_text(f"questions: q.jsonl\nthresholds: {limits}\n")
    answer, grades = Crowd(4, default_answer), Crowd(4, grade)
    with rag_server(answer) as rag, OpenAIServer(grades) as judge:
        result = run(job, rag, judge, *both)
    result.assert_outcomes(passed=N)
    assert answer.met
    assert grades.met
    assert (len(rag.questions), len(judge.requests), most(judge)) == (N, 2 * N, 1)
    each_is_paid_by_its_test(job)


def each_is_paid_by_its_test(job: Project) -> None:
    """Paid ahead, by whichever worker, is not "stored": the scores show what they took."""
    report = job.report()
    calls = report["summary"]["calls"]
    assert (calls["rag"]["calls"], calls["judge"]["calls"]) == (N, 2 * N)
    assert (calls["rag"]["stored"], calls["judge"]["stored"]) == (0, 0)
    scores = [score for record in report["results"] for score in record["scores"]]
    assert {(score["cached"], score["usage"]["calls"]) for score in scores} == {(False, 1)}


@pytest.mark.parametrize("dist", ["worksteal", "loadfile"])
def test_each_call_once_however_tests_are_dealt_out(
    job: Project, rag: RagServer, judge: OpenAIServer, dist: str
) -> None:
    job.write(test_two_py=TESTS.replace("test_answer", "test_again"))
    run(job, rag, judge, "-n", "2", "--dist", dist).assert_outcomes(passed=2 * N)
    assert sorted(rag.questions) == [f"Question {number}?" for number in range(N)]
    assert (len(judge.requests), most(judge)) == (2 * N, 1)
    scores = [score for record in job.report()["results"] for score in record["scores"]]
    assert sum(score["usage"]["calls"] for score in scores) == 2 * N


def test_ctrl_c_ends_what_was_asked_ahead(job: Project, rag: RagServer, both: list[str]) -> None:
    """Though the judge never answers what is under way then."""
    job.write(
        conftest_py="""
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)

def pytest_runtest_teardown(item):
    if "q1" in item.nodeid:
        worker = hasattr(item.config, "workerinput")
        os.kill(os.getppid() if worker else os.getpid(), signal.SIGINT)
"""
    )

    def silent(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Any:
        asked = any(f"Question {number}?" in str(messages) for number in (0, 1))
        return grade(messages, schema) if asked else Reply(hang=True)

    with OpenAIServer(silent) as judge:
        # Slots for all that hangs: a worker that comes late must not wait for those of the other.
        result = run(job, rag, judge, "--ragbench-lookahead=2", *both, slots=16)
    assert result.ret == 2
    assert job.report()["complete"] is False
    assert "Question 7?" not in rag.questions


def test_a_fixture_of_a_module_comes_before_its_questions(
    job: Project, judge: OpenAIServer, both: list[str]
) -> None:
    job.write(
        test_job_py=LOADING.format(1),
        test_two_py=LOADING.format(2).replace("q.jsonl", "r.jsonl"),
        r_jsonl=json.dumps({"id": "r", "question": "Question of the second module?"}),
    )

    def answer(question: str) -> dict[str, Any]:
        module = 2 if "second" in question else 1
        assert (job.path / f"loaded-{module}").exists(), question
        return default_answer(question)

    with rag_server(answer) as rag:
        run(job, rag, judge, *both).assert_outcomes(passed=N + 1)


def test_the_assertions_of_the_running_test_overlap_too(job: Project, rag: RagServer) -> None:
    """Also in the first test, to which nobody looked ahead."""
    grades = Crowd(2, grade)
    with OpenAIServer(grades) as judge:
        run(job, rag, judge, "-k", "q3").assert_outcomes(passed=1, deselected=N - 1)
    assert grades.met
    assert (len(judge.requests), most(judge)) == (2, 1)
    scores = [score for record in job.report()["results"] for score in record["scores"]]
    assert [(score["cached"], score["usage"]["calls"]) for score in scores] == [(False, 1)] * 2


def test_zero_switches_it_off(job: Project, judge: OpenAIServer, both: list[str]) -> None:
    under_way: list[int] = []
    peak: list[int] = [0]

    def answer(question: str) -> dict[str, Any]:
        under_way.append(1)
        peak[0] = max(peak[0], len(under_way))
        try:
            return default_answer(question)
        finally:
            under_way.pop()

    with rag_server(answer) as rag:
        run(job, rag, judge, "--ragbench-lookahead=0", *both).assert_outcomes(passed=N)
    assert peak[0] <= (2 if "2" in both else 1)
    assert len(rag.questions) == N


@pytest.mark.parametrize("value", ["-1", "many"])
def test_a_bad_window_is_a_usage_error(job: Project, rag: RagServer, judge: OpenAIServer, value: str) -> None:
    result = run(job, rag, judge, f"--ragbench-lookahead={value}")
    assert result.ret == 4
    assert "lookahead" in result.stdout.str() + result.stderr.str()
    assert rag.questions == []


def test_what_is_not_run_is_not_asked(
    job: Project, rag: RagServer, judge: OpenAIServer, both: list[str]
) -> None:
    job.write(
        test_job_py=TESTS
        + """
@pytest.mark.rag_questions("q.jsonl")
@pytest.mark.skip(reason="not now")
def test_skipped(rag_sample):
    assert_metric("search_rag", rag_sample, ">=0.5")

@pytest.mark.rag_questions("q.jsonl")
@pytest.mark.xfail(run=False)
def test_not_run(rag_sample):
    assert_metric("search_rag", rag_sample, ">=0.5")

@pytest.mark.rag_questions("q.jsonl")
@pytest.mark.skipif("sys.version_info > (3,)")
def test_skipped_by_condition(rag_sample):
    assert_metric("search_rag", rag_sample, ">=0.5")
"""
    )
    run(job, rag, judge, "-k", "q1 or q5", *both)
    assert sorted(rag.questions) == ["Question 1?", "Question 5?"]
    assert (len(judge.requests), most(judge)) == (4, 1)


def test_collecting_asks_nothing(job: Project, rag: RagServer, judge: OpenAIServer, both: list[str]) -> None:
    assert run(job, rag, judge, "--collect-only", *both).ret == 0
    assert rag.questions == []


def test_the_first_failure_ends_it(job: Project, rag: RagServer, both: list[str]) -> None:
    bad = Reply({"reason": "no", "grade": 0.0})
    with OpenAIServer(lambda messages, schema: bad) as judge:
        result = run(job, rag, judge, "-x", "--ragbench-lookahead=2", *both)
    assert result.parseoutcomes()["failed"] >= 1
    assert result.ret in (1, 2)
    workers = 2 if "2" in both else 1
    assert len(rag.questions) <= 3 * workers + 2
    assert len(set(rag.questions)) == len(rag.questions)


@pytest.mark.parametrize("scope", ["function", "module"])
def test_a_judge_that_is_not_known_early_is_not_guessed_at(
    job: Project, rag: RagServer, judge: OpenAIServer, both: list[str], scope: str
) -> None:
    job.write(
        conftest_py=f"""
import pytest

@pytest.fixture(scope={scope!r})
def judge():
    def own(messages):
        return '{{"reason": "", "grade": 1.0}}'
    return own
"""
    )
    run(job, rag, judge, *both).assert_outcomes(passed=N)
    assert judge.requests == []
    assert len(rag.questions) == N


def test_a_session_wide_override_is_used_once_it_is_there(
    job: Project, judge: OpenAIServer, both: list[str]
) -> None:
    job.write(
        conftest_py="""
import os, pytest

@pytest.fixture(scope="session")
def retriever():
    return os.environ["OWN_URL"]
"""
    )
    answer = Crowd(4, default_answer)
    with rag_server(answer) as own, rag_server() as configured:
        job.pytester._monkeypatch.setenv("OWN_URL", own.url)
        run(job, configured, judge, *both).assert_outcomes(passed=N)
    assert configured.questions == []
    assert sorted(own.questions) == [f"Question {number}?" for number in range(N)]
    assert answer.met


def test_a_function_as_retriever_is_called_once_a_test(
    job: Project, rag: RagServer, judge: OpenAIServer, both: list[str]
) -> None:
    job.write(
        conftest_py="""
import pathlib, pytest

@pytest.fixture(scope="session")
def retriever():
    def ask(question):
        with open(pathlib.Path(__file__).with_name("asked.txt"), "a") as out:
            out.write(question + "\\n")
        return {"answer": "A receipt.", "contexts": ["A receipt is needed."]}
    return ask
"""
    )
    run(job, rag, judge, *both).assert_outcomes(passed=N)
    assert sorted((job.path / "asked.txt").read_text().split("\n")[:-1]) == [
        f"Question {number}?" for number in range(N)
    ]


def test_a_fixture_that_may_change_the_service_comes_first(
    job: Project, judge: OpenAIServer, both: list[str]
) -> None:
    job.write(
        conftest_py="""
import pathlib, pytest

@pytest.fixture(autouse=True)
def loaded(request):
    pathlib.Path(__file__).with_name("loaded-" + request.node.callspec.id).touch()
"""
    )

    def answer(question: str) -> dict[str, Any]:
        number = question.removeprefix("Question ").removesuffix("?")
        assert (job.path / f"loaded-q{number}").exists(), question
        return default_answer(question)

    with rag_server(answer) as rag:
        run(job, rag, judge, *both).assert_outcomes(passed=N)


def test_a_wrong_test_pays_for_no_grade(
    job: Project, rag: RagServer, judge: OpenAIServer, both: list[str]
) -> None:
    job.write(test_job_py=TESTS.replace('">=0.5"', '"<=0.5"', 1))
    result = run(job, rag, judge, *both)
    result.assert_outcomes(errors=N)
    assert result.ret == 4
    assert judge.requests == []


def test_another_judge_for_one_call_is_not_mistaken(
    job: Project, rag: RagServer, judge: OpenAIServer, both: list[str]
) -> None:
    job.write(
        test_job_py=TESTS.replace(
            '"faithfulness_holistic", rag_sample, ">=0.5"',
            """"faithfulness_holistic", rag_sample, ">=0.5", judge=lambda m: '{"reason": "", "grade": 1}'""",
        )
    )
    run(job, rag, judge, *both).assert_outcomes(passed=N)
    assert (len(judge.requests), most(judge)) == (N, 1)


def test_an_error_ahead_is_the_tests_own_and_not_asked_for_again(job: Project, rag: RagServer) -> None:
    """Two attempts each, whoever made them."""

    def broken(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Any:
        if "Question 3?" in str(messages):
            return Reply("no JSON")
        return grade(messages, schema)

    with OpenAIServer(broken) as judge:
        result = run(job, rag, judge)
    result.assert_outcomes(passed=N - 1, errors=1)
    assert result.ret == 8
    asked = [request["messages"] for request in judge.requests if "Question 3?" in str(request["messages"])]
    # Twice for the grade that the test fails with, twice for the one that it would have asked for next.
    assert len(asked) == 4


def test_a_killed_worker_takes_no_test_with_it(job: Project, rag: RagServer, judge: OpenAIServer) -> None:
    job.write(
        conftest_py="""
import os, pathlib, signal

def pytest_runtest_teardown(item):
    mark = pathlib.Path(__file__).with_name("killed")
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw0" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    result = run(job, rag, judge, "-n", "2", "--max-worker-restart=2")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["failed"]) == (N, 1)  # the one it died in had passed by then
    assert set(rag.questions) == {f"Question {number}?" for number in range(N)}


def test_samples_of_tests_that_are_over_are_not_kept(job: Project, rag: RagServer) -> None:
    """Of a run that asks no judge: nothing but the end of a test says that its sample is of no more use."""
    job.write(
        test_job_py="""
import pytest

@pytest.mark.rag_questions("q.jsonl")
def test_answer(rag_sample): assert rag_sample.answer
""",
        conftest_py="""
from pytest_ragbench.plugin.support import support_of

def pytest_sessionfinish(session):
    looking = support_of(session.config)._lookahead
    print("kept", [each for each in looking._tests.values() if each.ahead.tasks][:-1])
""",
    )
    ran = job.run("-s", f"--rag-url={rag.url}")
    ran.assert_outcomes(passed=N)
    assert len(rag.questions) == N
    ran.stdout.fnmatch_lines(["*kept []*"])
