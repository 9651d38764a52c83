"""Allure, pytest-html and GitHub get what they can show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugin.conftest import Project

TESTS = """\
import pytest
from pytest_ragbench import RagSample, assert_metric

def test_answer():
    sample = RagSample("Кто?", "<script>alert(1)</script>", ["чек", "да"], reference="чек", id="q-1",
                       context_urls=["https://example.org/чек", "javascript:alert(1)"])
    assert_metric("exact_match", sample, 1)
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
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["::error title=Кто?::exact_match 0.00, wanted >=1*"])
    assert "exact\\_match" in (project.path / "summary.md").read_text(encoding="utf-8")

    [found] = [json.loads(path.read_text(encoding="utf-8")) for path in Path("allure").glob("*-result.json")]
    assert found["status"] == "failed"
    given = {entry["name"]: entry["value"] for entry in found["parameters"]}
    assert given.items() >= {"question": "'Кто?'", "exact_match": "'0 (wanted >=1)'"}.items()
    assert [link["url"] for link in found["links"]] == ["https://example.org/чек"]
    files = {entry["name"]: Path("allure") / entry["source"] for entry in found["attachments"]}
    attached = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    assert "<script>alert(1)</script>" in attached["evidence"]
    assert "1, если ответ совпадает с эталоном" in attached["method: exact_match"]
    assert json.loads(attached["ragbench"])["scores"][0]["metric"] == "exact_match"

    page = (project.path / "page.html").read_text(encoding="utf-8")
    assert "RAG evidence" in page
    assert "<script>alert(1)" not in page
