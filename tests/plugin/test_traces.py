"""The trace of a question stands wherever a failure is looked at."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from typing import Any

from tests.plugin.conftest import Project
from tests.report_html.pages import ReadPage
from tests.servers.rag_server import default_answer, rag_server


def answer(question: str) -> Any:
    return (400, "text/plain", "no") if question == "lost" else default_answer(question)


def test_a_failure_tells_its_trace(project: Project) -> None:
    project.write(
        ragbench_toml='trace_url = "https://traces.example/t/{trace_id}"\n',
        test_a_py="import pytest\nimport pytest_ragbench as rb\n"
        "@pytest.mark.rag_questions([{'id': 'bad', 'question': 'a'}, {'id': 'lost', 'question': 'lost'}])\n"
        "def test_a(rag_sample):\n    assert rag_sample.answer == 'b'\n"
        "@pytest.mark.rag_questions([{'id': f'{n}', 'question': f'{n}'} for n in range(7)])\n"
        "def test_set(rag_samples):\n    assert not list(rag_samples)\n"
        "def test_early():\n    assert 0\n    rb.assert_metric('exact_match', rb.RagSample('q', 'a'), 1)\n",
    )
    with rag_server(answer) as server:
        run = project.run(
            "--rag-url", server.url, "-n", "2", "--junitxml=j.xml", "--ragbench-html=p.html", "--ragbench-json=out.json"
        )  # fmt: skip
    run.assert_outcomes(failed=3, errors=1)
    report = project.report()
    assert report["run"]["trace_url"] == "https://traces.example/t/{trace_id}"
    tests = {each["test"].rpartition("[")[2]: each for each in report["results"]}
    bad, lost = tests["bad]"]["samples"][0], tests["lost]"]["questions"][0]
    shown = [f"https://traces.example/t/{each['trace_id']}" for each in (bad, lost)]
    assert all(len(each["trace_id"]) == 32 for each in (bad, lost))
    run.stdout.fnmatch_lines_random([f"{shown[0]}   bad", f"{shown[1]}   lost"])
    text = run.stdout.str()
    assert [text.count(f"- {title} -") for title in ("trace of the question", "traces of the questions")] == [
        2,
        1,
    ]
    run.stdout.fnmatch_lines(["https://traces.example/t/*   4", "... and 2 more, which stand in the report"])
    junit = ElementTree.fromstring((project.path / "j.xml").read_text(encoding="utf-8"))
    told = {each.get("value") for each in junit.iter("property") if each.get("name") == "ragbench.trace"}
    assert (told >= set(shown), len(told)) == (True, 7)
    page = json.loads(ReadPage((project.path / "p.html").read_text(encoding="utf-8")).blocks[0])
    assert page["trace_url"].startswith("https://traces.example")
    assert bad["trace_id"] in {row.get("trace_id") for row in page["questions"]}


def test_without_trace_url_the_id_is_in_the_report_only(project: Project) -> None:
    project.write(
        test_a_py="import pytest\n"
        "@pytest.mark.rag_questions([{'id': 'bad', 'question': 'a'}])\n"
        "def test_a(rag_sample):\n    assert rag_sample.answer == 'b'\n",
    )
    with rag_server(answer) as server:
        run = project.run("--rag-url", server.url, "--junitxml=j.xml", "--ragbench-json=out.json")
    run.assert_outcomes(failed=1)
    found = project.report()["results"][0]["samples"][0]["trace_id"]
    assert f'"ragbench.trace" value="{found}"' in (project.path / "j.xml").read_text(encoding="utf-8")
    assert found not in run.stdout.str()
    assert "trace of the question" not in run.stdout.str()
