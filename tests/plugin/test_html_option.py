from __future__ import annotations

import json

from pytest_ragbench.report.history import History
from tests.plugin.conftest import Project
from tests.report_html.pages import ReadPage
from tests.servers.rag_server import RagServer

TESTS = """\
import pytest
from pytest_ragbench import assert_faithfulness

@pytest.mark.rag_questions([{"id": "<b>", "question": "What do I need to return a product?"}])
def test_answer(rag_sample):
    assert_faithfulness(rag_sample, ">=0.8")
"""


def test_runs_write_their_pages_and_the_history_is_the_trend(project: Project, rag: RagServer) -> None:
    """In one process, then with two workers."""
    project.write(
        test_bot_py=TESTS,
        ragbench_toml='history = "runs/history.sqlite"\nhistory_keep = 2\nhistory_reports = "runs"\nlang = "ru"\n',
    )
    for more in ([], ["-n", "2", "--ragbench-verbose"]):
        result = project.run(
            "--rag-url", rag.url, "--ragbench-html=out/page.html", "--ragbench-json=out.json",
            "--ragbench-gate=faithfulness >= 0.5", *more,
        )  # fmt: skip
        result.assert_outcomes(passed=1)
        result.stdout.fnmatch_lines(["page: *page.html"])
        page = ReadPage((project.path / "out/page.html").read_text(encoding="utf-8"))
        assert page.problems == []
        [row] = json.loads(page.blocks[0])["questions"]
        assert (row["id"], row["outcome"]) == ("<b>", "passed")
        assert page.shows("faithfulness >= 0.5")
        assert page.shows("Достоверность: доля утверждений ответа")
        assert page.shows("Trend over 2 runs") == bool(more)
        assert project.report()["gates"]
    result.stdout.fnmatch_lines(
        ["*RAG quality: passing questions*", "*test_answer*", "*faithfulness 1.00, wanted*"]
    )
    history = History(project.path / "runs/history.sqlite")
    assert [run.run.id for run in history.runs(9)][1:] == [project.report()["run"]["id"]]
    # The report of --ragbench-json, and the question with its texts in it.
    kept = json.loads(history.reports()[project.report()["run"]["id"]].read_text(encoding="utf-8"))
    assert kept == project.report()


def test_a_page_that_cannot_be_written_is_refused_before_the_run(project: Project, rag: RagServer) -> None:
    project.write(test_bot_py=TESTS)
    (project.path / "page.html").mkdir()
    result = project.run("--rag-url", rag.url, "--ragbench-html=page.html")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--ragbench-html *page.html: can't be written: it is a directory"])
    project.write(ragbench_toml='history = "h.sqlite"\nhistory_reports = "test_bot.py/reports"\n')
    result = project.run("--rag-url", rag.url)
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        ["*--ragbench-history-reports *reports: can't be written: *test_bot.py is a file"]
    )
    assert rag.questions == []
