"""Allure, pytest-html and GitHub get what they can show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.conftest import Project
from tests.plugin.junit import read_junit

TESTS = """\
import json
import pytest
from pytest_ragbench import RagSample, assert_metric, assert_search_rag

def test_answer():
    sample = RagSample("Кто?", "<script>alert(1)</script>", ["чек", "да"], reference="чек", id="q-1",
                       context_urls=["https://example.org/чек", "javascript:alert(1)"])
    assert_metric("exact_match", sample, 1)

BAD = "\\x00\\x07\\x1b[31m]]><![CDATA[ \\ud800 \\ufffe \\x85 \\u202e </failure><script>alert(1)</script> & \\x0b"
HOSTILE = RagSample(BAD * 400, BAD * 400, [BAD * 400], id=BAD)

SAID = {"answer_correctness": 0.1, "groundedness": 0.1, "error_message": BAD * 400}
REPLIES = {"raw": BAD * 400, "said": json.dumps(SAID)}

@pytest.mark.parametrize("name", REPLIES)
def test_hostile(name):
    assert_search_rag(HOSTILE, judge=lambda messages: REPLIES[name])

def test_raised():
    def judge(messages):
        raise ConnectionError(BAD * 400)
    assert_search_rag(HOSTILE, judge=judge)

def test_long():
    assert_metric("exact_match", RagSample("q", "y" * 40_000, ["z"], reference="w" * 40_000, id="x" * 300), 1)
"""


def test_allure_and_pytest_html_and_github(
    project: Project, monkeypatch: pytest.MonkeyPatch, both: list[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    project.write(test_a_py=TESTS)
    result = project.run(
        "--alluredir=allure", "--html=page.html", "--self-contained-html", "--junitxml=j.xml", *both
    )
    result.assert_outcomes(failed=3, errors=2)
    root = read_junit(project.path / "j.xml")
    failed = [element for tag in ("failure", "error") for element in root.iter(tag)]
    assert len(failed) == 5
    assert all(
        len(element.attrib["message"]) < 600 and len(element.text or "") < 10_000 for element in failed
    )
    assert {each.attrib["name"] for each in root.iter("property")} >= {
        "ragbench.exact_match",
        "ragbench.outcome",
    }
    result.stdout.fnmatch_lines(["::error title=Кто?::exact_match 0.00, wanted >=1*"])
    assert "| exact_match |" in (project.path / "summary.md").read_text(encoding="utf-8")

    written = [json.loads(path.read_text(encoding="utf-8")) for path in Path("allure").glob("*-result.json")]
    by_name = {each["name"]: each for each in written}
    assert {name: each["status"] for name, each in by_name.items()} == {
        "test_answer": "failed", "test_hostile[raw]": "broken", "test_hostile[said]": "failed",
        "test_raised": "broken", "test_long": "failed",
    }  # fmt: skip
    found = by_name["test_answer"]
    given = {entry["name"]: entry["value"] for entry in found["parameters"]}
    assert given.items() >= {"question": "'Кто?'", "exact_match": "'0 (wanted >=1)'"}.items()
    assert [link["url"] for link in found["links"]] == ["https://example.org/чек"]
    files = {entry["name"]: Path("allure") / entry["source"] for entry in found["attachments"]}
    attached = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    assert "<script>alert(1)</script>" in attached["evidence"]
    assert "Whether the answer equals" in attached["method: exact_match"]
    assert "1, если ответ совпадает с эталоном" in attached["method: exact_match"]
    assert json.loads(attached["ragbench"])["scores"][0]["metric"] == "exact_match"

    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert "RAG evidence" in page
    assert "<script>alert(1)" not in page
    if not both:  # one of them is enough
        project.run("--html=alone.html", "--self-contained-html", "-k", "test_answer")
        assert "RAG evidence" in (project.path / "alone.html").read_text(encoding="utf-8")
