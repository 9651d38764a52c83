"""The main job, as a user runs it: questions over HTTP, judged, reported."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench.model.report import RunInfo, RunReport
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.json_report import JsonReport
from tests.plugin.conftest import Project
from tests.servers.rag_server import RagServer, default_answer, rag_server

QUESTIONS = """\
id,question,reference,tags
receipt,What do I need to return a product?,A receipt.,returns
возврат,Что нужно для возврата?,Чек.,ru
返金,返品には何が必要ですか?,レシートです。,ja
"""

TESTS = """\
import pytest
from pytest_ragbench import assert_faithfulness

@pytest.mark.rag_questions("questions.csv")
def test_answer(rag_sample):
    assert_faithfulness(rag_sample, ">=0.8")
"""


@pytest.fixture
def bot(project: Project) -> Project:
    project.write(questions_csv=QUESTIONS, test_bot_py=TESTS)
    return project


def test_each_question_is_a_test_and_is_asked_once(bot: Project, rag: RagServer, mode: list[str]) -> None:
    result = bot.run("--rag-url", rag.url, "--ragbench-json", "out.json", *mode, fresh=True)
    result.assert_outcomes(passed=3)
    assert result.ret == 0
    assert sorted(rag.questions) == sorted(
        ["What do I need to return a product?", "Что нужно для возврата?", "返品には何が必要ですか?"]
    )
    report = bot.report()
    assert report["complete"] is True
    assert {record["question_id"] for record in report["results"]} == {"receipt", "возврат", "返金"}
    [metric] = report["summary"]["metrics"]
    assert metric["metric"] == "faithfulness"
    assert (metric["mean"], metric["n_scored"], metric["n_total"]) == (1.0, 3, 3)
    result.stdout.fnmatch_lines(
        ["*RAG quality*", "tier*metric*mean*", "generation*faithfulness*1.000*3/3*excellent"]
    )
    result.stdout.fnmatch_lines(["3 passed", "rag: 3 calls*p50*p95*"])


def test_workers_share_what_they_ask_however_xdist_was_loaded(
    bot: Project, rag: RagServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a module it has another name among pytest's plugins than by its entry point."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_ragbench.plugin,xdist.plugin")
    bot.write(test_again_py=TESTS)
    # Each worker gets the tests of one file, so that it meets all the questions that the other one has, too.
    result = bot.run(
        "--rag-url", rag.url, "-n", "2", "--dist", "loadfile", "--ragbench-lookahead=0", fresh=True
    )
    result.assert_outcomes(passed=6)
    assert len(rag.questions) == len(set(rag.questions)) == 3


def test_ids_are_readable_and_selectable(bot: Project, rag: RagServer, both: list[str]) -> None:
    result = bot.run("--rag-url", rag.url, "-v", "-k", "возврат", *both)
    result.assert_outcomes(passed=1, deselected=0 if "2" in both else 2)
    assert "test_answer[возврат]" in result.stdout.str()
    assert rag.questions == ["Что нужно для возврата?"]


def test_one_node_id_and_one_tag_select(bot: Project, rag: RagServer) -> None:
    bot.run("--rag-url", rag.url, "test_bot.py::test_answer[返金]").assert_outcomes(passed=1)
    bot.run("--rag-url", rag.url, "-m", "returns", "--strict-markers").assert_outcomes(passed=1, deselected=2)
    assert rag.questions == ["返品には何が必要ですか?", "What do I need to return a product?"]


def test_a_failure_says_what_is_wrong(bot: Project, mode: list[str]) -> None:
    def lying(question: str) -> dict[str, Any]:
        return {
            **default_answer(question),
            "answer": "A receipt is needed to return a product. It costs 45 dollars.",
        }

    with rag_server(lying) as server:
        result = bot.run(
            "--rag-url", server.url, "-k", "receipt", "--junitxml=j.xml", "--ragbench-json=out.json", *mode
        )
    result.assert_outcomes(failed=1, deselected=0 if "2" in mode else 2)
    assert result.ret == 1
    text = result.stdout.str()
    result.stdout.fnmatch_lines(
        ["FAILED test_bot.py::test_answer[[]receipt] - faithfulness 0.50, wanted >=0.8: *45*"]
    )
    result.stdout.fnmatch_lines(
        [
            "*assert_faithfulness(rag_sample*",
            "E   *faithfulness 0.50, wanted >=0.8: *45*",
            "E   *question*What do I need to return a product?*questions.csv:2*",
            "E   *answer*It costs 45 dollars.*",
            "E   *claims*✗*It costs 45 dollars.*",
            "E   *✓*A receipt is needed*chunk 2*",
            "E   *chunks*[[]1] 0.83*Delivery takes two days.*",
            "E   *judge*local*",
        ]
    )
    assert "assertions.py" not in text
    assert "def assert_metric" not in text
    [record] = bot.report()["results"]
    assert record["outcome"] == "failed"
    assert record["kind"] == "quality"
    [score] = record["scores"]
    assert (score["value"], score["threshold"], score["passed"]) == (0.5, ">=0.8", False)
    junit = (bot.path / "j.xml").read_text(encoding="utf-8")
    assert '<property name="ragbench.faithfulness" value="0.5"' in junit
    assert '<failure message="faithfulness 0.50, wanted &gt;=0.8' in junit


def test_a_service_nobody_is_at_is_an_error_not_a_failure(bot: Project, mode: list[str]) -> None:
    (bot.path / "ragbench.toml").write_text("[rag.retry]\nattempts = 2\nwait = 0\n", encoding="utf-8")
    result = bot.run("--rag-url", "http://127.0.0.1:9", "--junitxml=j.xml", *mode)
    result.assert_outcomes(errors=3)
    assert result.ret == 8
    result.stdout.fnmatch_lines(["3 endpoint errors"])
    result.stdout.fnmatch_lines(
        [
            "*tests: no connection to http://127.0.0.1:9 (refused): is the service running? try ragbench doctor",
            "ERROR test_bot.py::test_answer* - EndpointError: *127.0.0.1:9*",
        ]
    )
    junit = (bot.path / "j.xml").read_text(encoding="utf-8")
    assert 'errors="3" failures="0"' in junit


def test_without_a_service_the_message_says_what_to_do(bot: Project, both: list[str]) -> None:
    result = bot.run(*both)
    result.assert_outcomes(errors=3)
    assert result.ret == 4
    result.stdout.fnmatch_lines(["*no RAG service is configured: give --rag-url URL*"])


BROKEN = {
    "empty": ("", "*empty.csv*no question*"),
    "misspelt": ("question,refernce\nq?,a\n", "*misspelt.csv*refernce*reference*"),
    "duplicate": ("id,question\n1,a?\n1,b?\n", "*duplicate.csv*1*"),
}


def test_a_broken_question_file_is_a_usage_error(project: Project, rag: RagServer, both: list[str]) -> None:
    """Each is told of, one beside the other."""
    for name, (questions, _) in BROKEN.items():
        (project.path / f"{name}.csv").write_text(questions, encoding="utf-8")
        (project.path / f"test_{name}.py").write_text(TESTS.replace("questions.csv", f"{name}.csv"))
    result = project.run("--rag-url", rag.url, *both)
    assert result.ret == 4
    for name, (_, said) in BROKEN.items():
        result.stdout.fnmatch_lines([f"ERROR test_{name}.py*"])
        result.stdout.fnmatch_lines([said])
    assert rag.questions == []
    assert "Traceback" not in result.stdout.str()


def test_a_tag_that_is_no_mark_is_refused(bot: Project, rag: RagServer) -> None:
    (bot.path / "questions.csv").write_text("question,tags\nq?,parametrize\n", encoding="utf-8")
    result = bot.run("--rag-url", rag.url)
    assert result.ret == 4
    result.stdout.fnmatch_lines(["*questions.csv:2: tag 'parametrize'*"])


def test_the_default_question_file(bot: Project, rag: RagServer) -> None:
    (bot.path / "test_bot.py").write_text(TESTS.replace('@pytest.mark.rag_questions("questions.csv")\n', ""))
    (bot.path / "pytest.ini").write_text("[pytest]\nragbench_questions = questions.csv\n")
    bot.run("--rag-url", rag.url).assert_outcomes(passed=3)
    (bot.path / "pytest.ini").write_text("[pytest]\n")
    (bot.path / "ragbench.toml").write_text('questions = "questions.csv"\n')
    bot.run("--rag-url", rag.url).assert_outcomes(passed=3)
    (bot.path / "ragbench.toml").unlink()
    result = bot.run("--rag-url", rag.url)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*there are no questions for it*rag_questions*"])


def test_direct_parametrisation(project: Project, rag: RagServer) -> None:
    project.write(
        test_a_py="""
import pytest
from pytest_ragbench import RagSample, assert_faithfulness

@pytest.mark.parametrize("rag_question", ["What is needed?", {"query": "And now?", "expected_message": "r"}])
def test_questions(rag_sample):
    assert rag_sample.answer
    if rag_sample.question == "And now?":
        assert rag_sample.reference == "r"

@pytest.mark.parametrize("rag_sample", [RagSample("q", "a receipt", ["a receipt is needed"])])
def test_samples(rag_sample):
    assert rag_sample.contexts == ("a receipt is needed",)
"""
    )
    project.run("--rag-url", rag.url).assert_outcomes(passed=3)
    assert sorted(rag.questions) == ["And now?", "What is needed?"]


def test_the_columns_of_a_question_reach_the_test(project: Project, rag: RagServer) -> None:
    project.write(
        q_jsonl='{"id": "a", "question": "q?", "reference": "r", "relevant_ids": ["d2"], "must_pass": true, '
        '"threshold_faithfulness": ">=0.1", "tags": ["slow"], "owner": "team-x"}\n',
        test_a_py="""
import gc
import pytest
from pytest_ragbench import assert_metric

@pytest.mark.rag_questions("q.jsonl")
def test_it(rag_sample, request):
    assert rag_sample.reference == "r"
    assert gc.isenabled()
    assert gc.get_freeze_count() > 10_000  # what was imported is not gone over any more
    assert dict(rag_sample.relevant_ids) == {"d2": 1.0}
    assert rag_sample.must_pass
    assert rag_sample.context_ids == ("d1", "d2")
    assert rag_sample.context_scores == (0.83, 0.79)
    assert rag_sample.metadata["owner"] == "team-x"
    assert rag_sample.latency > 0
    assert str(rag_sample.location).endswith("q.jsonl:1")
    assert request.node.get_closest_marker("slow")
    assert assert_metric("faithfulness", rag_sample, ">=0.99", judge=half).value == 0.5

def half(messages):
    if "claims" in messages[-1]["content"] and "2" in messages[-1]["content"]:
        return '{"verdicts": {"1": {"verdict": true}, "2": {"verdict": false}}}'
    return '{"claims": ["one", "two"]}'
""",
    )
    # Not forked: what a forked run is made from is frozen already.
    project.run("--rag-url", rag.url, "-m", "slow", fresh=True).assert_outcomes(passed=1)


_LOADED = """
import gc, sys

def pytest_unconfigure(config):
    name = getattr(config, "workerinput", {"workerid": "main"})["workerid"]
    with open(f"loaded-{name}.txt", "w") as file:
        print(*sorted({module.partition(".")[0] for module in sys.modules}), file=file)
        assert gc.isenabled() and not gc.get_freeze_count()
"""
_HEAVY = {"openai", "torch", "scipy", "numpy", "pydantic", "yaml", "httpx2", "aiohttp", "sqlite3", "tenacity"}


def test_a_run_without_rag_tests_notices_nothing(project: Project, mode: list[str]) -> None:
    project.write(test_a_py="def test_it(): pass\ndef test_fails(): assert 0\n", conftest_py=_LOADED)
    result = project.run(*mode, fresh=True, measured=False)  # coverage imports sqlite3
    result.assert_outcomes(passed=1, failed=1)
    assert result.ret == 1
    text = result.stdout.str().replace("ragbench-", "")  # the list of installed plugins
    assert "ragbench" not in text
    assert "RAG" not in text
    assert not [path for path in project.files() if "ragbench" in str(path.relative_to(project.path))]
    loaded = {path.name: set(path.read_text().split()) for path in project.path.glob("loaded-*.txt")}
    assert len(loaded) == (3 if mode == ["-n", "2"] else 1)
    assert {name: modules & _HEAVY for name, modules in loaded.items()} == {key: set() for key in loaded}


def test_fixtures_are_documented(project: Project) -> None:
    result = project.run("--fixtures", "-p", "no:asyncio")
    for name in ("judge", "embedder", "retriever", "rag_question", "rag_sample", "rag_samples"):
        result.stdout.re_match_lines([rf"{name}( \[session scope\])? -- .*fixtures.py:\d+", r"    \S.*"])


def test_json_is_valid_while_the_run_goes_on(bot: Project, rag: RagServer) -> None:
    (bot.path / "conftest.py").write_text(
        """
import json, os, pathlib

def pytest_runtest_setup(item):
    seen = json.loads(pathlib.Path("out.json").read_text(encoding="utf-8"))
    assert seen["complete"] is False
    with open("seen.txt", "a") as out:
        print(len(seen["results"]), file=out)
    if len(seen["results"]) == 2:
        os._exit(9)
"""
    )
    bot.run("--rag-url", rag.url, "--ragbench-json", "out.json")
    assert (bot.path / "seen.txt").read_text().split() == ["0", "1", "2"]
    report = bot.report()
    assert report["complete"] is False
    assert [record["outcome"] for record in report["results"]] == ["passed", "passed"]


def test_two_runs_do_not_write_one_report(bot: Project, rag: RagServer) -> None:
    context = ReportContext(RunInfo(id="r", started=1.0))
    first = JsonReport(bot.path / "out.json", context)
    result = bot.run("--rag-url", rag.url, "--ragbench-json", "out.json")
    first.finish(RunReport(run=context.run))
    assert result.ret == 4
    assert "another run is writing it" in result.stderr.str() + result.stdout.str()


def test_one_tier(project: Project, rag: RagServer, both: list[str]) -> None:
    project.write(
        q_csv="question,relevant_ids\nWhat is needed?,d2\n",
        test_a_py="""
import pytest
from pytest_ragbench import assert_faithfulness, assert_metric, assert_quality, assert_retrieval

pytestmark = pytest.mark.rag_questions("q.csv")

def test_generation(rag_sample):
    assert_faithfulness(rag_sample, ">=0.5")

def test_ranking(rag_samples):
    assert_retrieval(rag_samples, "mrr", ">=0.5")

@pytest.mark.parametrize("metric", ["hit_rate@2", "search_rag"])
def test_by_name(rag_sample, metric):
    assert_metric(metric, rag_sample, ">=0.1")

def test_both(rag_sample):
    assert_quality(rag_sample, {"recall@2": 1}, faithfulness=0.5)

@pytest.mark.rag_tier("end_to_end")
def test_marked(rag_sample):
    assert rag_sample.answer

def test_nothing_of_ours():
    pass
""",
    )
    chosen = ("--rag-url", rag.url, "--ragbench-store=off", *both)
    assert project.run("--ragbench-tier", "retrieval", *chosen).parseoutcomes()["passed"] == 3
    if both:
        return  # what follows is the same with workers
    assert project.run("--ragbench-tier", "2", *chosen).parseoutcomes()["passed"] == 2
    assert project.run("--ragbench-tier", "3", *chosen).parseoutcomes()["passed"] == 2
    result = project.run("--ragbench-tier", "4", *chosen)
    assert result.ret == 4
    assert "no such tier" in result.stderr.str() + result.stdout.str()


def test_a_table_for_a_spreadsheet(bot: Project, both: list[str]) -> None:
    import csv

    def formula(question: str) -> dict[str, Any]:
        return {**default_answer(question), "answer": '=HYPERLINK("http://x") A receipt is needed.'}

    with rag_server(formula) as server:
        bot.run("--rag-url", server.url, "--ragbench-csv", "out.csv", *both)
    with (bot.path / "out.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["question_id"] for row in rows) == sorted(["receipt", "возврат", "返金"])
    assert {row["metric"] for row in rows} == {"faithfulness"}
    assert all(0 <= float(row["value"]) <= 1 for row in rows)
    assert all(row["answer"].startswith("'=") for row in rows)


def test_the_command_line_says_which_system_is_asked(bot: Project, rag: RagServer, both: list[str]) -> None:
    bot.write(ragbench_toml='[rag]\nretriever = "nowhere:answer"\n')
    result = bot.run("--rag-url", rag.url, *both)
    result.stdout.no_fnmatch_line("*nowhere*")
    assert rag.questions
